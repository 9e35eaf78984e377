"""The last reading's resources of a block → today's resources of unchanged rows, without rendering them again; pure.

A row is identified by the digest of its values, and a block by the digest of everything else that it depends on. A row
with a diagnostic is rendered again, so that the diagnostic is reported again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from syncengine.document.digest import short_digest
from syncengine.manifest.reading import BlockRows, Reading
from syncengine.resource import Resource, Row
from syncengine.templating.values import Record

SIZE = 16
"""The number of bytes in a row's digest."""
UNKNOWN = bytes(SIZE)
"""The bytes that replace the digest of a row that must be rendered again."""


def row_digest(row: Record) -> bytes:
    """Return a digest of a row's values, names, order and types: `repr` shows everything that a template can see."""
    return short_digest(repr(row), SIZE)


class PreviousRows:
    """The resources of a block's rows in the last reading."""

    __slots__ = ("_places", "_resources")

    def __init__(self, resources: Sequence[Resource] = (), rows: BlockRows | None = None, first: int = 0) -> None:
        self._resources = resources
        self._places: dict[bytes, tuple[int, int]] = {}
        if rows is not None:
            for n, count in enumerate(rows.counts):
                self._places[rows.digests[n * SIZE : (n + 1) * SIZE]] = first, (first := first + count)
            self._places.pop(UNKNOWN, None)

    def resources(self, digest: bytes, row: Row) -> list[Resource] | None:
        """Return the resources of the row with this digest, moved to `row`, or `None` if the row is new."""
        place = self._places.get(digest)
        return None if place is None else [_moved(each, row) for each in self._resources[slice(*place)]]


def _moved(resource: Resource, row: Row) -> Resource:
    source = resource.source
    return resource if source.data == row else replace(resource, source=source._replace(data=row))


def formers(last: Reading) -> Mapping[str, PreviousRows]:
    """Return the last reading's rows by the digest of their block. A file's last resources are those of its blocks."""
    previous: dict[str, PreviousRows] = {}
    first = len(last.resources) - sum(sum(rows.counts) for rows in last.rows)
    for rows in last.rows:
        previous[rows.block] = PreviousRows(last.resources, rows, first)
        first += sum(rows.counts)
    return previous
