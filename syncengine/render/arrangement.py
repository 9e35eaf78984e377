"""Sort the changed resources of a section into odd ones, single ones and groups of similar changes. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from syncengine.render.change_aspects import NAME
from syncengine.render.rarity import UnrankedGroup, rarest_first
from syncengine.render.section_entries import Aspects, AspectTable, Column, Label, SectionEntries
from syncengine.render.value_shapes import ALIKE, ValueColumn, ValueShape, shapes_of

SAME = 6
"""The smallest number of resources with the same shapes that are folded into one row."""

MANY = 20
"""The number of rows that people read one by one."""

RANKED = 20_000
"""The largest number of entries that are ordered by rarity; longer lists are not read to their end."""

RARE_PER_CENT = 1
"""The percentage of a section below which changes of one shape are odd."""


class ShapedAspect(NamedTuple):
    """The change of one aspect. `shape` is `None` when too few other entries changed in the same way."""

    label: str
    note: str
    shape: ValueShape | None


Combination = tuple[ShapedAspect, ...]


class AlikeGroup(NamedTuple):
    """The numbers of the entries with the same shapes; `positions` are their places in the table."""

    shapes: Combination
    members: Sequence[int]
    table: AspectTable
    positions: Sequence[int]

    @property
    def is_shaped(self) -> bool:
        """Whether one row can describe all changes of the group."""
        return all(each.shape for each in self.shapes)

    @property
    def parts(self) -> Iterator[object]:
        """The shaped aspects of the group, and then the tuple of their labels."""
        yield from self.shapes
        yield tuple(each.label for each in self.shapes)

    @property
    def example(self) -> Aspects:
        """The aspects of the first member."""
        return self.table.aspects(self.positions[0])

    def before(self, place: int) -> Column:
        """Return the old values of the aspect at `place`."""
        return self._own(self.table.before[place])

    def after(self, place: int) -> Column:
        return self._own(self.table.after[place])

    def _own(self, column: Column) -> Column:
        if len(self.positions) == len(column):
            return column
        return [column[position] for position in self.positions]

    def unranked(self, precedence: int) -> UnrankedGroup:
        """Return the entries with only those of their values that have no shape."""
        places = [place for place, each in enumerate(self.shapes) if each.shape is None]
        columns = [(self.shapes[place].label, self.before(place), self.after(place)) for place in places]
        return UnrankedGroup(self.members, tuple(each.label for each in self.shapes), columns, precedence)


class Arrangement(NamedTuple):
    """The entries of a section by number. Each odd or single entry becomes a row, and so does each group."""

    odd: Sequence[int]
    singles: Sequence[int]
    odd_groups: list[AlikeGroup]
    groups: list[AlikeGroup]


def arranged(entries: SectionEntries, *, folding: bool) -> Arrangement:
    """Return the arrangement of all entries; without `folding` it has no groups."""
    alike = _alike(entries)
    odd = _odd(alike)
    folded = [folding and len(group.members) >= SAME and group.is_shaped for group in alike]
    parted = list(zip(alike, odd, folded, strict=True))
    return Arrangement(
        _by_rarity([group for group, is_odd, is_row in parted if is_odd and not is_row]),
        _by_rarity([group for group, is_odd, is_row in parted if not (is_odd or is_row)], by_size=False),
        sorted((group for group, is_odd, is_row in parted if is_odd and is_row), key=lambda group: len(group.members)),
        [group for group, is_odd, is_row in parted if is_row and not is_odd],
    )


def _odd(groups: Sequence[AlikeGroup]) -> list[bool]:
    """Return whether each group is odd: rare as a whole or, when most entries are in rare groups, rare in one part."""
    sizes = [len(group.members) for group in groups]
    total = sum(sizes)
    if max(sizes, default=0) >= ALIKE:
        shapeless = [not group.is_shaped for group in groups]
        few = _count(sizes, shapeless) * 2 < total
        odd = [is_rare(size, total) or (few and without) for size, without in zip(sizes, shapeless, strict=True)]
        if _count(sizes, odd) * 2 < total:
            return odd
    odd = _odd_in_one_thing(groups, total)
    return odd if total > SAME and _count(sizes, odd) * 2 < total else [False] * len(groups)


def _odd_in_one_thing(groups: Sequence[AlikeGroup], total: int) -> list[bool]:
    counts: Counter[object] = Counter()
    for group in groups:
        for part in group.parts:
            counts[part] += len(group.members)
    return [any(is_rare(counts[part], total) for part in group.parts) for group in groups]


def _count(sizes: Iterable[int], chosen: Iterable[bool]) -> int:
    return sum(size for size, is_chosen in zip(sizes, chosen, strict=True) if is_chosen)


def is_rare(count: int, among: int) -> bool:
    return count == 1 or count * 100 < among * RARE_PER_CENT


def _by_rarity(groups: Sequence[AlikeGroup], *, by_size: bool = True) -> Sequence[int]:
    """Return the entries of the groups, rarest first; very short and very long lists are not ranked."""
    precedences = [len(group.members) if by_size else 0 for group in groups]
    if MANY < sum(len(group.members) for group in groups) <= RANKED:
        return rarest_first([group.unranked(each) for group, each in zip(groups, precedences, strict=True)])
    numbers = [(each, number) for group, each in zip(groups, precedences, strict=True) for number in group.members]
    return [number for _, number in sorted(numbers)]


# --- alike ------------------------------------------------------------------------------------------------------------


def _alike(entries: SectionEntries) -> list[AlikeGroup]:
    """Return the entries grouped by the shapes of their changes, which are found by comparing all entries."""
    tables = entries.tables()
    shapes = {label: shapes_of(column) for label, column in _columns(entries.names, tables).items()}
    begins: Counter[Label] = Counter()
    groups: list[AlikeGroup] = []
    for table in tables:
        size = len(table.numbers)
        groups.extend(_parted(table, [shapes[label][begins[label] : begins[label] + size] for label in table.labels]))
        begins.update(dict.fromkeys(table.labels, size))
    return sorted(groups, key=lambda group: group.members[0])


def _columns(names: Sequence[str], tables: Sequence[AspectTable]) -> Mapping[Label, ValueColumn]:
    """Return the values of each label in one column, table after table."""
    columns: dict[Label, list[ValueColumn]] = defaultdict(list)
    for table in tables:
        own = [names[number] for number in table.numbers]
        for label, before, after in zip(table.labels, table.before, table.after, strict=True):
            # That a new name is the resource's own says nothing of the name before.
            columns[label].append(ValueColumn([""] * len(own) if label[0] == NAME else own, before, after))
    return {label: _joined(parts) for label, parts in columns.items()}


def _joined(parts: Sequence[ValueColumn]) -> ValueColumn:
    if len(parts) == 1:
        return parts[0]
    names, before, after = (list(chain.from_iterable(each)) for each in zip(*parts, strict=True))
    return ValueColumn(names, before, after)


def _parted(table: AspectTable, shapes: Sequence[list[ValueShape | None]]) -> Iterator[AlikeGroup]:
    """Yield the entries of a table grouped by their shapes. Columns with only one shape are skipped."""
    various = [column for column in shapes if column.count(column[0]) < len(column)]
    found: dict[tuple[ValueShape | None, ...], list[int]] = defaultdict(list)
    for position, each in enumerate(zip(*various, strict=True)):
        found[each].append(position)
    for positions in found.values() if various else (range(len(table.numbers)),):
        combination = tuple(
            [ShapedAspect(*label, column[positions[0]]) for label, column in zip(table.labels, shapes, strict=True)]
        )
        members = [table.numbers[position] for position in positions] if various else table.numbers
        yield AlikeGroup(combination, members, table, positions)
