"""When rows were last made what they are: the journal, asked for many rows at a time."""

from __future__ import annotations

import pytest

from syncengine.effects import Effect
from syncengine.resource import Body, Key, Recorded, Source, Status
from syncengine.state.store import Attempt, CallFailure, Settlement, State, open_state

from .estate import applied, applying, run, tag, whole

A, B, C = tag("a"), tag("b"), tag("c")


def settled(url: str, *keys: Key) -> dict[str, float]:
    with open_state(url, write=False) as state:
        return {key.name: at for key, at in state.settled_at(keys).items()}


def ends(url: str) -> list[float]:
    """When calls were acknowledged, by the state's clock, oldest first."""
    with open_state(url, write=False) as state, state.database.transaction() as connection:
        lines = connection.exec_driver_sql("SELECT ended FROM state_calls WHERE outcome = 'settled' ORDER BY id")
        return [float(at) for (at,) in lines]


def test_a_row_settled_when_its_last_call_was_acknowledged(url: str) -> None:
    """Not when the run began or ended, and each row at its own time; one that is not recorded has none."""
    with applying(url) as state:
        applied(state, "c1", whole(A, description="d"), whole(B))
        applied(state, "c2", whole(A, description="e"))
        state.end_run("complete", {})
    first, second = ends(url)
    assert first < second
    assert settled(url, A, B, C) == {"a": second, "b": first}


def test_what_only_moved_in_its_file_settled_when_it_was_sent(url: str) -> None:
    """A record of another place is no change of the service."""
    with applying(url) as state:
        applied(state, "c1", whole(A, description="d"))
        state.end_run("complete", {})
    with applying(url, run(2)) as state:
        state.record([Effect(key=A, source=Source("moved.yaml", 7))])
        state.end_run("complete", {})
    assert settled(url, A) == {"a": ends(url)[-1]}


def test_a_release_counts_from_when_it_was_recorded(url: str) -> None:
    """No call is needed for it."""
    with applying(url) as state:
        applied(state, "c1", whole(A))
        state.record([Effect(key=A, status=Status.RELEASED)])
        state.end_run("complete", {})
    assert settled(url, A)["a"] > ends(url)[-1]


def test_what_was_adopted_counts_from_then(url: str) -> None:
    """Nothing was ever sent for it."""
    with applying(url) as state:
        state.put([Recorded(A, Body({"description": "there"}))])
        state.end_run("complete", {})
    assert settled(url, A)["a"] > 1_000


@pytest.mark.parametrize("end", ["fail", "none"])
def test_a_call_that_was_not_acknowledged_settles_nothing(url: str, end: str) -> None:
    """The row is in doubt; that of before counts no less."""
    with applying(url) as state:
        applied(state, "c1", whole(A, description="d"))
        state.end_run("complete", {})
    before = settled(url, A)
    with applying(url, run(2)) as state:
        state.intend({"c1": Attempt("upsertTags", (whole(A, description="e"),))})
        if end == "fail":
            state.fail([CallFailure("c1", (A,), "no")])
    assert settled(url, A) == before


def test_one_item_of_a_batch_settles_alone(url: str) -> None:
    """The other was refused."""
    with applying(url) as state:
        effects = (whole(A), whole(B))
        state.intend({"c1": Attempt("upsertTags", effects)})
        state.settle([Settlement("c1", effects[:1], {})])
        state.fail([CallFailure("c1", (B,), "no")])
    assert set(settled(url, A, B)) == {"a"}


def test_a_refused_item_has_not_settled_when_the_rest_of_its_batch_does(url: str) -> None:
    """The end of the call names no key, since it ends all that is still open of it."""
    with applying(url) as state:
        effects = (whole(A), whole(B))
        state.intend({"c1": Attempt("upsertTags", effects)})
        state.fail([CallFailure("c1", (B,), "no")])
        state.settle([Settlement("c1", effects[:1], {})])
    assert set(settled(url, A, B)) == {"a"}


def test_what_was_forgotten_by_hand_is_known(url: str) -> None:
    """Also once its row is gone; a row that is there was never forgotten."""

    def forgotten(state: State) -> set[Key]:
        return state.forgotten([A, B, C])

    with applying(url) as state:
        applied(state, "c1", whole(A), whole(B))
        assert forgotten(state) == set()
        state.forget([A])
    with open_state(url, write=False) as state:
        assert forgotten(state) == {A}
