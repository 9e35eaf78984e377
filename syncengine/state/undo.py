"""Reconstruct the changes of a run from the history: each row before the run, and after it; and keep what stays undone.

Each current row is followed backwards through its changes to those of the run (docs/repair.md). It does not matter
whether a call settled: the row contains all that its call adds, and the change has the former content.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa
from msgspec.structs import replace

from syncengine.resource import Body, Key, Recorded, Status, Value
from syncengine.service.operations import UPSERT_TAG_CATEGORIES
from syncengine.state.codec import KINDS, Detail, detail_from
from syncengine.state.history import IN_ORDER, OF_CALLS, PIECES, PRUNED_RUN, WRITES, Run, runs
from syncengine.state.journal import ERASED, FORGOTTEN
from syncengine.state.records import UndoneChange
from syncengine.state.tables import (
    CALLS,
    CHANGES,
    FACTS,
    RUNS,
    UNDONE,
    address_of,
    change_keyed,
    fetch,
    visible_rows,
    write_many,
)


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that a run touched: `before` the run, `after` it and `now`, each `None` where the row did not exist.

    `others` are the later runs that changed the row, oldest first, unless they were all undone again. `forgotten`: the
    row was since removed by hand. `renamed_to` is the new name of a category.
    """

    key: Key
    before: Recorded | None
    after: Recorded | None
    now: Recorded | None
    others: tuple[str, ...] = ()
    forgotten: bool = False
    renamed_to: Key | None = None

    @property
    def is_erased(self) -> bool:
        """Whether this row stands for resources that were erased."""
        return self.now is None and self.key.name == ERASED

    @property
    def is_changed(self) -> bool:
        """Whether the run changed the row, as far as the history tells."""
        return content_of(self.before) != content_of(self.after)


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
    """One change of one key. `previous` is the key before it in a call that may rename categories."""

    run: str | None
    detail: Detail
    forgets: bool = False
    previous: Key | None = None


def family_of(connection: sa.Connection, run: str) -> set[str]:
    """Return the ids of the run, of the runs that undid it, of the runs that undid those, and so on."""
    return _family(run, _undoes(connection))


def _undoes(connection: sa.Connection) -> dict[str, str]:
    """Return the runs that undid another run, each with the undone run's id."""
    query = sa.select(RUNS.c.id, RUNS.c.undoes).where(RUNS.c.undoes.is_not(None)).order_by(RUNS.c.started)
    return {row.id: row.undoes for row in connection.execute(query)}


def _family(run: str, undoes: Mapping[str, str]) -> set[str]:
    family = {run}
    while more := {id for id, other in undoes.items() if other in family} - family:
        family |= more
    return family


RECENT = 1000
"""The number of latest runs that are searched for the last one that changed something: three days of `serve`."""


def writing_run(connection: sa.Connection) -> Run | None:
    """Return the last plan run that changed a resource, or else the last that wrote at all, or `None`.

    A run that sends everything again unchanged, as `apply --reassert` does, therefore comes second. An erased one
    counts as a change, since its content is unknown.
    """
    first: Run | None = None
    for run in runs(connection, RECENT):
        if run.plan is not None and has_changed(connection, run.id):
            if any(name == ERASED or detail.changes_something for name, detail in _written(connection, run.id)):
                return run
            first = first or run
    return first


def was_erased(connection: sa.Connection, run: str) -> bool:
    """Return whether every resource that the run wrote about has been erased."""
    erased = [name == ERASED and not detail.changes_something for name, detail in _written(connection, run)]
    return erased != [] and all(erased)


def _written(connection: sa.Connection, run: str) -> Iterator[tuple[str, Detail]]:
    """Yield the name of each resource that a run wrote about, with the differences."""
    query = sa.select(CHANGES.c.name, CHANGES.c.detail).select_from(OF_CALLS).where(CALLS.c.run == run, WRITES)
    for name, detail in connection.execute(query, execution_options=PIECES):
        yield name, detail_from(detail)


def has_changed(connection: sa.Connection, run: str) -> bool:
    """Return whether the run wrote anything about a resource."""
    return _first_call(connection, run) is not None


def was_pruned(connection: sa.Connection, run: Run) -> bool:
    """Return whether some or all changes of the run were pruned."""
    until = connection.execute(sa.select(FACTS.c.pruned)).scalar_one()
    first = _first_call(connection, run.id)
    is_empty = run.command == PRUNED_RUN or run.counts.get("applied", 0) > 0
    return until is not None and (is_empty if first is None else first.at <= until)


def changes_of(connection: sa.Connection, run: str) -> list[ChangedRow]:
    """Return all rows that the run touched, in the order of its changes. Raise `ValueError` for a damaged change."""
    first = _first_call(connection, run)
    if first is None:
        return []
    lines, undoes = _lines(connection, run, first.id), _undoes(connection)
    rows = fetch(connection, lines, visible_rows())
    return [_changed(key, of_key, rows.get(key), run, undoes) for key, of_key in lines.items()]


def _first_call(connection: sa.Connection, run: str) -> Any:
    """Return the id and the time of the first call of a run, or of its first record without a call."""
    writes = sa.and_(CALLS.c.run == run, WRITES, CALLS.c.outcome.is_distinct_from(FORGOTTEN))
    return connection.execute(sa.select(CALLS.c.id, CALLS.c.at).where(writes).order_by(CALLS.c.id).limit(1)).first()


def _lines(connection: sa.Connection, run: str, first: int) -> dict[Key, list[_Line]]:
    """Return the run's changes and all later ones of the same keys, oldest first, by key."""
    of_run = sa.select(address_of(CHANGES)).select_from(OF_CALLS).where(CALLS.c.run == run, WRITES)
    columns = (CALLS.c.id, CALLS.c.run, CALLS.c.operation, CALLS.c.outcome, *CHANGES.c["kind", "name", "detail"])
    query = sa.select(*columns).select_from(OF_CALLS)
    query = query.where(CALLS.c.id >= first, WRITES, address_of(CHANGES).in_(of_run))
    by_key: defaultdict[Key, list[_Line]] = defaultdict(list)
    before: int | None = None
    previous: Key | None = None
    for line in connection.execute(query.order_by(*IN_ORDER), execution_options=PIECES):
        key = Key(KINDS[line.kind], line.name)
        # A call that renames categories names the former key right after the new one.
        former = previous if before == line.id and line.operation == UPSERT_TAG_CATEGORIES.id else None
        before, previous = line.id, key
        if line.run == run or key in by_key:
            by_key[key].append(_Line(line.run, detail_from(line.detail), line.outcome == FORGOTTEN, former))
    return dict(by_key)


def _changed(key: Key, lines: Sequence[_Line], now: Recorded | None, run: str, undoes: Mapping[str, str]) -> ChangedRow:
    family = _family(run, undoes)
    counted = (line for line in lines if line.forgets or line.detail.changes_something)
    others = tuple(dict.fromkeys(line.run or "" for line in counted if line.run not in family))
    forgotten = any(line.forgets for line in lines)
    own = [line for line in lines if line.run == run]
    before = now
    for line in () if forgotten else reversed(lines):
        is_new = line.detail.status is not None and line.detail.status[0] is None
        before = None if before is None or is_new else _replayed(before, line.detail, 0)
    after = before
    for line in own:
        after = _replayed(after or Recorded(key), line.detail, 1)
    renames = (line.previous for line in own if line.detail.status and line.detail.status[1] is Status.DELETED)
    renamed_to = next((name for name in renames if name is not None), None)
    # Later runs do not count if they were all undone, and the row is again as the run made it.
    taken_back = {other for undo in others if (other := undoes.get(undo)) in others}
    if now is not None and after is not None and not now.doubtful and not forgotten:
        is_in_pairs = all(other in taken_back or undoes.get(other) in others for other in others)
        is_as_made = now.server_id == after.server_id and content_of(now) == content_of(after)
        others = () if is_in_pairs and is_as_made else others
    return ChangedRow(key, before, after, now, others, forgotten, renamed_to)


def _replayed(row: Recorded, detail: Detail, side: Literal[0, 1]) -> Recorded:
    """Return the row before (0) or after (1) a change with these differences, of which it is the other side."""
    fields = {name: value for name, value in row.body.fields.items() if name not in detail.fields}
    fields |= {name: value for name, pair in detail.fields.items() if (value := pair[side]) is not None}
    new, gone = detail.keywords_added, detail.keywords_deleted
    new, gone = (new, gone) if side else (gone, new)
    keywords = tuple(keyword for keyword in row.body.keywords if keyword not in gone)
    keywords += tuple(keyword for keyword in new if keyword not in keywords)
    names = {*detail.metadata_set, *detail.metadata_deleted, *detail.metadata_before}
    metadata = {name: value for name, value in row.body.metadata.items() if name not in names}
    values = detail.metadata_set if side else detail.metadata_before
    metadata |= {name: value for name, value in values.items() if value is not None}
    return replace(
        row,
        body=Body(fields, keywords, metadata),
        status=(detail.status and detail.status[side]) or row.status,
        protect=detail.protect[side] if detail.protect else row.protect,
        server_id=row.server_id if side else detail.server_id or row.server_id,
    )


def undone(connection: sa.Connection) -> list[UndoneChange]:
    """Return the undone changes, ordered by kind and name. Raise `LookupError` for a damaged one."""
    rows = connection.execute(sa.select(UNDONE).order_by(UNDONE.c.kind, UNDONE.c.name, UNDONE.c.run))
    return [UndoneChange(Key(KINDS[row.kind], row.name), row.made, row.run, row.undone_by) for row in rows]


def write_undone(connection: sa.Connection, lifted: Collection[UndoneChange], added: Collection[UndoneChange]) -> None:
    """Drop `lifted` changes and write `added` ones. An added change replaces that of the same run and address."""
    for run in {change.run for change in lifted}:
        keys = [change.key for change in lifted if change.run == run]
        change_keyed(connection, sa.delete(UNDONE).where(UNDONE.c.run == run), UNDONE, keys)
    rows = []
    for (kind, name), marks, run, undone_by in added:
        rows.append({"kind": kind.value, "name": name, "made": marks, "run": run, "undone_by": undone_by})
    write_many(connection, UNDONE, rows, upsert=True)
