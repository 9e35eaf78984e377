"""Read and write which calls the service may still execute: the calls in `state_calls` that have their content.

A call has it from before it is sent until it can no longer land. One with a certain answer loses it in its run. One
without a known outcome keeps it for the landing bound, counted from the time when its sender could no longer send it,
on a clock shared by all readers or on the reader's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import sqlalchemy as sa

from syncengine.resource import Key
from syncengine.state.clock import Clock
from syncengine.state.landing import Attempt, Outstanding
from syncengine.state.queries import pieces
from syncengine.state.tables import CALLS

_DECODER = msgspec.msgpack.Decoder(Attempt)

MAY_LAND = CALLS.c.content.is_not(None)


def end(connection: sa.Connection, run: str, calls: Sequence[str]) -> None:
    """Drop the content of calls whose every attempt has a known end."""
    for piece in pieces(calls):
        connection.execute(sa.update(CALLS).where(CALLS.c.run == run, CALLS.c.call.in_(piece)).values(content=None))


def linger(connection: sa.Connection, clock: Clock, run: str, ages: Mapping[str, float]) -> None:
    """Keep calls without a known outcome. `ages` maps each to the seconds since its last attempt was given up."""
    now = clock.read(connection) if ages else 0.0
    for call, age in ages.items():
        of_call = sa.and_(CALLS.c.run == run, CALLS.c.call == call, MAY_LAND)
        connection.execute(sa.update(CALLS).where(of_call).values(clock=clock.name, since=now - age))


def take_over(connection: sa.Connection, clock: Clock, quiet: float) -> None:
    """Date the calls of earlier runs. Calls under way have had no sender for `quiet` seconds.

    A date by another machine's clock is replaced by the current time on this machine's clock.
    """
    now = clock.read(connection)
    late = sa.update(CALLS).where(MAY_LAND)
    connection.execute(late.where(CALLS.c.since.is_(None)).values(clock=clock.name, since=now - quiet))
    connection.execute(late.where(CALLS.c.clock != clock.name).values(clock=clock.name, since=now))


def expire(connection: sa.Connection, clock: Clock, window: float) -> None:
    """Drop the content of calls that can no longer land because their senders stopped `window` seconds ago."""
    is_over = sa.and_(MAY_LAND, CALLS.c.clock == clock.name, CALLS.c.since < clock.read(connection) - window)
    connection.execute(sa.update(CALLS).where(is_over).values(content=None, clock=None, since=None))


def outstanding(connection: sa.Connection, clock: Clock, window: float) -> list[Outstanding]:
    """Return calls that may still be executed, with the seconds left of `window`. Undated calls have all of it left."""
    now = clock.read(connection)
    columns = (CALLS.c.run, CALLS.c.call, CALLS.c.content, CALLS.c.clock, CALLS.c.since)
    found = []
    for row in connection.execute(sa.select(*columns).where(MAY_LAND).order_by(CALLS.c.run, CALLS.c.call)):
        is_dated = row.since is not None and row.clock == clock.name
        remaining = window - (now - row.since) if is_dated else window
        if remaining > 0:
            found.append(Outstanding(row.run, row.call, _DECODER.decode(row.content), remaining))
    return found


def in_question(connection: sa.Connection, clock: Clock, window: float, keys: Iterable[Key]) -> dict[Key, float]:
    """Return the keys that a late call may still change, each with the seconds after which none can."""
    requested = set(keys)
    seconds: dict[Key, float] = {}
    for late in outstanding(connection, clock, window):
        for effect in late.attempt.effects:
            if effect.key in requested:
                seconds[effect.key] = max(seconds.get(effect.key, 0.0), late.remaining)
    return seconds
