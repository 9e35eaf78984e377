"""What is read from the journal: the history of resources, when they settled, what a run changed, and the losses that
an approval covers, from the begin of its apply until they are settled, withdrawn or used up."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from msgspec.structs import replace

from syncengine.effects import Effect
from syncengine.errors import SyncengineError
from syncengine.resource import Body, Key, Recorded, Source, Status
from syncengine.state.history import Run
from syncengine.state.records import SWEEP, Approved, Attempt, CallFailure, Loss, Settlement, UndoneChange, made_of
from syncengine.state.store import State, open_state
from syncengine.state.tables import CHANGES

from .estate import HERE, PLACE, applied, applying, category, run, tag, whole

A, B, C = tag("a"), tag("b"), tag("c")


def settled(url: str, *keys: Key) -> dict[str, float]:
    with open_state(url, write=False) as state:
        return {key.name: at for key, at in state.settled_at(keys).items()}


def test_history_lists_each_changed_field(url: str) -> None:
    """With run, commit, user, operation, place, and values before and after. Long messages are cut. A call of unknown
    outcome is listed as intended, here that of a run that died during a deletion."""
    with applying(url) as state:
        applied(state, "c1", Effect(key=A, fields={"url": "u"}, keywords=("k",), metadata={"m": "1"}, source=PLACE))
        state.end_run("complete", {"applied": 1})
    update = Effect(
        key=A,
        fields={"url": "v", "assigneeExternalIds": ("jd",)},
        keywords_dropped=("k",),
        metadata={"m": "2"},
        source=Source("b.yaml", 7),
        whole=True,
    )
    with applying(url, run(2)) as state:
        state.intend({"c2": Attempt("upsertTags", (update,))})
        state.fail([CallFailure("c2", (A,), "no such category " * 100)])
        state.intend({"c3": Attempt("deleteTag", (Effect(key=A, status=Status.DELETED),))})
        state.begin_run(run(3))
    with open_state(url, write=False) as state:
        created, updated, deleted = state.history(A)
    assert (created.outcome, created.run, created.commit, created.user) == ("settled", "run-1", "commit-1", "jo")
    assert (created.operation, created.source, created.command) == ("upsertTags", PLACE, "apply")
    assert created.detail.fields == {"url": (None, "u")}
    assert (created.detail.keywords_added, created.detail.metadata_set) == (("k",), {"m": "1"})
    assert created.detail.status == (None, Status.ACTIVE)
    assert (updated.outcome, updated.run, updated.source) == ("failed", "run-2", Source("b.yaml", 7))
    assert updated.detail.fields == {"url": ("u", "v"), "assigneeExternalIds": (None, ("jd",))}
    assert (updated.detail.keywords_deleted, updated.detail.metadata_set) == (("k",), {"m": "2"})
    assert updated.detail.message is not None
    assert len(updated.detail.message) == 500
    assert (deleted.outcome, deleted.operation) == ("intended", "deleteTag")
    assert deleted.detail.status == (Status.ACTIVE, Status.DELETED)
    assert deleted.detail.fields["assigneeExternalIds"] == (("jd",), None)


def test_the_history_of_a_former_name_tells_the_new_one(state: State) -> None:
    """In a batch of two renames, each its own; a deletion names none."""
    names = [category(name) for name in ("o", "p", "q")]
    state.intend({"c1": Attempt("upsertTagCategories", tuple(map(whole, names)))})
    renames = [(category(f"new-{key.name}"), key) for key in names[:2]]
    effects = [(replace(whole(new), former=old), Effect(key=old, status=Status.DELETED)) for new, old in renames]
    state.intend({"c2": Attempt("upsertTagCategories", tuple(each for pair in effects for each in pair))})
    state.intend({"c3": Attempt("deleteTagCategory", (Effect(key=names[2], status=Status.DELETED),))})
    told = [state.history(key)[-1].detail.message for key in names]
    assert told == ["a rename to category/new-o", "a rename to category/new-p", None]


def test_a_settled_call_settles_all_its_open_keys(url: str) -> None:
    """One row of the journal settles them. It does not settle keys that failed before, or a call of the same name in
    another run. A call that was not acknowledged settles nothing."""
    effects = whole(A), whole(B), whole(C)

    def outcomes(*keys: Key) -> list[list[str]]:
        return [[entry.outcome for entry in state.history(key)] for key in keys]

    with applying(url) as state:
        state.intend({"tags 1": Attempt("upsertTags", effects)})
        state.fail([CallFailure("tags 1", (C,), "no")])
        state.settle([Settlement("tags 1", effects[:2])])
        assert outcomes(A, B, C) == [["settled"], ["settled"], ["failed"]]
        assert set(settled(url, A, B, C)) == {"a", "b"}
        with state.database.transaction() as connection:
            alone = sa.select(CHANGES.c.name, CHANGES.c.outcome).where(CHANGES.c.outcome.is_not(None))
            assert connection.execute(alone).all() == [("c", "failed")]
        before = settled(url, A)
        state.begin_run(run(2, plan="plan-1"))
        state.intend({"tags 1": Attempt("upsertTags", effects)})
        assert outcomes(A, C) == [["settled", "intended"], ["failed", "intended"]]
        assert settled(url, A) == before
        state.settle([Settlement("tags 1", effects[1:])])
        state.fail([CallFailure("tags 1", (A,), "no")])
        assert outcomes(A, B, C) == [["settled", "failed"], ["settled", "settled"], ["failed", "settled"]]
        assert settled(url, A) == before


def test_history_outlives_a_forgotten_row(state: State) -> None:
    """It also lists records, doubts and the forgetting itself; the key is then known as forgotten by hand. A change
    that cannot be read is `state-damaged`, and no exception of a parser."""
    applied(state, "c1", whole(A), whole(B))
    state.record([Effect(key=A, status=Status.RELEASED)])
    state.doubt([A])
    assert state.forgotten([A, B, C]) == set()
    state.forget([A])
    assert [entry.outcome for entry in state.history(A)] == ["settled", "recorded", "doubted", "forgotten"]
    assert state.forgotten([A, B, C]) == {A}
    for detail in ("no JSON", "[]", '{"fields":{"url":1}}', '{"status":["active","no status"]}'):
        with state.database.transaction() as connection:
            connection.execute(sa.update(CHANGES).values(detail=detail))
        with pytest.raises(SyncengineError) as refused:
            state.history(A)
        assert refused.value.code == "state-damaged", detail


def test_runs_are_listed_latest_first_with_their_counts(url: str) -> None:
    """Including one without any intent, and a refused one, which takes no lock and ends no other run."""
    refused = run(2, ended=2000.0, outcome="refused", exit_code=6, reason="locked: by jo", actor="octo")
    with applying(url, run(1, approvals=("1@ab",), actor="jd")) as state:
        with open_state(url, write=True) as other:
            other.record_refusal(refused)
        state.end_run("complete", {"applied": 1})
        unended = run(3, clean=None, commit=None)
        state.begin_run(unended)
        assert state.runs(1) == [unended]
        *latest, first = state.runs(3)
    assert latest == [unended, refused]
    assert (first.outcome, first.counts, first.clean) == ("complete", {"applied": 1}, True)
    assert (first.approvals, first.actor) == (("1@ab",), "jd")
    assert first.ended is not None


def test_a_row_settled_when_its_last_call_was_acknowledged(url: str) -> None:
    """Not when its run began or ended, nor when its declaration moved; or when its release or adoption was recorded. A
    row that is not recorded has no time."""
    with applying(url) as state:
        applied(state, "c1", whole(A, description="d"), whole(B))
        applied(state, "c2", whole(A, description="e"))
        state.record([Effect(key=A, source=Source("moved.yaml", 7))])
        state.end_run("complete", {})
        with state.database.transaction() as connection:
            lines = connection.exec_driver_sql("SELECT ended FROM state_calls WHERE outcome = 'settled' ORDER BY id")
            first, second = (float(at) for (at,) in lines)
        assert first < second
        assert settled(url, A, B, C) == {"a": second, "b": first}
        state.begin_run(run(2))
        state.record([Effect(key=A, status=Status.RELEASED)])
        state.put([Recorded(C, Body({"description": "there"}))])
        assert all(at > second for at in settled(url, A, C).values())


CALLS = iter(range(1000))


@pytest.fixture
def sqlite(path: Path) -> Iterator[State]:
    with open_state(str(path), write=True) as opened, opened.lock(HERE, wait=5, request_timeout=0):
        yield opened


def done(sqlite: State, name: str, *effects: Effect, settles: bool = True, undoes: str | None = None) -> None:
    """Run one call for each effect; with `settles` the calls are acknowledged."""
    sqlite.begin_run(Run(name, float(next(CALLS)), "apply", f"p-{name}", "h", "u", None, None, None, undoes=undoes))
    for effect in effects:
        call = f"c{next(CALLS)}"
        sqlite.intend({call: Attempt("upsertTags", (effect,))})
        if settles:
            sqlite.settle([Settlement(call, (effect,))])
    sqlite.end_run("complete", {})


def upsert(description: str | None = None, *keywords: str, protect: bool = False, **metadata: str) -> Effect:
    fields = {"description": description} if description else {}
    body = {"fields": fields, "keywords": keywords, "metadata": metadata}
    return Effect(key=A, **body, status=Status.ACTIVE, whole=True, source=PLACE, protect=protect)


def test_a_row_is_reconstructed_as_before_the_run(sqlite: State) -> None:
    """Fields, keywords, metadata and protection, across several calls and later runs."""
    done(sqlite, "one", upsert("a", "k", "T", m="x", n="y"))
    dropped = Effect(key=A, keywords_dropped=("k",), metadata_dropped=("n",))
    done(sqlite, "two", upsert("b", "l", "T", protect=True, m="z", o="new"), dropped)
    done(sqlite, "three", upsert("c", "l", "T", protect=True, m="zz", o="new"))
    (row,) = sqlite.changes_of("two")
    assert row.others == ("three",)
    assert row.before is not None and row.before.protect is False
    assert row.before.body.fields == {"description": "a", "visibility": "PUBLIC"}
    assert ({*row.before.body.keywords}, row.before.body.metadata) == ({"k", "T"}, {"m": "x", "n": "y"})
    assert row.after is not None and {*row.after.body.keywords} == {"l", "T"}
    assert row.after.body.metadata == {"m": "z", "o": "new"}


@pytest.mark.parametrize("settles", [True, False])
def test_a_row_is_reconstructed_whether_calls_settled_or_not(sqlite: State, settles: bool) -> None:
    """A row holds everything that a call of unknown outcome may have added. Before its first run there was none."""
    done(sqlite, "one", upsert("a", "T", m="x"))
    done(sqlite, "two", Effect(key=A, status=Status.DELETED), settles=settles)
    (one,), (two,) = sqlite.changes_of("one"), sqlite.changes_of("two")
    assert one.before is None
    assert two.before is not None and two.before.status is Status.ACTIVE
    assert two.before.body == Body({"description": "a", "visibility": "PUBLIC"}, ("T",), {"m": "x"})


def test_undos_do_not_count_as_other_runs(sqlite: State) -> None:
    """Nor do undos of those undos. A row forgotten since the run is marked: a later one has no history before it."""
    done(sqlite, "one", upsert("a"))
    done(sqlite, "two", upsert("b"))
    for name, description, undone in (("three", "a", "two"), ("four", "b", "three")):
        done(sqlite, name, upsert(description), undoes=undone)
        (row,) = sqlite.changes_of("two")
        assert row.others == ()
    sqlite.forget([A], 0.0)
    done(sqlite, "five", upsert("b"))
    (row,) = sqlite.changes_of("one")
    assert row.forgotten


def test_an_undone_change_is_recognized_by_its_parts() -> None:
    """Other parts of the body do not matter, but each part that the run set has to match. A deletion of a tag that had
    already left the manifests is not recognized by its absence."""
    old = Recorded(A, Body({"description": "a", "url": "u"}, ("k",), {"m": "x"}))
    new = Recorded(A, Body({"description": "b"}, ("k", "l"), {"m": "x"}))
    made = UndoneChange(A, made_of(old, new), "run", "undo")
    assert made.is_made_by(new.body, protect=False)
    assert made.is_made_by(Body({"description": "b"}, ("l",)), protect=True)
    for other in (None, old.body, Body({"description": "b", "url": "u"}, ("l",)), Body({"description": "b"}, ("k",))):
        assert not made.is_made_by(other, protect=False)
    gone = UndoneChange(A, made_of(old, None), "run", "undo")
    assert (gone.is_made_by(None), gone.is_made_by(old.body, protect=False)) == (True, False)
    for status in (Status.RELEASED, Status.RETIRED):
        undeclared = made_of(Recorded(A, status=status), Recorded(A, status=Status.DELETED))
        assert not any(UndoneChange(A, undeclared, "run", "undo").is_made_by(body) for body in (None, Body()))


NAMES = ("A", "B", "ÄÖ%_'\"")
LOSSES = tuple(Loss("tags", tag(name), "retire") for name in NAMES)
RETIRED = tuple(Effect(key=tag(name), keywords_dropped=("k",), status=Status.RETIRED) for name in NAMES)
KEYWORD = Loss("keywords", tag("KEEPS"), "k")
TEXT = "3@0123456789abcdef0123"


@pytest.fixture
def tagged(url: str) -> Iterator[State]:
    """A state of tags with a keyword each."""
    with applying(url) as state:
        applied(state, "c1", *(Effect(key=tag(n), keywords=("k",), whole=True) for n in (*NAMES, "KEEPS")))
        state.end_run("complete", {})
        yield state


def begin(state: State, number: int, uses: dict[str, tuple[Loss, ...]], *losses: Loss, is_whole: bool = True) -> None:
    wanted = frozenset(losses or (loss for each in uses.values() for loss in each))
    approved = Approved(uses, wanted, frozenset(loss.key for loss in wanted), is_whole)
    state.begin_run(run(number, approvals=tuple(uses)), approved=approved)


def remaining(state: State) -> dict[str, tuple[tuple[Loss, ...], bool]]:
    """The losses that each approval still covers, and whether it is used up."""
    return {record.text: (record.remaining, record.used is not None) for record in state.approvals()}


def test_an_approval_covers_its_remaining_losses_until_they_settle(tagged: State) -> None:
    """A run dies after one of three losses, and later runs do the rest."""
    begin(tagged, 3, {TEXT: (*LOSSES, KEYWORD)})
    applied(tagged, "c2", *RETIRED[:1])
    tagged.intend({"c3": Attempt("deleteKeyword", (Effect(key=tag("B"), keywords_dropped=("k",)),))})
    assert remaining(tagged) == {TEXT: ((*LOSSES, KEYWORD), False)}
    begin(tagged, 5, {}, *LOSSES[1:], KEYWORD)
    assert remaining(tagged) == {TEXT: ((*LOSSES[1:], KEYWORD), False)}
    applied(tagged, "c4", *RETIRED[1:])
    applied(tagged, "c5", Effect(key=tag("KEEPS"), keywords_dropped=("k",)))
    tagged.doubt([tag("B")])
    tagged.end_run("incomplete", {})
    assert remaining(tagged) == {TEXT: ((LOSSES[1],), False)}
    begin(tagged, 6, {}, LOSSES[1])
    applied(tagged, "c6", Effect(key=tag("B"), whole=True, status=Status.RETIRED))
    tagged.end_run("complete", {})
    assert remaining(tagged) == {TEXT: ((), True)}
    (record,) = tagged.approvals()
    assert (record.run, record.plan, record.covers) == ("run-3", "plan-3", (*LOSSES, KEYWORD))


def test_an_approval_does_not_cover_losses_that_a_plan_no_longer_has(tagged: State) -> None:
    """A whole plan withdraws all other losses; a plan with a selection only those of the resources that it touches."""
    begin(tagged, 3, {TEXT: LOSSES})
    for number, (loss, is_whole, left) in enumerate(
        [
            (Loss("tags", tag("OTHER"), "forget"), False, LOSSES),
            (Loss("fields", tag("A"), "url"), False, LOSSES[1:]),
            (LOSSES[2], True, LOSSES[2:]),
            (KEYWORD, True, ()),
        ]
    ):
        begin(tagged, 4 + number, {}, loss, is_whole=is_whole)
        assert remaining(tagged) == {TEXT: (left, left == ())}


def test_an_undo_an_adoption_and_an_import_end_approvals(tagged: State) -> None:
    """An undo that of the undone run, `put` that of the rows that it writes, and `state import` every listed one. The
    approval of a first sweep ends once the tagged owns activity types."""
    begin(tagged, 3, {TEXT: LOSSES[:2]})
    begin(tagged, 4, {"1@other": LOSSES[2:], "1@sweep": (SWEEP,)}, is_whole=False)
    tagged.begin_run(run(5), approved=Approved({}, taken_back="run-3"))
    left = {TEXT: ((), True), "1@other": (LOSSES[2:], False), "1@sweep": ((SWEEP,), False)}
    assert remaining(tagged) == left
    tagged.put([Recorded(LOSSES[2].key, confirmed=True)])
    assert remaining(tagged) == left | {"1@other": ((), True)}
    tagged.set_facts(owns_activity_types=True)
    tagged.end_run("complete", {})
    assert remaining(tagged)["1@sweep"] == ((), True)
    begin(tagged, 6, {"3@more": LOSSES})
    tagged.use_up_approvals(["3@more", "1@listed", "1@listed"])
    assert [remaining(tagged)[text] for text in ("3@more", "1@listed")] == [((), True)] * 2


def test_an_approval_that_is_listed_again_does_not_start_again(tagged: State, url: str) -> None:
    """It keeps its first run and its remaining losses. A reader lists the same; a missing SQLite state lists none."""
    begin(tagged, 3, {TEXT: LOSSES, "1@b": (KEYWORD,)})
    applied(tagged, "c2", *RETIRED[:1])
    begin(tagged, 4, {TEXT: LOSSES, "1@b": (KEYWORD,)})
    tagged.end_run("interrupted", {})
    expected = tagged.approvals()
    assert {(record.text, record.run, record.remaining) for record in expected} == {
        (TEXT, "run-3", LOSSES[1:]),
        ("1@b", "run-3", (KEYWORD,)),
    }
    with open_state(url, write=False) as reader:
        assert reader.approvals() == expected
    if "://" not in url:
        with open_state(f"{url}.none", write=False) as reader:
            assert reader.approvals() == []
