"""The inbox of posted time: offers of the service, deliveries to sinks, verdicts sent back. Reads and writes.

Every method is one transaction, which checks that a lease, if there is one, is still ours. `inbox_entries` defines
groups, deliveries and events; `posted_time.delivery` decides which of them to write.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from syncengine.errors import LockHeld, SyncengineError
from syncengine.state.database import StateDatabase, open_database
from syncengine.state.errors import BUSY, DAMAGED, REFUSED
from syncengine.state.inbox_entries import (
    Acknowledgement,
    DeliveryStatus,
    Event,
    InboxEntry,
    Offer,
)
from syncengine.state.inbox_queries import PIECE, InboxQueries, entry_of, of_sink
from syncengine.state.inbox_states import (
    FETCH,
    FINAL,
    EventKind,
    GroupState,
    PostedTimeStatus,
    Trigger,
    next_state,
)
from syncengine.state.inbox_tables import DELIVERIES, EVENTS, GROUPS
from syncengine.state.inbox_writes import (
    Read,
    Write,
    write_all,
)
from syncengine.state.lock import Holder, Lease, LockLost, Locks, prove, short_id
from syncengine.state.store import LEASE_SECONDS, new_lineage
from syncengine.state.tables import INBOX_LOCK, LOCK

__all__ = [
    "Acknowledgement",
    "Event",
    "Holder",
    "Inbox",
    "InboxEntry",
    "Offer",
]

OF_ONE = frozenset({REFUSED.code, DAMAGED.code})
"""Errors that one write may have by itself, while others of the same transaction have none."""


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
        self._turn = threading.Lock()
        """Threads of this process take turns; SQLite would have them sleep and look again."""

    # --- what delivery writes

    def write(self, writes: Sequence[Write]) -> list[Any]:
        """Make all of them in one transaction: what comes of each, or the error of one that only it has.

        Where the database refuses what one of them holds, each is made by itself.
        """
        try:
            return self._written(writes)
        except SyncengineError as error:
            if len(writes) == 1 or error.code not in OF_ONE:
                raise
        return [self._alone(write) for write in writes]

    def _alone(self, write: Write) -> Any:
        try:
            return self._written([write])[0]
        except SyncengineError as error:
            if error.code not in OF_ONE:
                raise
            return error

    def _written(self, writes: Sequence[Write]) -> list[Any]:
        if all(isinstance(write, Read) for write in writes):
            with self.database.transaction() as connection:
                return write_all(connection, writes, self._now())
        with self._turn, self._writing() as connection:
            return write_all(connection, writes, self._now())

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

    def check_lease(self) -> None:
        """LockLost once the lease has ended by this machine's clocks: somebody else may deliver from then on."""
        if self._lease is not None and self._lease.remaining() <= 0:
            raise LockLost("the inbox's lease has ended; this process delivers nothing more")

    # --- what people ask for

    def ask(self, group_ids: Sequence[str], sink: str | None = None) -> None:
        """Ask the lease's holder to deliver these groups to the sinks that lack them, and to `sink` in any case."""
        at = self._now()
        with self._exclusively() as connection:
            for group_id in group_ids:
                entry = entry_of(connection, group_id)
                if entry is None:
                    continue
                connection.execute(_update(group_id, asked=at))
                if sink is not None:
                    accepted = sa.and_(of_sink(sink), _is({"group_id": group_id, "status": DeliveryStatus.ACCEPTED}))
                    connection.execute(sa.update(DELIVERIES).where(accepted).values(status=DeliveryStatus.AGAIN))
                _tell(connection, group_id, entry.revision, at, EventKind.ASKED, sink=sink)

    def settle(self, group_ids: Sequence[str]) -> None:
        """A person decided that the sinks' side of a conflict is right."""
        at = self._now()
        with self._exclusively() as connection:
            for group_id in group_ids:
                entry = entry_of(connection, group_id)
                if entry is None or entry.state is not GroupState.CONFLICT:
                    continue
                waits = entry.mechanism == FETCH
                reference = next((found.external_id for found in entry.deliveries if found.external_id), None)
                answer = {"outcome": PostedTimeStatus.SUCCESS, "external_id": reference}
                state = next_state(
                    entry.state, Trigger.SETTLE if waits else Trigger.SETTLE_AT_ONCE, PostedTimeStatus.SUCCESS
                )
                change = {"state": state, "waiting": waits, "message": None, "note": None, "decided": at}
                connection.execute(_update(group_id, **change, **answer))
                _tell(connection, group_id, entry.revision, at, EventKind.SETTLED, **answer)

    def reduce(self, before: float) -> int:
        """Delete the content and events of groups delivered and acknowledged before that time; return their number.

        Their ids and receipts stay.
        """
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
    """Return the error for a database that stays locked, most likely by the holder of the inbox."""
    cure = f", which is stopped: `kill -CONT {holder.pid}` continues it" if holder.is_stopped() else ""
    return LockHeld(f"{error.message}. The inbox is locked by {holder}{cure}")


def _update(group_id: str, **values: Any) -> sa.Update:
    return sa.update(GROUPS).where(GROUPS.c.group_id == group_id).values(**values)


def _is(key: Mapping[str, Any]) -> sa.ColumnElement[bool]:
    return sa.and_(*(DELIVERIES.c[name] == value for name, value in key.items()))


def _tell(connection: sa.Connection, group_id: str, revision: int, at: float, kind: EventKind, **facts: Any) -> None:
    connection.execute(sa.insert(EVENTS).values(group_id=group_id, revision=revision, at=at, kind=kind, **facts))
