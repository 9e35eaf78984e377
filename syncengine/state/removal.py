"""Remove history before a point in time, or the names and contents of resources, in the caller's transaction.

Everything that rows, calls, the gate and approvals need is kept: the changes of rows in doubt, calls that may still
land, the paths that have answered, and the last limits. A run that used up a saved plan leaves an empty row, so that
the plan stays used up. What is erased stays as an entry without content, under the name `(erased)` (docs/state.md).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import msgspec
import sqlalchemy as sa

from syncengine.resource import Key, Kind, Status
from syncengine.state.codec import detail_from, difference, from_json, to_json
from syncengine.state.folder_memory import MARKED
from syncengine.state.history import OF_CALLS, PRUNED_RUN, UNFINISHED, undone
from syncengine.state.journal import ERASED, outstanding
from syncengine.state.lock import Clock
from syncengine.state.records import GATE_SECONDS
from syncengine.state.tables import (
    APPROVALS,
    CALLS,
    CHANGES,
    DOUBTFUL,
    FACTS,
    LAST_LIMITS,
    MARKS,
    QUARANTINE,
    REFUSALS,
    ROWS,
    RUNS,
    SESSIONS,
    VISIBLE,
    address_of,
    change_keyed,
    fetch,
    select_keyed,
)

IS_OVER = sa.and_(CALLS.c.outcome.is_not(None), CALLS.c.content.is_(None))
"""The condition of calls that are not in flight and can no longer land."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """The numbers of removed runs and history entries, and of rows in doubt, whose entries stay.

    `before` is the time (seconds since the epoch) before which history was removed, at least a day ago.
    """

    before: float
    runs: int
    entries: int
    in_doubt: int


def prune(connection: sa.Connection, before: float, *, is_trial: bool) -> Pruned:
    """Remove history before `before` (seconds since the epoch). A trial only counts it."""
    in_doubt = sa.select(address_of(ROWS)).where(DOUBTFUL)
    stays = sa.or_(CALLS.c.at >= before, address_of(CHANGES).in_(in_doubt))
    entries, last = connection.execute(
        sa.select(sa.func.count(), sa.func.max(CALLS.c.at)).select_from(OF_CALLS).where(sa.not_(stays))
    ).one()
    calls = sa.outerjoin(CALLS, CHANGES, CHANGES.c.call == CALLS.c.id)
    staying = sa.select(CALLS.c.run).select_from(calls).where(stays, CALLS.c.run.is_not(None))
    landing = sa.select(CALLS.c.run).where(sa.not_(IS_OVER), CALLS.c.run.is_not(None))
    is_old = sa.and_(RUNS.c.started < before, RUNS.c.ended.is_not(None), RUNS.c.command != PRUNED_RUN)
    limits = sa.select(LAST_LIMITS.subquery().c.id)
    is_dropped = sa.and_(is_old, RUNS.c.id.not_in(staying), RUNS.c.id.not_in(landing), RUNS.c.id.not_in(limits))
    runs = connection.execute(sa.select(sa.func.count()).select_from(RUNS).where(is_dropped)).scalar_one()
    count = connection.execute(sa.select(sa.func.count()).select_from(in_doubt.subquery())).scalar_one()
    if not is_trial:
        drop_changes(connection, CALLS.c.at < before, address_of(CHANGES).not_in(in_doubt), last)
        drop_runs(connection, is_dropped)
        connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.closed < before))
        connection.execute(sa.delete(MARKS).where(MARKS.c.verb == MARKED, MARKS.c.at < before))
    return Pruned(before, runs, entries, count)


def drop_changes(
    connection: sa.Connection, is_old: sa.ColumnElement[bool], is_dropped: sa.ColumnElement[bool], last: float | None
) -> None:
    """Drop changes of old calls, and old calls without changes. `last` is the time of the last of these changes."""
    old = sa.select(CALLS.c.id).where(is_old)
    connection.execute(sa.delete(CHANGES).where(CHANGES.c.call.in_(old), is_dropped))
    is_empty = sa.and_(is_old, IS_OVER, CALLS.c.id.not_in(sa.select(CHANGES.c.call)))
    connection.execute(sa.delete(CALLS).where(is_empty))
    if last is not None:  # what is missing up to here is no damage, and what a run did may be incomplete
        is_later = sa.or_(FACTS.c.pruned.is_(None), FACTS.c.pruned < last)
        connection.execute(sa.update(FACTS).where(is_later).values(pruned=last))


def drop_runs(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> None:
    """Drop runs. One that used up a saved plan leaves an empty row, so that the plan stays used up."""
    used_a_plan = sa.and_(RUNS.c.plan.is_not(None), RUNS.c.outcome.not_in(UNFINISHED))
    kept = ("id", "started", "ended", "plan", "outcome")
    empty: dict[str, object] = {column.name: None for column in RUNS.c if column.name not in kept}
    empty |= {"command": PRUNED_RUN, "host": "", "who": ""}
    connection.execute(sa.delete(RUNS).where(condition, sa.not_(used_a_plan)))
    connection.execute(sa.update(RUNS).where(condition).values(empty))


encoded = msgspec.msgpack.Encoder().encode
SHORT = 4
"""The number of characters below which a value is too common to be searched for in sentences."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A resource that cannot be erased yet, and the reason."""

    key: Key
    reason: str


def obstacles(connection: sa.Connection, clock: Clock, keys: Collection[Key], window: float) -> Iterator[Obstacle]:
    """Yield the reasons why `keys` cannot be erased. Earlier calls may be executed for `window` seconds."""
    rows = fetch(connection, keys, VISIBLE)
    for key, row in rows.items():
        if row.status is Status.ACTIVE:
            yield Obstacle(key, "it is still declared (remove it from the manifests and apply, or run `state forget`)")
        elif row.doubtful and row.status is not Status.RELEASED:
            yield Obstacle(key, "the outcome of a call for it is unknown (apply first, or run `state forget`)")
    for change in undone(connection):
        if change.key in keys:
            yield Obstacle(change.key, f"its change by run {change.run} was undone (merge the revert and apply first)")
    late = [encoded(each.attempt) for each in outstanding(connection, clock, window)]
    for key in keys:
        if any(key.name.encode() in content for content in late):
            yield Obstacle(key, "an earlier call may still be executed (apply first, then repeat the command)")
        is_member = sa.or_(ROWS.c.category == str(key), ROWS.c.former.contains(to_json(str(key)), autoescape=True))
        if member := connection.execute(sa.select(ROWS.c.kind, ROWS.c.name).where(is_member).limit(1)).one_or_none():
            yield Obstacle(key, f"{member.kind}/{member.name} is recorded in it (erase or forget that tag first)")


@dataclass(frozen=True, slots=True)
class Erased:
    """The numbers of erased history entries, and of the runs that wrote them."""

    entries: int
    runs: int


def erase(connection: sa.Connection, keys: Collection[Key]) -> Erased:
    """Remove the names and contents of `keys` from all tables. The caller has checked that there are no obstacles."""
    columns = (CHANGES.c.call, CHANGES.c.position, CHANGES.c.kind, CHANGES.c.detail, CALLS.c.run)
    own = list(select_keyed(connection, sa.select(*columns).select_from(OF_CALLS), CHANGES, keys))
    # The values that are to go from messages of their calls.
    texts: set[str] = set()
    rows = (difference(None, recorded).detail for recorded in fetch(connection, keys).values())
    for detail in map(detail_from, (*rows, *(row.detail for row in own))):
        values = [value for pair in detail.fields.values() for value in pair]
        values += [*detail.keywords_added, *detail.keywords_deleted, *detail.metadata_deleted]
        values += [text for pair in detail.metadata_set.items() for text in pair]
        flat = (each for value in values for each in (value if isinstance(value, tuple) else (value,)))
        texts.update(each for each in flat if isinstance(each, str) and len(each) >= SHORT)

    def without_names(sentence: str, texts: Iterable[str]) -> str:
        words = sorted({*(key.name for key in keys), *texts}, key=len, reverse=True)
        return re.sub("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words), ERASED, sentence)

    nothing = {"name": ERASED, "file": None, "line": None, "detail": None, "takes": False, "message": None}
    change_keyed(connection, sa.update(CHANGES), CHANGES, keys, **nothing)
    _erase_categories(connection, {key.name for key in keys if key.kind is Kind.CATEGORY})
    # Messages of their calls lose values too; one that concerns nothing else is dropped.
    calls = {row.call for row in own}
    others = set(connection.execute(sa.select(CHANGES.c.call).where(CHANGES.c.name != ERASED).distinct()).scalars())
    for table, id in ((CALLS, CALLS.c.id), (CHANGES, CHANGES.c.call)):
        query = sa.select(id.label("call"), table.c.message).where(table.c.message.is_not(None))
        for call, message in connection.execute(query).all():
            text = without_names(message, texts if call in calls else ())
            if table is CALLS and call in calls and call not in others:
                text = ERASED
            if text != message:
                here = sa.and_(id == call, table.c.message == message)
                connection.execute(sa.update(table).where(here).values(message=text))
    for table in ROWS.metadata.tables.values():  # all that have a row per resource
        if table is not CHANGES and {"kind", "name"} <= set(table.c.keys()):
            change_keyed(connection, sa.delete(table), table, keys)
    lines = tuple(f"removed:{key}:" for key in keys)
    erased = {(key.kind.value, key.name) for key in keys}
    of_approvals = sa.select(APPROVALS.c.approval, APPROVALS.c.covers, APPROVALS.c.remaining)
    for approval, *lists in connection.execute(of_approvals).all():
        one = APPROVALS.c.approval == approval
        left = [[loss for loss in each if (loss[1], loss[2]) not in erased] for each in lists]
        if approval.startswith(lines):
            connection.execute(sa.delete(APPROVALS).where(one))
        elif left != lists:
            connection.execute(sa.update(APPROVALS).where(one).values(covers=left[0], remaining=left[1]))
    for column in (REFUSALS.c.message, QUARANTINE.c.reason, RUNS.c.reason):
        for sentence in connection.execute(sa.select(column).where(column.is_not(None)).distinct()).scalars().all():
            if (without := without_names(sentence, texts)) != sentence:
                connection.execute(sa.update(column.table).where(column == sentence).values({column: without}))
    return Erased(len(own), len({row.run for row in own}))


def _erase_categories(connection: sa.Connection, names: set[str]) -> None:
    """Remove the names of erased categories from the changes of their tags."""
    query = sa.select(CHANGES.c.call, CHANGES.c.position, CHANGES.c.detail).where(CHANGES.c.detail.is_not(None))
    for row in connection.execute(query).all() if names else ():
        content = from_json(row.detail)
        fields = content.get("body", content).get("fields", {})
        value = fields.get("category")
        if not names.isdisjoint(value if isinstance(value, list) else [value]):
            fields["category"] = [ERASED if v in names else v for v in value] if isinstance(value, list) else ERASED
            here = sa.and_(CHANGES.c.call == row.call, CHANGES.c.position == row.position)
            connection.execute(sa.update(CHANGES).where(here).values(detail=to_json(content)))


RUNS_WITH_CHANGES, RUNS_KEPT = 100, 1000
"""The numbers of runs whose changes, and which themselves, are kept: of `serve`, eight hours and three days."""
MOST_CHANGES = 40_000
"""The number of changes kept, about 10 MB: those of two applies of the largest state that Git may have."""
MARKS_KEPT = 2000
"""The number of marks kept, by which a project recognizes the state that it saw last: with two publications an apply,
those of three days of `serve`."""
LOSSES_SECONDS = 2 * GATE_SECONDS  # twice: machines' clocks differ, and a run that counts them may take long
"""The seconds for which losses are always kept, whatever is trimmed."""


def trim(connection: sa.Connection, now: float, *, runs: int = RUNS_WITH_CHANGES, changes: int = MOST_CHANGES) -> None:
    """Drop the oldest changes, runs and closed sessions."""
    last_runs = sa.select(RUNS.c.id).order_by(RUNS.c.started.desc()).limit(runs)
    first = connection.execute(sa.select(sa.func.min(CALLS.c.id)).where(CALLS.c.run.in_(last_runs))).scalar()
    newest = sa.select(CHANGES.c.call).order_by(CHANGES.c.call.desc(), CHANGES.c.position.desc())
    by_size = connection.execute(newest.offset(changes).limit(1)).scalar()
    border = max(first or 0, 0 if by_size is None else by_size + 1)
    is_old = sa.and_(CALLS.c.id < border, IS_OVER)
    recent = sa.select(CALLS.c.id).where(CALLS.c.at >= now - LOSSES_SECONDS)
    is_dropped = sa.not_(sa.and_(CHANGES.c.takes, CHANGES.c.call.in_(recent)))
    last = connection.execute(
        sa.select(sa.func.max(CALLS.c.at)).select_from(OF_CALLS).where(is_old, is_dropped)
    ).scalar()
    drop_changes(connection, is_old, is_dropped, last)
    old = sa.select(RUNS.c.id).where(RUNS.c.command != PRUNED_RUN, RUNS.c.ended.is_not(None))
    drop_runs(connection, RUNS.c.id.in_(old.order_by(RUNS.c.started.desc()).offset(RUNS_KEPT)))
    connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.closed < now - LOSSES_SECONDS))
    last_mark = connection.execute(sa.select(sa.func.max(MARKS.c.id))).scalar() or 0
    connection.execute(sa.delete(MARKS).where(MARKS.c.verb == MARKED, MARKS.c.id <= last_mark - MARKS_KEPT))
