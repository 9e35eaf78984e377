"""What the journal tells of one resource."""

from __future__ import annotations

from syncengine.leaves import Leave
from syncengine.resource import Source, Status
from syncengine.store.state import Failure, Intent, open_state

from .estate import PLACE, applied, applying, run, tag, whole

A = tag("a")


def test_history_tells_field_by_field_what_happened(url: str) -> None:
    """Creation, change and failure, with run, commit, who, operation, place, before and after."""
    with applying(url) as state:
        applied(state, "c1", Leave(key=A, fields={"url": "u"}, keywords=("k",), metadata={"m": "1"}, source=PLACE))
        state.end_run("complete", {"applied": 1})
    update = Leave(
        key=A,
        fields={"url": "v", "description": "d"},
        keywords_dropped=("k",),
        metadata={"m": "2"},
        source=Source("b.yaml", 7),
        whole=True,
    )
    with applying(url, run(2)) as state:
        state.intend([Intent("c2", "upsertTags", (update,))])
        state.fail([Failure("c2", (A,), "no such category " * 100)])
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


def test_history_tells_what_nobody_knows(url: str) -> None:
    """A deletion that a run died in is told as intended; its row is another matter."""
    with applying(url) as state:
        applied(state, "c1", whole(A, assigneeExternalIds=("jd",)))
        state.intend([Intent("c2", "deleteTag", (Leave(key=A, status=Status.DELETED),))])
    with applying(url, run(2)) as state:
        last = state.history(A)[-1]
    assert (last.outcome, last.operation) == ("intended", "deleteTag")
    assert last.detail.status == (Status.ACTIVE, Status.DELETED)
    assert last.detail.fields == {"assigneeExternalIds": (("jd",), None)}


def test_history_outlives_its_row(url: str) -> None:
    """Records, doubts and forgetting are told too."""
    with applying(url) as state:
        applied(state, "c1", whole(A))
        state.record([Leave(key=A, status=Status.RELEASED)])
        state.doubt([A])
        state.forget([A])
        assert [entry.outcome for entry in state.history(A)] == ["settled", "recorded", "doubted", "forgotten"]


def test_runs_are_told_latest_first_with_what_they_did(url: str) -> None:
    """A run without any intent is history too."""
    with applying(url) as state:
        state.end_run("complete", {"applied": 2})
    with applying(url, run(2, clean=None, commit=None)) as state:
        latest, first = state.runs(2)
        assert state.runs(1) == [latest]
    assert latest == run(2, clean=None, commit=None)
    assert (first.outcome, first.counts, first.clean) == ("complete", {"applied": 2}, True)
    assert first.ended is not None
