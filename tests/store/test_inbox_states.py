"""The states of a group are one table: complete, told in the documents, and all that any writer does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from syncengine.errors import SyncengineError
from syncengine.state.inbox import InboxEntry, Offer
from syncengine.state.inbox_states import (
    FINAL,
    FIRST,
    TRANSITIONS,
    UNDECIDED,
    GroupState,
    PostedTimeStatus,
    Trigger,
    next_state,
)
from tests.store.moves import MOVES, moves_of, targets
from tests.support.inbox import InboxByHand, open_inbox

OFFER = Offer("g1", "digest-1", "{}", "fetch")
OTHER = replace(OFFER, digest="digest-2")
PAGE = Path(__file__).parents[2] / "docs/posted-time.md"

Act = Callable[[InboxByHand, InboxEntry, PostedTimeStatus], object]


def _decide(*, waits: bool, is_conflict: bool = False) -> Act:
    return lambda inbox, entry, outcome: inbox.decide(entry, outcome, waits=waits, is_conflict=is_conflict)


def _settle(mechanism: str) -> Act:
    def settle(inbox: InboxByHand, entry: InboxEntry, outcome: PostedTimeStatus) -> None:
        inbox.receive(replace(OFFER, mechanism=mechanism))
        inbox.settle([entry.group_id])

    return settle


ACTS: Mapping[Trigger, Act] = {
    Trigger.REVISE: lambda inbox, entry, outcome: inbox.revise(OTHER),
    Trigger.BEGIN: lambda inbox, entry, outcome: inbox.begin(replace(entry, outcome=None), "ledger"),
    Trigger.DECIDE: _decide(waits=True),
    Trigger.DECIDE_AT_ONCE: _decide(waits=False),
    Trigger.REPEAT: lambda inbox, entry, outcome: inbox.answer_again(entry, waits=True),
    Trigger.REPEAT_AT_ONCE: lambda inbox, entry, outcome: inbox.answer_again(entry, waits=False),
    Trigger.FIND_CONFLICT: _decide(waits=True, is_conflict=True),
    Trigger.ACKNOWLEDGE: lambda inbox, entry, outcome: inbox.acknowledged(entry.group_id, outcome),
    Trigger.GIVE_UP: lambda inbox, entry, outcome: inbox.given_up(entry.group_id, "unknown"),
    Trigger.SETTLE: _settle("fetch"),
    Trigger.SETTLE_AT_ONCE: _settle("webhook"),
}
"""What the inbox is asked to do for each of them."""

WAYS: Mapping[GroupState, tuple[Trigger, ...]] = {
    GroupState.RECEIVED: (Trigger.DECIDE, Trigger.REVISE),
    GroupState.DELIVERING: (Trigger.DECIDE, Trigger.BEGIN),
    GroupState.ACCEPTED: (Trigger.DECIDE,),
    GroupState.REFUSED: (Trigger.DECIDE,),
    GroupState.TROUBLED: (Trigger.DECIDE,),
    GroupState.ACKNOWLEDGED: (Trigger.DECIDE_AT_ONCE,),
    GroupState.GIVEN_UP: (Trigger.DECIDE, Trigger.GIVE_UP),
    GroupState.CONFLICT: (Trigger.FIND_CONFLICT,),
}
"""How a group comes into a state, with a verdict where that state goes with it."""

VERDICTS = {
    GroupState.ACCEPTED: PostedTimeStatus.SUCCESS,
    GroupState.REFUSED: PostedTimeStatus.REFUSED,
    GroupState.TROUBLED: PostedTimeStatus.TROUBLE,
}
HAS_NO_VERDICT = {
    (GroupState.RECEIVED, trigger) for trigger in (Trigger.REPEAT, Trigger.REPEAT_AT_ONCE, Trigger.ACKNOWLEDGE)
}

NEVER = {(GroupState.ACKNOWLEDGED, PostedTimeStatus.TROUBLE)}


def entry_of(inbox: InboxByHand) -> InboxEntry:
    entry = inbox.entry("g1")
    assert entry is not None
    return entry


def test_every_trigger_and_every_verdict_has_its_place_in_the_table() -> None:
    """No state is one that nothing leads to, or that nothing leads out of."""
    assert set(TRANSITIONS) == set(ACTS) == set(Trigger)
    for trigger, state, outcome in product(Trigger, GroupState, PostedTimeStatus):
        assert next_state(state, trigger, outcome) in targets(TRANSITIONS[trigger]) | {state}
    assert {new for _, new in MOVES} == {old for old, new in MOVES if old and old != new} == set(GroupState)
    assert (FIRST in UNDECIDED, FINAL & set(UNDECIDED)) == (True, frozenset())


def test_the_document_tells_every_state() -> None:
    """In the order of the table, as `time inbox --state` takes them."""
    _, _, section = PAGE.read_text(encoding="utf-8").partition('<a id="6"></a>')
    assert re.findall(r"(?m)^\| `([a-z-]+)` \|", section) == list(GroupState)


@pytest.mark.parametrize("trigger", Trigger)
def test_the_inbox_does_what_the_table_says(trigger: Trigger, path: Path) -> None:
    """From every state, with every verdict: the row that is written, and the changes that the database saw."""
    with open_inbox(str(path), write=True) as inbox:
        moves = moves_of(str(path))
        for state, outcome in product(GroupState, PostedTimeStatus):
            if (state, trigger) in HAS_NO_VERDICT or (state, outcome) in NEVER:
                continue
            known = VERDICTS.get(state, outcome)
            inbox.receive(OFFER)
            for step in WAYS[state]:
                ACTS[step](inbox, entry_of(inbox), known)
            before = entry_of(inbox)
            assert before.state is state
            ACTS[trigger](inbox, before, (verdict := before.outcome or outcome))
            if trigger in (Trigger.SETTLE, Trigger.SETTLE_AT_ONCE):
                verdict = PostedTimeStatus.SUCCESS
            assert entry_of(inbox).state is next_state(state, trigger, verdict)
        assert moves() <= MOVES


def test_a_word_that_is_no_state_is_told_in_a_sentence(path: Path) -> None:
    """As in a file that somebody wrote into by hand."""
    with open_inbox(str(path), write=True) as inbox:
        inbox.receive(OFFER)
        with inbox.database.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE inbox_groups SET state = 'paused'")
        with pytest.raises(SyncengineError, match="damaged: found 'paused' instead of one of received, delivering"):
            inbox.entries()
