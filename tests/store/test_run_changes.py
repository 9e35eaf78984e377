"""The rows that a run changed, as they were before it, from the journal of this and of earlier versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from syncengine.effects import Effect
from syncengine.resource import Body, Key, Kind, Recorded, Source, Status
from syncengine.state.history import Run
from syncengine.state.records import Attempt, Settlement, UndoneChange, made_of
from syncengine.state.store import State, open_state

from .estate import HERE

TAG = Key(Kind.TAG, "T")
PLACE = Source("manifests/all.yaml", 1)
CALLS = iter(range(1000))


@pytest.fixture
def state(path: Path) -> Iterator[State]:
    with open_state(str(path), write=True) as opened, opened.lock(HERE, wait=5, request_timeout=0):
        yield opened


def run(state: State, name: str, *effects: Effect, settles: bool = True, undoes: str | None = None) -> None:
    """Run one call for each effect; with `settles` the calls are acknowledged."""
    state.begin_run(Run(name, float(next(CALLS)), "apply", f"p-{name}", "h", "u", None, None, None, undoes=undoes))
    for effect in effects:
        call = f"c{next(CALLS)}"
        state.intend({call: Attempt("upsertTags", (effect,))})
        if settles:
            state.settle([Settlement(call, (effect,))])
    state.end_run("complete", {})


def upsert(description: str | None = None, *keywords: str, protect: bool = False, **metadata: str) -> Effect:
    fields = {"description": description} if description else {}
    body = {"fields": fields, "keywords": keywords, "metadata": metadata}
    return Effect(key=TAG, **body, status=Status.ACTIVE, whole=True, source=PLACE, protect=protect)


def before(state: State, name: str) -> Recorded | None:
    (row,) = state.changes_of(name)
    return row.before


def test_a_row_is_reconstructed_as_before_the_run(state: State) -> None:
    """Fields, keywords, metadata and protection, across several calls and later runs."""
    run(state, "one", upsert("a", "k", "T", m="x", n="y"))
    dropped = Effect(key=TAG, keywords_dropped=("k",), metadata_dropped=("n",))
    run(state, "two", upsert("b", "l", "T", protect=True, m="z", o="new"), dropped)
    run(state, "three", upsert("c", "l", "T", protect=True, m="zz", o="new"))
    (row,) = state.changes_of("two")
    assert row.others == ("three",)
    assert row.before is not None and row.before.protect is False
    assert row.before.body.fields == {"description": "a", "visibility": "PUBLIC"}
    assert ({*row.before.body.keywords}, row.before.body.metadata) == ({"k", "T"}, {"m": "x", "n": "y"})
    assert row.after is not None and {*row.after.body.keywords} == {"l", "T"}
    assert row.after.body.metadata == {"m": "z", "o": "new"}


@pytest.mark.parametrize("settles", [True, False])
def test_a_row_is_reconstructed_whether_calls_settled_or_not(state: State, settles: bool) -> None:
    """A row holds everything that a call of unknown outcome may have added. Before its first run there was none."""
    run(state, "one", upsert("a", "T", m="x"))
    run(state, "two", Effect(key=TAG, status=Status.DELETED), settles=settles)
    row = before(state, "two")
    assert row is not None and row.status is Status.ACTIVE
    assert row.body == Body({"description": "a", "visibility": "PUBLIC"}, ("T",), {"m": "x"})
    assert before(state, "one") is None


def test_undos_do_not_count_as_other_runs(state: State) -> None:
    """Nor do undos of those undos."""
    run(state, "one", upsert("a"))
    run(state, "two", upsert("b"))
    run(state, "three", upsert("a"), undoes="two")
    run(state, "four", upsert("b"), undoes="three")
    (row,) = state.changes_of("two")
    assert row.others == ()


def test_a_row_forgotten_since_the_run_is_marked(state: State) -> None:
    """A later row of the same key has no history before it."""
    run(state, "one", upsert("a"))
    state.forget([TAG], 0.0)
    run(state, "two", upsert("b"))
    (row,) = state.changes_of("one")
    assert row.forgotten


def test_an_undone_change_is_recognized_by_its_parts() -> None:
    """Other parts of the body do not matter, but each part that the run set has to match."""
    old = Recorded(TAG, Body({"description": "a", "url": "u"}, ("k",), {"m": "x"}))
    new = Recorded(TAG, Body({"description": "b"}, ("k", "l"), {"m": "x"}))
    made = UndoneChange(TAG, made_of(old, new), "run", "undo")
    assert made.is_made_by(new.body, protect=False)
    assert made.is_made_by(Body({"description": "b"}, ("l",)), protect=True)
    for other in (None, old.body, Body({"description": "b", "url": "u"}, ("l",)), Body({"description": "b"}, ("k",))):
        assert not made.is_made_by(other, protect=False)
    gone = UndoneChange(TAG, made_of(old, None), "run", "undo")
    assert (gone.is_made_by(None), gone.is_made_by(old.body, protect=False)) == (True, False)


@pytest.mark.parametrize("status", [Status.RELEASED, Status.RETIRED])
def test_a_deletion_of_an_undeclared_tag_is_not_recognized_by_its_absence(status: Status) -> None:
    """The tag had already left the manifests before the run deleted it."""
    made = UndoneChange(TAG, made_of(Recorded(TAG, status=status), Recorded(TAG, status=Status.DELETED)), "run", "undo")
    assert not made.is_made_by(None)
    assert not made.is_made_by(Body())
