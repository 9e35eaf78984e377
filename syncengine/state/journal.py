"""Write to the journal: intend, settle, and lesser verbs. Each changes rows and appends lines in one transaction.

`effects.intended` and `effects.settled` compute the rows; this module writes them in batches, with one SELECT per piece
of keys and one statement per table (docs/planning.md 1.2). The transaction is the caller's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter

import orjson
import sqlalchemy as sa
from msgspec.structs import replace

from syncengine.effects import Effect, intended, settled
from syncengine.resource import Key, Recorded, Source, Status
from syncengine.state import packed_lines
from syncengine.state.codec import COLUMNS, Values, to_json, to_values
from syncengine.state.folder_memory import CHANGE, MARKS
from syncengine.state.journal_detail import MESSAGE_LIMIT, difference
from syncengine.state.landing import Attempt
from syncengine.state.packed_lines import CallEnd, CallLines, JournalLine
from syncengine.state.queries import (
    by_kind,
    change_keyed,
    execute_among,
    execute_keyed,
    fetch,
    fetch_chained,
    in_flight,
)
from syncengine.state.removals import may_take
from syncengine.state.tables import JOURNAL, OPEN, ROWS, insert_one, write_many

INTENDED, SETTLED, FAILED = "intended", "settled", "failed"
RECORDED, DOUBTED, FORGOTTEN = "recorded", "doubted", "forgotten"
QUARANTINED, QUARANTINE_ENDED = "quarantined", "quarantine-ended"

ANSWERED, PATH = "answered", "path"
"""The verb and the kind of a line saying that an operation has answered at a path with a 2xx."""

CALL = "call"
"""The kind of a line, older than packed lines, that ends everything open of the call that is its name."""

PACKED = "packed"
"""The kind of a packed line."""

PRUNED = "pruned"
"""The verb and the kind of a line whose `entry` is the last journal line that pruning may have removed or reduced."""

ERASED = "(erased)"
"""The name in a line whose resource was erased, together with all content of the line."""

LINE = ("run", "epoch", "at", "verb", "operation", "kind", "name", "entry")
"""The columns of a single (not packed) line."""

STAYS = ROWS.c.status == Status.ACTIVE.value

_UPDATE = sa.update(ROWS)
_DOUBT = sa.update(ROWS).where(ROWS.c.doubtful.is_(False)).values(doubtful=True)
_CONFIRM = sa.update(ROWS).where(ROWS.c.former.is_(None), STAYS).values(doubtful=False, confirmed=True)
_THAT_STAY = sa.select(ROWS.c.name).where(ROWS.c.former.is_(None), STAYS)
_DROP = sa.delete(ROWS)
_OPEN_KEYS = sa.select(OPEN.c.call, OPEN.c.kind, OPEN.c.names)
_DROP_OPEN = sa.delete(OPEN)

SUBSTANCE = attrgetter("status", "server_id", "protect", "source", "former_categories", "body")
"""The parts of a row apart from its flags and its last writer."""

Rows = dict[Key, Recorded]


@dataclass(frozen=True, slots=True)
class Settlement:
    """The effects of a call that a 2xx acknowledged, all or some of them, and the ids that the service assigned."""

    call: str
    effects: tuple[Effect, ...]
    server_ids: Mapping[Key, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallFailure:
    """The keys of a call that were refused, or whose outcome will never be known.

    `refused` maps the keys that the service itself refused to the refused content (`refusals.content_of`).
    """

    call: str
    keys: tuple[Key, ...]
    message: str
    refused: Mapping[Key, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stamp:
    """The writer, recorded with every row and line: run, plan, epoch and time."""

    run: str | None
    plan: str | None
    epoch: int
    at: float

    def signed(self, row: Recorded) -> Values:
        return to_values(row, self.run, self.plan)

    def line(self, verb: str, key: tuple[str, str], operation: str | None = None, entry: int | None = None) -> Values:
        """Return the values of a line in the order of `LINE`."""
        return (self.run, self.epoch, self.at, verb, operation, str(key[0]), key[1], entry)


def intend(connection: sa.Connection, stamp: Stamp, attempts: Mapping[str, Attempt]) -> None:
    """Record calls before they are sent: rows gain the additions, and their keys become in flight."""
    rows, last = fetch_chained(connection, _intended_keys(attempts.values()))
    values_of: dict[Key, Values] = {}
    parts = []
    for call, attempt in attempts.items():
        lines = []
        for effect in attempt.effects:
            key, before = effect.key, rows.get(effect.key)
            after = intended(before, effect)
            rows[key] = after = after if effect.former is None else _renamed(after, effect, rows)
            values_of[key] = values = stamp.signed(after)
            ended = settled(after, effect) if _takes(effect, after) else after
            body = values[-1] if before is None and ended is after else None
            lines.append(_line(effect.source, last.get(key), before, ended, body))
        parts.append(CallLines(call, attempt.operation, [str(effect.key) for effect in attempt.effects], lines))
    _write(connection, stamp, INTENDED, values_of, parts)
    _open(connection, {call: part.keys for call, part in zip(attempts, parts, strict=True)})


def settle(connection: sa.Connection, stamp: Stamp, entries: Sequence[Settlement]) -> None:
    """Record calls acknowledged with a 2xx: rows lose the removed parts, and their keys are no longer in flight."""
    confirmed = _confirm(connection, stamp, _only_confirmed(entries))
    before = fetch(
        connection, (effect.key for entry in entries for effect in entry.effects if effect.key not in confirmed)
    )
    rows = dict(before)
    for entry in entries:
        for effect in entry.effects:
            if effect.key in confirmed:
                continue
            # The service has the resource even if somebody forgot its row meanwhile.
            row = rows.get(effect.key) or intended(None, effect)
            rows[effect.key] = _identified(settled(row, effect), entry.server_ids.get(effect.key))
    _rewrite(connection, stamp, before, rows)
    ends = [CallEnd(entry.call, [str(effect.key) for effect in entry.effects]) for entry in entries]
    _end(connection, stamp, SETTLED, ends)


def fail(connection: sa.Connection, stamp: Stamp, entries: Sequence[CallFailure]) -> None:
    """Record refused calls: rows keep their content, become doubtful and are no longer in flight."""
    doubt(connection, (key for entry in entries for key in entry.keys))
    ends = [CallEnd(entry.call, list(map(str, entry.keys)), entry.message[:MESSAGE_LIMIT] or None) for entry in entries]
    _end(connection, stamp, FAILED, ends)


def record(connection: sa.Connection, stamp: Stamp, effects: Sequence[Effect]) -> None:
    """Record effects that need no call on existing rows. No row is created, and doubts stay as they are."""
    rows, last = fetch_chained(connection, (effect.key for effect in effects))
    values_of: dict[Key, Values] = {}
    keys, lines = [], []
    for effect in effects:
        if before := rows.get(effect.key):
            rows[effect.key] = after = _recorded(before, effect)
            values_of[effect.key] = stamp.signed(after)
            keys.append(str(effect.key))
            lines.append(_line(effect.source, last[effect.key], before, after))
    _write(connection, stamp, RECORDED, values_of, [CallLines(None, None, keys, lines)] if keys else [])


def put(connection: sa.Connection, stamp: Stamp, recorded: Sequence[Recorded]) -> None:
    """Write whole rows over the recorded ones, as `adopt` and `state import` do."""
    rows, last = fetch_chained(connection, (row.key for row in recorded))
    values_of = {row.key: stamp.signed(row) for row in recorded}
    lines = [_line(row.source, last.get(row.key), rows.get(row.key), row) for row in recorded]
    keys = [str(row.key) for row in recorded]
    _write(connection, stamp, RECORDED, values_of, [CallLines(None, None, keys, lines)] if keys else [])


def doubt(connection: sa.Connection, keys: Iterable[Key]) -> None:
    change_keyed(connection, _DOUBT, ROWS, keys)


def unconfirm(connection: sa.Connection, keys: Iterable[Key]) -> None:
    """Doubt categories and their recorded ids, which are then compared with the next ids but not sent."""
    change_keyed(connection, _UPDATE, ROWS, keys, doubtful=True, confirmed=False)


def note(connection: sa.Connection, stamp: Stamp, verb: str, keys: Iterable[Key]) -> None:
    """Append, for each key, a line with no content but the verb."""
    write_many(connection, JOURNAL, LINE, [stamp.line(verb, key) for key in keys])


def mark(connection: sa.Connection, stamp: Stamp, verb: str, change: str) -> None:
    """Append a mark of a change, by which it is noticed that a state was set back."""
    line = (None, stamp.epoch, stamp.at, verb, None, CHANGE, change, None)
    write_many(connection, JOURNAL, LINE, [line])


def marks(connection: sa.Connection, number: int) -> Sequence[Sequence[object]]:
    """Return the marks that matter to a folder that saw the one with this number last."""
    return [tuple(row) for row in connection.execute(sa.text(MARKS), {"number": number})]


def answered(connection: sa.Connection, stamp: Stamp, operation: str, path: str) -> None:
    """Append a line saying that the operation has answered at this path, unless there is one already."""
    if (operation, path) not in paths(connection):
        write_many(connection, JOURNAL, LINE, [stamp.line(ANSWERED, (PATH, path), operation)])


def paths(connection: sa.Connection) -> set[tuple[str, str]]:
    """Return pairs of an operation and a path at which it has answered."""
    return {(operation, path) for operation, path in connection.execute(_PATHS)}


_PATHS = sa.select(JOURNAL.c.operation, JOURNAL.c.name).where(JOURNAL.c.kind == PATH)


def forget(connection: sa.Connection, stamp: Stamp, keys: Iterable[Key]) -> int:
    """Delete rows and return their number. A new line for each points to its earlier ones."""
    _, last = fetch_chained(connection, keys)
    change_keyed(connection, _DROP, ROWS, last)
    write_many(connection, JOURNAL, LINE, [stamp.line(FORGOTTEN, key, entry=entry) for key, entry in last.items()])
    return len(last)


def abandon(connection: sa.Connection) -> None:
    """Mark the rows of open calls as doubtful and close the calls, because their run is over or dead."""
    connection.execute(_doubt_in_flight(connection.dialect.name))
    connection.execute(_DROP_OPEN)


@cache
def _doubt_in_flight(dialect: str) -> sa.Update:
    return sa.update(ROWS).where(in_flight(dialect), ROWS.c.doubtful.is_(False)).values(doubtful=True)


def open_calls(connection: sa.Connection) -> set[str]:
    """Return the calls that have intents without an end."""
    return set(connection.execute(sa.select(OPEN.c.call)).scalars())


def _intended_keys(attempts: Iterable[Attempt]) -> Iterable[Key]:
    for attempt in attempts:
        for effect in attempt.effects:
            yield effect.key
            if effect.former:
                yield effect.former


def _takes(effect: Effect, row: Recorded) -> bool:
    """Return whether the call's answer changes more of the row than its doubt."""
    moves = effect.status is Status.DELETED or effect.status not in (None, row.status)
    return moves or bool(effect.cleared or effect.keywords_dropped or effect.metadata_dropped)


def _renamed(row: Recorded, effect: Effect, rows: Rows) -> Recorded:
    """Return the row; a renamed category keeps the id that it had under its former key (docs/planning.md 2.2)."""
    former = rows.get(effect.former) if effect.former and effect.former.kind is effect.key.kind else None
    return _identified(row, row.server_id or (former.server_id if former else None))


def _identified(row: Recorded, server_id: str | None) -> Recorded:
    if server_id is None or server_id == row.server_id or row.status is Status.DELETED:
        return row
    return replace(row, server_id=server_id)


def _recorded(row: Recorded, effect: Effect) -> Recorded:
    after = settled(intended(row, effect), effect)
    status = effect.status or row.status
    return replace(after, status=status, doubtful=row.doubtful, confirmed=row.confirmed)


def _line(
    source: Source | None, previous: int | None, before: Recorded | None, after: Recorded, body: str | None = None
) -> JournalLine:
    """Return the journal line of a row that changed; `body` is the encoded body of a new row."""
    file, line = (source.file, source.line) if source else (None, None)
    if body is not None:
        return JournalLine(previous, file, line, None, body, after.status.value)
    return JournalLine(previous, file, line, difference(before, after))


def _write(
    connection: sa.Connection, stamp: Stamp, verb: str, rows: Mapping[Key, Values], parts: Sequence[CallLines]
) -> None:
    """Append the rows' journal lines, and write the rows with a pointer to the lines."""
    if parts:
        takes = any(line.detail is not None and may_take(line.detail) for part in parts for line in part.lines)
        entry = _append(connection, stamp, verb, packed_lines.pack(parts), takes)
        write_many(connection, ROWS, (*COLUMNS, "entry"), [(*row, entry) for row in rows.values()], upsert=True)


def _append(connection: sa.Connection, stamp: Stamp, verb: str, packed: bytes, takes: bool = False) -> int:
    """Append a packed line and return its id."""
    line = (*stamp.line(verb, (PACKED, "")), packed, takes)
    return insert_one(connection, JOURNAL, (*LINE, "packed", "takes"), line)


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
    write_many(connection, ROWS, COLUMNS, list(map(stamp.signed, others)), upsert=True)
    for (doubtful, certain), keys in confirmed.items():
        values = {"doubtful": doubtful, "confirmed": certain, "run": stamp.run, "plan": stamp.plan}
        change_keyed(connection, _UPDATE, ROWS, keys, **values)


def _only_confirmed(entries: Sequence[Settlement]) -> set[Key]:
    """Return the keys whose acknowledgement only ends a doubt, as is true of most keys."""
    plain: set[Key] = set()
    others: set[Key] = set()
    for entry in entries:
        for effect in entry.effects:
            (others if _takes_or_gives(effect) or effect.key in entry.server_ids else plain).add(effect.key)
    return plain - others


def _takes_or_gives(effect: Effect) -> bool:
    return (
        not effect.whole
        or effect.unsure is not None
        or effect.status not in (None, Status.ACTIVE)
        or bool(effect.cleared or effect.keywords_dropped or effect.metadata_dropped)
    )


def _confirm(connection: sa.Connection, stamp: Stamp, keys: set[Key]) -> set[Key]:
    """Confirm the rows of `keys` without reading them; return the keys of the rows confirmed."""
    confirmed: set[Key] = set()
    for kind, names in by_kind(keys):
        written = execute_keyed(connection, _CONFIRM, ROWS, kind, names, run=stamp.run, plan=stamp.plan)
        if written.rowcount == len(names):
            confirmed.update(Key(kind, name) for name in names)
        else:
            stays = execute_keyed(connection, _THAT_STAY, ROWS, kind, names).scalars()
            confirmed.update(Key(kind, name) for name in stays)
    return confirmed


def _open(connection: sa.Connection, addresses_of: Mapping[str, Iterable[str]]) -> None:
    """Record the addresses of each call as open."""
    names: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for call, addresses in addresses_of.items():
        for address in addresses:
            kind, _, name = address.partition("/")
            names[call, kind][name] = None
    values = [(call, kind, to_json(list(each))) for (call, kind), each in names.items()]
    write_many(connection, OPEN, ("call", "kind", "names"), values)


def _end(connection: sa.Connection, stamp: Stamp, verb: str, ends: Sequence[CallEnd]) -> None:
    """Close the ended keys of calls and append one line for all. Keys are omitted for a call that ended whole."""
    ends = [end for end in ends if end.keys]
    if not ends:
        return
    calls = [end.call for end in ends]
    addresses_of: dict[str, set[str]] = defaultdict(set)
    for call, kind, names in execute_among(connection, _OPEN_KEYS, OPEN.c.call, calls):
        addresses_of[call].update(f"{kind}/{name}" for name in orjson.loads(names))
    parts = []
    for end in ends:
        was_open = end.call in addresses_of and bool(addresses_of[end.call])
        addresses_of[end.call].difference_update(end.keys)
        parts.append(CallEnd(end.call, (), end.message) if was_open and not addresses_of[end.call] else end)
    execute_among(connection, _DROP_OPEN, OPEN.c.call, calls)
    _open(connection, {call: addresses for call, addresses in addresses_of.items() if addresses})
    _append(connection, stamp, verb, packed_lines.pack_ends(parts))
