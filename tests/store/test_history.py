"""The history of a resource, as read from the journal."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from syncengine.effects import Effect
from syncengine.errors import SyncengineError
from syncengine.resource import Key, Source, Status
from syncengine.state.records import Attempt, CallFailure, Settlement
from syncengine.state.store import State, open_state
from syncengine.state.tables import CHANGES

from .estate import PLACE, applied, applying, run, tag, whole

A = tag("a")


def test_history_lists_each_changed_field(url: str) -> None:
    """With run, commit, user, operation, place, and values before and after. Long messages are cut."""
    with applying(url) as state:
        applied(state, "c1", Effect(key=A, fields={"url": "u"}, keywords=("k",), metadata={"m": "1"}, source=PLACE))
        state.end_run("complete", {"applied": 1})
    update = Effect(
        key=A,
        fields={"url": "v", "description": "d"},
        keywords_dropped=("k",),
        metadata={"m": "2"},
        source=Source("b.yaml", 7),
        whole=True,
    )
    with applying(url, run(2)) as state:
        state.intend({"c2": Attempt("upsertTags", (update,))})
        state.fail([CallFailure("c2", (A,), "no such category " * 100)])
    with open_state(url, write=False) as state:
        created, updated = state.history(A)
    assert (created.outcome, created.run, created.commit, created.user) == ("settled", "run-1", "commit-1", "jo")
    assert (created.operation, created.source, created.command) == ("upsertTags", PLACE, "apply")
    assert created.detail.fields == {"url": (None, "u")}
    assert (created.detail.keywords_added, created.detail.metadata_set) == (("k",), {"m": "1"})
    assert created.detail.status == (None, Status.ACTIVE)
    assert (updated.outcome, updated.run, updated.source) == ("failed", "run-2", Source("b.yaml", 7))
    assert updated.detail.fields == {"url": ("u", "v"), "description": (None, "d")}
    assert (updated.detail.keywords_deleted, updated.detail.metadata_set) == (("k",), {"m": "2"})
    assert updated.detail.message is not None
    assert len(updated.detail.message) == 500


def test_history_lists_a_call_of_unknown_outcome_as_intended(url: str) -> None:
    """A run died during a deletion."""
    with applying(url) as state:
        applied(state, "c1", whole(A, assigneeExternalIds=("jd",)))
        state.intend({"c2": Attempt("deleteTag", (Effect(key=A, status=Status.DELETED),))})
    with applying(url, run(2)) as state:
        last = state.history(A)[-1]
    assert (last.outcome, last.operation) == ("intended", "deleteTag")
    assert last.detail.status == (Status.ACTIVE, Status.DELETED)
    assert last.detail.fields == {"assigneeExternalIds": (("jd",), None), "visibility": ("PUBLIC", None)}


def outcomes(state: State, *keys: Key) -> list[list[str]]:
    return [[entry.outcome for entry in state.history(key)] for key in keys]


def test_a_settled_call_settles_all_its_open_keys(url: str) -> None:
    """One row of the journal settles them. It does not settle keys that failed before, or a call of the same name in
    another run."""
    b, c = tag("b"), tag("c")
    with applying(url) as state:
        state.intend({"tags 1": Attempt("upsertTags", (whole(A), whole(b), whole(c)))})
        state.fail([CallFailure("tags 1", (c,), "no")])
        state.settle([Settlement("tags 1", (whole(A), whole(b)))])
        assert outcomes(state, A, b, c) == [["settled"], ["settled"], ["failed"]]
        with state.database.transaction() as connection:
            alone = sa.select(CHANGES.c.name, CHANGES.c.outcome).where(CHANGES.c.outcome.is_not(None))
            assert connection.execute(alone).all() == [("c", "failed")]
    with applying(url, run(2, plan="plan-1")) as state:
        state.intend({"tags 1": Attempt("upsertTags", (whole(A), whole(b), whole(c)))})
        assert outcomes(state, A, c) == [["settled", "intended"], ["failed", "intended"]]
        state.settle([Settlement("tags 1", (whole(A), whole(b), whole(c)))])
        assert outcomes(state, A, c) == [["settled", "settled"], ["failed", "settled"]]


def test_history_outlives_a_forgotten_row(url: str) -> None:
    """It also lists records, doubts and the forgetting itself."""
    with applying(url) as state:
        applied(state, "c1", whole(A))
        state.record([Effect(key=A, status=Status.RELEASED)])
        state.doubt([A])
        state.forget([A])
        assert [entry.outcome for entry in state.history(A)] == ["settled", "recorded", "doubted", "forgotten"]


@pytest.mark.parametrize("detail", ["no JSON", "[]", '{"fields":{"url":1}}', '{"status":["active","no status"]}'])
def test_an_unreadable_change_is_reported_as_damage(url: str, detail: str) -> None:
    """The error is `state-damaged`, and no exception of a parser."""
    with applying(url) as state:
        applied(state, "c1", whole(A))
        with state.database.transaction() as connection:
            connection.execute(sa.update(CHANGES).values(detail=detail))
        with pytest.raises(SyncengineError) as refused:
            state.history(A)
    assert refused.value.code == "state-damaged"


def test_a_refused_run_is_recorded_beside_a_running_one(url: str) -> None:
    """It takes no lock and does not end the other run."""
    refused = run(2, ended=2000.0, outcome="refused", exit_code=6, reason="locked: by jo", actor="octo")
    with applying(url, run(1, approvals=("1@ab",), actor="jd")) as state:
        with open_state(url, write=True) as other:
            other.record_refusal(refused)
        state.end_run("complete", {"applied": 1})
        assert state.runs(2)[0] == refused
        latest, first = state.runs(3)
    assert (latest, first.outcome, first.counts) == (refused, "complete", {"applied": 1})
    assert (first.approvals, first.actor) == (("1@ab",), "jd")


def test_runs_are_listed_latest_first_with_their_counts(url: str) -> None:
    """Including a run without any intent."""
    with applying(url) as state:
        state.end_run("complete", {"applied": 2})
    with applying(url, run(2, clean=None, commit=None)) as state:
        latest, first = state.runs(2)
        assert state.runs(1) == [latest]
    assert latest == run(2, clean=None, commit=None)
    assert (first.outcome, first.counts, first.clean) == ("complete", {"applied": 2}, True)
    assert first.ended is not None
