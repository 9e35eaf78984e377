"""When rows last settled, as read from the journal for many rows at once."""

from __future__ import annotations

import pytest

from syncengine.effects import Effect
from syncengine.resource import Body, Key, Recorded, Source, Status
from syncengine.state.records import Attempt, CallFailure, Settlement
from syncengine.state.store import State, open_state

from .estate import applied, applying, run, tag, whole

A, B, C = tag("a"), tag("b"), tag("c")


def settled(url: str, *keys: Key) -> dict[str, float]:
    with open_state(url, write=False) as state:
        return {key.name: at for key, at in state.settled_at(keys).items()}


def ends(url: str) -> list[float]:
    """When calls were acknowledged by the clock of the state, oldest first."""
    with open_state(url, write=False) as state, state.database.transaction() as connection:
        lines = connection.exec_driver_sql("SELECT ended FROM state_calls WHERE outcome = 'settled' ORDER BY id")
        return [float(at) for (at,) in lines]


def test_a_row_settled_when_its_last_call_was_acknowledged(url: str) -> None:
    """Not when its run began or ended. A row that is not recorded has no time."""
    with applying(url) as state:
        applied(state, "c1", whole(A, description="d"), whole(B))
        applied(state, "c2", whole(A, description="e"))
        state.end_run("complete", {})
    first, second = ends(url)
    assert first < second
    assert settled(url, A, B, C) == {"a": second, "b": first}


def test_a_moved_declaration_does_not_change_when_a_row_settled(url: str) -> None:
    """A new place changes nothing at the service."""
    with applying(url) as state:
        applied(state, "c1", whole(A, description="d"))
        state.end_run("complete", {})
    with applying(url, run(2)) as state:
        state.record([Effect(key=A, source=Source("moved.yaml", 7))])
        state.end_run("complete", {})
    assert settled(url, A) == {"a": ends(url)[-1]}


def test_a_released_row_settled_when_its_release_was_recorded(url: str) -> None:
    """A release needs no call."""
    with applying(url) as state:
        applied(state, "c1", whole(A))
        state.record([Effect(key=A, status=Status.RELEASED)])
        state.end_run("complete", {})
    assert settled(url, A)["a"] > ends(url)[-1]


def test_an_adopted_row_settled_when_it_was_adopted(url: str) -> None:
    """No call was ever sent for it."""
    with applying(url) as state:
        state.put([Recorded(A, Body({"description": "there"}))])
        state.end_run("complete", {})
    assert settled(url, A)["a"] > 1_000


@pytest.mark.parametrize("end", ["fail", "none"])
def test_a_call_that_was_not_acknowledged_settles_nothing(url: str, end: str) -> None:
    """The row is in doubt and keeps the time of its last settlement."""
    with applying(url) as state:
        applied(state, "c1", whole(A, description="d"))
        state.end_run("complete", {})
    before = settled(url, A)
    with applying(url, run(2)) as state:
        state.intend({"c1": Attempt("upsertTags", (whole(A, description="e"),))})
        if end == "fail":
            state.fail([CallFailure("c1", (A,), "no")])
    assert settled(url, A) == before


@pytest.mark.parametrize("refused_first", [True, False])
def test_an_acknowledged_item_settles_although_another_is_refused(url: str, refused_first: bool) -> None:
    """The end of the call names no key, but only settles the keys that are still open."""
    effects = (whole(A), whole(B))
    with applying(url) as state:
        state.intend({"c1": Attempt("upsertTags", effects)})
        ends = [
            lambda: state.settle([Settlement("c1", effects[:1], {})]),
            lambda: state.fail([CallFailure("c1", (B,), "no")]),
        ]
        for end in reversed(ends) if refused_first else ends:
            end()
    assert set(settled(url, A, B)) == {"a"}


def test_forgotten_lists_keys_that_were_forgotten_by_hand(url: str) -> None:
    """Although their rows are gone. Keys with a row are not listed."""

    def forgotten(state: State) -> set[Key]:
        return state.forgotten([A, B, C])

    with applying(url) as state:
        applied(state, "c1", whole(A), whole(B))
        assert forgotten(state) == set()
        state.forget([A])
    with open_state(url, write=False) as state:
        assert forgotten(state) == {A}
