"""Reconstruct the changes of a run from the journal: each row before the run, and after it.

Each current row is followed backwards through its journal lines to those of the run (docs/undo.md). It does not matter
whether a call settled: the row contains all that its call adds, and the line has the former content.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa
from msgspec.structs import replace

from syncengine.resource import Body, Key, Recorded, Status, Value
from syncengine.service.operations import UPSERT_TAG_CATEGORIES
from syncengine.state import packed_lines
from syncengine.state.codec import KINDS, from_json
from syncengine.state.history import LARGE, PRUNED_RUN, HistoryEntry, Run, history, pruned_until
from syncengine.state.journal import ERASED, FORGOTTEN, INTENDED, PACKED, RECORDED
from syncengine.state.journal_detail import Detail, read
from syncengine.state.queries import fetch, visible_rows
from syncengine.state.tables import JOURNAL, RUNS

WRITES = (INTENDED, RECORDED, FORGOTTEN)
SINGLE = ("id", "run", "verb", "call", "operation", "kind", "name", "detail")


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that a run touched: `before` the run, `after` it and `now`, each `None` where the row did not exist.

    `others` are the later runs that changed the row, oldest first, unless they were all undone again. `forgotten`: the
    row was since removed by hand. `renamed_to` is the new name of a category. `unknown` names the metadata whose former
    values are not recorded.
    """

    key: Key
    before: Recorded | None
    after: Recorded | None
    now: Recorded | None
    others: tuple[str, ...] = ()
    forgotten: bool = False
    renamed_to: Key | None = None
    unknown: tuple[str, ...] = ()

    @property
    def is_erased(self) -> bool:
        """Whether this row stands for resources that were erased."""
        return self.now is None and self.key.name == ERASED

    @property
    def is_changed(self) -> bool:
        """Whether the run changed the row, as far as the journal tells."""
        return self.unknown != () or content_of(self.before) != content_of(self.after)


def content_of(row: Recorded | None) -> object:
    """Return the parts of a row that an undo can restore, or `None` for a deleted or missing row."""
    if row is None or row.status is Status.DELETED:
        return None
    body = row.body
    return row.status, row.protect, fields_as(row.status, row), frozenset(body.keywords), body.metadata


def fields_as(status: Status, row: Recorded) -> dict[str, Value]:
    """Return the fields that a row has in effect under a status: a retired tag's name never counts as a keyword."""
    return {**row.body.fields, "excludeTagNameKeyword": True} if status is Status.RETIRED else dict(row.body.fields)


class _Line(NamedTuple):
    """One journal entry of one key. `previous` is the key before it in a call that may rename categories."""

    run: str | None
    detail: Detail
    forgets: bool = False
    previous: Key | None = None


@dataclass(slots=True)
class _Lines:
    """The journal's lines by key, each list starting with the first line of the run."""

    run: str
    by_key: dict[Key, list[_Line]] = field(default_factory=lambda: defaultdict(list))

    def add(self, key: Key, line: _Line) -> None:
        if line.run == self.run or key in self.by_key:
            self.by_key[key].append(line)


def family_of(connection: sa.Connection, run: str) -> set[str]:
    """Return the ids of the run, of the runs that undid it, of the runs that undid those, and so on."""
    return _family(run, _undoes(connection))


def _undoes(connection: sa.Connection) -> dict[str, str | None]:
    """Return the runs that undid another run, each with the undone run's id."""
    query = sa.select(RUNS.c.id, RUNS.c.counts).where(RUNS.c.counts.contains('"undoes"')).order_by(RUNS.c.started)
    return {id: from_json(about).get("undoes") for id, about in connection.execute(query)}


def _family(run: str, undoes: Mapping[str, str | None]) -> set[str]:
    family = {run}
    while more := {id for id, other in undoes.items() if other in family} - family:
        family |= more
    return family


def writing_run(connection: sa.Connection, runs: Iterable[Run]) -> Run | None:
    """Return the first plan run among `runs` that changed a resource, or else the first that wrote at all.

    A run that sends everything again unchanged, as `apply --reassert` does, therefore comes second. An erased line
    counts as a change, since its content is unknown.
    """
    first: Run | None = None
    for run in runs:
        if run.plan is not None and has_changed(connection, run.id):
            if _makes_something(connection, run.id):
                return run
            first = first or run
    return first


def _makes_something(connection: sa.Connection, run: str) -> bool:
    return any(name == ERASED or detail.changes_something for name, detail in _written(connection, run))


def was_erased(connection: sa.Connection, run: str) -> bool:
    """Return whether every resource that the run wrote about has been erased."""
    erased = [name == ERASED and not detail.changes_something for name, detail in _written(connection, run)]
    return erased != [] and all(erased)


def _written(connection: sa.Connection, run: str) -> Iterator[tuple[str, Detail]]:
    """Yield the name of each resource that a run wrote about, with the differences."""
    names = ("kind", "name", "detail", "packed")
    query = sa.select(*(JOURNAL.c[name] for name in names)).where(JOURNAL.c.run == run, JOURNAL.c.verb.in_(WRITES))
    for line in connection.execute(query, execution_options={"yield_per": LARGE}):
        if line.kind == PACKED:
            yield from ((each.key.name, each.line.read()) for each in packed_lines.entries(line.packed))
        elif line.kind in KINDS:
            yield line.name, read(line.detail)


def has_changed(connection: sa.Connection, run: str) -> bool:
    """Return whether the run wrote anything about a resource."""
    return _first_line(connection, run) is not None


def was_pruned(connection: sa.Connection, run: Run) -> bool:
    """Return whether some or all journal lines of the run were pruned."""
    until, first = pruned_until(connection), _first_line(connection, run.id)
    is_empty = run.command == PRUNED_RUN or run.counts.get("applied", 0) > 0
    return until > 0 and (is_empty if first is None else first <= until)


def changes_of(connection: sa.Connection, run: str) -> list[ChangedRow]:
    """Return all rows that the run touched, in the order of its journal lines."""
    first = _first_line(connection, run)
    if first is None:
        return []
    lines = _Lines(run)
    _read(connection, first, lines)
    undoes = _undoes(connection)
    family = _family(run, undoes)
    rows = fetch(connection, lines.by_key, visible_rows(connection.dialect.name))

    def history_of(key: Key) -> list[HistoryEntry]:
        return history(connection, key)

    changes = (_changed(key, of_key, rows.get(key), run, family, history_of) for key, of_key in lines.by_key.items())
    return [_without_taken_back(row, undoes) for row in changes]


def _without_taken_back(row: ChangedRow, undoes: Mapping[str, str | None]) -> ChangedRow:
    """Return the row without its later runs, if those were all undone and the row is again as the run made it."""
    others = set(row.others)
    taken_back = {run for undo in others if (run := undoes.get(undo)) in others}
    is_in_pairs = all(run in taken_back or undoes.get(run) in others for run in others)
    return dataclasses.replace(row, others=()) if is_in_pairs and _is_as_made(row) else row


def _is_as_made(row: ChangedRow) -> bool:
    if row.now is None or row.after is None or row.now.doubtful or row.forgotten or row.unknown:
        return False
    return row.now.server_id == row.after.server_id and content_of(row.now) == content_of(row.after)


def _first_line(connection: sa.Connection, run: str) -> int | None:
    query = sa.select(sa.func.min(JOURNAL.c.id)).where(JOURNAL.c.run == run, JOURNAL.c.verb.in_((INTENDED, RECORDED)))
    first: int | None = connection.execute(query).scalar_one()
    return first


def _read(connection: sa.Connection, first: int, lines: _Lines) -> None:
    """Read the run's lines and later lines on the same keys. Raise `LookupError` or `ValueError` for a damaged line."""
    names = (*SINGLE, "packed")
    query = sa.select(*(JOURNAL.c[name] for name in names)).where(JOURNAL.c.id >= first, JOURNAL.c.verb.in_(WRITES))
    before: Any = None
    for line in connection.execute(query.order_by(JOURNAL.c.id), execution_options={"yield_per": LARGE}):
        if line.kind == PACKED:
            addresses = None if line.run == lines.run else {str(key) for key in lines.by_key}
            for each in packed_lines.entries(line.packed, addresses):
                lines.add(each.key, _Line(line.run, each.line.read(), previous=each.previous))
        elif line.kind in KINDS:
            key = Key(KINDS[line.kind], line.name)
            follows = before is not None and (before.run, before.call) == (line.run, line.call)
            renames = follows and line.operation == UPSERT_TAG_CATEGORIES.id
            previous = Key(KINDS[before.kind], before.name) if renames else None
            lines.add(key, _Line(line.run, read(line.detail), line.verb == FORGOTTEN, previous))
            before = line


def _changed(
    key: Key,
    lines: Sequence[_Line],
    now: Recorded | None,
    run: str,
    family: Collection[str],
    history_of: Callable[[Key], Sequence[HistoryEntry]],
) -> ChangedRow:
    others = (line.run or "" for line in lines if line.run not in family and _counts(line))
    forgotten = any(line.forgets for line in lines)
    own = [line for line in lines if line.run == run]
    before = now
    unknown: dict[str, None] = {}
    for line in () if forgotten else reversed(lines):
        before = _without(before, line.detail)
        if line.detail.metadata_before is None:
            unknown |= dict.fromkeys((*line.detail.metadata_set, *line.detail.metadata_deleted))
    if unknown and before is not None:
        before, unknown = _with_former(before, unknown, history_of(key), run)
    after = before
    for line in own:
        after = _with(after, key, line.detail)
    renames = (line.previous for line in own if line.detail.status and line.detail.status[1] is Status.DELETED)
    renamed_to = next((name for name in renames if name is not None), None)
    return ChangedRow(key, before, after, now, tuple(dict.fromkeys(others)), forgotten, renamed_to, tuple(unknown))


def _counts(line: _Line) -> bool:
    return line.forgets or line.detail.changes_something


def _without(row: Recorded | None, detail: Detail) -> Recorded | None:
    """Return the row as it was before a journal line with these differences."""
    if row is None or (detail.status is not None and detail.status[0] is None):
        return None
    fields = {name: value for name, value in row.body.fields.items() if name not in detail.fields}
    fields |= {name: before for name, (before, _) in detail.fields.items() if before is not None}
    keywords = tuple(k for k in row.body.keywords if k not in detail.keywords_added)
    keywords += tuple(k for k in detail.keywords_deleted if k not in keywords)
    former = detail.metadata_before or {}
    names = {*detail.metadata_set, *detail.metadata_deleted, *former}
    metadata = {name: value for name, value in row.body.metadata.items() if name not in names}
    metadata |= {name: value for name, value in former.items() if value is not None}
    return replace(
        row,
        body=Body(fields, keywords, metadata),
        status=(detail.status and detail.status[0]) or row.status,
        protect=detail.protect[0] if detail.protect else row.protect,
        server_id=detail.server_id or row.server_id,
    )


def _with(row: Recorded | None, key: Key, detail: Detail) -> Recorded:
    """Return the row as it is after all differences of a journal line have been applied."""
    row = row or Recorded(key)
    fields = {name: value for name, value in row.body.fields.items() if name not in detail.fields}
    fields |= {name: after for name, (_, after) in detail.fields.items() if after is not None}
    keywords = tuple(k for k in row.body.keywords if k not in detail.keywords_deleted)
    keywords += tuple(k for k in detail.keywords_added if k not in keywords)
    metadata = {name: value for name, value in row.body.metadata.items() if name not in detail.metadata_deleted}
    return replace(
        row,
        body=Body(fields, keywords, {**metadata, **detail.metadata_set}),
        status=detail.status[1] if detail.status else row.status,
        protect=detail.protect[1] if detail.protect else row.protect,
    )


def _with_former(
    row: Recorded, names: Iterable[str], history: Sequence[HistoryEntry], run: str
) -> tuple[Recorded, dict[str, None]]:
    """Return the row with the metadata recorded before the run, and the names whose earlier values are unknown."""
    until = next((number for number, entry in enumerate(history) if entry.run == run), len(history))
    values = {name: next(_former_values(name, history[:until]), ...) for name in names}
    former = {name: value for name, value in values.items() if isinstance(value, str)}
    others = {name: value for name, value in row.body.metadata.items() if name not in values}
    body = replace(row.body, metadata={**others, **former})
    return replace(row, body=body), {name: None for name, value in values.items() if value is ...}


def _former_values(name: str, history: Sequence[HistoryEntry]) -> Iterator[str | None]:
    """Yield the recorded values of a metadata name, latest first. `None` means that the name did not exist."""
    for entry in reversed(history):
        detail = entry.detail
        if name in detail.metadata_set:
            yield detail.metadata_set[name]
        elif name in detail.metadata_deleted or (detail.status is not None and detail.status[0] is None):
            yield None
