"""States of a group of posted time, and their transitions: one table (docs/posted-time.md 6). Pure.

A group may be offered again whatever became of it, so most triggers lead on from every state.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from syncengine.project.delivery_schema import Mode

FETCH, WEBHOOK = MECHANISMS = (Mode.FETCH.value, Mode.WEBHOOK.value)
"""How posted time comes, as the inbox and the state keep it."""


class PostedTimeStatus(StrEnum):
    """A verdict, as it is sent to the service."""

    SUCCESS = "SUCCESS"
    REFUSED = "FAILURE"
    TROUBLE = "RETRIABLE_FAILURE"


class GroupState(StrEnum):
    """The progress of a group. With `accepted` and `refused`, the status is still to be sent to the service."""

    RECEIVED = "received"
    DELIVERING = "delivering"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    TROUBLED = "troubled"
    ACKNOWLEDGED = "acknowledged"
    GIVEN_UP = "given-up"
    CONFLICT = "conflict"


FIRST = GroupState.RECEIVED

UNDECIDED = (GroupState.RECEIVED, GroupState.DELIVERING)
"""Nobody has come to the group, or a crash has stopped its delivery: it is resumed."""

FINAL = frozenset({GroupState.ACKNOWLEDGED})
"""Nothing more is to be done for a group that was delivered; in time it is reduced to its receipts."""


class EventKind(StrEnum):
    """The kind of an event in the story of a group."""

    OFFERED = "offered"
    REVISED = "revised"
    ATTEMPT = "attempt"
    VERDICT = "verdict"
    CONFLICT = "conflict"
    STATUS = "status"
    UNACCEPTED = "unaccepted"
    GIVEN_UP = "given-up"
    ASKED = "asked"
    SETTLED = "settled"


class Trigger(Enum):
    """A cause of a change of state. A webhook's verdict is its answer, so that the service knows it at once."""

    REVISE = auto()
    BEGIN = auto()
    DECIDE = auto()
    DECIDE_AT_ONCE = auto()
    REPEAT = auto()
    REPEAT_AT_ONCE = auto()
    FIND_CONFLICT = auto()
    ACKNOWLEDGE = auto()
    GIVE_UP = auto()
    SETTLE = auto()
    SETTLE_AT_ONCE = auto()


class Transition(NamedTuple):
    """A step from any of `sources` to `target`, which may depend on the verdict; in other states nothing changes."""

    sources: frozenset[GroupState]
    target: GroupState | Mapping[PostedTimeStatus, GroupState]


_EVERY = frozenset(GroupState)
_CONFLICT = frozenset({GroupState.CONFLICT})
_WAITING: Mapping[PostedTimeStatus, GroupState] = {
    PostedTimeStatus.SUCCESS: GroupState.ACCEPTED,
    PostedTimeStatus.REFUSED: GroupState.REFUSED,
    PostedTimeStatus.TROUBLE: GroupState.TROUBLED,
}
_TOLD: Mapping[PostedTimeStatus, GroupState] = {
    PostedTimeStatus.SUCCESS: GroupState.ACKNOWLEDGED,
    PostedTimeStatus.REFUSED: GroupState.ACKNOWLEDGED,
    PostedTimeStatus.TROUBLE: GroupState.TROUBLED,  # until it is offered again
}

TRANSITIONS: Mapping[Trigger, Transition] = {
    Trigger.REVISE: Transition(_EVERY, FIRST),
    Trigger.BEGIN: Transition(_EVERY, GroupState.DELIVERING),
    Trigger.DECIDE: Transition(_EVERY, _WAITING),
    Trigger.DECIDE_AT_ONCE: Transition(_EVERY, _TOLD),
    Trigger.REPEAT: Transition(frozenset({GroupState.GIVEN_UP}), _WAITING),
    Trigger.REPEAT_AT_ONCE: Transition(_EVERY, _TOLD),
    Trigger.FIND_CONFLICT: Transition(_EVERY, GroupState.CONFLICT),
    Trigger.ACKNOWLEDGE: Transition(_EVERY - _CONFLICT, _TOLD),
    Trigger.GIVE_UP: Transition(_EVERY, GroupState.GIVEN_UP),
    Trigger.SETTLE: Transition(_CONFLICT, _WAITING),
    Trigger.SETTLE_AT_ONCE: Transition(_CONFLICT, _TOLD),
}


def next_state(state: GroupState, trigger: Trigger, outcome: PostedTimeStatus | None = None) -> GroupState:
    """Return the state that a group in `state` has after the trigger; `outcome` where there is a verdict."""
    sources, target = TRANSITIONS[trigger]
    if state not in sources:
        return state
    if isinstance(target, GroupState):
        return target
    assert outcome is not None, f"{trigger} comes with a verdict"
    return target[outcome]
