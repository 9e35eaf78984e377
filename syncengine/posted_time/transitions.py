"""Decide the next step for an offered group from its entry in the inbox. Pure.

The rules of docs/posted-time.md 1: a group is delivered once per sink, however often it is offered. Different content
is the group's next revision, unless a sink has the earlier content: then it is a conflict for a person to resolve.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum

from syncengine.state.inbox_model import DOUBTFUL, TAKEN, Delivered, Event, EventKind, InboxEntry, sink_of


class NextStep(Enum):
    """The next step for an offer. `ANSWER` repeats the verdict; `ASK` asks the sinks in doubt whether they have it."""

    ANSWER = 1
    DELIVER = 2
    REVISE = 3
    ASK = 4
    CONFLICT = 5


def next_step(entry: InboxEntry, digest: str) -> NextStep:
    """Return the next step for an offer of content with this digest. `entry` is the state before the offer."""
    if entry.digest == digest:
        return NextStep.ANSWER if entry.is_delivered else NextStep.DELIVER
    if entry.is_delivered or any(found.status in TAKEN for found in entry.deliveries):
        return NextStep.CONFLICT
    return NextStep.ASK if doubtful(entry) else NextStep.REVISE


def doubtful(entry: InboxEntry) -> tuple[Delivered, ...]:
    """Return the delivery attempts whose result is unknown."""
    return tuple(found for found in entry.deliveries if found.status in DOUBTFUL)


def is_divided_otherwise(entry: InboxEntry, sink: str, keys: Collection[str]) -> bool:
    """Return whether the sink may have this content divided otherwise than into these keys (whole, or by tag).

    That happens when `each: tag` is added or removed while a group is being delivered. The first tag has the key of a
    whole group and is delivered last: if the key was used and the other tags' keys were not, the whole was delivered.
    """
    attempts = {one.sink: one for one in entry.deliveries if one.revision == entry.revision}
    may_have = {key for key, one in attempts.items() if sink_of(key) == sink and one.status in TAKEN | DOUBTFUL}
    parts = set(keys) - {sink}
    return bool(may_have - {sink}) if not parts else sink in may_have and not parts <= attempts.keys()


def settled_content(story: Sequence[Event]) -> str | None:
    """Return the content (a group as JSON) of the last conflict that a person settled, or `None`."""
    settled = max((place for place, event in enumerate(story) if event.kind is EventKind.SETTLED), default=0)
    offered = (event.detail for event in reversed(story[:settled]) if event.kind is EventKind.OFFERED and event.detail)
    return next(offered, None)


def said_of_holders(entry: InboxEntry) -> str:
    """Return a clause such as `a and b took it`, about the sinks that took the group or, if none did, may have it."""
    for statuses, verb in ((TAKEN, "took it"), (DOUBTFUL, "may have it")):
        sinks = sorted({sink_of(found.sink) for found in entry.deliveries if found.status in statuses})
        if sinks:
            return f"{' and '.join(sinks)} {verb}"
    return "the target took it"
