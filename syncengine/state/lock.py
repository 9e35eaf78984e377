"""The lock of a state: a lease kept by a heartbeat, and an epoch that every writer proves (docs/planning.md 1.5).

Wall clocks differ between machines and are set forward and back, so that no lease and no bound is judged by them: only
by the clock of a database server, or else by this machine's clock since its boot.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from syncengine.errors import LockHeld, SyncengineError
from syncengine.instants import machine_seconds
from syncengine.project.runner import Holder, boot_id
from syncengine.state.database import CHANGED, NO_DATABASE, LockLost, StateDatabase, StateReplaced, as_state_errors
from syncengine.state.tables import INBOX_LOCK, LOCK, STATE_LOCK

SERVER_SECONDS = sa.func.extract("epoch", sa.func.clock_timestamp())

POLL_SECONDS, REMOTE_POLL_SECONDS = 0.25, 2.0
"""Seconds between two reads of a lock: in a database, and in a Git repository."""
HELD = {STATE_LOCK: "the state", INBOX_LOCK: "the inbox"}
BEATS = 4
"""The number of renewals during one lease: three of them may fail in a row without the loss of the lock."""

LEASE_SECONDS = 60.0
"""The length of a lease: a machine that was cut off holds up the next run for about as long."""


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock, named by its machine or server. Readings of clocks with different names are not comparable."""

    name: str
    read: Callable[[sa.Connection], float]

    @classmethod
    def of_database(cls, dialect: str, seconds: Callable[[], float] = machine_seconds) -> Clock:
        """Return the server's clock for a database server, or this machine's clock for SQLite."""
        if dialect == "sqlite":
            return cls(f"boot {boot_id()}", lambda _: seconds())
        return cls("server", lambda connection: float(connection.execute(sa.select(SERVER_SECONDS)).scalar_one()))


@dataclass(frozen=True, slots=True)
class LockInfo:
    """A lock and its holder. `expires` is `None` for a lock taken by hand, which lasts until somebody unlocks it.

    `since` and `expires` are seconds since the epoch by the holder's or the server's clock, for display only.
    """

    id: str
    epoch: int
    holder: Holder
    since: float
    expires: float | None

    @classmethod
    def of_row(cls, row: sa.Row[Any]) -> LockInfo | None:
        """Return the lock in a row of its table, or `None` if nobody holds it."""
        if row.lock_id is None or row.released is not None:
            return None
        holder = msgspec.convert(row.holder, Holder)
        expires = None if row.expires is None else float(row.expires)
        return cls(row.lock_id, row.epoch, holder, float(row.acquired), expires)

    def seems_at_work(self, now: float) -> bool:
        """Return whether the holder may still be working, judged from one read. Only taking the lock is proof."""
        return self.expires is not None and self.expires > now and not self.holder.has_ended()

    def __str__(self) -> str:
        reason = f": {self.holder.reason}" if self.holder.reason else ""
        lease = "" if self.expires is None else f", lease until {_instant(self.expires)} unless renewed"
        return f"{self.holder}, since {_instant(self.since)}{lease}, lock {self.id}{reason}"


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


class _Watch:
    """A watch on one lock, which measures by this machine's clock how long its holder has been unable to send.

    A holder that renews the lock is working. A holder can send nothing more once its heartbeat has stopped for the
    length of its lease, or once its process is gone. A server's clock tells this at the first read.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._beat: tuple[object, ...] = ()
        self._since = 0.0
        self._ended: float | None = None

    def quiet(self, row: sa.Row[Any], info: LockInfo | None) -> float | None:
        """Return for how many seconds nobody could send under the lock, or `None` while its holder may send.

        A negative number means that nobody can send once that many seconds have passed.
        """
        now = self._seconds()
        beat = (row.epoch, row.beats, row.expires)
        if self._beat != beat:
            self._beat, self._since, self._ended = beat, now, None
        lease = float(row.seconds or LEASE_SECONDS)
        if info is None:
            # A holder whose lock was ended by force learns that at its next renewal, and goes on until then.
            is_broken = row.lock_id is None and row.released is not None
            return now - self._since - (lease if is_broken else 0.0)
        if info.expires is None:
            return None
        if info.holder.has_ended():
            self._ended = now if self._ended is None else self._ended
            return now - self._ended
        overdue = now - self._since - lease if row.overdue is None else row.overdue
        return overdue if overdue >= 0 else None


class Locks:
    """The operations on one row of the lock table: read, take, renew, release.

    `now` is the wall clock, for display; `seconds` is this machine's monotonic clock, used to watch other holders.
    """

    def __init__(
        self,
        database: StateDatabase,
        now: Callable[[], float],
        row: int = STATE_LOCK,
        seconds: Callable[[], float] = machine_seconds,
    ) -> None:
        self._database = database
        self._has_server = database.engine.dialect.name != "sqlite"
        overdue = SERVER_SECONDS - LOCK.c.expires if self._has_server else sa.null()
        self._query = sa.select(LOCK, overdue.label("overdue")).where(LOCK.c.id == row)
        self._seconds = seconds
        self.now = now
        self.row = row

    def current(self) -> LockInfo | None:
        """Return the current lock, or `None` when nobody holds it."""
        with self._database.transaction() as connection:
            return LockInfo.of_row(connection.execute(self._query).one())

    def hold(self, holder: Holder, *, lock_id: str, request_timeout: float) -> LockInfo:
        """Take the lock by hand, so that it does not expire. Raise `LockHeld` if somebody else has it."""
        row, info, quiet = self._look(_Watch(self._seconds))
        if not _is_free(info, quiet, request_timeout):
            raise self._refusal(info)
        if not self._take(row, holder, lock_id, None):
            raise LockHeld(f"{HELD[self.row]} was locked by another process at the same moment")
        return self._own_info(lock_id)

    def acquire(
        self,
        holder: Holder,
        *,
        lock_id: str,
        wait: float,
        request_timeout: float,
        sleep: Callable[[float], None],
        seconds: float,
        on_wait: Callable[[LockInfo], None] = lambda info: None,
    ) -> Lease:
        """Take the lock for `seconds`, retrying for `wait` seconds. Then raise `LockHeld`, naming the holder.

        A lock taken by hand raises `LockHeld` at once. `on_wait` is called once for each holder that is waited for.
        """
        until, watch = self._seconds() + wait, _Watch(self._seconds)
        poll = REMOTE_POLL_SECONDS if self._database.working_copy else POLL_SECONDS
        waited_for: str | None = None
        was_late = False
        while True:
            is_late, began = self._seconds() >= until, self.clocks()
            row, info, quiet = self._look(watch)
            if _is_free(info, quiet, request_timeout):
                if self._take(row, holder, lock_id, seconds):
                    return Lease(self, self._own_info(lock_id), seconds, began, quiet or 0.0)
                if was_late:
                    raise LockHeld(f"{HELD[self.row]} was locked by another process whenever it was free")
                was_late = is_late  # the next look names who was quicker
            elif info is not None:
                if info.expires is None or is_late:
                    raise self._refusal(info)
                if waited_for != info.id:
                    waited_for = info.id
                    on_wait(info)
            sleep(max(0.0, min(poll, until - self._seconds())))

    def renew(self, lock: LockInfo, seconds: float) -> None:
        """Renew the lock for `seconds`. Raise `LockLost` if it is no longer ours."""
        with _unless_gone(self._database):
            if self._change(self.mine(lock), beats=LOCK.c.beats + 1, expires=self._wall(seconds)):
                return
            with self._database.transaction() as connection:
                raise self.loss(connection, lock)

    def loss(self, connection: sa.Connection, lock: LockInfo) -> LockLost:
        """Return the error for a lock that is no longer ours.

        Epochs only grow, and each belongs to one lock: where this is not so, the state itself is another one. A state
        in Git notices that by its versions.
        """
        row = connection.execute(self._query).one_or_none()
        grew = row is not None and (row.epoch > lock.epoch or (row.lock_id, row.epoch) == (lock.id, lock.epoch))
        if self._database.working_copy is None and not grew:
            return StateReplaced.of(self._database.name)
        return taken_over(lock)

    def release(self, lock: LockInfo) -> bool:
        return self._change(self.mine(lock), released=self._wall())

    def break_open(self, lock_id: str) -> bool:
        """End the lock with this id and its holder's epoch. Return `False` when it is not the current lock."""
        condition = sa.and_(LOCK.c.id == self.row, LOCK.c.lock_id == lock_id, LOCK.c.released.is_(None))
        return self._change(condition, epoch=LOCK.c.epoch + 1, lock_id=None, released=self._wall())

    def mine(self, lock: LockInfo) -> sa.ColumnElement[bool]:
        """Return the condition that the row is this unreleased lock."""
        # By the id, too: a set-back state may repeat an epoch, but not an id.
        is_same = sa.and_(LOCK.c.epoch == lock.epoch, LOCK.c.lock_id == lock.id)
        return sa.and_(LOCK.c.id == self.row, is_same, LOCK.c.released.is_(None))

    def clocks(self) -> tuple[float, float]:
        """Return the readings of the wall clock and of this machine's monotonic clock."""
        return self.now(), self._seconds()

    def _wall(self, seconds: float = 0.0) -> Any:
        """Return the wall-clock time `seconds` from now, by the server's clock if there is a server."""
        return SERVER_SECONDS + seconds if self._has_server else self.now() + seconds

    def _look(self, watch: _Watch) -> tuple[sa.Row[Any], LockInfo | None, float | None]:
        if self._database.working_copy is not None:
            with as_state_errors(self._database.name):
                self._database.working_copy.refresh()
        with self._database.transaction() as connection:
            row = connection.execute(self._query).one()
            info = LockInfo.of_row(row)
            return row, info, watch.quiet(row, info)

    def _own_info(self, lock_id: str) -> LockInfo:
        info = self.current()
        if info is None or info.id != lock_id:
            raise LockLost(f"{HELD[self.row]} was unlocked by force at the same moment")
        return info

    def _take(self, row: sa.Row[Any], holder: Holder, lock_id: str, seconds: float | None) -> bool:
        """Take the lock unless it changed since `row` was read (compare and swap); return whether it was taken."""
        # Not by the time of expiry: a server may have given fewer digits of it than it compares.
        is_as_read = sa.and_(LOCK.c.id == self.row, LOCK.c.epoch == row.epoch, LOCK.c.beats == row.beats)
        return self._change(
            is_as_read,
            epoch=row.epoch + 1,
            released=None,
            lock_id=lock_id,
            holder=asdict(holder),
            acquired=self._wall(),
            expires=None if seconds is None else self._wall(seconds),
            beats=0,
            seconds=seconds,
        )

    def _change(self, condition: sa.ColumnElement[bool], **values: Any) -> bool:
        def change(connection: sa.Connection) -> bool:
            return connection.execute(sa.update(LOCK).where(condition).values(**values)).rowcount == 1

        if self._database.working_copy is not None:
            with as_state_errors(self._database.name):
                return self._database.working_copy.commit(change, rows=False)
        with self._database.transaction() as connection:
            return change(connection)

    def _refusal(self, info: LockInfo | None) -> LockHeld:
        assert info is not None, "only a lock that somebody holds is not free"
        by_hand = f" by hand by {info}; unlock it with `syncengine state unlock {info.id}`"
        return LockHeld(f"{HELD[self.row]} is locked{by_hand if info.expires is None else f' by {info}'}")


def taken_over(lock: LockInfo) -> LockLost:
    """Return the error for a lock that is now another's, or nobody's."""
    return LockLost(f"lock {lock.id} was released or taken over by another run; nothing more is written")


def _is_free(info: LockInfo | None, quiet: float | None, request_timeout: float) -> bool:
    """Return whether the lock may be taken: nobody holds it, or its holder's last request has timed out."""
    return info is None or (quiet is not None and (info.holder.has_ended() or quiet > request_timeout))


class Lease:
    """A held lock, renewed by a daemon thread until it is released. Also a context manager that releases it.

    `began` are the readings of both clocks before the lock was taken. `quiet` is the number of seconds for which no
    earlier holder could send when the lock was taken; when it is negative, an earlier holder may still send.
    `before_release` writes pending changes, if there are any.
    """

    before_release: Callable[[], None] | None = None

    def __init__(self, locks: Locks, info: LockInfo, seconds: float, began: tuple[float, float], quiet: float) -> None:
        self.info = info
        self.quiet = quiet
        self._locks = locks
        # It writes to the row, so that nobody else takes the lock before this transaction ends: reading would not do.
        self._proof = sa.update(LOCK).where(locks.mine(info)).values(epoch=LOCK.c.epoch)
        self._seconds = seconds
        self._began = began
        self._over = threading.Event()
        self._loss: LockLost | None = None
        self._heart = threading.Thread(target=self._beat, name="lease", daemon=True)
        self._heart.start()

    @property
    def epoch(self) -> int:
        return self.info.epoch

    def prove(self, connection: sa.Connection) -> None:
        """Raise `LockLost` unless the lease still holds the lock."""
        if connection.execute(self._proof).rowcount != 1:
            raise self._locks.loss(connection, self.info)

    def refuse_lost(self, words: str, least: float = 0.0) -> None:
        """Raise `LockLost`, with these words or a better known reason, unless over `least` seconds of it remain."""
        if self.remaining() <= least:
            raise self._loss or LockLost(words)

    def remaining(self) -> float:
        """Return the seconds for which the last renewal is still valid, 0 once the lease is lost, released or over."""
        if self._over.is_set():
            return 0.0
        # By both clocks: a monotonic one may stop while the machine is suspended, and a wall clock may be set back.
        passed = max(now - then for now, then in zip(self._locks.clocks(), self._began, strict=True))
        return max(0.0, self._seconds - passed)

    def release(self) -> None:
        """Release the lock if it is still ours. When the database fails, leave the lease to expire."""
        if not self._over.is_set():
            self.abandon()
            with suppress(SyncengineError):  # it must not hide the error that ends this process
                self._locks.release(self.info)

    def abandon(self) -> None:
        """Stop renewing the lease, and let it expire."""
        self._over.set()
        self._heart.join()

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self.before_release is not None:
                with suppress(*((SyncengineError,) if kind else ())):  # another error is on its way already
                    self.before_release()
        finally:
            self.release()

    @contextmanager
    def renewal(self) -> Iterator[None]:
        """Count a block that writes to the lock as a renewal, once it has ended."""
        began = self._locks.clocks()  # before the request: a renewal that took long must not count as a fresh one
        yield
        self._began = began

    def _beat(self) -> None:
        while not self._over.wait(self._seconds / BEATS):
            try:
                with self.renewal():
                    self._locks.renew(self.info, self._seconds)
            except LockLost as loss:
                self._loss = loss
                self._over.set()
            except SyncengineError:
                continue  # the next beat tries again; meanwhile `remaining` runs out


@contextmanager
def _unless_gone(database: StateDatabase) -> Iterator[None]:
    """Raise `StateReplaced` where the tables that this process has locked are no longer in the database."""
    try:
        yield
    except SyncengineError as error:
        if error.code in (NO_DATABASE.code, CHANGED.code):
            raise StateReplaced.of(database.name) from error
        raise


@contextmanager
def proven(database: StateDatabase, lease: Lease | None) -> Iterator[sa.Connection]:
    """Open a transaction that proves the lease, and keeps others from taking the lock until it ends.

    Raise `LockLost` unless the lease still holds the lock: `StateReplaced` if the whole state is another one.
    """
    if lease is None:
        raise LockLost("the state is not locked by this run")
    with ExitStack() as stack:
        with _unless_gone(database), as_state_errors(database.name):
            connection = stack.enter_context(database.transaction())
            lease.prove(connection)  # before anything is read: in PostgreSQL, what is read then is what was committed
        yield connection


def short_id() -> str:
    return secrets.token_hex(4)
