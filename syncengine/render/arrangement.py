"""Resources of a section with their changes → those that stand alone, the odd ones first, and groups; pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from syncengine.render.unusual_letters import unusual_letters
from syncengine.render.value_shapes import ALIKE, Aspect, ValueColumn, ValueShape, middle, shapes_of
from syncengine.resource import Value

SAME = 6
"""The number of resources with the same shapes from which on they are one row."""

MANY = 20
"""Rows that people read one by one."""

RANKED = 20_000
"""Entries up to which all are compared with each other roughly; of more, nobody reads enough for it to matter."""

RARE_PER_CENT = 1
"""Changes of a shape that fewer of a section have are odd."""


class SectionEntry(Protocol):
    """A resource of a section, and its changes; they may be made each time they are looked at."""

    @property
    def name(self) -> str: ...

    @property
    def aspects(self) -> tuple[Aspect, ...]: ...


class Entry(NamedTuple):
    """An entry that holds its changes."""

    name: str
    aspects: tuple[Aspect, ...]


class ShapedAspect(NamedTuple):
    """The change of one thing; no shape: few others have it, or none."""

    label: str
    note: str
    shape: ValueShape | None


Combination = tuple[ShapedAspect, ...]


class AlikeGroup(NamedTuple):
    """The entries, by their number, that have the same shapes."""

    shapes: Combination
    members: list[int]


class Arrangement(NamedTuple):
    """Entries by number. `odd` are unlike the rest; `singles` stand alone too; each of the groups is one row."""

    odd: list[int]
    singles: list[int]
    odd_groups: list[AlikeGroup]
    groups: list[AlikeGroup]


def arranged(entries: Sequence[SectionEntry], *, folding: bool) -> Arrangement:
    """All entries; without `folding` those of groups stand alone as well."""
    combinations = _combinations(entries)
    members: dict[Combination, list[int]] = defaultdict(list)
    for number, combination in enumerate(combinations):
        members[combination].append(number)
    odd = _odd(combinations, members)
    groups = [
        AlikeGroup(combination, numbers)
        for combination, numbers in members.items()
        if folding and len(numbers) >= SAME and _is_shaped(combination)
    ]
    folded = {number for group in groups for number in group.members}
    singles = [number for number in range(len(entries)) if number not in folded]
    return Arrangement(
        _by_rarity([n for n in singles if n in odd], combinations, entries, members),
        _by_rarity([n for n in singles if n not in odd], combinations, entries, {}),
        sorted((group for group in groups if group.members[0] in odd), key=lambda group: len(group.members)),
        [group for group in groups if group.members[0] not in odd],
    )


def _odd(combinations: Sequence[Combination], members: Mapping[Combination, Sequence[int]]) -> set[int]:
    """Entries with shapes that few others have; of a section where that is true of most, with one such shape."""
    total = len(combinations)
    if max(map(len, members.values()), default=0) >= ALIKE:
        rare = [numbers for each, numbers in members.items() if is_rare(len(numbers), total)]
        shapeless = [numbers for each, numbers in members.items() if not _is_shaped(each)]
        odd = {number for numbers in rare for number in numbers}
        if sum(map(len, shapeless)) * 2 < total:
            odd |= {number for numbers in shapeless for number in numbers}
        if len(odd) * 2 < total:
            return odd
    return _odd_in_one_thing(combinations, members) if total > SAME else set()


def _odd_in_one_thing(combinations: Sequence[Combination], members: Mapping[Combination, Sequence[int]]) -> set[int]:
    counts: Counter[object] = Counter()
    for combination, numbers in members.items():
        for part in _parts(combination):
            counts[part] += len(numbers)
    total = len(combinations)
    rare = [each for each in members if any(is_rare(counts[part], total) for part in _parts(each))]
    odd = {number for each in rare for number in members[each]}
    return odd if len(odd) * 2 < total else set()


def _parts(combination: Combination) -> Iterator[object]:
    """The changes, thing by thing, and the things that have them."""
    yield from combination
    yield tuple(each.label for each in combination)


def is_rare(count: int, among: int) -> bool:
    return count == 1 or count * 100 < among * RARE_PER_CENT


def _is_shaped(combination: Combination) -> bool:
    return all(each.shape for each in combination)


Label = tuple[str, str]
"""The label and the note of an aspect."""


class _Block(NamedTuple):
    """The entries, by their number, that have the same labels, and their values."""

    numbers: list[int]
    before: list[tuple[Value | None, ...]]
    after: list[tuple[Value | None, ...]]


def _combinations(entries: Sequence[SectionEntry]) -> list[Combination]:
    """The shapes of each entry, in which equal things are looked for among all entries."""
    blocks = _blocks(entries)
    shaped = {label: iter(_shaped(label, column)) for label, column in _columns(entries, blocks).items()}
    combinations: list[Combination] = [()] * len(entries)
    for labels, block in blocks.items():
        parts = zip(*[islice(shaped[label], len(block.numbers)) for label in labels], strict=True)
        for number, part in zip(block.numbers, parts, strict=True):
            combinations[number] = part
    return combinations


def _blocks(entries: Sequence[SectionEntry]) -> Mapping[tuple[Label, ...], _Block]:
    """The entries that have aspects, by their labels."""
    blocks: dict[tuple[tuple[str, ...], tuple[str, ...]], _Block] = defaultdict(lambda: _Block([], [], []))
    for number, entry in enumerate(entries):
        if aspects := entry.aspects:
            labels, before, after, notes = zip(*aspects, strict=True)
            block = blocks[labels, notes]
            block.numbers.append(number)
            block.before.append(before)
            block.after.append(after)
    return {tuple(zip(*each, strict=True)): block for each, block in blocks.items()}


def _columns(
    entries: Sequence[SectionEntry], blocks: Mapping[tuple[Label, ...], _Block]
) -> Mapping[Label, ValueColumn]:
    """The values of each label, block by block."""
    columns: dict[Label, ValueColumn] = defaultdict(lambda: ValueColumn([], [], []))
    for labels, block in blocks.items():
        names = [entries[number].name for number in block.numbers]
        values = zip(zip(*block.before, strict=True), zip(*block.after, strict=True), strict=True)
        for label, (before, after) in zip(labels, values, strict=True):
            columns[label].names.extend(names)
            columns[label].before.extend(before)
            columns[label].after.extend(after)
    return columns


def _shaped(label: Label, column: ValueColumn) -> list[ShapedAspect]:
    """Values of one label with their shapes, of equal ones the same object."""
    shapes = shapes_of(column)
    once = {shape: ShapedAspect(*label, shape) for shape in dict.fromkeys(shapes)}
    return [once[shape] for shape in shapes]


# --- the most unlike first --------------------------------------------------------------------------------------------

_DIGITS = re.compile(r"\d+")


def _by_rarity(
    numbers: list[int],
    combinations: Sequence[Combination],
    entries: Sequence[SectionEntry],
    members: Mapping[Combination, Sequence[int]],
) -> list[int]:
    """The entries that have the least in common with the others first; few stay in their order."""
    if not MANY < len(numbers) <= RANKED:
        return sorted(numbers, key=lambda n: (len(members.get(combinations[n], ())), n))
    outlines = {number: _outline(entries[number], combinations[number]) for number in numbers}
    commonness = _commonness(Counter(outlines.values()))
    return sorted(numbers, key=lambda n: (len(members.get(combinations[n], ())), commonness[outlines[n]], n))


TextOutline = tuple[str, str, str, int, tuple[str, ...]]
"""A value that has no shape, roughly: its label, before and after with their numbers aside, its size, odd letters."""

ChangeOutline = tuple[tuple[str, ...], tuple[TextOutline, ...]]
"""The labels of a change, and its values without a shape: the same for nearly all of a large section."""


def _outline(entry: SectionEntry, combination: Combination) -> ChangeOutline:
    shapeless = {each.label for each in combination if each.shape is None}
    texts = tuple([_text_outline(aspect) for aspect in entry.aspects if aspect.label in shapeless])
    return tuple([each.label for each in combination]), texts


def _text_outline(aspect: Aspect) -> TextOutline:
    old, new = ("", _text(aspect.after)) if aspect.before is None else _difference(aspect)
    masked = _DIGITS.sub("#", old) if old else ""
    return aspect.label, masked, _DIGITS.sub("#", new), len(new).bit_length(), unusual_letters(new)


def _commonness(outlines: Mapping[ChangeOutline, int]) -> dict[ChangeOutline, float]:
    """How common the features of each outline are among all changes, of which each outline has a number."""
    features = {outline: list(_features(outline)) for outline in outlines}
    counts: Counter[object] = Counter()
    for outline, number in outlines.items():
        for feature in features[outline]:
            counts[feature] += number
    return {each: round(sum(counts[one].bit_length() for one in own) / len(own), 1) for each, own in features.items()}


def _features(outline: ChangeOutline) -> Iterator[object]:
    """Features that other changes may share with this one, roughly: fields, first and last words, numbers aside."""
    labels, texts = outline
    yield labels
    for label, before, after, size, unusual in texts:
        words = after.split() or ("",)
        yield from ((label, 1, words[0]), (label, 2, words[-1]), (label, before, after), (label, size, unusual))


def _difference(aspect: Aspect) -> tuple[str, str]:
    if isinstance(aspect.before, str) and isinstance(aspect.after, str):
        return middle(aspect.before, aspect.after)
    return _text(aspect.before), _text(aspect.after)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "\n".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
