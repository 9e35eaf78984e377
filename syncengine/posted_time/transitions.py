"""The next step for a group that is offered again, by its entry in the inbox; pure.

The rules of docs/posted-time.md 1: delivered once per sink however often it is offered; offered with another content it
is its next revision, unless a sink has the first: then it is a conflict for a person.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum

from syncengine.state.inbox_entries import DOUBTFUL, TAKEN, Delivered, Event, InboxEntry, sink_of
from syncengine.state.inbox_states import EventKind


class NextStep(Enum):
    """`ANSWER`: the verdict is known, say it again. `ASK`: whether a doubtful sink has it decides."""

    ANSWER = 1
    DELIVER = 2
    REVISE = 3
    ASK = 4
    CONFLICT = 5


def next_step(entry: InboxEntry, digest: str) -> NextStep:
    """The next step for an offer with this content; the entry is as it stood when the offer came."""
    if entry.digest == digest:
        return NextStep.ANSWER if entry.is_delivered else NextStep.DELIVER
    if entry.is_delivered or any(found.status in TAKEN for found in entry.deliveries):
        return NextStep.CONFLICT
    return NextStep.ASK if doubtful(entry) else NextStep.REVISE


def doubtful(entry: InboxEntry) -> tuple[Delivered, ...]:
    """Attempts whose end is not known."""
    return tuple(found for found in entry.deliveries if found.status in DOUBTFUL)


def is_divided_otherwise(entry: InboxEntry, sink: str, keys: Collection[str]) -> bool:
    """Whether the sink was given this content in other parts than under these keys: whole, or tag by tag.

    It happens where `each: tag` comes or goes while a group is under way. The first tag has the key of a whole group,
    and is delivered last of all: where the others are not there, it was the whole.
    """
    attempts = {one.sink: one for one in entry.deliveries if one.revision == entry.revision}
    may_have = {key for key, one in attempts.items() if sink_of(key) == sink and one.status in TAKEN | DOUBTFUL}
    parts = set(keys) - {sink}
    return bool(may_have - {sink}) if not parts else sink in may_have and not parts <= attempts.keys()


def settled_content(story: Sequence[Event]) -> str | None:
    """The content that a conflict was about when a person settled it last: a group as JSON, as it was offered."""
    settled = max((place for place, event in enumerate(story) if event.kind is EventKind.SETTLED), default=0)
    offered = (event.detail for event in reversed(story[:settled]) if event.kind is EventKind.OFFERED and event.detail)
    return next(offered, None)


def said_of_holders(entry: InboxEntry) -> str:
    """Name the sinks that took the group or, if none surely did, those that may have it."""
    for statuses, verb in ((TAKEN, "took it"), (DOUBTFUL, "may have it")):
        sinks = sorted({sink_of(found.sink) for found in entry.deliveries if found.status in statuses})
        if sinks:
            return f"{' and '.join(sinks)} {verb}"
    return "the target took it"
