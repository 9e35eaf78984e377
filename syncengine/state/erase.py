"""Remove the names and contents of resources from a state, in the caller's transaction (docs/operate-state.md).

The entries of the journal stay without content, under the name `(erased)`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec
import orjson
import sqlalchemy as sa

from syncengine.resource import Key, Kind, Status
from syncengine.state import attempts, journal_rewrite, packed_lines, undone_table
from syncengine.state.clock import Clock
from syncengine.state.codec import from_json, to_json
from syncengine.state.journal import ERASED, FAILED, PATH, SETTLED
from syncengine.state.journal_detail import Detail, read
from syncengine.state.journal_rewrite import StoredLine
from syncengine.state.packed_lines import CallEnd, CallLines, JournalLine
from syncengine.state.queries import fetch, visible_rows
from syncengine.state.tables import APPROVALS, JOURNAL, QUARANTINE, REFUSALS, ROWS, RUNS

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
    rows = fetch(connection, keys, visible_rows(connection.dialect.name))
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
    for row in fetch(connection, keys).values():
        erasure.learn(
            Detail(fields={n: (None, v) for n, v in row.body.fields.items()}, keywords_added=row.body.keywords)
        )
        erasure.learn(Detail(metadata_set=row.body.metadata))
    for line in journal_rewrite.lines(connection, JOURNAL.c.kind != PATH):
        if values := erasure.rewritten(line):
            journal_rewrite.write(connection, line.id, values)
    for table in (ROWS, *_others()):
        for key in keys:
            connection.execute(sa.delete(table).where(table.c.kind == key.kind.value, table.c.name == key.name))
    _erase_approvals(connection, erasure)
    _erase_reasons(connection, erasure)
    for sentences in (REFUSALS.c.message, QUARANTINE.c.reason):
        _erase_sentences(connection, erasure, sentences)
    return Erased(erasure.entries, len(erasure.runs))


def _others() -> Iterable[sa.Table]:
    """Return the other tables that have a row per resource."""
    tables = (ROWS, JOURNAL)
    return [t for t in ROWS.metadata.tables.values() if t not in tables and {"kind", "name"} <= set(t.c.keys())]


@dataclass(slots=True)
class _Erasure:
    """The resources to erase and the traces found so far. `texts` are values to remove from messages of their calls."""

    keys: frozenset[Key]
    addresses: set[str]
    texts: set[str] = field(default_factory=set)
    calls: set[tuple[str | None, str | None]] = field(default_factory=set)
    runs: set[str | None] = field(default_factory=set)
    entries: int = 0

    def learn(self, detail: Detail) -> None:
        values = [value for pair in detail.fields.values() for value in pair]
        values += [*detail.keywords_added, *detail.keywords_deleted, *detail.metadata_deleted]
        values += [text for pair in detail.metadata_set.items() for text in pair]
        flat = (each for value in values for each in (value if isinstance(value, tuple) else (value,)))
        self.texts.update(each for each in flat if isinstance(each, str) and len(each) >= SHORT)

    def rewritten(self, line: StoredLine) -> dict[str, object] | None:
        """Return the changed columns of a journal line, or `None` when it stays as it is."""
        if line.packed is None:
            return self._single(line)
        if line.verb in (SETTLED, FAILED):
            ends = packed_lines.ends(line.packed)
            own = [self._end(line, end) for end in ends]
            return {"packed": packed_lines.pack_ends(own)} if own != list(ends) else None
        if not any(name in line.packed for name in self._names()):
            return None
        return {"packed": packed_lines.pack([self._part(line, part) for part in packed_lines.parts(line.packed)])}

    def _names(self) -> list[bytes]:
        """Return the names as bytes in the two forms found in packed lines: plain, and escaped as in JSON."""
        return [form for key in self.keys for form in (key.name.encode(), orjson.dumps(key.name)[1:-1])]

    def _single(self, line: StoredLine) -> dict[str, object] | None:
        if f"{line.kind}/{line.name}" in self.addresses:
            self.entries += 1
            self.runs.add(line.run)
            self.learn(read(line.detail))
            return {"name": ERASED, "file": None, "line": None, "detail": None, "entry": None}
        detail = self._without_categories(line.detail)
        return {"detail": detail} if detail != line.detail else None

    def _part(self, line: StoredLine, part: CallLines) -> CallLines:
        addresses, lines = [], []
        for address, each in zip(part.keys, part.lines, strict=True):
            if address in self.addresses:
                self.entries += 1
                self.runs.add(line.run)
                self.calls.add((line.run, part.call))
                self.learn(each.read())
                addresses.append(f"{address.partition('/')[0]}/{ERASED}")
                lines.append(JournalLine(None, None, None))
            else:
                addresses.append(address)
                detail, body = self._without_categories(each.detail), self._without_categories(each.body)
                lines.append(JournalLine(each.previous, each.file, each.line, detail, body, each.status))
        return CallLines(part.call, part.operation, addresses, lines)

    def _end(self, line: StoredLine, end: CallEnd) -> CallEnd:
        """Return an end without the names. A message that concerns only erased resources is dropped."""
        addresses = [f"{k.partition('/')[0]}/{ERASED}" if k in self.addresses else k for k in end.keys]
        if not end.message:
            return CallEnd(end.call, addresses)
        is_own = bool(end.keys) and self.addresses.issuperset(end.keys)
        texts = self.texts if (line.run, end.call) in self.calls else ()
        return CallEnd(end.call, addresses, ERASED if is_own else self.without_names(end.message, texts))

    def without_names(self, sentence: str, texts: Iterable[str] = ()) -> str:
        """Return a sentence with all names, and all `texts`, replaced by `(erased)`."""
        words = sorted({*(key.name for key in self.keys), *texts}, key=len, reverse=True)
        return re.sub("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words), ERASED, sentence)

    def _without_categories(self, text: str | None) -> str | None:
        """Return another resource's differences or body (JSON) without the names of erased categories."""
        names = {key.name for key in self.keys if key.kind is Kind.CATEGORY}
        if text is None or not any(orjson.dumps(name).decode() in text for name in names):
            return text
        content = from_json(text)
        value = content.get("fields", {}).get("category")
        if isinstance(value, list):
            content["fields"]["category"] = [ERASED if each in names else each for each in value]
        elif value in names:
            content["fields"]["category"] = ERASED
        return to_json(content)


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
    for sentence in connection.execute(sa.select(column).distinct()).scalars().all():
        if (without := erasure.without_names(sentence, erasure.texts)) != sentence:
            connection.execute(sa.update(column.table).where(column == sentence).values({column: without}))


def _erase_reasons(connection: sa.Connection, erasure: _Erasure) -> None:
    """Remove erased names from the reasons of refused runs."""
    query = sa.select(RUNS.c.id, RUNS.c.counts).where(RUNS.c.counts.contains('"reason"'))
    for run, text in connection.execute(query).all():
        about = from_json(text)
        reason = erasure.without_names(about["reason"], erasure.texts)
        if reason != about["reason"]:
            connection.execute(
                sa.update(RUNS).where(RUNS.c.id == run).values(counts=to_json({**about, "reason": reason}))
            )
