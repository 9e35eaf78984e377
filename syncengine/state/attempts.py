"""Record calls that the service may still execute, from before they are sent until they can no longer land.

A call with a certain answer is dropped by its run. A call without a known outcome is kept for the landing bound,
counted from the time when its sender could no longer send it, on a clock shared by all readers or on the reader's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import sqlalchemy as sa

from syncengine.resource import Key
from syncengine.state.clock import Clock
from syncengine.state.landing import Attempt, Outstanding
from syncengine.state.queries import execute_among
from syncengine.state.tables import ATTEMPTS, write_many

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Attempt)

# Built once: building a statement takes longer than SQLite takes to execute it.
_OF_RUN = ATTEMPTS.c.run == sa.bindparam("of_run")
_CLOCK = sa.bindparam("new_clock", type_=sa.String)
_NOW = sa.bindparam("now", type_=sa.Double)
_DROP = sa.delete(ATTEMPTS).where(_OF_RUN)
_CALLS = sa.select(ATTEMPTS.c.call).where(_OF_RUN)
_ALL = sa.select(ATTEMPTS).order_by(ATTEMPTS.c.run, ATTEMPTS.c.call)
_LINGER = (
    sa.update(ATTEMPTS).where(_OF_RUN, ATTEMPTS.c.call == sa.bindparam("of_call")).values(clock=_CLOCK, since=_NOW)
)
_DATE_UNDER_WAY = sa.update(ATTEMPTS).where(ATTEMPTS.c.since.is_(None)).values(clock=_CLOCK, since=_NOW)
_DATE_FOREIGN = sa.update(ATTEMPTS).where(ATTEMPTS.c.clock != _CLOCK).values(clock=_CLOCK, since=_NOW)
_EXPIRE = sa.delete(ATTEMPTS).where(ATTEMPTS.c.clock == _CLOCK, ATTEMPTS.c.since < _NOW)


def begin(connection: sa.Connection, run: str, attempts: Mapping[str, Attempt]) -> None:
    """Record calls that are about to be sent."""
    values = [(run, call, attempt.operation, _ENCODER.encode(attempt)) for call, attempt in attempts.items()]
    write_many(connection, ATTEMPTS, ("run", "call", "operation", "content"), values)


def calls(connection: sa.Connection, run: str) -> set[str]:
    """Return the recorded calls of a run."""
    return set(connection.execute(_CALLS, {"of_run": run}).scalars())


def end(connection: sa.Connection, run: str, calls: Sequence[str]) -> None:
    """Drop calls whose every attempt has a known end."""
    execute_among(connection, _DROP, ATTEMPTS.c.call, calls, of_run=run)


def linger(connection: sa.Connection, clock: Clock, run: str, ages: Mapping[str, float]) -> None:
    """Keep calls without a known outcome. `ages` maps each to the seconds since its last attempt was given up."""
    if not ages:
        return
    now = clock.read(connection)
    for call, age in ages.items():
        connection.execute(_LINGER, {"of_run": run, "of_call": call, "new_clock": clock.name, "now": now - age})


def take_over(connection: sa.Connection, clock: Clock, quiet: float) -> None:
    """Date the calls of earlier runs. Calls under way have had no sender for `quiet` seconds.

    A date by another machine's clock is replaced by the current time on this machine's clock.
    """
    now = clock.read(connection)
    connection.execute(_DATE_UNDER_WAY, {"new_clock": clock.name, "now": now - quiet})
    connection.execute(_DATE_FOREIGN, {"new_clock": clock.name, "now": now})


def expire(connection: sa.Connection, clock: Clock, window: float) -> None:
    """Drop calls that can no longer land because `window` seconds have passed since their senders stopped."""
    connection.execute(_EXPIRE, {"new_clock": clock.name, "now": clock.read(connection) - window})


def outstanding(connection: sa.Connection, clock: Clock, window: float) -> list[Outstanding]:
    """Return calls that may still be executed, with the seconds left of `window`. Undated calls have all of it left."""
    now = clock.read(connection)
    rows = [(row, _seconds_left(row, clock, now, window)) for row in connection.execute(_ALL)]
    return [
        Outstanding(row.run, row.call, _DECODER.decode(row.content), remaining)
        for row, remaining in rows
        if remaining > 0
    ]


def _seconds_left(row: sa.Row[tuple[object, ...]], clock: Clock, now: float, window: float) -> float:
    dated = row.since is not None and row.clock == clock.name
    return window - (now - row.since) if dated else window


def in_question(connection: sa.Connection, clock: Clock, window: float, keys: Iterable[Key]) -> dict[Key, float]:
    """Return the keys that a late call may still change, each with the seconds after which none can."""
    requested = set(keys)
    seconds: dict[Key, float] = {}
    for late in outstanding(connection, clock, window):
        for effect in late.attempt.effects:
            if effect.key in requested:
                seconds[effect.key] = max(seconds.get(effect.key, 0.0), late.remaining)
    return seconds
