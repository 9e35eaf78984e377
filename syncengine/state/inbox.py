"""Read and write the inbox of posted time: the service's offers, deliveries to sinks, and verdicts sent back.

Every method is one transaction, which checks that the lease, if this process has one, is still ours. `inbox_entries`
defines groups, deliveries and events; `posted_time.delivery` decides which of them to write.
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
from syncengine.state.lock import Holder, Lease, Locks, proven, short_id
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
"""The error codes that a single write may cause although the other writes in its transaction are fine."""


def open_inbox(url: str, *, write: bool, now: Callable[[], float] = time.time) -> Inbox:
    """Open the inbox in the state at a path or URL. Like the state, it is created only with `write`."""
    return Inbox(open_database(url, write=write, new_lineage=new_lineage), now)


class Inbox(InboxQueries):
    """The inbox in the state's database. Also a context manager that closes it."""

    def __init__(self, database: StateDatabase, now: Callable[[], float]) -> None:
        super().__init__(database)
        self._now = now
        self._locks = Locks(database, now, INBOX_LOCK)
        self._lease: Lease | None = None
        self._turn = threading.Lock()
        """A lock by which threads of this process take turns to write; SQLite would have them sleep and poll."""

    # --- what delivery writes

    def write(self, writes: Sequence[Write]) -> list[Any]:
        """Execute all writes in one transaction, and return their results in order.

        When the database rejects the content of one, execute each write in a transaction of its own, and return the
        error of a rejected write in place of its result.
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
            raise (error if info is None else _frozen(error, info.holder)) from error
        return self._lease

    def check_lease(self) -> None:
        """Raise `LockLost` once the lease has ended by this machine's clocks, as another process may then deliver."""
        if self._lease is not None:
            self._lease.refuse_lost("the lease on the inbox has ended; this process stops delivering")

    # --- what people ask for

    def ask(self, group_ids: Sequence[str], sink: str | None = None) -> None:
        """Ask the lease's holder to deliver groups to the sinks that lack them, and to `sink` in any case."""
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
        """Settle conflicts in favour of the sinks, as a person decided: the content that the sinks have stays."""
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
        """Delete the content and events of groups delivered and acknowledged before `before`; return their number.

        The ids and receipts of the groups stay.
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
        """Open a transaction that proves the lease, if this process has one."""
        if self._lease is None:
            with self._exclusively() as connection:
                yield connection
        else:
            with proven(self.database, self._lease) as connection:  # this writes, so that no other writer comes between
                yield connection

    @contextmanager
    def _exclusively(self) -> Iterator[sa.Connection]:
        """Open a transaction that starts with a write, so that no other writer comes between its reads and writes."""
        with self.database.transaction() as connection:
            connection.execute(sa.update(LOCK).where(LOCK.c.id == INBOX_LOCK).values(epoch=LOCK.c.epoch))
            yield connection


def _frozen(error: SyncengineError, holder: Holder) -> LockHeld:
    """Return the error for a database that stays locked, most likely by the holder of the inbox."""
    cure = f", which is suspended; resume it with `kill -CONT {holder.pid}`" if holder.is_stopped() else ""
    return LockHeld(f"{error.message}. The inbox is locked by {holder}{cure}")


def _update(group_id: str, **values: Any) -> sa.Update:
    return sa.update(GROUPS).where(GROUPS.c.group_id == group_id).values(**values)


def _is(key: Mapping[str, Any]) -> sa.ColumnElement[bool]:
    return sa.and_(*(DELIVERIES.c[name] == value for name, value in key.items()))


def _tell(connection: sa.Connection, group_id: str, revision: int, at: float, kind: EventKind, **facts: Any) -> None:
    connection.execute(sa.insert(EVENTS).values(group_id=group_id, revision=revision, at=at, kind=kind, **facts))
