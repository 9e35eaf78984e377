"""Writes to the inbox, as values, and their execution: many writes → few statements in one transaction.

Writes to different groups are independent, so that those of one kind are executed together. Writes to one group keep
their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import sqlalchemy as sa

from syncengine.state.inbox_entries import DeliveryKey, DeliveryStatus, InboxEntry, Offer
from syncengine.state.inbox_queries import PIECE, entries_of, last_of
from syncengine.state.inbox_states import FIRST, EventKind, GroupState, PostedTimeStatus, Trigger, next_state
from syncengine.state.inbox_tables import DELIVERIES, EVENTS, GROUPS

DIED = "no answer is known: syncengine stopped before one arrived"
"""The message of an attempt without a recorded result."""

TICK = 1e-6
"""Seconds between the times of the groups in one batch, so that they keep the order of the offers."""


@dataclass(frozen=True, slots=True)
class Receive:
    """Store an offer before anything else happens to it. The result is the group as stored.

    Content that differs from the stored content is kept with the event; the caller decides whether it replaces that.
    """

    offer: Offer

    @property
    def group_id(self) -> str:
        return self.offer.group_id


@dataclass(frozen=True, slots=True)
class Revise:
    """Make the offered content the group's next revision, which no sink has yet."""

    offer: Offer

    @property
    def group_id(self) -> str:
        return self.offer.group_id


@dataclass(frozen=True, slots=True)
class _OfEntry:
    entry: InboxEntry

    @property
    def group_id(self) -> str:
        return self.entry.group_id


@dataclass(frozen=True, slots=True)
class Begin(_OfEntry):
    """Record that a group is about to be sent to a sink, which may have the group until its answer is known."""

    sink: str


@dataclass(frozen=True, slots=True)
class EndDelivery(_OfEntry):
    """Record the result of a delivery attempt to a sink."""

    sink: str
    status: DeliveryStatus
    message: str | None = None
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class Decide(_OfEntry):
    """Store the verdict on a group before it is sent to anyone.

    `waits`: the service is to get the verdict by a status update. `note` is for people who inspect the inbox. `ending`
    is the end of the delivery that led to the verdict, stored in the same transaction.
    """

    outcome: PostedTimeStatus
    message: str | None = None
    external_id: str | None = None
    waits: bool = True
    note: str | None = None
    is_conflict: bool = False
    ending: EndDelivery | None = None


@dataclass(frozen=True, slots=True)
class AnswerAgain(_OfEntry):
    """Send the stored verdict again: by a status update if it `waits`, else in the answer to a webhook call."""

    waits: bool


@dataclass(frozen=True, slots=True)
class Remember:
    """Store a sink's memo for use after a crash, before the sink acts on it. `memo` is `None` to drop the old one."""

    key: DeliveryKey
    memo: str | None

    @property
    def group_id(self) -> str:
        return self.key.group_id


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Record that the service accepted a status of a group.

    A verdict that was `decided` later, or that became due again, goes on waiting. `offers` is how often the group had
    been offered when the status was sent. `None` in either field matches whatever is waiting.
    """

    group_id: str
    status: str
    decided: float | None = None
    offers: int | None = None


@dataclass(frozen=True, slots=True)
class NotAccepted:
    """Record that the service did not accept a status. A repetition is counted in the same event."""

    group_id: str
    status: str
    why: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Stop sending statuses of a group because the service answers 404. The group stays visible."""

    group_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Finish:
    """End a person's request for another delivery of the group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class Read:
    """Read the group as stored, without writing anything. The result is `None` if there is none."""

    group_id: str


Write = (
    Receive
    | Revise
    | Begin
    | EndDelivery
    | Decide
    | AnswerAgain
    | Remember
    | Acknowledge
    | NotAccepted
    | GiveUp
    | Finish
    | Read
)


def write_all(connection: sa.Connection, writes: Sequence[Write], at: float) -> list[Any]:
    """Execute all writes at time `at` (seconds since the epoch); return their results in order."""
    results = list[Any]([None] * len(writes))
    for layer in _layers(writes):
        for kind, places in layer.items():
            changes = _Changes(at)
            found = _WRITERS[kind](connection, [writes[place] for place in places], changes)
            changes.make(connection)
            for place, result in zip(places, found or (), strict=False):
                results[place] = result
    return results


def _layers(writes: Sequence[Write]) -> Iterator[Mapping[type[Write], list[int]]]:
    """Yield layers of writes that can be executed together: per kind, their indexes, with at most one per group."""
    layer, groups = dict[type[Write], list[int]](), set[str]()
    for place, write in enumerate(writes):
        if write.group_id in groups:
            yield layer
            layer, groups = {}, set()
        layer.setdefault(type(write), []).append(place)
        groups.add(write.group_id)
    yield layer


@dataclass(slots=True)
class _Changes:
    """A collection of rows to write, grouped so that rows with the same columns take one statement."""

    at: float
    updates: dict[tuple[str, ...], list[dict[str, Any]]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)

    def update(self, group_id: str, **values: Any) -> None:
        self.updates.setdefault(tuple(values), []).append({"_group_id": group_id, **values})

    def tell(self, group_id: str, revision: int, kind: EventKind, at: float | None = None, **facts: Any) -> None:
        when = self.at if at is None else at
        self.events.append({**_NO_FACTS, "group_id": group_id, "revision": revision, "at": when, "kind": kind, **facts})

    def make(self, connection: sa.Connection) -> None:
        for names, rows in self.updates.items():
            connection.execute(_update(names), rows)
        if self.events:
            connection.execute(_INSERT_EVENT, self.events)


_NO_FACTS = dict.fromkeys(("sink", "outcome", "message", "external_id", "detail"))
_INSERT_EVENT, _INSERT_GROUP, _INSERT_DELIVERY = sa.insert(EVENTS), sa.insert(GROUPS), sa.insert(DELIVERIES)
_THIS = sa.and_(*(DELIVERIES.c[name] == sa.bindparam(f"_{name}") for name in ("group_id", "revision", "sink")))


@cache
def _update(names: tuple[str, ...]) -> sa.Update:
    mine = GROUPS.c.group_id == sa.bindparam("_group_id")
    return sa.update(GROUPS).where(mine).values({name: sa.bindparam(name) for name in names})


@cache
def _update_delivery(*names: str, counts: bool = False) -> sa.Update:
    values: dict[str, Any] = {name: sa.bindparam(name) for name in names}
    return (
        sa.update(DELIVERIES).where(_THIS).values(values | ({"attempts": DELIVERIES.c.attempts + 1} if counts else {}))
    )


def _key(group_id: str, revision: int, sink: str) -> dict[str, Any]:
    return {"_group_id": group_id, "_revision": revision, "_sink": sink}


def _receive(connection: sa.Connection, writes: Sequence[Receive], changes: _Changes) -> list[InboxEntry]:
    stored = entries_of(connection, [write.group_id for write in writes])
    entries, new = [], []
    for place, write in enumerate(writes):
        offer, at, before = write.offer, changes.at + place * TICK, stored.get(write.group_id)
        same = before is None or before.digest == offer.digest
        if before is None:
            first = {"state": FIRST, "revision": 1, "received": at, "offered": at, "offers": 1, "waiting": False}
            new.append({"group_id": offer.group_id, **offer.content(), **first})
            entry = InboxEntry.first(offer, at)
        else:
            # Parts outside the digest may be newer: until the group is delivered, its latest form counts.
            again = same and not before.is_delivered
            offered: dict[str, Any] = {"offered": at, "offers": before.offers + 1, "mechanism": offer.mechanism}
            changes.update(offer.group_id, **{**(offer.content() if again else {}), **offered})
            entry = replace(before.with_content(offer) if again else before, **offered)
        detail = None if same else offer.body
        changes.tell(
            offer.group_id,
            entry.revision if before else 1,
            EventKind.OFFERED,
            at,
            message=offer.mechanism,
            detail=detail,
        )
        entries.append(entry)
    if new:
        connection.execute(_INSERT_GROUP, new)
    return entries


def _revise(connection: sa.Connection, writes: Sequence[Revise], changes: _Changes) -> list[InboxEntry]:
    stored = entries_of(connection, [write.group_id for write in writes])
    entries = []
    for write in writes:
        before = stored[write.group_id]
        anew: dict[str, Any] = {"state": FIRST, "outcome": None, "message": None, "waiting": False, "note": None}
        revision = before.revision + 1
        changes.update(write.group_id, **{"revision": revision, **write.offer.content(), **anew})
        changes.tell(write.group_id, revision, EventKind.REVISED)
        entries.append(replace(before.with_content(write.offer), revision=revision, **anew))
    return entries


def _begin(connection: sa.Connection, writes: Sequence[Begin], changes: _Changes) -> None:
    first, again = [], []
    for write in writes:
        entry, earlier = write.entry, write.entry.delivered(write.sink)
        values: dict[str, Any] = {"status": DeliveryStatus.ATTEMPTING, "last": changes.at}
        if earlier is None or earlier.revision != entry.revision:
            key = {"group_id": entry.group_id, "revision": entry.revision, "sink": write.sink}
            first.append({**key, **values, "attempts": 1, "first": changes.at})
        else:
            if earlier.status is DeliveryStatus.ATTEMPTING:
                died: dict[str, Any] = {"sink": write.sink, "outcome": DeliveryStatus.UNKNOWN.value, "message": DIED}
                changes.tell(entry.group_id, entry.revision, EventKind.ATTEMPT, earlier.last, **died)
            again.append({**_key(entry.group_id, entry.revision, write.sink), **values})
        if not entry.is_delivered:
            changes.update(entry.group_id, state=next_state(entry.state, Trigger.BEGIN))
    if first:
        connection.execute(_INSERT_DELIVERY, first)
    if again:
        connection.execute(_update_delivery("status", "last", counts=True), again)


def _remember(connection: sa.Connection, writes: Sequence[Remember], changes: _Changes) -> None:
    rows = [{**_key(*write.key), "memo": write.memo} for write in writes]
    connection.execute(_update_delivery("memo"), rows)


def _end(connection: sa.Connection, writes: Sequence[EndDelivery], changes: _Changes) -> None:
    accepted, others = [], []
    for write in writes:
        entry = write.entry
        words: dict[str, Any] = {"message": write.message, "external_id": write.external_id}
        changes.tell(
            entry.group_id, entry.revision, EventKind.ATTEMPT, sink=write.sink, outcome=write.status.value, **words
        )
        values = {"status": write.status, "last": changes.at, "message": write.message}
        row = {**_key(entry.group_id, entry.revision, write.sink), **values}
        if write.status is DeliveryStatus.ACCEPTED:
            accepted.append({**row, "external_id": write.external_id})
        else:
            others.append(row)
    if accepted:
        connection.execute(_update_delivery("status", "last", "message", "external_id"), accepted)
    if others:
        connection.execute(_update_delivery("status", "last", "message"), others)


def _decide(connection: sa.Connection, writes: Sequence[Decide], changes: _Changes) -> None:
    _end(connection, [write.ending for write in writes if write.ending], changes)
    for write in writes:
        entry, waits = write.entry, write.waits
        trigger = Trigger.DECIDE if waits else Trigger.DECIDE_AT_ONCE
        state = next_state(entry.state, Trigger.FIND_CONFLICT if write.is_conflict else trigger, write.outcome)
        answer: dict[str, Any] = {"outcome": write.outcome, "message": write.message, "external_id": write.external_id}
        answered = {} if waits else {"answered": changes.at}
        values = {"state": state, "waiting": waits, "note": write.note, "decided": changes.at, "asked": None}
        changes.update(entry.group_id, **answer, **values, **answered)
        kind = EventKind.CONFLICT if write.is_conflict else EventKind.VERDICT
        changes.tell(entry.group_id, entry.revision, kind, **answer, detail=write.note)


def _answer_again(connection: sa.Connection, writes: Sequence[AnswerAgain], changes: _Changes) -> None:
    for write in writes:
        entry, waits = write.entry, write.waits
        assert entry.outcome is not None, "there is a verdict"
        state = next_state(entry.state, Trigger.REPEAT if waits else Trigger.REPEAT_AT_ONCE, entry.outcome)
        change: dict[str, Any] = {"note": None} if entry.state is GroupState.GIVEN_UP else {}
        change |= {} if waits else {"answered": changes.at}
        change |= {} if state is entry.state else {"state": state}
        changes.update(entry.group_id, waiting=waits, **change)


_TOLD = (
    GROUPS.c.group_id,
    GROUPS.c.revision,
    GROUPS.c.state,
    GROUPS.c.outcome,
    GROUPS.c.external_id,
    GROUPS.c.decided,
    GROUPS.c.offers,
)


def _answers_of(connection: sa.Connection, ids: Sequence[str]) -> dict[str, Any]:
    """Return the stored verdict of each group, by the group's id."""
    query = sa.select(*_TOLD)
    pieces = (ids[start : start + PIECE] for start in range(0, len(ids), PIECE))
    rows = (connection.execute(query.where(GROUPS.c.group_id.in_(piece))) for piece in pieces)
    return {row.group_id: row for piece in rows for row in piece}


def _acknowledge(connection: sa.Connection, writes: Sequence[Acknowledge], changes: _Changes) -> None:
    rows = _answers_of(connection, [write.group_id for write in writes])
    for write in writes:
        row = rows.get(write.group_id)
        if row is None:
            continue
        status: dict[str, Any] = {"outcome": write.status, "external_id": row.external_id}
        changes.tell(write.group_id, row.revision, EventKind.STATUS, **status)
        same = write.decided in (None, row.decided) and write.offers in (None, row.offers)
        if row.outcome == write.status and same:
            state = next_state(GroupState(row.state), Trigger.ACKNOWLEDGE, PostedTimeStatus(row.outcome))
            changes.update(write.group_id, waiting=False, answered=changes.at, state=state)


def _not_accepted(connection: sa.Connection, writes: Sequence[NotAccepted], changes: _Changes) -> None:
    rows = _answers_of(connection, [write.group_id for write in writes])
    for write in writes:
        row = rows.get(write.group_id)
        if row is None:
            continue
        status: dict[str, Any] = {"outcome": write.status, "message": write.why}
        last = last_of(connection, write.group_id)
        if last is not None and {"kind": EventKind.UNACCEPTED, **status}.items() <= dict(last._mapping).items():
            counted = {"at": changes.at, "detail": str(int(last.detail or "1") + 1)}
            connection.execute(sa.update(EVENTS).where(EVENTS.c.id == last.id).values(**counted))
        else:
            changes.tell(write.group_id, row.revision, EventKind.UNACCEPTED, **status)


def _give_up(connection: sa.Connection, writes: Sequence[GiveUp], changes: _Changes) -> None:
    rows = _answers_of(connection, [write.group_id for write in writes])
    for write in writes:
        row = rows.get(write.group_id)
        if row is None:
            continue
        state = next_state(GroupState(row.state), Trigger.GIVE_UP)
        changes.update(write.group_id, waiting=False, state=state, note=write.why)
        changes.tell(write.group_id, row.revision, EventKind.GIVEN_UP, outcome=row.outcome, message=write.why)


def _finish(connection: sa.Connection, writes: Sequence[Finish], changes: _Changes) -> None:
    for write in writes:
        changes.update(write.group_id, asked=None)


def _read(connection: sa.Connection, writes: Sequence[Read], changes: _Changes) -> list[InboxEntry | None]:
    stored = entries_of(connection, [write.group_id for write in writes])
    return [stored.get(write.group_id) for write in writes]


_WRITERS: Mapping[type[Write], Callable[[sa.Connection, Sequence[Any], _Changes], Sequence[Any] | None]] = {
    Receive: _receive,
    Revise: _revise,
    Begin: _begin,
    Remember: _remember,
    EndDelivery: _end,
    Decide: _decide,
    AnswerAgain: _answer_again,
    Acknowledge: _acknowledge,
    NotAccepted: _not_accepted,
    GiveUp: _give_up,
    Finish: _finish,
    Read: _read,
}
