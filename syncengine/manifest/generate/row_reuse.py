"""What the rows of a block came to before → what the same rows come to now, without rendering them again; pure.

A row is known by the digest of its values, and a block by the digest of all else that it depends on. A row that
something was said about is rendered again, so that it is said again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from syncengine.document.digest import short_digest
from syncengine.manifest.resources import Entry
from syncengine.resource import Row, Source
from syncengine.templating.values import Record

SIZE = 16
"""Bytes of a row's digest."""
UNKNOWN = bytes(SIZE)
"""Instead of the digest of a row that must be rendered again."""


class BlockRows(Struct, frozen=True, gc=False, array_like=True):
    """The rows of a block: their digests, and how many entries each came to."""

    block: str
    digests: bytes
    counts: tuple[int, ...]


def row_digest(row: Record) -> bytes:
    """Of its values with their names, order and types: `repr` tells all that a template could."""
    return short_digest(repr(row), SIZE)


class Former:
    """The entries of a block's rows as they were."""

    __slots__ = ("_entries", "_places")

    def __init__(self, entries: Sequence[Entry] = (), rows: BlockRows | None = None, first: int = 0) -> None:
        self._entries = entries
        self._places: dict[bytes, tuple[int, int]] = {}
        if rows is not None:
            for n, count in enumerate(rows.counts):
                self._places[rows.digests[n * SIZE : (n + 1) * SIZE]] = first, (first := first + count)
            self._places.pop(UNKNOWN, None)

    def entries(self, digest: bytes, row: Row) -> list[Entry] | None:
        """What a row with these values came to, as if it had been `row`; None where that is not known."""
        place = self._places.get(digest)
        return None if place is None else [_moved(entry, row) for entry in self._entries[slice(*place)]]


def _moved(entry: Entry, row: Row) -> Entry:
    source = entry.resource.source
    if source.data == row:
        return entry
    return replace(entry, resource=replace(entry.resource, source=Source(source.file, source.line, row)))


def formers(entries: Sequence[Entry], blocks: Sequence[BlockRows]) -> Mapping[str, Former]:
    """By the digest of their block; what blocks come to are the last entries of a file."""
    found: dict[str, Former] = {}
    first = len(entries) - sum(sum(rows.counts) for rows in blocks)
    for rows in blocks:
        found[rows.block] = Former(entries, rows, first)
        first += sum(rows.counts)
    return found
