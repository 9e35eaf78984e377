"""Clocks with comparable readings: a database server's clock, or else this machine's clock since its boot.

Wall clocks differ between machines and are set forward and back, so that no lease and no bound is judged by them.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import MISSING, asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from syncengine.document.clock import machine_seconds
from syncengine.errors import LockHeld, SyncengineError
from syncengine.state.codec import from_json, to_json
from syncengine.state.database import StateDatabase
from syncengine.state.errors import CHANGED, NO_DATABASE, LockLost, StateReplaced, as_state_errors
from syncengine.state.holder import Holder, boot_id
from syncengine.state.tables import INBOX_LOCK, LOCK, STATE_LOCK

SERVER = "server"
SERVER_SECONDS = sa.func.extract("epoch", sa.func.clock_timestamp())


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock, named by its machine or server. Readings of clocks with different names are not comparable."""

    name: str
    read: Callable[[sa.Connection], float]

    @classmethod
    def of_machine(cls, seconds: Callable[[], float] = machine_seconds) -> Clock:
        return cls(f"boot {boot_id()}", lambda _: seconds())

    @classmethod
    def of_server(cls) -> Clock:
        return cls(SERVER, lambda connection: float(connection.execute(sa.select(SERVER_SECONDS)).scalar_one()))

    @classmethod
    def of_database(cls, dialect: str, seconds: Callable[[], float]) -> Clock:
        """Return the server's clock for a database server, or this machine's clock for SQLite."""
        return cls.of_machine(seconds) if dialect == "sqlite" else cls.of_server()


__all__ = ["Holder", "Lease", "LockInfo", "LockLost", "Locks"]

POLL_SECONDS, REMOTE_POLL_SECONDS = 0.25, 2.0
"""Seconds between two reads of a lock: in a database, and in a Git repository."""
HELD = {STATE_LOCK: "the state", INBOX_LOCK: "the inbox"}
BEATS = 4
"""The number of renewals during one lease."""

LONGEST_LEASE = 60.0
"""The assumed length of a lease in seconds where the lock's row does not record one."""


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

    def seems_at_work(self, now: float) -> bool:
        """Return whether the holder may still be working, judged from one read. Only taking the lock is proof."""
        return self.expires is not None and self.expires > now and not self.holder.has_ended()

    def __str__(self) -> str:
        reason = f": {self.holder.reason}" if self.holder.reason else ""
        lease = "" if self.expires is None else f", lease until {_instant(self.expires)} unless renewed"
        return f"{self.holder}, since {_instant(self.since)}{lease}, lock {self.id}{reason}"


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class _Look:
    """One read of the lock's row.

    `info` is `None` for a free lock. `beat` changes with every renewal, which is valid for `seconds`. `broken`: the
    lock was unlocked by force, so that its former holder may still be running. `overdue` is the seconds since the lease
    ended by the server's clock, or `None` where there is no server.
    """

    epoch: int
    beat: tuple[int, int, float | None]
    seconds: float
    info: LockInfo | None
    broken: bool
    overdue: float | None


class _Watch:
    """A watch on one lock, which measures by this machine's clock how long its holder has been unable to send.

    A holder that renews the lock is working. A holder can send nothing more once its heartbeat has stopped for the
    length of its lease, or once its process is gone. A server's clock tells this at the first read.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._beat: tuple[int, int, float | None] | None = None
        self._since = 0.0
        self._ended: float | None = None

    def quiet(self, look: _Look) -> float | None:
        """Return for how many seconds nobody could send under the lock, or `None` while its holder may send.

        A negative number means that nobody can send once that many seconds have passed.
        """
        now = self._seconds()
        if self._beat != look.beat:
            self._beat, self._since, self._ended = look.beat, now, None
        if look.info is None:
            # A holder whose lock was ended by force learns that at its next renewal, and goes on until then.
            return now - self._since - (look.seconds if look.broken else 0.0)
        if look.info.expires is None:
            return None
        if look.info.holder.has_ended():
            self._ended = now if self._ended is None else self._ended
            return now - self._ended
        overdue = now - self._since - look.seconds if look.overdue is None else look.overdue
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
        self._snapshots = database.snapshots
        self._poll = REMOTE_POLL_SECONDS if self._snapshots else POLL_SECONDS
        self._has_server = database.engine.dialect.name != "sqlite"
        self._seconds = seconds
        self.now = now
        self.row = row

    def current(self) -> LockInfo | None:
        """Return the current lock, or `None` when nobody holds it."""
        with self._database.transaction() as connection:
            return _info(connection.execute(_CURRENT, {"of_id": self.row}).one())

    def hold(self, holder: Holder, *, lock_id: str, request_timeout: float) -> LockInfo:
        """Take the lock by hand, so that it does not expire. Raise `LockHeld` if somebody else has it."""
        look = self._look()
        if not _is_free(look, _Watch(self._seconds).quiet(look), request_timeout):
            assert look.info is not None, "only a lock that somebody holds is not free"
            raise LockHeld(self._refusal(look.info))
        if not self._take(look, holder, lock_id, None):
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
        waited_for: str | None = None
        was_late = False
        while True:
            look = self._look()
            quiet = watch.quiet(look)
            is_late = self._seconds() >= until
            if _is_free(look, quiet, request_timeout):
                term = _Term(self.now() + seconds, self._seconds() + seconds)
                if self._take(look, holder, lock_id, seconds):
                    return Lease(self, self._own_info(lock_id), seconds, term, quiet or 0.0)
                if was_late:
                    raise LockHeld(f"{HELD[self.row]} was locked by another process whenever it was free")
                was_late = is_late  # the next look names who was quicker
            elif look.info is not None:
                if look.info.expires is None or is_late:
                    raise LockHeld(self._refusal(look.info))
                if waited_for != look.info.id:
                    waited_for = look.info.id
                    on_wait(look.info)
            sleep(max(0.0, min(self._poll, until - self._seconds())))

    def renew(self, lock: LockInfo, seconds: float) -> None:
        """Renew the lock for `seconds`. Raise `LockLost` if it is no longer ours."""
        with unless_gone(self._database):
            if self._change(mine(self.row, lock.epoch, lock.id), beats=LOCK.c.beats + 1, expires=self._wall(seconds)):
                return
            with self._database.transaction() as connection:
                raise self.loss(connection, lock)

    def loss(self, connection: sa.Connection, lock: LockInfo) -> LockLost:
        """Return the error for a lock that is no longer ours.

        Epochs only grow, and each belongs to one lock: where this is not so, the state itself is another one. A state
        in Git notices that by its versions.
        """
        found = connection.execute(_CURRENT, {"of_id": self.row}).one_or_none()
        grew = found is not None and (found.epoch > lock.epoch or found[:2] == (lock.id, lock.epoch))
        if self._snapshots is None and not grew:
            return StateReplaced.of(self._database.name)
        return LockLost(f"lock {lock.id} was released or taken over by another run; nothing more is written")

    def release(self, lock: LockInfo) -> bool:
        return self._change(mine(self.row, lock.epoch, lock.id), released=self._wall())

    def break_open(self, lock_id: str) -> bool:
        """End the lock with this id and its holder's epoch. Return `False` when it is not the current lock."""
        condition = sa.and_(LOCK.c.id == self.row, LOCK.c.lock_id == lock_id, LOCK.c.released.is_(None))
        return self._change(condition, epoch=LOCK.c.epoch + 1, lock_id=None, released=self._wall())

    def clocks(self) -> tuple[float, float]:
        """Return the readings of the wall clock and of this machine's monotonic clock."""
        return self.now(), self._seconds()

    def _wall(self, seconds: float = 0.0) -> Any:
        """Return the wall-clock time `seconds` from now, by the server's clock if there is a server."""
        return SERVER_SECONDS + seconds if self._has_server else self.now() + seconds

    def _look(self) -> _Look:
        if self._snapshots is not None:
            with as_state_errors(self._database.name):
                self._snapshots.refresh()
        with self._database.transaction() as connection:
            row = connection.execute(_LOOK[self._has_server], {"of_id": self.row}).one()
            broken = row.lock_id is None and row.released is not None
            beat = (row.epoch, row.beats, row.expires)
            return _Look(row.epoch, beat, float(row.seconds or LONGEST_LEASE), _info(row), broken, row.overdue)

    def _own_info(self, lock_id: str) -> LockInfo:
        info = self._look().info
        if info is None or info.id != lock_id:
            raise LockLost(f"{HELD[self.row]} was unlocked by force at the same moment")
        return info

    def _take(self, look: _Look, holder: Holder, lock_id: str, seconds: float | None) -> bool:
        """Take the lock unless it changed since `look` (compare and swap); return whether it was taken."""
        epoch, beats, _ = look.beat  # not the time: a server may have given fewer digits of it than it compares
        condition = sa.and_(LOCK.c.id == self.row, LOCK.c.epoch == epoch, LOCK.c.beats == beats)
        return self._change(
            condition,
            epoch=look.epoch + 1,
            released=None,
            lock_id=lock_id,
            holder=to_json(asdict(holder)),
            acquired=self._wall(),
            expires=None if seconds is None else self._wall(seconds),
            beats=0,
            seconds=seconds,
        )

    def _change(self, condition: sa.ColumnElement[bool], **values: Any) -> bool:
        def change(connection: sa.Connection) -> bool:
            return connection.execute(sa.update(LOCK).where(condition).values(**values)).rowcount == 1

        if self._snapshots is not None:
            with as_state_errors(self._database.name):
                return self._snapshots.commit(change, rows=False)
        with self._database.transaction() as connection:
            return change(connection)

    def _refusal(self, info: LockInfo) -> str:
        if info.expires is None:
            return f"{HELD[self.row]} is locked by hand by {info}; unlock it with `syncengine state unlock {info.id}`"
        return f"{HELD[self.row]} is locked by {info}"


_OF_ID = LOCK.c.id == sa.bindparam("of_id")
_CURRENT = sa.select(
    *(LOCK.c[name] for name in ("lock_id", "epoch", "holder", "acquired", "expires", "released"))
).where(_OF_ID)
_LOOK = {
    has_server: sa.select(LOCK, overdue.label("overdue")).where(_OF_ID)
    for has_server, overdue in ((True, SERVER_SECONDS - LOCK.c.expires), (False, sa.null()))
}


def _info(row: sa.Row[Any]) -> LockInfo | None:
    if row.lock_id is None or row.released is not None:
        return None
    expires = None if row.expires is None else float(row.expires)
    return LockInfo(row.lock_id, row.epoch, _holder(row.holder), float(row.acquired), expires)


def _is_free(look: _Look, quiet: float | None, request_timeout: float) -> bool:
    """Return whether the lock may be taken: nobody holds it, or its holder's last request has timed out."""
    if look.info is None:
        return True
    if quiet is None:
        return False
    return look.info.holder.has_ended() or quiet > request_timeout


@dataclass(frozen=True, slots=True)
class _Term:
    """The end of a lease by the wall clock and by the monotonic clock. The earlier of the two counts.

    A monotonic clock may stop while the machine is suspended, while the wall clock goes on.
    """

    wall: float
    monotonic: float


class Lease:
    """A held lock, renewed by a daemon thread until it is released. Also a context manager that releases it.

    `quiet` is the number of seconds for which no earlier holder could send when the lock was taken; when it is
    negative, an earlier holder may still send. `before_release` writes pending changes, if there are any.
    """

    before_release: Callable[[], None] | None = None

    def __init__(self, locks: Locks, info: LockInfo, seconds: float, term: _Term, quiet: float) -> None:
        self.info = info
        self.quiet = quiet
        self._locks = locks
        self._seconds = seconds
        self._term = term
        self._over = threading.Event()
        self._loss: LockLost | None = None
        self._heart = threading.Thread(target=self._beat, name="lease", daemon=True)
        self._heart.start()

    @property
    def epoch(self) -> int:
        return self.info.epoch

    def prove(self, connection: sa.Connection) -> None:
        """Raise `LockLost` unless the lease still holds the lock, and write to its row, so that nobody else does."""
        names = {"its_row": self._locks.row, "its_epoch": self.epoch, "its_id": self.info.id}
        if connection.execute(_PROOF, names).rowcount != 1:
            raise self._locks.loss(connection, self.info)

    def refuse_lost(self, words: str, least: float = 0.0) -> None:
        """Raise `LockLost`, with these words or a better known reason, unless over `least` seconds of it remain."""
        if self.remaining() <= least:
            raise self._loss or LockLost(words)

    def remaining(self) -> float:
        """Return the seconds for which the last renewal is still valid, 0 once the lease is lost, released or over."""
        term = self._term
        if self._over.is_set():
            return 0.0
        wall, monotonic = self._locks.clocks()
        return max(0.0, min(term.wall - wall, term.monotonic - monotonic))

    def release(self) -> None:
        """Release the lock if it is still ours. When the database fails, leave the lease to expire."""
        if self._over.is_set():
            return
        self._over.set()
        self._heart.join()
        try:
            self._locks.release(self.info)
        except SyncengineError:  # it must not hide the error that ends this process
            return

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

    def term(self) -> _Term:
        """Return the end that the lease has when it is renewed by a request that begins now."""
        wall, monotonic = self._locks.clocks()
        return _Term(wall + self._seconds, monotonic + self._seconds)

    def renewed(self, term: _Term) -> None:
        """Count a write that proved the lock as a renewal. `term` was computed before that write."""
        self._term = term

    def _beat(self) -> None:
        while not self._over.wait(self._seconds / BEATS):
            # Computed before the request: a renewal that took long must not count as a fresh one.
            term = self.term()
            try:
                self._locks.renew(self.info, self._seconds)
            except LockLost as loss:
                self._loss = loss
                self._over.set()
            except SyncengineError:
                continue  # the next beat tries again; meanwhile `remaining` runs out
            else:
                self._term = term


@contextmanager
def unless_gone(database: StateDatabase) -> Iterator[None]:
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
        with unless_gone(database), as_state_errors(database.name):
            connection = stack.enter_context(database.transaction())
            lease.prove(connection)
        yield connection


def mine(row: Any, epoch: Any, lock_id: Any) -> sa.ColumnElement[bool]:
    """Return the condition that a row is this unreleased lock. A set-back state may repeat an epoch, but not an id."""
    return sa.and_(LOCK.c.id == row, LOCK.c.epoch == epoch, LOCK.c.lock_id == lock_id, LOCK.c.released.is_(None))


_PROOF = sa.update(LOCK).where(mine(*map(sa.bindparam, ("its_row", "its_epoch", "its_id")))).values(epoch=LOCK.c.epoch)
"""The statement that every write begins with, built once."""


def _holder(text: str) -> Holder:
    parts = from_json(text)
    return Holder(**{f.name: parts[f.name] for f in fields(Holder) if f.name in parts or f.default is MISSING})


def short_id() -> str:
    return secrets.token_hex(4)
