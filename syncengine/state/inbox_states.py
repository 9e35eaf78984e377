"""The states of a group of posted time, and a table of their transitions (docs/posted-time.md 6). Pure.

A group may be offered again after any outcome, so that most triggers apply in every state.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from syncengine.project.delivery_schema import Mode

FETCH, WEBHOOK = MECHANISMS = (Mode.FETCH.value, Mode.WEBHOOK.value)
"""The names of the mechanisms by which posted time arrives, as stored in the inbox and the state."""


class PostedTimeStatus(StrEnum):
    """A verdict in the form that is sent to the service."""

    SUCCESS = "SUCCESS"
    REFUSED = "FAILURE"
    TROUBLE = "RETRIABLE_FAILURE"


class GroupState(StrEnum):
    """The progress of a group. In `accepted` and `refused`, the status must still be sent to the service."""

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
"""The states of a group whose delivery has not begun, or was interrupted and is resumed."""

FINAL = frozenset({GroupState.ACKNOWLEDGED})
"""The states in which a delivered group needs no more work, and is eventually reduced to its receipts."""


class EventKind(StrEnum):
    """The kind of an event in the history of a group."""

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
    """A cause of a change of state. `…_AT_ONCE` triggers belong to webhooks, whose answer is the verdict itself."""

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
    """A step from any state in `sources` to `target`, which may depend on the verdict. Other states do not change."""

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
    """Return the state that follows `state` after a trigger. `outcome` is the verdict, if there is one."""
    sources, target = TRANSITIONS[trigger]
    if state not in sources:
        return state
    if isinstance(target, GroupState):
        return target
    assert outcome is not None, f"{trigger} comes with a verdict"
    return target[outcome]
