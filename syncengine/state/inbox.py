"""Read and write the inbox of posted time: the service's offers, deliveries to sinks, and verdicts sent back.

`inbox_model` defines groups, deliveries and events; `posted_time.delivery` decides what to write. Every write is a
method of `InboxTransaction`, and is given to `Inbox.write`, or to an `InboxWriter`, as a function of one.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from asyncio import to_thread
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

import sqlalchemy as sa

from syncengine.document.json_text import decode_json, encode_json
from syncengine.errors import LockHeld, SyncengineError
from syncengine.project.runner import Holder
from syncengine.state.database import BUSY, DAMAGED, REFUSED, StateDatabase, open_database
from syncengine.state.inbox_model import (
    ANSWERED,
    BETWEEN_TAGS,
    FETCH,
    PART,
    TAKEN,
    UNDECIDED,
    WAITING,
    Acknowledgement,
    Delivered,
    DeliveryKey,
    DeliveryStatus,
    Event,
    EventKind,
    GroupState,
    InboxEntry,
    Offer,
    PostedTimeStatus,
    SinkReceipt,
    sink_of,
    word,
)
from syncengine.state.lock import LEASE_SECONDS, Lease, Locks, proven, short_id
from syncengine.state.tables import DELIVERIES, EVENTS, GROUPS, INBOX_LOCK, LOCK

T = TypeVar("T")

MOST = 500
"""The maximum number of writes in one transaction: the next ones wait for it, some 0.3 s at most."""

OF_ONE = frozenset({REFUSED.code, DAMAGED.code})
"""The error codes that a single write may cause although the other writes in its transaction are fine."""

DIED = "no answer is known: syncengine stopped before one arrived"
"""The message of an attempt without a recorded result."""

COMPANY = 0.01
"""Seconds for which writes wait for others while many arrive: a transaction costs more than most of what it holds. With
half of it there are half as many again, and a group into PostgreSQL takes a tenth more processor time."""

TICK = 1e-6
"""Seconds between the times of two offers in one transaction, so that the groups keep the order of the offers."""


_GROUP, _DELIVERY = GROUPS.c[*InboxEntry.__slots__[:-1]], DELIVERIES.c[*Delivered.__slots__]
_ENTRIES = (
    sa.select(*_GROUP, *_DELIVERY)
    .outerjoin_from(GROUPS, DELIVERIES, DELIVERIES.c.group_id == GROUPS.c.group_id)
    .order_by(GROUPS.c.offered.desc(), GROUPS.c.group_id, DELIVERIES.c.revision, DELIVERIES.c.first)
)
_ENTRY = _ENTRIES.where(GROUPS.c.group_id == sa.bindparam("of_group"))
_NO_FACTS = dict.fromkeys(("sink", "outcome", "message", "external_id", "detail"))
_ONE_GROUP = sa.update(GROUPS).where(GROUPS.c.group_id == sa.bindparam("of_group"))
_ONE_DELIVERY = sa.update(DELIVERIES).where(
    DELIVERIES.c.group_id == sa.bindparam("of_group"),
    DELIVERIES.c.revision == sa.bindparam("of_revision"),
    DELIVERIES.c.sink == sa.bindparam("of_sink"),
)


class InboxTransaction:
    """A transaction of the inbox, whose methods are the writes. `at` is its time, in seconds since the epoch."""

    def __init__(self, connection: sa.Connection, at: float) -> None:
        self._connection = connection
        self._at = at
        self._offers = 0
        self._events = list[dict[str, Any]]()
        """The events that are not written yet: one statement for all costs a fraction of one for each."""

    def receive(self, offer: Offer) -> InboxEntry:
        """Store an offer before anything else happens to it, and return the group as stored.

        Content that differs from the stored content is kept with the event; the caller decides whether it replaces it.
        """
        at = self._at + self._offers * TICK
        self._offers += 1
        before = self.entry(offer.group_id)
        same = before is None or before.digest == offer.digest
        offered: dict[str, Any] = {
            "offered": at,
            "offers": before.offers + 1 if before else 1,
            "mechanism": offer.mechanism,
        }
        if same and not (before and before.is_delivered):
            # It is delivered anew, whatever came of earlier attempts; and parts outside the digest may be newer.
            offered = _content(offer) | offered | {"state": GroupState.RECEIVED, "waiting": False}
        if before is None:
            values = {**offered, "group_id": offer.group_id, "revision": 1, "received": at}
            self._connection.execute(sa.insert(GROUPS), values)
            # What was just written need not be read again: most offers are of new groups.
            known = {**values, "user_keys": offer.user_keys, "deliveries": ()}
            entry = InboxEntry(**dict[str, Any](dict.fromkeys(InboxEntry.__slots__)) | known)
        else:
            self._update(offer.group_id, **offered)
            entry = self._stored(offer.group_id)
        detail = None if same else offer.body
        self._tell(entry, EventKind.OFFERED, at=at, message=offer.mechanism, detail=detail)
        return entry

    def revise(self, offer: Offer) -> InboxEntry:
        """Make the offered content the group's next revision, which no sink has yet, and return the group."""
        revision = self._stored(offer.group_id).revision + 1
        anew = {"state": GroupState.RECEIVED, "outcome": None, "message": None, "waiting": False, "note": None}
        self._update(offer.group_id, revision=revision, **_content(offer), **anew)
        entry = self._stored(offer.group_id)
        self._tell(entry, EventKind.REVISED)
        return entry

    def begin(self, entry: InboxEntry, sink: str) -> None:
        """Record that a group is about to be sent to a sink, which may have it until its answer is known."""
        earlier = entry.delivered(sink)
        key = DeliveryKey(entry.group_id, entry.revision, sink)
        values: dict[str, Any] = {"status": DeliveryStatus.ATTEMPTING, "last": self._at, "attempts": 1}
        if earlier is None or earlier.revision != entry.revision:
            self._connection.execute(sa.insert(DELIVERIES), {**key._asdict(), **values, "first": self._at})
        else:
            if earlier.status is DeliveryStatus.ATTEMPTING:
                unknown = {"sink": sink, "outcome": DeliveryStatus.UNKNOWN, "message": DIED}
                self._tell(entry, EventKind.ATTEMPT, at=earlier.last, **unknown)
            self._update_delivery(key, values | {"attempts": earlier.attempts + 1})
        if not entry.is_delivered:
            self._update(entry.group_id, state=GroupState.DELIVERING)

    def remember(self, key: DeliveryKey, memo: str | None) -> None:
        """Store a sink's memo for use after a crash, before the sink acts on it. `None` drops the old one."""
        self._update_delivery(key, {"memo": memo})

    def end(
        self,
        entry: InboxEntry,
        sink: str,
        status: DeliveryStatus,
        message: str | None = None,
        external_id: str | None = None,
    ) -> None:
        """Record the result of a delivery attempt to a sink."""
        words = {"message": message, "external_id": external_id}
        self._tell(entry, EventKind.ATTEMPT, sink=sink, outcome=status, **words)
        values: dict[str, Any] = {"status": status, "last": self._at, "message": message}
        if status is DeliveryStatus.ACCEPTED:  # any other result leaves the reference of an earlier acceptance
            values["external_id"] = external_id
        self._update_delivery(DeliveryKey(entry.group_id, entry.revision, sink), values)

    def decide(
        self,
        entry: InboxEntry,
        outcome: PostedTimeStatus,
        message: str | None = None,
        external_id: str | None = None,
        *,
        waits: bool = True,
        note: str | None = None,
        kind: EventKind = EventKind.VERDICT,
    ) -> None:
        """Store the verdict on a group before it is sent to anyone. `kind` is VERDICT, CONFLICT or SETTLED.

        `waits`: the service is to get the verdict by a status update. `note` is for people who inspect the inbox.
        """
        state = GroupState.CONFLICT if kind is EventKind.CONFLICT else (WAITING if waits else ANSWERED)[outcome]
        verdict = {"outcome": outcome, "message": message, "external_id": external_id}
        answered = {} if waits else {"answered": self._at}
        values = {"state": state, "waiting": waits, "note": note, "decided": self._at, "asked": None}
        self._update(entry.group_id, **verdict, **values, **answered)
        self._tell(entry, kind, **verdict, detail=note)

    def answer_again(self, entry: InboxEntry, *, waits: bool) -> None:
        """Send the stored verdict again: by a status update if it `waits`, else in the answer to a webhook call."""
        assert entry.outcome is not None, "there is a verdict"
        values: dict[str, Any] = {"waiting": waits}
        if not waits:
            values |= {"state": ANSWERED[entry.outcome], "answered": self._at}
        if entry.state is GroupState.GIVEN_UP:
            values = {"state": WAITING[entry.outcome], "note": None, **values}
        self._update(entry.group_id, **values)

    def acknowledge(self, group_id: str, status: str, decided: float | None = None, offers: int | None = None) -> None:
        """Record that the service accepted a status of a group.

        A verdict that was `decided` later, or that became due again, goes on waiting. `offers` is how often the group
        had been offered when the status was sent. `None` in either matches whatever is waiting.
        """
        if (entry := self.entry(group_id)) is None:
            return
        self._tell(entry, EventKind.STATUS, outcome=status, external_id=entry.external_id)
        is_last = decided in (None, entry.decided) and offers in (None, entry.offers)
        if entry.outcome is not None and entry.outcome == status and is_last:
            # Only a person ends a conflict, whatever the service heard of it.
            state = entry.state if entry.state is GroupState.CONFLICT else ANSWERED[entry.outcome]
            self._update(group_id, waiting=False, answered=self._at, state=state)

    def not_accepted(self, group_id: str, status: str, why: str) -> None:
        """Record that the service did not accept a status. A repetition is counted in the same event."""
        if (entry := self.entry(group_id)) is None:
            return
        self.write_events()
        newest = sa.select(EVENTS).where(EVENTS.c.group_id == group_id).order_by(EVENTS.c.id.desc()).limit(1)
        last = self._connection.execute(newest).one_or_none()
        if last is not None and (last.kind, last.outcome, last.message) == (EventKind.UNACCEPTED, status, why):
            count = {"at": self._at, "detail": str(int(last.detail or "1") + 1)}
            self._connection.execute(sa.update(EVENTS).where(EVENTS.c.id == last.id).values(**count))
        else:
            self._tell(entry, EventKind.UNACCEPTED, outcome=status, message=why)

    def give_up(self, group_id: str, why: str) -> None:
        """Stop sending statuses of a group because the service answers 404. The group stays visible."""
        if entry := self.entry(group_id):
            self._update(group_id, waiting=False, state=GroupState.GIVEN_UP, note=why)
            self._tell(entry, EventKind.GIVEN_UP, outcome=entry.outcome, message=why)

    def ask(self, group_ids: Sequence[str], sink: str | None = None) -> None:
        """Ask the lease's holder to deliver groups to the sinks that lack them, and to `sink` in any case."""
        for group_id in group_ids:
            if (entry := self.entry(group_id)) is None:
                continue
            self._update(group_id, asked=self._at)
            if sink is not None:
                took = (DELIVERIES.c.group_id == group_id, DELIVERIES.c.status == DeliveryStatus.ACCEPTED)
                again = sa.update(DELIVERIES).where(*took, _of_sink(sink)).values(status=DeliveryStatus.AGAIN)
                self._connection.execute(again)
            self._tell(entry, EventKind.ASKED, sink=sink)

    def finish(self, group_id: str) -> None:
        """End a person's request for another delivery of the group."""
        self._update(group_id, asked=None)

    def settle(self, group_ids: Sequence[str]) -> None:
        """Settle conflicts in favour of the sinks, as a person decided: the content that the sinks have stays."""
        for group_id in group_ids:
            entry = self.entry(group_id)
            if entry is not None and entry.state is GroupState.CONFLICT:
                reference = next((found.external_id for found in entry.deliveries if found.external_id), None)
                verdict, waits = (PostedTimeStatus.SUCCESS, None, reference), entry.mechanism == FETCH
                self.decide(entry, *verdict, waits=waits, kind=EventKind.SETTLED)

    def reduce(self, before: float) -> int:
        """Delete the content and events of groups delivered and acknowledged before `before`; return their number.

        The ids and receipts of the groups stay.
        """
        old = sa.and_(
            GROUPS.c.state == GroupState.ACKNOWLEDGED,
            GROUPS.c.outcome == PostedTimeStatus.SUCCESS,
            GROUPS.c.body.is_not(None),
            GROUPS.c.offered < before,
            GROUPS.c.decided < before,
        )
        ids = sa.select(GROUPS.c.group_id).where(old)
        self._connection.execute(sa.delete(EVENTS).where(EVENTS.c.group_id.in_(ids)))
        content = dict.fromkeys(("body", "user_name", "user_keys", "tag", "message"))
        return self._connection.execute(sa.update(GROUPS).where(old).values(**content)).rowcount

    def entry(self, group_id: str) -> InboxEntry | None:
        """Return a group with its deliveries, or `None` if it is not in the inbox."""
        return next(iter(_entries(self._connection, _ENTRY, {"of_group": group_id})), None)

    def _stored(self, group_id: str) -> InboxEntry:
        entry = self.entry(group_id)
        assert entry is not None, "a group that was received is in the inbox"
        return entry

    # The columns that are written follow from the names of the parameters: so SQLAlchemy finds the compiled statement
    # at once, where a statement that is built with its values costs more than SQLite takes to execute it.

    def _update(self, group_id: str, **values: Any) -> None:
        self._connection.execute(_ONE_GROUP, {"of_group": group_id, **values})

    def _update_delivery(self, key: DeliveryKey, values: Mapping[str, Any]) -> None:
        one = {"of_group": key.group_id, "of_revision": key.revision, "of_sink": key.sink}
        self._connection.execute(_ONE_DELIVERY, {**one, **values})

    def _tell(self, entry: InboxEntry, kind: EventKind, **facts: Any) -> None:
        values = {"group_id": entry.group_id, "revision": entry.revision, "kind": kind, "at": self._at}
        self._events.append(_NO_FACTS | values | facts)

    def write_events(self) -> None:
        """Write the events of the transaction's writes, before it ends."""
        if self._events:
            self._connection.execute(sa.insert(EVENTS), self._events)
            self._events = []


Work = Callable[[InboxTransaction], T]
"""A write: a call of one method of the transaction, or several that stand or fall together."""


def open_inbox(url: str, *, write: bool, now: Callable[[], float] = time.time) -> Inbox:
    """Open the inbox in the state at a path or URL. Like the state, it is created only with `write`."""
    return Inbox(open_database(url, write=write), now)


class Inbox:
    """The inbox in the state's database. A missing one reads as empty. Also a context manager that closes it."""

    def __init__(self, database: StateDatabase, now: Callable[[], float]) -> None:
        self.database = database
        self._now = now
        self._locks = Locks(database, now, INBOX_LOCK)
        self._lease: Lease | None = None
        self._turn = threading.Lock()
        """A lock by which threads of this process take turns to write; SQLite would have them sleep and poll."""
        with database.transaction() as connection:
            self._is_there = sa.inspect(connection).has_table(GROUPS.name)

    # --- writes

    def write(self, work: Work[T]) -> T:
        """Execute `work` in a transaction that proves the lease, if this process has one, and return its result."""
        lease = self._lease
        with self._turn, self._exclusively() if lease is None else proven(self.database, lease) as connection:
            transaction = InboxTransaction(connection, self._now())
            result = work(transaction)
            transaction.write_events()
            return result

    def write_all(self, works: Sequence[Work[Any]]) -> list[Any]:
        """Execute independent pieces of work in one transaction, and return their results in order.

        When the database rejects the content of one, execute each in a transaction of its own, and return the error of
        a rejected one in place of its result.
        """
        try:
            return self.write(lambda tx: [work(tx) for work in works])
        except SyncengineError as error:
            if len(works) == 1 or error.code not in OF_ONE:
                raise
        results = list[Any]()
        for work in works:
            try:
                results.append(self.write(work))
            except SyncengineError as error:
                if error.code not in OF_ONE:
                    raise
                results.append(error)
        return results

    def lease(
        self,
        holder: Holder,
        *,
        wait: float = math.inf,
        sleep: Callable[[float], None] = time.sleep,
        seconds: float = LEASE_SECONDS,
    ) -> Lease:
        """Take the inbox's lease, which a heartbeat renews, and wait as a standby while another process has it.

        Raise `LockHeld`, naming the holder, after `wait` seconds; with 0, try once. Also raise `LockHeld` when a
        process was suspended in the middle of a write: nobody can take its file lock until it continues or ends.
        """
        try:
            self._lease = self._locks.acquire(
                holder, lock_id=short_id(), wait=wait, request_timeout=0, sleep=sleep, seconds=seconds
            )
        except SyncengineError as error:
            info = self._locks.current() if error.code == BUSY.code else None
            if info is None:
                raise
            cure = f", which is suspended; resume it with `kill -CONT {info.holder.pid}`"
            suspended = cure if info.holder.is_stopped() else ""
            raise LockHeld(f"{error.message}. The inbox is locked by {info.holder}{suspended}") from error
        return self._lease

    def check_lease(self) -> None:
        """Raise `LockLost` once the lease has ended by this machine's clocks, as another process may then deliver."""
        if self._lease is not None:
            self._lease.refuse_lost("the lease on the inbox has ended; this process stops delivering")

    def close(self) -> None:
        if self._lease:
            self._lease.release()
        self.database.close()

    def __enter__(self) -> Inbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _exclusively(self) -> Iterator[sa.Connection]:
        """Open a transaction without a lease."""
        with self.database.transaction() as connection:
            # It starts with a write, as the proof of a lease is one: no other writer comes between what it reads and
            # what it writes, and SQLite lets no transaction write that has read what another changed since.
            connection.execute(sa.update(LOCK).where(LOCK.c.id == INBOX_LOCK).values(epoch=LOCK.c.epoch))
            yield connection

    # --- reads

    def entry(self, group_id: str) -> InboxEntry | None:
        """Return a group with its deliveries, or `None` if it is not in the inbox."""
        return next(iter(self._found(GROUPS.c.group_id == group_id)), None)

    def entries(
        self,
        *,
        states: Sequence[str] = (),
        user: str | None = None,
        tag: str | None = None,
        since: float | None = None,
        unsettled: bool = False,
    ) -> list[InboxEntry]:
        """Return the groups that match all given filters, last offered first. `user` is any name or id of the user."""
        conditions = list[sa.ColumnElement[bool]]()
        if states:
            conditions.append(GROUPS.c.state.in_(states))
        if since is not None:
            conditions.append(GROUPS.c.offered >= since)
        if unsettled:  # only the few for which `is_settled` is worth asking: most groups are old and done
            done = sa.and_(GROUPS.c.state == GroupState.ACKNOWLEDGED, GROUPS.c.outcome == PostedTimeStatus.SUCCESS)
            troubled = sa.select(DELIVERIES.c.group_id).where(DELIVERIES.c.status != DeliveryStatus.ACCEPTED)
            conditions.append(sa.or_(sa.not_(done), GROUPS.c.waiting, GROUPS.c.group_id.in_(troubled)))
        found = self._found(*conditions)
        if tag is not None:
            sought = f"{BETWEEN_TAGS}{tag}{BETWEEN_TAGS}"
            found = [entry for entry in found if sought in f"{BETWEEN_TAGS}{entry.tag or ''}{BETWEEN_TAGS}"]
        if user is not None:
            found = [entry for entry in found if user.casefold() in {key.casefold() for key in entry.user_keys}]
        return [entry for entry in found if not entry.is_settled] if unsettled else found

    def delivered_since(self, since: float) -> list[InboxEntry]:
        """Return the groups that some sink took since `since`, those that are reduced to their receipts too."""
        took = sa.select(DELIVERIES.c.group_id).where(DELIVERIES.c.status.in_(TAKEN), DELIVERIES.c.last >= since)
        return self._found(GROUPS.c.group_id.in_(took))

    def story(self, group_id: str) -> list[Event]:
        """Return the events of a group, oldest first."""
        query = sa.select(*EVENTS.c[*Event.__slots__]).where(EVENTS.c.group_id == group_id).order_by(EVENTS.c.id)
        return [Event(**{**row._mapping, "kind": word(EventKind, row.kind)}) for row in self._rows(query)]

    def receipts(self, sink: str, since: float) -> list[SinkReceipt]:
        """Return the deliveries that a sink took since `since`, oldest first, including those of reduced groups."""
        columns = DELIVERIES.c["group_id", "sink", "last", "external_id"]
        took = (_of_sink(sink), DELIVERIES.c.status == DeliveryStatus.ACCEPTED, DELIVERIES.c.last >= since)
        return [SinkReceipt(*row) for row in self._rows(sa.select(*columns).where(*took).order_by(DELIVERIES.c.last))]

    def with_memo(self, sink: str, memo: str) -> list[DeliveryKey]:
        """Return the deliveries of a sink that have this memo. Scans all its deliveries."""
        query = sa.select(*DELIVERIES.c["group_id", "revision", "sink"])
        return [DeliveryKey(*row) for row in self._rows(query.where(_of_sink(sink), DELIVERIES.c.memo == memo))]

    def last_troubles(self) -> dict[str, float]:
        """Return the sinks whose last attempt met trouble or has no known answer, with the time of the attempt."""
        last = sa.func.max(DELIVERIES.c.last).label("at")
        newest = sa.select(DELIVERIES.c.sink, last).group_by(DELIVERIES.c.sink).subquery()
        same = sa.and_(DELIVERIES.c.sink == newest.c.sink, DELIVERIES.c.last == newest.c.at)
        query = sa.select(DELIVERIES.c.sink, newest.c.at, DELIVERIES.c.status).join(newest, same)
        attempts: dict[str, tuple[float, bool]] = {}
        for key, at, status in self._rows(query):
            sink, failed = sink_of(key), status in (DeliveryStatus.TROUBLE, DeliveryStatus.UNKNOWN)
            attempts[sink] = max(attempts.get(sink, (at, failed)), (at, failed))
        return {sink: at for sink, (at, failed) in attempts.items() if failed}

    def counts(self) -> dict[str, int]:
        """Return the number of groups in each state."""
        query = sa.select(GROUPS.c.state, sa.func.count()).group_by(GROUPS.c.state)
        return {row[0]: row[1] for row in self._rows(query)}

    def waiting(self) -> list[Acknowledgement]:
        """Return the verdicts of the fetch mechanism that the service has not accepted yet, oldest first."""
        columns = GROUPS.c["group_id", "outcome", "message", "external_id", "decided", "offers"]
        query = sa.select(*columns).where(GROUPS.c.waiting).order_by(GROUPS.c.decided, GROUPS.c.group_id)
        return [Acknowledgement(id, word(PostedTimeStatus, status), *rest) for id, status, *rest in self._rows(query)]

    def redeliveries(self) -> list[str]:
        """Return the ids of the groups that somebody asked to deliver again, in the order of the requests."""
        query = sa.select(GROUPS.c.group_id).where(GROUPS.c.asked.is_not(None))
        return [row.group_id for row in self._rows(query.order_by(GROUPS.c.asked, GROUPS.c.group_id))]

    def undecided(self, after: tuple[float, str] | None, most: int) -> list[tuple[float, str]]:
        """Return up to `most` undecided groups as ordered pairs (time offered, id), only pairs later than `after`."""
        order = (GROUPS.c.offered, GROUPS.c.group_id)
        query = sa.select(*order).where(GROUPS.c.state.in_(UNDECIDED)).order_by(*order).limit(most)
        if after is not None:
            query = query.where(sa.or_(order[0] > after[0], sa.and_(order[0] == after[0], order[1] > after[1])))
        return [(row.offered, row.group_id) for row in self._rows(query)]

    def _found(self, *conditions: sa.ColumnElement[bool]) -> list[InboxEntry]:
        if not self._is_there:
            return []
        with self.database.transaction() as connection:
            return _entries(connection, _ENTRIES.where(*conditions))

    def _rows(self, query: sa.Select[Any]) -> Sequence[Any]:
        if not self._is_there:
            return ()
        with self.database.transaction() as connection:
            return connection.execute(query).all()


def _entries(
    connection: sa.Connection, query: sa.Select[Any], parameters: Mapping[str, Any] | None = None
) -> list[InboxEntry]:
    """Return groups with their deliveries by revision and time, the groups in the order of their last offers."""
    found = list[InboxEntry]()
    for _, rows in groupby(connection.execute(query, parameters), key=itemgetter(0)):
        deliveries = list[Delivered]()
        for row in rows:
            sink, revision, status, *rest = row[len(_GROUP) :]
            if sink is not None:
                deliveries.append(Delivered(sink, revision, word(DeliveryStatus, status), *rest))
        values: dict[str, Any] = dict(zip(InboxEntry.__slots__, row[: len(_GROUP)], strict=False))
        values |= {
            "state": word(GroupState, values["state"]),
            "outcome": word(PostedTimeStatus, values["outcome"]) if values["outcome"] else None,
            "user_keys": tuple(decode_json(values["user_keys"] or "[]")),
        }
        found.append(InboxEntry(**values, deliveries=tuple(deliveries)))
    return found


def _content(offer: Offer) -> dict[str, Any]:
    """Return the columns of a group that an offer fills."""
    same = {name: getattr(offer, name) for name in ("digest", "body", "mechanism", "user_name", "tag")}
    return {**same, "user_keys": encode_json(offer.user_keys).decode()}


def _of_sink(sink: str) -> sa.ColumnElement[bool]:
    """Return the condition for the deliveries of a sink, of whole groups and of parts for one tag."""
    return sa.or_(DELIVERIES.c.sink == sink, DELIVERIES.c.sink.startswith(sink + PART, autoescape=True))


class InboxWriter:
    """The only writer of groups in this process: writes for many groups at the same time, by one thread."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self._waiting: list[tuple[Work[Any], asyncio.Future[Any]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, work: Work[T]) -> T:
        """Execute `work`, and return its result once it is durable. Work that has begun ends, whoever waits.

        It is repeated in a transaction of its own if another group's work in the same one was rejected.
        """
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, result))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        return await result

    async def _write_all(self) -> None:
        # SQLite has one writer at a time, and a durable commit costs more than what it holds: 300 groups a second, with
        # four writes each, are more commits than a disk can bring to its platter. So what arrives while a transaction
        # is being written is written together by the next one.
        batch = list[tuple[Work[Any], asyncio.Future[Any]]]()
        while self._waiting:
            # Let tasks that the last transaction released add their writes. A group that comes alone does not wait.
            await asyncio.sleep(COMPANY if len(batch) > 1 else 0)
            batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            batch = [(work, result) for work, result in batch if not result.done()]
            try:
                found = await to_thread(self.inbox.write_all, [work for work, _ in batch])
            except asyncio.CancelledError:
                for _, result in (*batch, *self._waiting):
                    result.cancel()
                raise
            except BaseException as error:  # whatever it is, it is raised where the writes were asked for
                found = [error] * len(batch)
            for (_, result), value in zip(batch, found, strict=True):
                if result.done():
                    continue
                if isinstance(value, BaseException):
                    result.set_exception(value)
                else:
                    result.set_result(value)

    async def close(self) -> None:
        """Wait for the transaction that is being written."""
        if self._writing is not None:
            await self._writing

    def keep(self, key: DeliveryKey, memo: str | None) -> None:
        """Store the note that a sink needs after a crash, from the sink's thread. `None` removes it."""
        self.inbox.write(lambda tx: tx.remember(key, memo))

    def with_note(self, sink: str, memo: str) -> Sequence[DeliveryKey]:
        """Return the sink's deliveries that have this note."""
        return self.inbox.with_memo(sink, memo)
