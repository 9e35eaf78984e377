"""The losses that an approval covers, from the begin of its apply until they are settled, withdrawn or used up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from syncengine.effects import Effect
from syncengine.resource import Recorded, Status
from syncengine.state.records import SWEEP, Approved, Attempt, Loss
from syncengine.state.store import State, open_state

from .estate import applied, applying, run, tag

NAMES = ("A", "B", "ÄÖ%_'\"")
LOSSES = tuple(Loss("tags", tag(name), "retire") for name in NAMES)
RETIRED = tuple(Effect(key=tag(name), keywords_dropped=("k",), status=Status.RETIRED) for name in NAMES)
KEYWORD = Loss("keywords", tag("KEEPS"), "k")
TEXT = "3@0123456789abcdef0123"


@pytest.fixture
def state(url: str) -> Iterator[State]:
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


def test_an_approval_covers_its_remaining_losses_until_they_settle(state: State) -> None:
    """A run dies after one of three losses, and later runs do the rest."""
    begin(state, 3, {TEXT: (*LOSSES, KEYWORD)})
    applied(state, "c2", *RETIRED[:1])
    state.intend({"c3": Attempt("deleteKeyword", (Effect(key=tag("B"), keywords_dropped=("k",)),))})
    assert remaining(state) == {TEXT: ((*LOSSES, KEYWORD), False)}
    begin(state, 5, {}, *LOSSES[1:], KEYWORD)
    assert remaining(state) == {TEXT: ((*LOSSES[1:], KEYWORD), False)}
    applied(state, "c4", *RETIRED[1:])
    applied(state, "c5", Effect(key=tag("KEEPS"), keywords_dropped=("k",)))
    state.doubt([tag("B")])
    state.end_run("incomplete", {})
    assert remaining(state) == {TEXT: ((LOSSES[1],), False)}
    begin(state, 6, {}, LOSSES[1])
    applied(state, "c6", Effect(key=tag("B"), whole=True, status=Status.RETIRED))
    state.end_run("complete", {})
    assert remaining(state) == {TEXT: ((), True)}
    (record,) = state.approvals()
    assert (record.run, record.plan, record.covers) == ("run-3", "plan-3", (*LOSSES, KEYWORD))


def test_an_approval_does_not_cover_losses_that_a_plan_no_longer_has(state: State) -> None:
    """A whole plan withdraws all other losses; a plan with a selection only those of the resources that it touches."""
    begin(state, 3, {TEXT: LOSSES})
    for number, (loss, is_whole, left) in enumerate(
        [
            (Loss("tags", tag("OTHER"), "forget"), False, LOSSES),
            (Loss("fields", tag("A"), "url"), False, LOSSES[1:]),
            (LOSSES[2], True, LOSSES[2:]),
            (KEYWORD, True, ()),
        ]
    ):
        begin(state, 4 + number, {}, loss, is_whole=is_whole)
        assert remaining(state) == {TEXT: (left, left == ())}


def test_an_undo_an_adoption_and_an_import_end_approvals(state: State) -> None:
    """An undo that of the undone run, `put` that of the rows that it writes, and `state import` every listed one. The
    approval of a first sweep ends once the state owns activity types."""
    begin(state, 3, {TEXT: LOSSES[:2]})
    begin(state, 4, {"1@other": LOSSES[2:], "1@sweep": (SWEEP,)}, is_whole=False)
    state.begin_run(run(5), approved=Approved({}, taken_back="run-3"))
    left = {TEXT: ((), True), "1@other": (LOSSES[2:], False), "1@sweep": ((SWEEP,), False)}
    assert remaining(state) == left
    state.put([Recorded(LOSSES[2].key, confirmed=True)])
    assert remaining(state) == left | {"1@other": ((), True)}
    state.set_facts(owns_activity_types=True)
    state.end_run("complete", {})
    assert remaining(state)["1@sweep"] == ((), True)
    begin(state, 6, {"3@more": LOSSES})
    state.use_up_approvals(["3@more", "1@listed", "1@listed"])
    assert [remaining(state)[text] for text in ("3@more", "1@listed")] == [((), True)] * 2


def test_an_approval_that_is_listed_again_does_not_start_again(state: State, url: str) -> None:
    """It keeps its first run and its remaining losses. A reader lists the same; a missing SQLite state lists none."""
    begin(state, 3, {TEXT: LOSSES, "1@b": (KEYWORD,)})
    applied(state, "c2", *RETIRED[:1])
    begin(state, 4, {TEXT: LOSSES, "1@b": (KEYWORD,)})
    state.end_run("interrupted", {})
    expected = state.approvals()
    assert {(record.text, record.run, record.remaining) for record in expected} == {
        (TEXT, "run-3", LOSSES[1:]),
        ("1@b", "run-3", (KEYWORD,)),
    }
    with open_state(url, write=False) as reader:
        assert reader.approvals() == expected
    if "://" not in url:
        with open_state(f"{url}.none", write=False) as reader:
            assert reader.approvals() == []
