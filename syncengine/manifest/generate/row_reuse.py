"""Resources of a block's rows from the last reading → those of the same rows today, without rendering them again; pure.

A row is known by the digest of its values, and a block by the digest of all else that it depends on. A row with a
diagnostic is rendered again, so that the diagnostic is reported again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from syncengine.document.digest import short_digest
from syncengine.manifest.reading import BlockRows, Reading
from syncengine.resource import Resource, Row
from syncengine.templating.values import Record

SIZE = 16
"""Bytes of a row's digest."""
UNKNOWN = bytes(SIZE)
"""Instead of the digest of a row that must be rendered again."""


def row_digest(row: Record) -> bytes:
    """The digest of its values with their names, order and types: `repr` shows all that a template can see."""
    return short_digest(repr(row), SIZE)


class PreviousRows:
    """The resources of a block's rows as they were."""

    __slots__ = ("_places", "_resources")

    def __init__(self, resources: Sequence[Resource] = (), rows: BlockRows | None = None, first: int = 0) -> None:
        self._resources = resources
        self._places: dict[bytes, tuple[int, int]] = {}
        if rows is not None:
            for n, count in enumerate(rows.counts):
                self._places[rows.digests[n * SIZE : (n + 1) * SIZE]] = first, (first := first + count)
            self._places.pop(UNKNOWN, None)

    def resources(self, digest: bytes, row: Row) -> list[Resource] | None:
        """The resources of a row with these values, moved to `row`; None if they are not known."""
        place = self._places.get(digest)
        return None if place is None else [_moved(each, row) for each in self._resources[slice(*place)]]


def _moved(resource: Resource, row: Row) -> Resource:
    source = resource.source
    return resource if source.data == row else replace(resource, source=source._replace(data=row))


def formers(last: Reading) -> Mapping[str, PreviousRows]:
    """The last reading's rows by the digest of their block; resources of blocks are the last of a file."""
    previous: dict[str, PreviousRows] = {}
    first = len(last.resources) - sum(sum(rows.counts) for rows in last.rows)
    for rows in last.rows:
        previous[rows.block] = PreviousRows(last.resources, rows, first)
        first += sum(rows.counts)
    return previous
