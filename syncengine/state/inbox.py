"""The inbox of posted time: what was offered, what sinks did with it, what the service was told. Reads and writes.

Every method is one transaction, which proves the lease where one is held. What a group, a delivery and an event are is
in `inbox_entries`; which of them follows from which is decided elsewhere (`posted_time.delivery`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from syncengine.errors import LockHeld, SyncengineError
from syncengine.state.database import StateDatabase, open_database
from syncengine.state.errors import BUSY
from syncengine.state.inbox_entries import (
    Acknowledgement,
    DeliveryStatus,
    Event,
    InboxEntry,
    Offer,
)
from syncengine.state.inbox_queries import PIECE, InboxQueries, entry_of, last_of, of_sink
from syncengine.state.inbox_states import (
    FETCH,
    FINAL,
    FIRST,
    EventKind,
    GroupState,
    PostedTimeStatus,
    Trigger,
    next_state,
)
from syncengine.state.inbox_tables import DELIVERIES, EVENTS, GROUPS
from syncengine.state.lock import Holder, Lease, Locks, prove, short_id
from syncengine.state.store import LEASE_SECONDS, new_lineage
from syncengine.state.tables import INBOX_LOCK, LOCK

__all__ = [
    "Acknowledgement",
    "Event",
    "Holder",
    "Inbox",
    "InboxEntry",
    "InboxLease",
    "Offer",
]

InboxLease = Lease
DIED = "no answer is known: this process ended before it came"
"""What is told of an attempt of which nothing else is."""


def open_inbox(url: str, *, write: bool, now: Callable[[], float] = time.time) -> Inbox:
    """The inbox in the state at a path or URL; like the state, it is created or migrated only with `write`."""
    return Inbox(open_database(url, write=write, new_lineage=new_lineage), now)


class Inbox(InboxQueries):
    """Groups in the state's database. Also a context manager that closes."""

    def __init__(self, database: StateDatabase, now: Callable[[], float]) -> None:
        super().__init__(database)
        self._now = now
        self._locks = Locks(database, now, INBOX_LOCK)
        self._lease: Lease | None = None

    # --- what delivery writes

    def receive(self, offer: Offer) -> InboxEntry:
        """Keep an offer, before anything else happens to it; the group as it stands.

        Another content of a group that is known is kept with the event: whether it replaces the first is for others.
        """
        at = self._now()
        with self._writing() as connection:
            known = entry_of(connection, offer.group_id)
            same = known is None or known.digest == offer.digest
            if known is None:
                connection.execute(sa.insert(GROUPS).values(group_id=offer.group_id, **offer.content(), **_first(at)))
            else:
                change = {"offered": at, "offers": GROUPS.c.offers + 1, "mechanism": offer.mechanism}
                # What tells no contents apart may be newer: the group as it came last is what is yet to be delivered.
                again = offer.content() if same and not known.is_delivered else {}
                connection.execute(_update(offer.group_id, **{**again, **change}))
            told = {"message": offer.mechanism, "detail": None if same else offer.body}
            _tell(connection, offer.group_id, known.revision if known else 1, at, EventKind.OFFERED, **told)
            entry = entry_of(connection, offer.group_id)
        assert entry is not None
        return entry

    def revise(self, offer: Offer) -> InboxEntry:
        """The offered content is the group's next revision: no sink has any of it yet."""
        at = self._now()
        with self._writing() as connection:
            anew = {"state": FIRST, "outcome": None, "message": None, "waiting": False, "note": None}
            connection.execute(_update(offer.group_id, revision=GROUPS.c.revision + 1, **offer.content(), **anew))
            entry = entry_of(connection, offer.group_id)
            assert entry is not None
            _tell(connection, offer.group_id, entry.revision, at, EventKind.REVISED)
        return entry

    def begin(self, entry: InboxEntry, sink: str) -> None:
        """A sink is about to be given the group: from now on it may have it, until its answer is known."""
        at = self._now()
        key = {"group_id": entry.group_id, "revision": entry.revision, "sink": sink}
        with self._writing() as connection:
            known = entry.delivered(sink)
            values: dict[str, Any] = {"status": DeliveryStatus.ATTEMPTING, "last": at}
            if known is None or known.revision != entry.revision:
                connection.execute(sa.insert(DELIVERIES).values(**key, **values, attempts=1, first=at))
            else:
                if known.status is DeliveryStatus.ATTEMPTING:
                    died = {"sink": sink, "outcome": DeliveryStatus.UNKNOWN.value, "message": DIED}
                    _tell(connection, entry.group_id, entry.revision, known.last, EventKind.ATTEMPT, **died)
                attempts = DELIVERIES.c.attempts + 1
                connection.execute(sa.update(DELIVERIES).where(_is(key)).values(**values, attempts=attempts))
            if not entry.is_delivered:
                connection.execute(_update(entry.group_id, state=next_state(entry.state, Trigger.BEGIN)))

    def remember(self, entry: InboxEntry, sink: str, memo: str) -> None:
        """What a sink must know again after a crash, written before it does what it speaks of."""
        key = {"group_id": entry.group_id, "revision": entry.revision, "sink": sink}
        with self._writing() as connection:
            connection.execute(sa.update(DELIVERIES).where(_is(key)).values(memo=memo))

    def ended(
        self,
        entry: InboxEntry,
        sink: str,
        status: DeliveryStatus,
        *,
        message: str | None = None,
        external_id: str | None = None,
    ) -> None:
        """What came of the attempt."""
        at = self._now()
        key = {"group_id": entry.group_id, "revision": entry.revision, "sink": sink}
        with self._writing() as connection:
            values: dict[str, Any] = {"status": status, "last": at, "message": message}
            if status is DeliveryStatus.ACCEPTED:
                values |= {"external_id": external_id}
            connection.execute(sa.update(DELIVERIES).where(_is(key)).values(**values))
            told = {"sink": sink, "outcome": status.value, "message": message, "external_id": external_id}
            _tell(connection, entry.group_id, entry.revision, at, EventKind.ATTEMPT, **told)

    def decide(
        self,
        entry: InboxEntry,
        outcome: PostedTimeStatus,
        message: str | None = None,
        external_id: str | None = None,
        *,
        waits: bool,
        note: str | None = None,
        is_conflict: bool = False,
    ) -> None:
        """The verdict, kept before anyone hears it; `waits`: the service is to be told by a status update.

        `note` is for people who look into the inbox.
        """
        at = self._now()
        trigger = Trigger.DECIDE if waits else Trigger.DECIDE_AT_ONCE
        state = next_state(entry.state, Trigger.FIND_CONFLICT if is_conflict else trigger, outcome)
        told = {"outcome": outcome, "message": message, "external_id": external_id}
        answered = {} if waits else {"answered": at}
        with self._writing() as connection:
            values = {"state": state, "waiting": waits, "note": note, "decided": at, "asked": None}
            connection.execute(_update(entry.group_id, **told, **values, **answered))
            kind = EventKind.CONFLICT if is_conflict else EventKind.VERDICT
            _tell(connection, entry.group_id, entry.revision, at, kind, **told, detail=note)

    def answer_again(self, entry: InboxEntry, *, waits: bool) -> None:
        """The same verdict is due once more: it waits for the service, or the answer that it is hears it now."""
        assert entry.outcome is not None, "there is a verdict"
        state = next_state(entry.state, Trigger.REPEAT if waits else Trigger.REPEAT_AT_ONCE, entry.outcome)
        change: dict[str, Any] = {"note": None} if entry.state is GroupState.GIVEN_UP else {}
        change |= {} if waits else {"answered": self._now()}
        change |= {} if state is entry.state else {"state": state}
        with self._writing() as connection:
            connection.execute(_update(entry.group_id, waiting=waits, **change))

    # --- what the service is told

    def acknowledged(self, group_id: str, status: str, *, decided: float | None = None) -> None:
        """The service accepted this status, `decided` then. A newer verdict goes on waiting."""
        at = self._now()
        with self._writing() as connection:
            entry = entry_of(connection, group_id)
            if entry is None:
                return
            _tell(
                connection,
                group_id,
                entry.revision,
                at,
                EventKind.STATUS,
                outcome=status,
                external_id=entry.external_id,
            )
            if entry.outcome == status and decided in (None, entry.decided):
                state = next_state(entry.state, Trigger.ACKNOWLEDGE, entry.outcome)
                connection.execute(_update(group_id, waiting=False, answered=at, state=state))

    def unaccepted(self, group_id: str, status: str, why: str) -> None:
        """A status was sent and not accepted. The same once more is the same event, counted and with its last time."""
        at = self._now()
        with self._writing() as connection:
            entry = entry_of(connection, group_id)
            if entry is None:
                return
            told = {"outcome": status, "message": why}
            last = last_of(connection, group_id)
            if last is not None and {"kind": EventKind.UNACCEPTED, **told}.items() <= dict(last._mapping).items():
                times = int(last.detail or "1") + 1
                connection.execute(sa.update(EVENTS).where(EVENTS.c.id == last.id).values(at=at, detail=str(times)))
            else:
                _tell(connection, group_id, entry.revision, at, EventKind.UNACCEPTED, **told)

    def given_up(self, group_id: str, why: str) -> None:
        """The service will never accept a status of this group (404): it stays visible, and waits no more."""
        at = self._now()
        with self._writing() as connection:
            entry = entry_of(connection, group_id)
            if entry is None:
                return
            connection.execute(
                _update(group_id, waiting=False, state=next_state(entry.state, Trigger.GIVE_UP), note=why)
            )
            _tell(connection, group_id, entry.revision, at, EventKind.GIVEN_UP, outcome=entry.outcome, message=why)

    def lease(
        self,
        holder: Holder,
        *,
        wait: float = math.inf,
        sleep: Callable[[float], None] = time.sleep,
        seconds: float = LEASE_SECONDS,
    ) -> Lease:
        """Hold the inbox: a context manager with a heartbeat. Another holder that lives is waited for, as a standby.

        LockHeld, naming the holder, after `wait` seconds; 0 asks once. LockHeld too where a process was stopped in the
        middle of a write: a lock on a file is nobody's to take before that process goes on or ends.
        """
        try:
            self._lease = self._locks.acquire(
                holder, lock_id=short_id(), wait=wait, request_timeout=0, sleep=sleep, seconds=seconds
            )
        except SyncengineError as error:
            info = self._locks.current() if error.code == BUSY.code else None
            raise (error if info is None else _frozen(error, info.holder)) from error
        return self._lease

    # --- what people ask for

    def ask(self, group_ids: Sequence[str], sink: str | None = None) -> None:
        """Have these delivered again by whoever holds the lease: what is missing, and `sink` in any case."""
        at = self._now()
        with self._exclusively() as connection:
            for group_id in group_ids:
                entry = entry_of(connection, group_id)
                if entry is None:
                    continue
                connection.execute(_update(group_id, asked=at))
                if sink is not None:
                    taken = sa.and_(of_sink(sink), _is({"group_id": group_id, "status": DeliveryStatus.ACCEPTED}))
                    connection.execute(sa.update(DELIVERIES).where(taken).values(status=DeliveryStatus.AGAIN))
                _tell(connection, group_id, entry.revision, at, EventKind.ASKED, sink=sink)

    def settle(self, group_ids: Sequence[str]) -> None:
        """A person decided that what the sinks have of a conflict is right."""
        at = self._now()
        with self._exclusively() as connection:
            for group_id in group_ids:
                entry = entry_of(connection, group_id)
                if entry is None or entry.state is not GroupState.CONFLICT:
                    continue
                waits = entry.mechanism == FETCH
                reference = next((found.external_id for found in entry.deliveries if found.external_id), None)
                told = {"outcome": PostedTimeStatus.SUCCESS, "external_id": reference}
                state = next_state(
                    entry.state, Trigger.SETTLE if waits else Trigger.SETTLE_AT_ONCE, PostedTimeStatus.SUCCESS
                )
                change = {"state": state, "waiting": waits, "message": None, "note": None, "decided": at}
                connection.execute(_update(group_id, **change, **told))
                _tell(connection, group_id, entry.revision, at, EventKind.SETTLED, **told)

    def done(self, group_id: str) -> None:
        """Nobody waits for this group to be delivered again any more."""
        with self._writing() as connection:
            connection.execute(_update(group_id, asked=None))

    def reduce(self, before: float) -> int:
        """Keep only id and receipts of groups that were delivered, and their delivery acknowledged, before then."""
        old = sa.and_(
            GROUPS.c.state.in_(FINAL),
            GROUPS.c.outcome == PostedTimeStatus.SUCCESS,
            GROUPS.c.body.is_not(None),
            GROUPS.c.offered < before,
            GROUPS.c.decided < before,
        )
        with self._writing() as connection:
            ids = list(connection.execute(sa.select(GROUPS.c.group_id).where(old)).scalars())
            for start in range(0, len(ids), PIECE):
                piece = ids[start : start + PIECE]
                connection.execute(sa.delete(EVENTS).where(EVENTS.c.group_id.in_(piece)))
                none = {"body": None, "user_name": None, "user_keys": None, "tag": None, "message": None}
                connection.execute(sa.update(GROUPS).where(GROUPS.c.group_id.in_(piece)).values(**none))
        return len(ids)

    def close(self) -> None:
        if self._lease:
            self._lease.release()
        self.database.close()

    def __enter__(self) -> Inbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction that proves the lease, if this process has one."""
        if self._lease is None:
            with self._exclusively() as connection:
                yield connection
        else:
            with self.database.transaction() as connection:
                prove(connection, self._lease)  # a write too: nobody else's comes between
                yield connection

    @contextmanager
    def _exclusively(self) -> Iterator[sa.Connection]:
        """A transaction that writes first of all, so that what it reads is what its writes are based on."""
        with self.database.transaction() as connection:
            connection.execute(sa.update(LOCK).where(LOCK.c.id == INBOX_LOCK).values(epoch=LOCK.c.epoch))
            yield connection


def _frozen(error: SyncengineError, holder: Holder) -> LockHeld:
    """The database is written to by somebody all the time: most likely by whoever holds the inbox."""
    cure = f", which is stopped: `kill -CONT {holder.pid}` continues it" if holder.is_stopped() else ""
    return LockHeld(f"{error.message}. The inbox is locked by {holder}{cure}")


def _first(at: float) -> dict[str, Any]:
    return {"state": FIRST, "revision": 1, "received": at, "offered": at, "offers": 1, "waiting": False}


def _update(group_id: str, **values: Any) -> sa.Update:
    return sa.update(GROUPS).where(GROUPS.c.group_id == group_id).values(**values)


def _is(key: Mapping[str, Any]) -> sa.ColumnElement[bool]:
    return sa.and_(*(DELIVERIES.c[name] == value for name, value in key.items()))


def _tell(connection: sa.Connection, group_id: str, revision: int, at: float, kind: EventKind, **facts: Any) -> None:
    connection.execute(sa.insert(EVENTS).values(group_id=group_id, revision=revision, at=at, kind=kind, **facts))
