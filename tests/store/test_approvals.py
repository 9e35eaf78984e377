"""The losses that an approval covers, from the begin of its apply until they are settled, withdrawn or used up."""

from __future__ import annotations

from syncengine.effects import Effect
from syncengine.resource import Recorded, Status
from syncengine.state.records import SWEEP, ApprovalRecord, Approved, Attempt, Loss
from syncengine.state.store import State, open_state

from .estate import applied, applying, run, tag

NAMES = ("A", "B", "ÄÖ%_'\"")
LOSSES = tuple(Loss("tags", tag(name), "retire") for name in NAMES)
KEYWORD = Loss("keywords", tag("KEEPS"), "k")
TEXT = "3@0123456789abcdef0123"


def begin(state: State, number: int, uses: dict[str, tuple[Loss, ...]], *losses: Loss, is_whole: bool = True) -> None:
    wanted = frozenset(losses or (loss for each in uses.values() for loss in each))
    approved = Approved(uses, wanted, frozenset(loss.key for loss in wanted), is_whole)
    state.begin_run(run(number, approvals=tuple(uses)), approved=approved)


def held(url: str) -> None:
    """Record the tags with a keyword each."""
    with applying(url) as state:
        applied(state, "c1", *(Effect(key=tag(n), keywords=("k",), whole=True) for n in (*NAMES, "KEEPS")))
        state.end_run("complete", {})


def retire(state: State, call: str, *names: str) -> None:
    effects = (Effect(key=tag(name), keywords_dropped=("k",), status=Status.RETIRED) for name in names)
    applied(state, call, *effects)


def the_one(url: str) -> ApprovalRecord:
    with open_state(url, write=False) as state:
        (record,) = state.approvals()
        return record


def test_an_approval_covers_its_remaining_losses_until_they_settle(url: str) -> None:
    """A run dies after one of three losses, and later runs do the rest."""
    held(url)
    with applying(url, run(2)) as state:
        begin(state, 3, {TEXT: (*LOSSES, KEYWORD)})
        retire(state, "c2", "A")
        state.intend({"c3": Attempt("deleteKeyword", (Effect(key=tag("B"), keywords_dropped=("k",)),))})
    assert (the_one(url).remaining, the_one(url).used) == ((*LOSSES, KEYWORD), None)
    with applying(url, run(4)) as state:
        begin(state, 5, {}, *LOSSES[1:], KEYWORD)
        assert state.approvals()[0].remaining == (*LOSSES[1:], KEYWORD)
        retire(state, "c4", *NAMES[1:])
        applied(state, "c5", Effect(key=tag("KEEPS"), keywords_dropped=("k",)))
        state.doubt([tag("B")])
        state.end_run("incomplete", {})
        assert [loss.key.name for loss in state.approvals()[0].remaining] == ["B"]
        begin(state, 6, {}, LOSSES[1])
        applied(state, "c6", Effect(key=tag("B"), whole=True, status=Status.RETIRED))
        state.end_run("complete", {})
    record = the_one(url)
    assert (record.run, record.plan, record.covers, record.remaining) == ("run-3", "plan-3", (*LOSSES, KEYWORD), ())
    assert record.used is not None


def test_an_approval_does_not_cover_losses_that_a_plan_no_longer_has(url: str) -> None:
    """A whole plan withdraws all other losses; a plan with a selection only those of the resources that it touches."""
    held(url)
    with applying(url, run(2)) as state:
        begin(state, 3, {TEXT: LOSSES})
        begin(state, 4, {}, Loss("tags", tag("OTHER"), "forget"), is_whole=False)
        assert state.approvals()[0].remaining == LOSSES
        begin(state, 5, {}, Loss("fields", tag("A"), "url"), is_whole=False)
        assert state.approvals()[0].remaining == LOSSES[1:]
        begin(state, 6, {}, *LOSSES[2:])
        assert state.approvals()[0].remaining == LOSSES[2:]
        begin(state, 7, {}, KEYWORD)
        assert (state.approvals()[0].remaining, state.approvals()[0].used is None) == ((), False)


def test_an_undo_ends_the_approval_of_the_undone_run(url: str) -> None:
    """Its remaining losses are not covered any more; approvals of other runs stay."""
    held(url)
    with applying(url, run(2)) as state:
        begin(state, 3, {TEXT: LOSSES[:2]})
        begin(state, 4, {"1@other": LOSSES[2:]}, is_whole=False)
        state.begin_run(run(5), approved=Approved({}, taken_back="run-3"))
        found = {record.text: (record.remaining, record.used is None) for record in state.approvals()}
    assert found == {TEXT: ((), False), "1@other": (LOSSES[2:], True)}


def test_adopt_and_import_end_approvals(url: str) -> None:
    """`put` ends the approval of the rows that it writes; `state import` also uses up every listed approval."""
    held(url)
    with applying(url, run(2)) as state:
        begin(state, 3, {TEXT: LOSSES})
        state.put([Recorded(tag("A"), confirmed=True)])
        assert state.approvals()[0].remaining == LOSSES[1:]
        state.use_up_approvals([TEXT, "1@listed", "1@listed"])
        found = {record.text: (record.remaining, record.used is None) for record in state.approvals()}
    assert found == {TEXT: ((), False), "1@listed": ((), False)}


def test_an_approved_first_sweep_settles_once_the_state_owns_activity_types(url: str) -> None:
    held(url)
    with applying(url, run(2)) as state:
        begin(state, 3, {"1@sweep": (SWEEP,)})
        state.end_run("incomplete", {})
        assert state.approvals()[0].remaining == (SWEEP,)
        begin(state, 4, {}, SWEEP)
        state.set_facts(owns_activity_types=True)
        state.end_run("complete", {})
    assert the_one(url).used is not None


def test_an_approval_that_is_listed_again_does_not_start_again(url: str) -> None:
    """It keeps its first run and its remaining losses."""
    held(url)
    with applying(url, run(2)) as state:
        begin(state, 3, {TEXT: LOSSES})
        begin(state, 4, {TEXT: LOSSES})
        state.end_run("interrupted", {})
    assert (the_one(url).run, the_one(url).remaining) == ("run-3", LOSSES)


def test_a_reader_lists_the_same_approvals(url: str) -> None:
    """Without the lock, after the writer has closed the state. A missing SQLite state lists none."""
    held(url)
    with applying(url, run(2)) as state:
        begin(state, 3, {TEXT: LOSSES, "1@b": (KEYWORD,)})
        retire(state, "c2", "A")
        state.end_run("interrupted", {})
        expected = state.approvals()
    with open_state(url, write=False, now=lambda: 0.0) as reader:
        assert reader.approvals() == expected
    with open_state(url if "://" in url else f"{url}.none", write=False, now=lambda: 0.0) as reader:
        assert reader.approvals() == (expected if "://" in url else [])
