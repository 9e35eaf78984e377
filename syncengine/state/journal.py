"""Write calls and their changes: intend, settle, fail, and what is recorded without a call. The transaction is the
caller's, who has proven the lock, so that nobody else writes meanwhile.

`effects.intended` and `effects.settled` compute the rows. A row in `state_calls` stands for each call, a row in
`state_changes` for each resource that it may alter (docs/planning.md 1.2). Doubt is not written: a call without an
outcome is the doubt of all its resources, so that settling a whole call is one UPDATE of one row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from syncengine.effects import Effect, intended, settled
from syncengine.resource import Key, Recorded, Source, Status
from syncengine.state.codec import RowDifference, difference, to_row
from syncengine.state.lock import Clock
from syncengine.state.records import LONGEST_WORDS, Attempt, CallFailure, Outstanding, Settlement
from syncengine.state.tables import CALLS, CHANGES, IN_FLIGHT, ROWS, change_keyed, fetch, pieces, write_many

INTENDED, SETTLED, FAILED = "intended", "settled", "failed"
"""The outcomes of calls. `INTENDED`: the run is over, and nobody will know how the call ended."""

RECORDED, DOUBTED, FORGOTTEN = "recorded", "doubted", "forgotten"
QUARANTINED, QUARANTINE_ENDED = "quarantined", "quarantine-ended"
"""The outcomes of what was recorded without a call."""

ERASED = "(erased)"
"""The name in a change whose resource was erased, together with all its content."""

SUBSTANCE = attrgetter("status", "server_id", "protect", "source", "former_categories", "body")
"""The parts of a row apart from its flags and its last writer."""

NOTHING = RowDifference(None, takes=False)

Rows = dict[Key, Recorded]
Change = tuple[Key, Source | None, RowDifference]

_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class Stamp:
    """The writer, recorded with every row and call: run, plan and time."""

    run: str | None
    plan: str | None
    at: float

    def signed(self, row: Recorded) -> dict[str, Any]:
        return to_row(row, self.run, self.plan)


def intend(connection: sa.Connection, stamp: Stamp, attempts: Mapping[str, Attempt]) -> None:
    """Record calls before they are sent: rows gain the additions, and their keys become in flight."""
    effects = [effect for attempt in attempts.values() for effect in attempt.effects]
    formers = (effect.former for effect in effects if effect.former)
    rows = fetch(connection, [*(effect.key for effect in effects), *formers])
    written: dict[Key, Recorded] = {}
    calls, changes = [], []
    for id, (call, attempt) in enumerate(attempts.items(), _next_id(connection)):
        calls.append(_call(id, stamp, call, attempt))
        of_call: list[Change] = []
        for effect in attempt.effects:
            key, before = effect.key, rows.get(effect.key)
            after = intended(before, effect)
            former = rows.get(effect.former) if effect.former and effect.former.kind is key.kind else None
            if former is not None and not after.server_id:  # a renamed category keeps its id (docs/planning.md 2.2)
                after = _identified(after, former.server_id)
            rows[key] = written[key] = after
            # The history tells at once what the whole call changes: settling it need not write there.
            of_call.append((key, effect.source, difference(before, settled(after, effect))))
        changes += _changes(id, of_call)
    # All of it in one transaction, which is on the disk before the first byte is sent: what the service may hold and
    # the state lacks could never be taken back.
    write_many(connection, ROWS, list(map(stamp.signed, written.values())), upsert=True)
    write_many(connection, CALLS, calls)
    write_many(connection, CHANGES, changes)


def settle(connection: sa.Connection, stamp: Stamp, entries: Sequence[Settlement]) -> None:
    """Record calls acknowledged with a 2xx: rows lose the removed parts, and their keys are no longer in flight."""
    before = fetch(connection, (effect.key for entry in entries for effect in entry.effects))
    rows = dict(before)
    for entry in entries:
        for effect in entry.effects:
            # The service has the resource even if somebody forgot its row meanwhile.
            row = rows.get(effect.key) or intended(None, effect)
            rows[effect.key] = _identified(settled(row, effect), entry.server_ids.get(effect.key))
    _rewrite(connection, stamp, before, rows)
    _end(
        connection, stamp, SETTLED, [(entry.call, [effect.key for effect in entry.effects], None) for entry in entries]
    )


def fail(connection: sa.Connection, stamp: Stamp, entries: Sequence[CallFailure]) -> None:
    """Record refused calls: rows keep their content, become doubtful and are no longer in flight."""
    # A refusal takes back nothing that was intended: a part of the call may have been executed before it.
    # In one transaction with the end, or a row would be neither in flight nor doubtful for a moment.
    doubt(connection, (key for entry in entries for key in entry.keys))
    _end(connection, stamp, FAILED, [(each.call, each.keys, each.message[:LONGEST_WORDS] or None) for each in entries])


def record(connection: sa.Connection, stamp: Stamp, effects: Sequence[Effect]) -> None:
    """Record effects that need no call on existing rows. No row is created, and doubts stay as they are."""
    rows = fetch(connection, (effect.key for effect in effects))
    written: dict[Key, Recorded] = {}
    changes: list[Change] = []
    for effect in effects:
        if before := rows.get(effect.key):
            after = replace(settled(intended(before, effect), effect), status=effect.status or before.status)
            rows[effect.key] = written[effect.key] = after = replace(
                after, doubtful=before.doubtful, confirmed=before.confirmed
            )
            changes.append((effect.key, effect.source, difference(before, after)))
    write_many(connection, ROWS, list(map(stamp.signed, written.values())), upsert=True)
    _write_without_call(connection, stamp, RECORDED, changes)


def put(connection: sa.Connection, stamp: Stamp, recorded: Sequence[Recorded]) -> None:
    """Write whole rows over the recorded ones, as `adopt` and `state import` do."""
    rows = fetch(connection, (row.key for row in recorded))
    written = {row.key: stamp.signed(row) for row in recorded}
    write_many(connection, ROWS, list(written.values()), upsert=True)
    changes = [(row.key, row.source, difference(rows.get(row.key), row)) for row in recorded]
    _write_without_call(connection, stamp, RECORDED, changes)


def doubt(connection: sa.Connection, keys: Iterable[Key]) -> None:
    change_keyed(connection, sa.update(ROWS).where(ROWS.c.doubtful.is_(False)), ROWS, keys, doubtful=True)


def note(connection: sa.Connection, stamp: Stamp, outcome: str, keys: Iterable[Key]) -> None:
    """Tell in the history of each key what was done to it, without content."""
    _write_without_call(connection, stamp, outcome, [(key, None, NOTHING) for key in keys])


def forget(connection: sa.Connection, stamp: Stamp, keys: Iterable[Key]) -> int:
    """Delete rows and return their number. Their history stays."""
    present = fetch(connection, keys)
    change_keyed(connection, sa.delete(ROWS), ROWS, present)
    note(connection, stamp, FORGOTTEN, present)
    return len(present)


def abandon(connection: sa.Connection) -> None:
    """Mark the rows of calls in flight as doubtful and close the calls, because their run is over or dead."""
    # Rows first: once the calls are closed, nothing tells any more which rows they were for.
    connection.execute(sa.update(ROWS).where(IN_FLIGHT, ROWS.c.doubtful.is_(False)).values(doubtful=True))
    connection.execute(sa.update(CALLS).where(CALLS.c.outcome.is_(None)).values(outcome=INTENDED))


def calls_of(connection: sa.Connection, run: str) -> set[str]:
    """Return the calls that a run has intended."""
    return set(
        connection.execute(sa.select(CALLS.c.call).where(CALLS.c.run == run, CALLS.c.call.is_not(None))).scalars()
    )


def _next_id(connection: sa.Connection) -> int:
    """Return the id of the next call. Ids are given here, so that changes need no answer of the database."""
    return int(connection.execute(sa.select(sa.func.coalesce(sa.func.max(CALLS.c.id), 0))).scalar_one()) + 1


def _write_without_call(connection: sa.Connection, stamp: Stamp, outcome: str, changes: Sequence[Change]) -> None:
    if changes:
        id = _next_id(connection)
        write_many(connection, CALLS, [{**_call(id, stamp), "ended": stamp.at, "outcome": outcome}])
        write_many(connection, CHANGES, _changes(id, changes))


def _call(id: int, stamp: Stamp, call: str | None = None, attempt: Attempt | None = None) -> dict[str, Any]:
    of_attempt = {"operation": attempt.operation, "content": _encode(attempt)} if attempt else {}
    return {"id": id, "run": stamp.run, "call": call, "at": stamp.at, **of_attempt}


def _changes(call: int, changes: Iterable[Change]) -> list[dict[str, Any]]:
    return [
        {
            "call": call,
            "position": position,
            "kind": key.kind.value,
            "name": key.name,
            "file": source and source.file,
            "line": source and source.line,
            "detail": made.detail,
            "takes": made.takes,
        }
        for position, (key, source, made) in enumerate(changes)
    ]


def _identified(row: Recorded, server_id: str | None) -> Recorded:
    if server_id is None or server_id == row.server_id or row.status is Status.DELETED:
        return row
    return replace(row, server_id=server_id)


def _rewrite(connection: sa.Connection, stamp: Stamp, recorded: Rows, rows: Rows) -> None:
    """Write changed rows. Rows that were only confirmed, as most are, are written without their bodies."""
    confirmed: dict[tuple[bool, bool], list[Key]] = defaultdict(list)
    others: list[Recorded] = []
    for key, row in rows.items():
        before = recorded.get(key)
        if before is None or SUBSTANCE(before) != SUBSTANCE(row):
            others.append(row)
        elif (before.doubtful, before.confirmed, before.run) != (row.doubtful, row.confirmed, stamp.run):
            confirmed[row.doubtful, row.confirmed].append(key)
    write_many(connection, ROWS, list(map(stamp.signed, others)), upsert=True)
    for (doubtful, certain), keys in confirmed.items():
        values = {"doubtful": doubtful, "confirmed": certain, "run": stamp.run, "plan": stamp.plan}
        change_keyed(connection, sa.update(ROWS), ROWS, keys, **values)


def _end(
    connection: sa.Connection, stamp: Stamp, outcome: str, ends: Sequence[tuple[str, Iterable[Key], str | None]]
) -> None:
    """End keys of calls. The last ones that end give the whole call their outcome; earlier ones have it alone."""
    query = (
        sa.select(CALLS.c.id, CALLS.c.call, CHANGES.c.kind, CHANGES.c.name, CHANGES.c.outcome)
        .join(CHANGES, CHANGES.c.call == CALLS.c.id, isouter=True)
        .where(CALLS.c.run == stamp.run, CALLS.c.outcome.is_(None))
    )
    ids: dict[str, int] = {}
    open_keys: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for piece in pieces([call for call, *_ in ends]):
        for row in connection.execute(query.where(CALLS.c.call.in_(piece))):
            ids[row.call] = row.id
            if row.kind is not None and row.outcome is None:
                open_keys[row.call].add((row.kind, row.name))
    whole: defaultdict[str | None, list[int]] = defaultdict(list)
    parts: list[dict[str, Any]] = []
    for call, keys, message in ends:
        if call not in ids:
            continue
        ended = open_keys[call].intersection((key.kind.value, key.name) for key in keys)
        if ended == open_keys[call]:
            whole[message].append(ids.pop(call))
            continue
        open_keys[call] -= ended
        parts += [{"of_id": ids[call], "of_kind": kind, "of_name": name, "words": message} for kind, name in ended]
    values = {"outcome": outcome, "ended": stamp.at}
    if parts:
        of_part = sa.and_(CHANGES.c.call == sa.bindparam("of_id"), CHANGES.c.outcome.is_(None))
        of_key = sa.and_(CHANGES.c.kind == sa.bindparam("of_kind"), CHANGES.c.name == sa.bindparam("of_name"))
        part = sa.update(CHANGES).where(of_part, of_key).values(**values, message=sa.bindparam("words"))
        connection.execute(part, parts)
    for message, of_calls in whole.items():
        for some in pieces(of_calls):
            connection.execute(sa.update(CALLS).where(CALLS.c.id.in_(some)).values(**values, message=message))


_DECODER = msgspec.msgpack.Decoder(Attempt)

MAY_LAND = CALLS.c.content.is_not(None)


def end_attempts(connection: sa.Connection, run: str, calls: Sequence[str]) -> None:
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
    # Its bound begins anew: readings of another clock, or from before a reboot, cannot be compared with ours.
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
