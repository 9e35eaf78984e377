"""The state of a group after each write, from every state and verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from syncengine.errors import SyncengineError
from syncengine.state.inbox_model import GroupState, InboxEntry, Offer, PostedTimeStatus
from tests.support.inbox import InboxByHand, open_inbox

OFFER = Offer("g1", "digest-1", "{}", "fetch")
OTHER = replace(OFFER, digest="digest-2")
SUCCESS, REFUSED, TROUBLE = PostedTimeStatus
S = GroupState

Act = Callable[[InboxByHand, InboxEntry, PostedTimeStatus], object]
Next = Callable[[GroupState, PostedTimeStatus], GroupState]


def _decide(*, waits: bool, is_conflict: bool = False) -> Act:
    return lambda inbox, entry, outcome: inbox.decide(entry, outcome, waits=waits, is_conflict=is_conflict)


def _settle(mechanism: str) -> Act:
    def settle(inbox: InboxByHand, entry: InboxEntry, outcome: PostedTimeStatus) -> None:
        inbox.receive(replace(OFFER, digest="digest-3", mechanism=mechanism))
        inbox.write(lambda tx: tx.settle([entry.group_id]))

    return settle


def _waiting(state: GroupState, outcome: PostedTimeStatus) -> GroupState:
    return {SUCCESS: S.ACCEPTED, REFUSED: S.REFUSED, TROUBLE: S.TROUBLED}[outcome]


def _answered(state: GroupState, outcome: PostedTimeStatus) -> GroupState:
    return S.TROUBLED if outcome is TROUBLE else S.ACKNOWLEDGED


ACTS: Mapping[str, tuple[Act, Next]] = {
    "offer": (
        lambda inbox, entry, outcome: inbox.receive(replace(OFFER, digest=entry.digest)),
        lambda state, outcome: state if outcome is SUCCESS else S.RECEIVED,
    ),
    "offer other content": (
        lambda inbox, entry, outcome: inbox.receive(replace(OFFER, digest="digest-3")),
        lambda state, outcome: state,
    ),
    "revise": (lambda inbox, entry, outcome: inbox.revise(OTHER), lambda state, outcome: S.RECEIVED),
    "begin": (
        lambda inbox, entry, outcome: inbox.begin(replace(entry, outcome=None), "ledger"),
        lambda state, outcome: S.DELIVERING,
    ),
    "decide": (_decide(waits=True), _waiting),
    "decide at once": (_decide(waits=False), _answered),
    "find a conflict": (_decide(waits=True, is_conflict=True), lambda state, outcome: S.CONFLICT),
    "repeat": (
        lambda inbox, entry, outcome: inbox.answer_again(entry, waits=True),
        lambda state, outcome: _waiting(state, outcome) if state is S.GIVEN_UP else state,
    ),
    "repeat at once": (lambda inbox, entry, outcome: inbox.answer_again(entry, waits=False), _answered),
    "acknowledge": (
        lambda inbox, entry, outcome: inbox.acknowledged(entry.group_id, outcome),
        lambda state, outcome: state if state is S.CONFLICT else _answered(state, outcome),
    ),
    "give up": (
        lambda inbox, entry, outcome: inbox.given_up(entry.group_id, "unknown"),
        lambda state, outcome: S.GIVEN_UP,
    ),
    "settle": (_settle("fetch"), lambda state, outcome: S.ACCEPTED if state is S.CONFLICT else state),
    "settle at once": (_settle("webhook"), lambda state, outcome: S.ACKNOWLEDGED if state is S.CONFLICT else state),
}
"""Each write of the inbox, and the state that follows."""

WAYS: Mapping[GroupState, tuple[str, ...]] = {
    S.RECEIVED: ("decide", "revise"),
    S.DELIVERING: ("decide", "begin"),
    S.ACCEPTED: ("decide",),
    S.REFUSED: ("decide",),
    S.TROUBLED: ("decide",),
    S.ACKNOWLEDGED: ("decide at once",),
    S.GIVEN_UP: ("decide", "give up"),
    S.CONFLICT: ("find a conflict",),
}
"""The writes that bring a group into each state."""

VERDICTS = {S.ACCEPTED: SUCCESS, S.REFUSED: REFUSED, S.TROUBLED: TROUBLE}
NO_VERDICT = {(S.RECEIVED, act) for act in ("repeat", "repeat at once", "acknowledge")}
"""A new revision has no verdict to send yet."""


def entry_of(inbox: InboxByHand) -> InboxEntry:
    entry = inbox.entry("g1")
    assert entry is not None
    return entry


@pytest.mark.parametrize("name", ACTS)
def test_every_write_leads_from_every_state_to_the_expected_one(name: str, path: Path) -> None:
    """With every verdict; no write fails in any state."""
    act, follows = ACTS[name]
    with open_inbox(str(path), write=True) as inbox:
        for state, outcome in product(GroupState, PostedTimeStatus):
            if (state, name) in NO_VERDICT or (state, outcome) == (S.ACKNOWLEDGED, TROUBLE):
                continue
            known = VERDICTS.get(state, outcome)
            inbox.receive(OFFER)
            for step in WAYS[state]:
                ACTS[step][0](inbox, entry_of(inbox), known)
            before = entry_of(inbox)
            assert before.state is state
            verdict = before.outcome or outcome
            act(inbox, before, verdict)
            assert entry_of(inbox).state is follows(state, verdict)


def test_an_unknown_state_in_the_database_is_reported_as_damage(path: Path) -> None:
    """For example after an edit by hand."""
    with open_inbox(str(path), write=True) as inbox:
        inbox.receive(OFFER)
        with inbox.database.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE inbox_groups SET state = 'paused'")
        with pytest.raises(SyncengineError, match="damaged: found 'paused' instead of one of received, delivering"):
            inbox.entries()
