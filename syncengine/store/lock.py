"""The lock of a state: a lease with a heartbeat, and the epoch that every writer proves (engine.md 1.5)."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from syncengine.errors import ExitCode, LockHeld, SyncengineError
from syncengine.store.codec import from_json, to_json
from syncengine.store.database import Database
from syncengine.store.holder import Holder
from syncengine.store.tables import INBOX_LOCK, LOCK, STATE_LOCK

__all__ = ["Holder", "Lease", "LockInfo", "LockLost", "Locks"]

POLL_SECONDS = 0.25
HELD = {STATE_LOCK: "the state", INBOX_LOCK: "the inbox"}
BEATS = 4
"""Renewals in the time of one lease."""


class LockLost(SyncengineError):
    """The lock was taken over, or never held: nothing of the transaction that found out is kept."""

    exit_code, code = ExitCode.LOCKED, "lock-lost"


@dataclass(frozen=True, slots=True)
class LockInfo:
    """A lock that is held. Seconds since epoch; `expires` None: by hand, until it is unlocked."""

    id: str
    epoch: int
    holder: Holder
    since: float
    expires: float | None

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since, UTC).isoformat(timespec="seconds")
        reason = f": {self.holder.reason}" if self.holder.reason else ""
        return f"{self.holder}, since {since}, lock {self.id}{reason}"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one look at the lock's row showed; `info` None: it is free."""

    epoch: int
    info: LockInfo | None


class Locks:
    """A lock's row: looking, taking, renewing, releasing."""

    def __init__(self, database: Database, now: Callable[[], float], row: int = STATE_LOCK) -> None:
        self._database = database
        self.now = now
        self.row = row

    def current(self) -> LockInfo | None:
        return self._look().info

    def hold(self, holder: Holder, *, lock_id: str, request_timeout: float) -> LockInfo:
        """Take the lock by hand: it does not expire. LockHeld if another has it."""
        seen = self._look()
        if seen.info and not self._takeable(seen.info, request_timeout):
            raise LockHeld(self._refusal(seen.info))
        info = LockInfo(lock_id, seen.epoch + 1, holder, self.now(), None)
        if not self._take(seen, info, request_timeout):
            raise LockHeld(f"{HELD[self.row]} was locked by another at this very moment")
        return info

    def acquire(
        self,
        holder: Holder,
        *,
        lock_id: str,
        wait: float,
        request_timeout: float,
        sleep: Callable[[float], None],
        seconds: float,
    ) -> Lease:
        """Take the lock for `seconds`, again and again for `wait` seconds; then LockHeld naming the holder."""
        until = self.now() + wait
        while True:
            seen = self._look()
            if seen.info is None or self._takeable(seen.info, request_timeout):
                base, now = time.monotonic(), self.now()
                info = LockInfo(lock_id, seen.epoch + 1, holder, now, now + seconds)
                if self._take(seen, info, request_timeout):
                    return Lease(self, info, seconds, _Left(now + seconds, base + seconds))
            elif self.now() >= until:
                raise LockHeld(self._refusal(seen.info))
            sleep(max(0.0, min(POLL_SECONDS, until - self.now())))

    def renew(self, epoch: int, expires: float) -> bool:
        """Whether the lock was still ours to renew."""
        return self._change(mine(self.row, epoch), expires=expires)

    def release(self, epoch: int) -> bool:
        return self._change(mine(self.row, epoch), released=self.now())

    def break_open(self, lock_id: str) -> bool:
        """Take the lock from its holder, whose epoch is then over; False when another lock is held, or none."""
        condition = sa.and_(LOCK.c.id == self.row, LOCK.c.lock_id == lock_id, LOCK.c.released.is_(None))
        return self._change(condition, epoch=LOCK.c.epoch + 1, released=self.now())

    def _look(self) -> _Seen:
        with self._database.transaction() as connection:
            row = connection.execute(sa.select(LOCK).where(LOCK.c.id == self.row)).one()
        if row.lock_id is None or row.released is not None:
            return _Seen(row.epoch, None)
        return _Seen(row.epoch, LockInfo(row.lock_id, row.epoch, _holder(row.holder), row.acquired, row.expires))

    def _takeable(self, info: LockInfo, request_timeout: float) -> bool:
        if info.expires is None:
            return False
        return info.holder.gone() or info.expires + request_timeout < self.now()

    def _take(self, seen: _Seen, info: LockInfo, request_timeout: float) -> bool:
        """Compare and swap on the epoch; a holder that renewed meanwhile keeps the lock, unless its process is gone."""
        condition = sa.and_(LOCK.c.id == self.row, LOCK.c.epoch == seen.epoch)
        if seen.info and not seen.info.holder.gone():
            condition = sa.and_(condition, LOCK.c.expires < self.now() - request_timeout)
        holder = to_json(asdict(info.holder))
        values: dict[str, Any] = {"lock_id": info.id, "holder": holder, "acquired": info.since, "expires": info.expires}
        return self._change(condition, epoch=info.epoch, released=None, **values)

    def _change(self, condition: sa.ColumnElement[bool], **values: Any) -> bool:
        with self._database.transaction() as connection:
            return connection.execute(sa.update(LOCK).where(condition).values(**values)).rowcount == 1

    def _refusal(self, info: LockInfo) -> str:
        if info.expires is None:
            return f"{HELD[self.row]} is locked by hand by {info}; `syncengine state unlock {info.id}` ends that"
        return f"{HELD[self.row]} is locked by {info}"


@dataclass(frozen=True, slots=True)
class _Left:
    """When a lease ends, by the wall clock and by the monotonic one: whichever is sooner."""

    wall: float
    monotonic: float


class Lease:
    """A held lock, renewed by a daemon thread until it is released. Also a context manager."""

    def __init__(self, locks: Locks, info: LockInfo, seconds: float, left: _Left) -> None:
        self.info = info
        self._locks = locks
        self._seconds = seconds
        self._left = left
        self._over = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="lease", daemon=True)
        self._heart.start()

    @property
    def epoch(self) -> int:
        return self.info.epoch

    @property
    def row(self) -> int:
        return self._locks.row

    def remaining(self) -> float:
        """Seconds that the last renewal is still good for; 0 once lost, released, or slept through."""
        left = self._left
        if self._over.is_set():
            return 0.0
        return max(0.0, min(left.wall - self._locks.now(), left.monotonic - time.monotonic()))

    def release(self) -> None:
        """Give the lock back if it is still ours. A database that is gone must not hide why: the lease expires."""
        if self._over.is_set():
            return
        self._over.set()
        self._heart.join()
        try:
            self._locks.release(self.epoch)
        except SyncengineError:
            return

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _beat(self) -> None:
        while not self._over.wait(self._seconds / BEATS):
            # Taken before the request: a renewal that was long under way must not count as a fresh one.
            left = _Left(self._locks.now() + self._seconds, time.monotonic() + self._seconds)
            try:
                renewed = self._locks.renew(self.epoch, left.wall)
            except SyncengineError:
                continue  # the next beat tries again; meanwhile `remaining` runs out
            if renewed:
                self._left = left
            else:
                self._over.set()


def prove(connection: sa.Connection, lease: Lease | None) -> None:
    """Fail unless the lock is still held under this lease's epoch, and keep others from taking it until the commit."""
    if lease is None:
        raise LockLost("the state is not locked by this run")
    proof = sa.update(LOCK).where(mine(lease.row, lease.epoch)).values(epoch=LOCK.c.epoch)
    if connection.execute(proof).rowcount != 1:
        raise LockLost(f"lock {lease.info.id} was released or taken over by another run; nothing more is written")


def mine(row: int, epoch: int) -> sa.ColumnElement[bool]:
    return sa.and_(LOCK.c.id == row, LOCK.c.epoch == epoch, LOCK.c.released.is_(None))


def _holder(text: str) -> Holder:
    known = from_json(text)
    return Holder(**{f.name: known[f.name] for f in fields(Holder) if f.name in known})


def short_id() -> str:
    return secrets.token_hex(4)
