"""What approvals cover, from the beginning of an apply until it has settled, is withdrawn or used; both databases."""

from __future__ import annotations

from syncengine.effects import Effect
from syncengine.resource import Recorded, Status
from syncengine.state.losses import SWEEP, ApprovalRecord, Approved, Loss
from syncengine.state.store import Attempt, State, open_state

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
    """The tags are recorded, with a keyword each."""
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


def test_it_covers_what_is_left_until_it_has_settled(url: str) -> None:
    """A run that died after one of three; then another that does the rest."""
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


def test_what_nobody_wants_any_more_is_not_covered(url: str) -> None:
    """By a whole plan; a selection says that of what it touches only."""
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


def test_an_undo_ends_what_the_undone_run_was_approved(url: str) -> None:
    """Also of what that never came to; what another run began with stays."""
    held(url)
    with applying(url, run(2)) as state:
        begin(state, 3, {TEXT: LOSSES[:2]})
        begin(state, 4, {"1@other": LOSSES[2:]}, is_whole=False)
        state.begin_run(run(5), approved=Approved({}, taken_back="run-3"))
        found = {record.text: (record.remaining, record.used is None) for record in state.approvals()}
    assert found == {TEXT: ((), False), "1@other": (LOSSES[2:], True)}


def test_rows_that_are_written_by_hand_end_it(url: str) -> None:
    """`adopt` and `state import`; the latter uses up all that is listed as well."""
    held(url)
    with applying(url, run(2)) as state:
        begin(state, 3, {TEXT: LOSSES})
        state.put([Recorded(tag("A"), confirmed=True)])
        assert state.approvals()[0].remaining == LOSSES[1:]
        state.use_up_approvals([TEXT, "1@listed", "1@listed"])
        found = {record.text: (record.remaining, record.used is None) for record in state.approvals()}
    assert found == {TEXT: ((), False), "1@listed": ((), False)}


def test_the_first_sweep_is_settled_with_the_ownership_of_the_list(url: str) -> None:
    held(url)
    with applying(url, run(2)) as state:
        begin(state, 3, {"1@sweep": (SWEEP,)})
        state.end_run("incomplete", {})
        assert state.approvals()[0].remaining == (SWEEP,)
        begin(state, 4, {}, SWEEP)
        state.set_facts(owns_activity_types=True)
        state.end_run("complete", {})
    assert the_one(url).used is not None


def test_an_approval_that_is_under_way_is_not_begun_anew(url: str) -> None:
    """The same text, listed: it covers what it did, and no more."""
    held(url)
    with applying(url, run(2)) as state:
        begin(state, 3, {TEXT: LOSSES})
        begin(state, 4, {TEXT: LOSSES})
        state.end_run("interrupted", {})
    assert (the_one(url).run, the_one(url).remaining) == ("run-3", LOSSES)


def test_a_state_at_rest_tells_the_same(url: str) -> None:
    """Read without SQLAlchemy, where that is possible."""
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
