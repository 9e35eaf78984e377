"""The two verbs of the journal, and its lesser ones: each writes rows and appends lines in the caller's transaction.

What a verb makes of a row is `effects.intended` and `effects.settled`; here is only how that reaches the tables in
batches: one SELECT a piece of keys, one statement a table (docs/planning.md 1.2).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Any

import sqlalchemy as sa
from msgspec.structs import replace

from syncengine.effects import Effect, intended, settled
from syncengine.resource import Key, Recorded, Source, Status
from syncengine.state import journal_detail
from syncengine.state.codec import COLUMNS, to_values
from syncengine.state.landing import Attempt
from syncengine.state.queries import IN_FLIGHT, among, by_kind, fetch, keyed
from syncengine.state.tables import JOURNAL, OPEN, ROWS, insert, many

INTENDED, SETTLED, FAILED = "intended", "settled", "failed"
RECORDED, DOUBTED, FORGOTTEN = "recorded", "doubted", "forgotten"

ANSWERED, PATH = "answered", "path"
"""Verb and kind of a line for an operation's method and path, once it has answered with a 2xx for this state."""

CALL = "call"
"""The kind of a line, named by a call, that ends whatever is open of it: nearly all calls end so, and a line for each
of their keys would be half of the journal."""

WRITTEN = sa.insert(JOURNAL)
ENDED = sa.delete(OPEN).where(
    OPEN.c.kind == sa.bindparam("of_kind"),
    OPEN.c.name == sa.bindparam("of_name"),
    OPEN.c.call == sa.bindparam("of_call"),
)

STAYS = ROWS.c.status == Status.ACTIVE.value

SUBSTANCE = attrgetter("status", "server_id", "protect", "source", "former_categories", "body")
"""All of a row but its flags and its last writer."""

Rows = dict[Key, Recorded]
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Intent:
    """A call that is about to be sent, and what it leaves. `call` is unique in its run.

    `ids` and `survivors` are those of `landing.Attempt`.
    """

    call: str
    operation: str
    leaves: tuple[Effect, ...]
    ids: Mapping[str, str] = field(default_factory=dict)
    survivors: tuple[str, ...] = ()

    def attempt(self) -> Attempt:
        return Attempt(operation=self.operation, leaves=self.leaves, ids=self.ids, survivors=self.survivors)


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a 2xx acknowledged of a call: all of its effects, or some; and the ids that the service gave."""

    call: str
    leaves: tuple[Effect, ...]
    server_ids: Mapping[Key, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallFailure:
    """What was refused of a call, or has no known outcome for good."""

    call: str
    keys: tuple[Key, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Stamp:
    """Who writes: stands on every row and line."""

    run: str | None
    plan: str | None
    epoch: int
    at: float

    def signed(self, row: Recorded) -> Values:
        """A row's values with their last writer."""
        return {**to_values(row), "run": self.run, "plan": self.plan}

    def line(
        self,
        verb: str,
        key: tuple[str, str],
        *,
        call: str | None = None,
        operation: str | None = None,
        source: Source | None = None,
        said: str | None = None,
    ) -> Values:
        return {
            "run": self.run,
            "epoch": self.epoch,
            "at": self.at,
            "verb": verb,
            "call": call,
            "operation": operation,
            "kind": str(key[0]),
            "name": key[1],
            "file": source.file if source else None,
            "line": source.line if source else None,
            "detail": said,
        }


def intend(connection: sa.Connection, stamp: Stamp, entries: Sequence[Intent]) -> None:
    """Before sending: rows gain what the calls add, and every key of the calls is open."""
    rows = fetch(connection, _intended_keys(entries))
    changed: Rows = {}
    lines: list[Values] = []
    for entry in entries:
        for leave in entry.leaves:
            before = rows.get(leave.key)
            after = _renamed(intended(before, leave), leave, rows)
            rows[leave.key] = changed[leave.key] = after
            said = journal_detail.difference(before, settled(after, leave) if _takes(leave, after) else after)
            lines.append(
                stamp.line(
                    INTENDED, leave.key, call=entry.call, operation=entry.operation, source=leave.source, said=said
                )
            )
    _write(connection, stamp, changed.values())
    _open(connection, entries)
    _append(connection, lines)


def settle(connection: sa.Connection, stamp: Stamp, entries: Sequence[Settlement]) -> None:
    """After a 2xx: rows lose what the calls removed, and what was acknowledged is open no more."""
    confirmed = _confirm(connection, stamp, _only_confirmed(entries))
    known = fetch(connection, (leave.key for entry in entries for leave in entry.leaves if leave.key not in confirmed))
    rows = dict(known)
    for entry in entries:
        for leave in entry.leaves:
            if leave.key in confirmed:
                continue
            # A row that somebody forgot meanwhile is nevertheless held by the service.
            row = rows.get(leave.key) or intended(None, leave)
            rows[leave.key] = _identified(settled(row, leave), entry.server_ids.get(leave.key))
    _rewrite(connection, stamp, known, rows)
    parts = _end_calls(connection, stamp, entries)
    _end(connection, stamp, SETTLED, [(entry.call, leave.key, None) for entry in parts for leave in entry.leaves])


def fail(connection: sa.Connection, stamp: Stamp, entries: Sequence[CallFailure]) -> None:
    """After a refusal: rows keep what they have, doubtful, and are open no more."""
    doubt(connection, (key for entry in entries for key in entry.keys))
    ends = [(entry.call, key, journal_detail.message(entry.message)) for entry in entries for key in entry.keys]
    _end(connection, stamp, FAILED, ends)


def record(connection: sa.Connection, stamp: Stamp, leaves: Sequence[Effect]) -> None:
    """Without a request: what is true of rows anyway. Says nothing about doubt, creates nothing."""
    rows = fetch(connection, (leave.key for leave in leaves))
    changed: Rows = {}
    lines = []
    for leave in leaves:
        if before := rows.get(leave.key):
            after = _recorded(before, leave)
            rows[leave.key] = changed[leave.key] = after
            said = journal_detail.difference(before, after)
            lines.append(stamp.line(RECORDED, leave.key, source=leave.source, said=said))
    _write(connection, stamp, changed.values())
    _append(connection, lines)


def put(connection: sa.Connection, stamp: Stamp, recorded: Sequence[Recorded]) -> None:
    """Write whole rows, as `adopt` and `state import` bring them."""
    rows = fetch(connection, (row.key for row in recorded))
    _write(connection, stamp, {row.key: row for row in recorded}.values())
    lines = [
        stamp.line(RECORDED, row.key, source=row.source, said=journal_detail.difference(rows.get(row.key), row))
        for row in recorded
    ]
    _append(connection, lines)


def doubt(connection: sa.Connection, keys: Iterable[Key]) -> None:
    for part in keyed(connection, ROWS, keys):
        connection.execute(sa.update(ROWS).where(part, ROWS.c.doubtful.is_(False)).values(doubtful=True))


def unconfirm(connection: sa.Connection, keys: Iterable[Key]) -> None:
    """Doubt categories and the ids that they are recorded with, which are compared with what comes, and not sent."""
    for part in keyed(connection, ROWS, keys):
        connection.execute(sa.update(ROWS).where(part).values(doubtful=True, confirmed=False))


def note(connection: sa.Connection, stamp: Stamp, verb: str, keys: Iterable[Key]) -> None:
    """Append lines that say no more than the verb."""
    _append(connection, [stamp.line(verb, key) for key in keys])


def answered(connection: sa.Connection, stamp: Stamp, operation: str, path: str) -> None:
    """Append that an operation is at this path, where it is not known yet."""
    if (operation, path) not in paths(connection):
        _append(connection, [stamp.line(ANSWERED, (PATH, path), operation=operation)])


def paths(connection: sa.Connection) -> set[tuple[str, str]]:
    """Operations with the paths at which they have answered."""
    query = sa.select(JOURNAL.c.operation, JOURNAL.c.name).where(JOURNAL.c.kind == PATH)
    return {(operation, path) for operation, path in connection.execute(query)}


def forget(connection: sa.Connection, keys: Iterable[Key]) -> list[Key]:
    """Drop rows and whatever is open for them; the keys that had one."""
    dropped = list(fetch(connection, keys))
    for table in (ROWS, OPEN):
        for part in keyed(connection, table, dropped):
            connection.execute(sa.delete(table).where(part))
    return dropped


def abandon(connection: sa.Connection) -> None:
    """The run is over, or dead: what is open stays unknown, so its rows are doubtful for good."""
    connection.execute(sa.update(ROWS).where(IN_FLIGHT, ROWS.c.doubtful.is_(False)).values(doubtful=True))
    connection.execute(sa.delete(OPEN))


def _intended_keys(entries: Sequence[Intent]) -> Iterable[Key]:
    for entry in entries:
        for leave in entry.leaves:
            yield leave.key
            if leave.former:
                yield leave.former


def _takes(leave: Effect, row: Recorded) -> bool:
    """Whether the row after the answer differs from `row`, the one before, in more than its doubt."""
    moves = leave.status is Status.DELETED or leave.status not in (None, row.status)
    return moves or bool(leave.cleared or leave.keywords_dropped or leave.metadata_dropped)


def _renamed(row: Recorded, leave: Effect, rows: Rows) -> Recorded:
    """A renamed category goes on under its former id (docs/planning.md 2.2)."""
    former = rows.get(leave.former) if leave.former and leave.former.kind is leave.key.kind else None
    return _identified(row, row.server_id or (former.server_id if former else None))


def _identified(row: Recorded, server_id: str | None) -> Recorded:
    if server_id is None or server_id == row.server_id or row.status is Status.DELETED:
        return row
    return replace(row, server_id=server_id)


def _recorded(row: Recorded, leave: Effect) -> Recorded:
    after = settled(intended(row, leave), leave)
    status = leave.status or row.status
    return replace(after, status=status, doubtful=row.doubtful, confirmed=row.confirmed)


@cache
def upsert(dialect: str) -> sa.UpdateBase:
    """Write a row, whether there is one or not."""
    statement = insert(dialect, ROWS)
    new = {name: statement.excluded[name] for name in COLUMNS if not ROWS.c[name].primary_key}
    return statement.on_conflict_do_update(index_elements=["kind", "name"], set_=new)


@cache
def open_once(dialect: str) -> sa.UpdateBase:
    """Open an intent; a call that is tried again, or names a key twice, is open once."""
    return insert(dialect, OPEN).on_conflict_do_nothing()


def _write(connection: sa.Connection, stamp: Stamp, rows: Iterable[Recorded]) -> None:
    many(connection, upsert(connection.dialect.name), [stamp.signed(row) for row in rows])


def _rewrite(connection: sa.Connection, stamp: Stamp, known: Rows, rows: Rows) -> None:
    """Write what changed; rows that were only confirmed, as nearly all are, without their bodies."""
    confirmed: dict[tuple[bool, bool], list[Key]] = defaultdict(list)
    others: list[Recorded] = []
    for key, row in rows.items():
        before = known.get(key)
        if before is None or SUBSTANCE(before) != SUBSTANCE(row):
            others.append(row)
        elif (before.doubtful, before.confirmed, before.run) != (row.doubtful, row.confirmed, stamp.run):
            confirmed[row.doubtful, row.confirmed].append(key)
    _write(connection, stamp, others)
    for (doubtful, certain), keys in confirmed.items():
        values = {"doubtful": doubtful, "confirmed": certain, "run": stamp.run, "plan": stamp.plan}
        for part in keyed(connection, ROWS, keys):
            connection.execute(sa.update(ROWS).where(part).values(**values))


def _only_confirmed(entries: Sequence[Settlement]) -> set[Key]:
    """Keys of which nothing was taken, as of nearly all: their acknowledgement ends a doubt and says no more."""
    plain: set[Key] = set()
    others: set[Key] = set()
    for entry in entries:
        for leave in entry.leaves:
            (others if _takes_or_gives(leave) or leave.key in entry.server_ids else plain).add(leave.key)
    return plain - others


def _takes_or_gives(leave: Effect) -> bool:
    return (
        not leave.whole
        or leave.unsure is not None
        or leave.status not in (None, Status.ACTIVE)
        or bool(leave.cleared or leave.keywords_dropped or leave.metadata_dropped)
    )


def _confirm(connection: sa.Connection, stamp: Stamp, keys: set[Key]) -> set[Key]:
    """Confirm the rows of these keys without reading them; those that were what such a row is."""
    values = {"doubtful": False, "confirmed": True, "run": stamp.run, "plan": stamp.plan}
    found: set[Key] = set()
    for kind, names in by_kind(keys):
        named = among(connection, ROWS.c.name, names)
        row = sa.and_(ROWS.c.kind == kind.value, named, ROWS.c.former.is_(None), STAYS)
        if connection.execute(sa.update(ROWS).where(row).values(**values)).rowcount == len(names):
            found.update(Key(kind, name) for name in names)
        else:
            found.update(Key(kind, name) for name in connection.execute(sa.select(ROWS.c.name).where(row)).scalars())
    return found


def _open(connection: sa.Connection, entries: Sequence[Intent]) -> None:
    places = [_place(entry.call, leave.key) for entry in entries for leave in entry.leaves]
    many(connection, open_once(connection.dialect.name), places)


def _end_calls(connection: sa.Connection, stamp: Stamp, entries: Sequence[Settlement]) -> list[Settlement]:
    """End calls of which nothing else is open, with a line each; the entries of the others."""
    keys = {entry.call: {leave.key for leave in entry.leaves} for entry in entries if len(entry.leaves) > 1}
    if not keys:
        return list(entries)
    count = sa.select(OPEN.c.call, sa.func.count()).where(OPEN.c.call.in_(keys)).group_by(OPEN.c.call)
    whole = [call for call, opened in connection.execute(count) if len(keys[call]) == opened]
    connection.execute(sa.delete(OPEN).where(OPEN.c.call.in_(whole)))
    _append(connection, [stamp.line(SETTLED, (CALL, call), call=call) for call in whole])
    return [entry for entry in entries if entry.call not in whole]


def _end(connection: sa.Connection, stamp: Stamp, verb: str, ends: Sequence[tuple[str, Key, str | None]]) -> None:
    many(connection, ENDED, [{f"of_{name}": v for name, v in _place(call, key).items()} for call, key, _ in ends])
    _append(connection, [stamp.line(verb, key, call=call, said=said) for call, key, said in ends])


def _place(call: str, key: Key) -> Values:
    return {"kind": str(key.kind), "name": key.name, "call": call}


def _append(connection: sa.Connection, lines: Sequence[Values]) -> None:
    many(connection, WRITTEN, lines)
