"""Remove the names and contents of resources from a state, in the caller's transaction (docs/state.md).

The entries of the history stay without content, under the name `(erased)`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec
import orjson
import sqlalchemy as sa

from syncengine.resource import Key, Kind, Status
from syncengine.state import attempts, undone_table
from syncengine.state.clock import Clock
from syncengine.state.codec import from_json, to_json
from syncengine.state.history import OF_CALLS
from syncengine.state.journal import ERASED
from syncengine.state.journal_detail import Detail, difference, read
from syncengine.state.queries import change_keyed, fetch, select_keyed, visible_rows
from syncengine.state.tables import APPROVALS, CALLS, CHANGES, QUARANTINE, REFUSALS, ROWS, RUNS

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
    rows = fetch(connection, keys, visible_rows())
    for key, row in rows.items():
        if row.status is Status.ACTIVE:
            yield Obstacle(key, "it is still declared (remove it from the manifests and apply, or run `state forget`)")
        elif row.doubtful and row.status is not Status.RELEASED:
            yield Obstacle(key, "the outcome of a call for it is unknown (apply first, or run `state forget`)")
    for change in undone_table.changes(connection):
        if change.key in keys:
            yield Obstacle(change.key, f"its change by run {change.run} was undone (merge the revert and apply first)")
    late = [encoded(each.attempt) for each in attempts.outstanding(connection, clock, window)]
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
    erasure = _Erasure(frozenset(keys), {str(key) for key in keys})
    for recorded in fetch(connection, keys).values():
        erasure.learn(read(difference(None, recorded).detail))
    columns = (CHANGES.c.call, CHANGES.c.position, CHANGES.c.kind, CHANGES.c.detail, CALLS.c.run)
    query = sa.select(*columns).select_from(OF_CALLS)
    own = list(select_keyed(connection, query, CHANGES, keys))
    for row in own:
        erasure.learn(read(row.detail))
    nothing = {"name": ERASED, "file": None, "line": None, "detail": None, "takes": False, "message": None}
    change_keyed(connection, sa.update(CHANGES), CHANGES, keys, **nothing)
    _erase_categories(connection, keys)
    _erase_messages(connection, erasure, {row.call for row in own})
    for table in (ROWS, *_others()):
        change_keyed(connection, sa.delete(table), table, keys)
    _erase_approvals(connection, erasure)
    for sentences in (REFUSALS.c.message, QUARANTINE.c.reason, RUNS.c.reason):
        _erase_sentences(connection, erasure, sentences)
    return Erased(len(own), len({row.run for row in own}))


def _others() -> Iterable[sa.Table]:
    """Return the other tables that have a row per resource."""
    tables = (ROWS, CHANGES)
    return [t for t in ROWS.metadata.tables.values() if t not in tables and {"kind", "name"} <= set(t.c.keys())]


@dataclass(slots=True)
class _Erasure:
    """The resources to erase, and the values found so far that are to go from messages of their calls."""

    keys: frozenset[Key]
    addresses: set[str]
    texts: set[str] = field(default_factory=set)

    def learn(self, detail: Detail) -> None:
        values = [value for pair in detail.fields.values() for value in pair]
        values += [*detail.keywords_added, *detail.keywords_deleted, *detail.metadata_deleted]
        values += [text for pair in detail.metadata_set.items() for text in pair]
        flat = (each for value in values for each in (value if isinstance(value, tuple) else (value,)))
        self.texts.update(each for each in flat if isinstance(each, str) and len(each) >= SHORT)

    def without_names(self, sentence: str, texts: Iterable[str] = ()) -> str:
        """Return a sentence with all names, and all `texts`, replaced by `(erased)`."""
        words = sorted({*(key.name for key in self.keys), *texts}, key=len, reverse=True)
        return re.sub("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words), ERASED, sentence)


def _erase_categories(connection: sa.Connection, keys: Collection[Key]) -> None:
    """Remove the names of erased categories from the changes of their tags."""
    names = {key.name for key in keys if key.kind is Kind.CATEGORY}
    if not names:
        return
    query = sa.select(CHANGES.c.call, CHANGES.c.position, CHANGES.c.detail).where(CHANGES.c.detail.is_not(None))
    for row in connection.execute(query).all():
        content = from_json(row.detail)
        fields = content.get("body", content).get("fields", {})
        value = fields.get("category")
        if names.isdisjoint(value if isinstance(value, list) else [value]):
            continue
        fields["category"] = [ERASED if v in names else v for v in value] if isinstance(value, list) else ERASED
        here = sa.and_(CHANGES.c.call == row.call, CHANGES.c.position == row.position)
        connection.execute(sa.update(CHANGES).where(here).values(detail=to_json(content)))


def _erase_messages(connection: sa.Connection, erasure: _Erasure, calls: Collection[int]) -> None:
    """Remove names from the messages of all calls, and from those of `calls`, which had erased resources, their values.

    A message that concerns only erased resources is dropped.
    """
    others = set(connection.execute(sa.select(CHANGES.c.call).where(CHANGES.c.name != ERASED).distinct()).scalars())
    for table, id in ((CALLS, CALLS.c.id), (CHANGES, CHANGES.c.call)):
        query = sa.select(id.label("call"), table.c.message).where(table.c.message.is_not(None))
        for call, message in connection.execute(query).all():
            text = erasure.without_names(message, erasure.texts if call in calls else ())
            if table is CALLS and call in calls and call not in others:
                text = ERASED
            if text != message:
                here = sa.and_(id == call, table.c.message == message)
                connection.execute(sa.update(table).where(here).values(message=text))


def _erase_approvals(connection: sa.Connection, erasure: _Erasure) -> None:
    """Drop erased resources from approvals, and delete approvals that name them in a line under `removed:`."""
    lines = {f"removed:{address}:" for address in erasure.addresses}
    erased = {(key.kind.value, key.name) for key in erasure.keys}
    query = sa.select(APPROVALS.c.approval, APPROVALS.c.covers, APPROVALS.c.remaining)
    for text, *lists in connection.execute(query).all():
        one = APPROVALS.c.approval == text
        if any(text.startswith(line) for line in lines):
            connection.execute(sa.delete(APPROVALS).where(one))
            continue
        others = [to_json([loss for loss in orjson.loads(each) if (loss[1], loss[2]) not in erased]) for each in lists]
        if others != lists:
            values = dict(zip(("covers", "remaining"), others, strict=True))
            connection.execute(sa.update(APPROVALS).where(one).values(**values))


def _erase_sentences(connection: sa.Connection, erasure: _Erasure, column: sa.Column[str]) -> None:
    """Remove erased names from the sentences in a column."""
    for sentence in connection.execute(sa.select(column).where(column.is_not(None)).distinct()).scalars().all():
        if (without := erasure.without_names(sentence, erasure.texts)) != sentence:
            connection.execute(sa.update(column.table).where(column == sentence).values({column: without}))
