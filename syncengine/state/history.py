"""Runs, and what the calls of all runs tell: of a resource, of a plan, of removals (docs/planning.md 1.3, 6).

The changes of a run are reconstructed from it: each current row is followed backwards through its changes to those of
the run (docs/repair.md). It does not matter whether a call settled: the row contains all that its call adds, and the
change has the former content.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from syncengine.project.runner import Holder, actor
from syncengine.resource import Body, Key, Recorded, Source, Status, Value
from syncengine.service.operations import UPSERT_TAG_CATEGORIES
from syncengine.state.codec import KINDS, Detail, RemovalLine, detail_from
from syncengine.state.journal import ERASED, FORGOTTEN, INTENDED, QUARANTINE_ENDED, QUARANTINED, RECORDED, SETTLED
from syncengine.state.records import UndoneChange
from syncengine.state.tables import (
    CALLS,
    CHANGES,
    FACTS,
    RUNS,
    SESSIONS,
    STREAM,
    UNDONE,
    VISIBLE,
    address_of,
    change_keyed,
    fetch,
    select_keyed,
    write_many,
)

DIED, REFUSED = "died", "refused"
PRUNED_RUN = ""
"""The command of a pruned run, of which only its plan and its end are left."""
LONGEST_RUN = 86_400.0
"""The assumed maximum duration of a run in seconds, needed because the index of runs is by their start."""

PIECES = {"yield_per": STREAM}

UNFINISHED = (DIED, "interrupted", REFUSED, "unreachable")
"""The outcomes of a run after which its saved plan may be applied again."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a command that writes. Times are seconds since the epoch.

    `clean`: the work tree had no uncommitted changes. `actor` is the user who triggered the CI job. `approvals` are the
    approvals that the run needed, `reviewed` the plans that it was not to go beyond, and `limits` the limits in the
    project file. A refused run has an `exit_code` and a `reason`. `undoes` is the id of the run that this one undoes.
    """

    id: str
    started: float
    command: str
    plan: str | None
    host: str
    user: str
    job_url: str | None
    commit: str | None
    clean: bool | None
    ended: float | None = None
    outcome: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    actor: str | None = None
    approvals: tuple[str, ...] = ()
    reviewed: tuple[str, ...] = ()
    limits: Mapping[str, str] = field(default_factory=dict)
    exit_code: int | None = None
    reason: str | None = None
    undoes: str | None = None

    @classmethod
    def here(cls, id: str, started: float, holder: Holder, environ: Mapping[str, str]) -> Run:
        """Return a run of this process that has no plan and no commit."""
        who = actor(environ)
        return cls(id, started, holder.command, None, holder.host, holder.user, holder.job_url, None, None, actor=who)


OF_RUN = {each.name: RUNS.c[{"user": "who", "commit": "revision"}.get(each.name, each.name)] for each in fields(Run)}
SETS = ("counts", "approvals", "reviewed", "limits")
"""The columns of a run that are NULL where there is nothing in them."""
_RUNS = sa.select(*OF_RUN.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One event in the history of a resource, which happened or may have happened.

    `outcome` is intended (the result is unknown), settled, failed, recorded, doubted, forgotten, quarantined or
    quarantine-ended. `detail` has the differences of the row, and the reason of a failure.
    """

    at: float
    outcome: str
    run: str | None = None
    command: str | None = None
    commit: str | None = None
    user: str | None = None
    host: str | None = None
    job_url: str | None = None
    call: str | None = None
    operation: str | None = None
    source: Source | None = None
    detail: Detail = field(default_factory=Detail)


WRITES = sa.or_(CALLS.c.call.is_not(None), CALLS.c.outcome.in_((RECORDED, FORGOTTEN)))
"""The condition of calls, and of what was written without a call."""

_EARLY = CHANGES.c.outcome.is_not(None)
OUTCOME = sa.func.coalesce(CHANGES.c.outcome, CALLS.c.outcome, INTENDED).label("outcome")
"""How a change ended: with its call, or before the others. `INTENDED`: its result is unknown."""
ENDED = sa.case((_EARLY, CHANGES.c.ended), else_=CALLS.c.ended)
MESSAGE = sa.case((_EARLY, CHANGES.c.message), else_=CALLS.c.message).label("message")

OF_CALLS = sa.join(CALLS, CHANGES, CHANGES.c.call == CALLS.c.id)
IN_ORDER = (CALLS.c.id, CHANGES.c.position)


def open_run(connection: sa.Connection, run: Run, now: float, *, by_unit: bool) -> None:
    """Record the start of a run. Mark every other open run as dead, since this one has the lock.

    `by_unit`: the removals that each of the run's approvals covers are recorded, too.
    """
    connection.execute(sa.update(RUNS).where(RUNS.c.ended.is_(None)).values(ended=now, outcome=DIED))
    connection.execute(sa.insert(RUNS).values({**_columns(run), "units": by_unit}))


def refused_run(connection: sa.Connection, run: Run) -> None:
    """Append a refused run with its start and its end. The lock is not checked, because no other row is touched."""
    connection.execute(sa.insert(RUNS).values({**_columns(run), "ended": run.ended, "outcome": REFUSED}))


def _columns(run: Run) -> dict[str, Any]:
    """Return the columns of a run that begins. What it has none of is NULL."""
    values = {name: getattr(run, name) for name in OF_RUN if name not in ("ended", "outcome", "counts")}
    return {OF_RUN[name].name: value or None if name in SETS else value for name, value in values.items()}


def close_run(connection: sa.Connection, run: str, now: float, outcome: str, counts: Mapping[str, int]) -> None:
    values = {"ended": now, "outcome": outcome, "counts": counts}
    connection.execute(sa.update(RUNS).where(RUNS.c.id == run).values(values))


def runs(connection: sa.Connection, limit: int) -> list[Run]:
    """Return the last `limit` runs, latest first, without pruned runs."""
    query = _RUNS.where(RUNS.c.command != PRUNED_RUN)
    query = query.order_by(RUNS.c.started.desc(), RUNS.c.id.desc()).limit(limit)
    return [_run(row) for row in connection.execute(query)]


def runs_of(connection: sa.Connection, ids: Iterable[str]) -> list[Run]:
    """Return the runs with these ids. Unknown ids are skipped."""
    return [_run(row) for row in connection.execute(_RUNS.where(RUNS.c.id.in_(list(ids))))]


def runs_like(connection: sa.Connection, prefix: str) -> list[Run]:
    """Return the runs whose ids begin with `prefix`, latest first."""
    query = _RUNS.where(RUNS.c.id.startswith(prefix, autoescape=True)).order_by(RUNS.c.started.desc())
    return [_run(row) for row in connection.execute(query)]


def _run(row: sa.Row[Any]) -> Run:
    columns = zip(OF_RUN, row, strict=True)
    return msgspec.convert({name: value for name, value in columns if value is not None or name not in SETS}, Run)


def open_sessions(connection: sa.Connection) -> list[str]:
    """Return the ids of sync sessions that were opened and never closed, oldest first."""
    query = sa.select(SESSIONS.c.id).where(SESSIONS.c.closed.is_(None)).order_by(SESSIONS.c.opened, SESSIONS.c.id)
    return list(connection.execute(query).scalars())


def plan_ended(connection: sa.Connection, plan: str) -> bool:
    """Return whether some run of the plan ran to its end, which uses the plan up (docs/planning.md 6)."""
    is_over = sa.and_(RUNS.c.ended.is_not(None), RUNS.c.outcome.not_in(UNFINISHED))
    return connection.execute(sa.select(RUNS.c.id).where(RUNS.c.plan == plan, is_over).limit(1)).first() is not None


def plan_began(connection: sa.Connection, plan: str) -> bool:
    """Return whether some run of the plan may have sent a call. A refused run sends none."""
    has_begun = RUNS.c.outcome.is_distinct_from(REFUSED)
    return connection.execute(sa.select(RUNS.c.id).where(RUNS.c.plan == plan, has_begun).limit(1)).first() is not None


def history(connection: sa.Connection, key: Key) -> list[HistoryEntry]:
    """Return the history of one resource, oldest entry first. Raise `ValueError` for a damaged change.

    Where a category lost its name, the message is its new one, or why it got none.
    """
    of_call = (CALLS.c.at, OUTCOME, CALLS.c.run, CALLS.c.call, CALLS.c.operation, MESSAGE)
    of_run = (RUNS.c.command, RUNS.c.revision, RUNS.c.who, RUNS.c.host, RUNS.c.job_url)
    other = CHANGES.alias()  # a call that renames categories names the former key right after the new one
    is_before = sa.and_(other.c.call == CALLS.c.id, other.c.position == CHANGES.c.position - 1)
    before = sa.select(other.c.name).where(is_before, CALLS.c.operation == UPSERT_TAG_CATEGORIES.id).scalar_subquery()
    query = (
        sa.select(*of_call, CHANGES.c.file, CHANGES.c.line, CHANGES.c.detail, *of_run, before.label("before"))
        .select_from(sa.outerjoin(OF_CALLS, RUNS, CALLS.c.run == RUNS.c.id))
        .where(CHANGES.c.kind == key.kind.value, CHANGES.c.name == key.name)
    )

    def detail_of(row: Any) -> Detail:
        detail = detail_from(row.detail)
        is_renamed = row.before is not None and detail.status is not None and detail.status[1] is Status.DELETED
        return replace(detail, message=row.message or (f"a rename to {key.kind}/{row.before}" if is_renamed else None))

    return [
        HistoryEntry(
            at=row.at,
            outcome=row.outcome,
            run=row.run,
            command=row.command,
            commit=row.revision,
            user=row.who,
            host=row.host,
            job_url=row.job_url,
            call=row.call,
            operation=row.operation,
            source=Source(row.file, row.line) if row.file is not None else None,
            detail=detail_of(row),
        )
        for row in connection.execute(query.order_by(*IN_ORDER))
    ]


def last_writer(entries: Sequence[HistoryEntry]) -> HistoryEntry | None:
    """Return the last history entry that tells about the resource's row, skipping quarantine entries."""
    return next((entry for entry in reversed(entries) if entry.outcome not in (QUARANTINED, QUARANTINE_ENDED)), None)


def settled_at(connection: sa.Connection, keys: Iterable[Key]) -> dict[Key, float]:
    """Return the time (seconds since the epoch) at which each row got its current content, if that time is known.

    It is that of the last acknowledged call, or of the last record without a call that changed more than the place.
    """
    is_record = sa.and_(CALLS.c.outcome == RECORDED, CHANGES.c.detail.is_not(None))
    at = sa.case((OUTCOME == SETTLED, ENDED), (is_record, CALLS.c.at))
    query = (
        sa.select(CHANGES.c.kind, CHANGES.c.name, sa.func.max(at).label("at"))
        .select_from(OF_CALLS)
        .group_by(CHANGES.c.kind, CHANGES.c.name)
        .having(sa.func.max(at).is_not(None))
    )
    rows = select_keyed(connection, query, CHANGES, keys)
    return {Key(KINDS[row.kind], row.name): float(row.at) for row in rows}


def forgotten(connection: sa.Connection, keys: Iterable[Key]) -> set[Key]:
    """Return the subset of `keys` that `state forget` has ever dropped."""
    query = sa.select(CHANGES.c.kind, CHANGES.c.name).select_from(OF_CALLS).where(CALLS.c.outcome == FORGOTTEN)
    return {Key(KINDS[row.kind], row.name) for row in select_keyed(connection, query, CHANGES, keys)}


def removals(connection: sa.Connection, since: float) -> list[RemovalLine]:
    """Return changes of plan runs that may have removed something after `since`, oldest first.

    Adoption and imports have no plan, and `state forget` takes nothing. `at` is the writer's wall clock, whose error of
    minutes does not matter within a day. Raise `ValueError` or `LookupError` for a damaged change.
    """
    is_of_plan = sa.and_(RUNS.c.started >= since - LONGEST_RUN, RUNS.c.plan.is_not(None))
    columns = (CALLS.c.at, CALLS.c.call, CHANGES.c.kind, CHANGES.c.name, CHANGES.c.detail)
    query = (
        # With approvals by unit, the approvals themselves list the losses.
        sa.select(*columns, sa.and_(RUNS.c.approvals.is_not(None), sa.not_(RUNS.c.units)).label("is_approved"))
        .select_from(sa.join(OF_CALLS, RUNS, CALLS.c.run == RUNS.c.id))
        .where(CALLS.c.at >= since, CHANGES.c.takes, is_of_plan)
    )
    return [
        RemovalLine(float(at), call is not None, Key(KINDS[kind], name), detail_from(detail), bool(approved))
        for at, call, kind, name, detail, approved in connection.execute(query.order_by(*IN_ORDER))
    ]


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
    rows = fetch(connection, lines, VISIBLE)
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
    # A service that refuses the id makes a new category, and the old one is released (docs/planning.md 4.8).
    is_renamed = after is not None and after.status is Status.DELETED
    renamed_to = next((name for name in renames if name is not None), None) if is_renamed else None
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
