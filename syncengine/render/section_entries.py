"""The resources of a section by number, and their changes: one by one, and in columns. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from syncengine.render.value_shapes import Aspect
from syncengine.resource import Value

Aspects = tuple[Aspect, ...]

Label = tuple[str, str]
"""The label and the note of an aspect."""

Column = Sequence[Value | None]


class AspectTable(NamedTuple):
    """The numbers of the entries whose aspects have the same labels, and a column of values for each label."""

    labels: tuple[Label, ...]
    numbers: list[int]
    before: list[Column]
    after: list[Column]

    def aspects(self, position: int) -> Aspects:
        """Return the aspects of the entry at `position` in the table."""
        columns = zip(self.labels, self.before, self.after, strict=True)
        return tuple([Aspect(label, old[position], new[position], note) for (label, note), old, new in columns])


class SectionEntries(Protocol):
    """All entries of a section. Their aspects may be computed anew on each call."""

    @property
    def names(self) -> Sequence[str]: ...

    def aspects(self, number: int) -> Aspects: ...

    def tables(self) -> Sequence[AspectTable]:
        """Return all aspects as tables; each entry is in exactly one table."""


class ListedEntries(NamedTuple):
    """Entries whose aspects are stored in a list."""

    names: Sequence[str]
    changes: Sequence[Aspects]

    def aspects(self, number: int) -> Aspects:
        return self.changes[number]

    def tables(self) -> list[AspectTable]:
        return aspect_tables(self.changes)


class _Rows(NamedTuple):
    """The values of entries with the same labels, entry by entry."""

    numbers: list[int]
    before: list[Column]
    after: list[Column]


def aspect_tables(changes: Iterable[Aspects]) -> list[AspectTable]:
    """Return the aspects of all entries in columns, one table for each set of labels."""
    found: dict[tuple[Label, ...], _Rows] = defaultdict(lambda: _Rows([], [], []))
    for number, aspects in enumerate(changes):
        labels, before, after, notes = zip(*aspects, strict=True) if aspects else ((), (), (), ())
        rows = found[tuple(zip(labels, notes, strict=True))]
        rows.numbers.append(number)
        rows.before.append(before)
        rows.after.append(after)
    return [
        AspectTable(labels, numbers, list(zip(*before, strict=True)), list(zip(*after, strict=True)))
        for labels, (numbers, before, after) in found.items()
    ]
