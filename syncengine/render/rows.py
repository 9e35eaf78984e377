"""Rows and sections, from which every rendering of a plan for people is made, and their folding. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple, overload

from msgspec import Struct

from syncengine.render.escape import file_name
from syncengine.render.fold import MANY, AlikeGroup, arranged, example_of, group_details
from syncengine.render.links import in_repository
from syncengine.render.style import Look, Tone
from syncengine.render.values import ALL, BRIEF, WIDE, Details, Room, Values
from syncengine.render.words import count_of, number, place, plural
from syncengine.resource import Source

MOST = 200
"""The largest number of rows of a section."""


class Fold(Enum):
    """The folding of rows: none; similar rows and long lists; or the same with each row kept behind its group.

    `LINES` folds as `LONG` does, and gives the rows of new resources all values, for a line of as many as fit.
    """

    NOTHING = "nothing"
    LONG = "long"
    LINES = "lines"
    BEHIND = "behind"


class Extent(NamedTuple):
    """The amount of a plan that is shown: its folding, and the largest number of rows of a section."""

    fold: Fold
    most: int = MOST


class Rank(IntEnum):
    """The order in which rows are printed when there is not room for all of them, the lowest rank first.

    `FIRST` is for the gate, and for headings and other lines around the rows.
    """

    FIRST = 0
    REMOVAL = 1
    ODD = 2
    MASS = 3
    WARNING = 4
    UNLIKE = 5


class Member(NamedTuple):
    """A resource of a row. Its name is safe to show; `kind` is for filters.

    When `is_gone` is set, no manifest declares the resource now, and `source` is its last place.
    """

    name: str
    source: Source | None
    kind: str = ""
    is_gone: bool = False

    def link(self, look: Look) -> str:
        """Return the URL of the resource's line at the repository's host; empty when there is none."""
        links = look.links.of_removed() if self.is_gone else look.links
        return links.line(in_repository(self.source.file, look.prefix), self.source.line) if self.source else ""


class LazyMembers(Sequence[Member]):
    """The resources of a row, each made when it is looked at: a row may count a hundred thousand."""

    def __init__(self, entries: SectionEntries, numbers: Sequence[int]) -> None:
        self._member, self._source, self._numbers = entries.member, entries.source, numbers

    def sources(self) -> Iterable[Source | None]:
        """Return the place of each resource."""
        return map(self._source, self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> Member: ...

    @overload
    def __getitem__(self, place: slice) -> list[Member]: ...

    def __getitem__(self, place: int | slice) -> Member | list[Member]:
        chosen = self._numbers[place]
        return self._member(chosen) if isinstance(chosen, int) else [self._member(number) for number in chosen]

    def __iter__(self) -> Iterator[Member]:
        return map(self._member, self._numbers)


class SectionRow(Struct, frozen=True, gc=False):
    """One line of a section: one resource, or several under a `label`, followed by `details`.

    `abridged` rows do not say all of their members. `rows` are those of the members, when kept behind the group.
    The details of a `line` are neither cut nor left out: a rendering shows as many as fit beside the name.
    """

    symbol: str
    members: Sequence[Member]
    details: Details = ()
    label: str = ""
    example: str = ""
    depth: int = 0
    abridged: bool = False
    rank: Rank = Rank.REMOVAL
    rows: tuple[SectionRow, ...] = ()
    is_line: bool = False

    @property
    def subject(self) -> str:
        return self.label or self.members[0].name

    @property
    def names(self) -> list[str]:
        return [member.name for member in self.members]

    @property
    def place(self) -> str:
        """Return the place of a single resource; for several resources, their file or the number of their files."""
        if len(self.members) == 1:
            return place(self.members[0].source)
        members = self.members
        sources = members.sources() if isinstance(members, LazyMembers) else (member.source for member in members)
        files = {source.file for source in sources if source}
        return file_name(files.pop()) if len(files) == 1 else count_of(len(files), "file") if files else ""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, sentences that explain it, and its rows. `more` are the words after a count of hidden resources."""

    title: str
    tone: Tone
    says: tuple[str, ...]
    rows: tuple[SectionRow, ...]
    more: str = "more"


class FoldedRows(NamedTuple):
    """The odd rows of a section, the number of their resources, and all other rows."""

    odd: tuple[SectionRow, ...]
    odd_count: int
    rest: tuple[SectionRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionEntries:
    """The resources of a section by number: what is compared and shown of each, and how their rows are folded.

    `values` are computed anew on each call, because a plan may have very many. `details` takes a number, the room, and
    whether to include every field. `below` makes the rows of what goes along with resources, which follow their row.
    Up to `least` rows, none is folded. `rank` overrides the rank of all rows; `unlike` is added to a count of hidden
    ones. `fresh` resources are new and have no old values; `lines` says that one line can stand for each. `total`, if
    set, makes the details of a group, and `loses` the details of its first resource for an example.
    """

    names: Sequence[str]
    values: Callable[[int], Values]
    symbol: str
    member: Callable[[int], Member]
    source: Callable[[int], Source | None]
    details: Callable[[int, Room, bool], Details]
    noun: str
    depth: int = 0
    below: Callable[[Sequence[int], Fold], tuple[SectionRow, ...]] = lambda numbers, fold: ()
    least: int = 0
    rank: Rank | None = None
    unlike: str = ""
    fresh: bool = False
    lines: bool = False
    total: Callable[[Sequence[int]], Details] | None = None
    loses: Callable[[int], Details] = lambda number: ()

    @property
    def more(self) -> str:
        """The words after the number of rows that are only counted."""
        return f"more {plural(self.noun)}{self.unlike}"

    def row(self, number: int, room: Room, whole: bool, rank: Rank, *, is_line: bool = False) -> SectionRow:
        details = self.details(number, room, whole)
        abridged = room is not ALL and not set(map(str, details)) >= set(map(str, self.details(number, ALL, whole)))
        members = (self.member(number),)
        return SectionRow(
            self.symbol, members, details, depth=self.depth, abridged=abridged, rank=rank, is_line=is_line
        )


def folded(entries: SectionEntries, extent: Extent) -> FoldedRows:
    """Return the rows of all entries: odd ones, then groups of similar entries, then single ones."""
    fold, count = extent.fold, len(entries.names)
    is_folded = fold is not Fold.NOTHING and count > entries.least
    found = arranged(entries.names, map(entries.values, range(count)), folding=is_folded)
    # Where no row stands for many, people read all of them, and an odd one needs no more room than the others.
    alone = len(found.singles) + (0 if is_folded else len(found.odd))
    rows = _FoldedSection(entries, extent, is_folded, fold is Fold.LINES and entries.lines and alone > 1)
    odd = (*rows.singles(found.odd, Rank.ODD, extent.most), *rows.groups(found.odd_groups, Rank.ODD))
    odd_count = len(found.odd) + sum(len(group.members) for group in found.odd_groups)
    groups = rows.groups(found.groups, Rank.MASS)
    return FoldedRows(
        odd, odd_count, (*groups, *rows.singles(found.singles, Rank.UNLIKE, max(MANY, extent.most - len(odd))))
    )


ROOMS = {
    Fold.NOTHING: (ALL, True),
    Fold.LONG: (BRIEF, False),
    Fold.LINES: (BRIEF, False),
    Fold.BEHIND: (ALL, False),
}
"""For each folding, the room of a single row's details, and whether they include every field."""


class _FoldedSection(NamedTuple):
    entries: SectionEntries
    extent: Extent
    is_folded: bool
    lines: bool

    def singles(self, numbers: Sequence[int], rank: Rank, budget: int) -> tuple[SectionRow, ...]:
        """Return a row for each entry, up to the budget; one last row counts the others."""
        entries, fold, is_odd = self.entries, self.extent.fold, rank is Rank.ODD
        rank = rank if entries.rank is None else entries.rank
        room, whole = ROOMS[fold]
        is_line = self.lines and not (is_odd and self.is_folded)
        if is_line:
            room = ALL
        elif is_odd and room is BRIEF:
            room, whole = WIDE, True
        elif is_odd and self.is_folded:  # a flag that is false may be what is odd about it
            whole = True
        most = len(numbers) if fold is Fold.NOTHING or len(numbers) <= budget + 1 else budget
        rows: list[SectionRow] = []
        for n in numbers[:most]:
            rows += (entries.row(n, room, whole, rank, is_line=is_line), *entries.below((n,), fold))
        if rest := numbers[most:]:
            rows += self._together(rest, f"{number(len(rest))} {entries.more}", (), "", rank, abridged=True)
        return tuple(rows)

    def groups(self, groups: Sequence[AlikeGroup], rank: Rank) -> tuple[SectionRow, ...]:
        """Return the rows of groups, up to the limit, and one row that counts the others."""
        entries, most = self.entries, self.extent.most
        rank = rank if entries.rank is None else entries.rank
        if len(groups) <= most + 1 or self.extent.fold is Fold.BEHIND:
            most = len(groups)
        rows = [row for group in groups[:most] for row in self._group(group, rank)]
        if more := groups[most:]:
            numbers = [n for group in more for n in group.members]
            label = f"{number(len(numbers))} more {plural(entries.noun)} in {number(len(more))} groups"
            rows += self._together(numbers, label, (), "", rank, abridged=True)
        return tuple(rows)

    def _group(self, group: AlikeGroup, rank: Rank) -> tuple[SectionRow, ...]:
        """Return one row for all changes to whose values the same was done, with an example when these differ."""
        entries, members = self.entries, group.members
        if entries.total:
            details, lost = entries.total(members), "; ".join(map(str, entries.loses(members[0])))
            example = f"e.g. {entries.member(members[0]).name}: {lost}" if lost else ""
            # A total names the losses of one resource at most, and an edit describes all of them.
            abridged = bool(example) or any(entries.details(n, ALL, True) for n in members)
        else:
            details = group_details(group, list(map(entries.values, members)), fresh=entries.fresh)
            first = members[0]
            example = example_of(entries.names[first], group, entries.values(first), fresh=entries.fresh)
            abridged = bool(example)
        label = f"{number(len(members))} ×" if details else count_of(len(members), entries.noun)
        return self._together(members, label, details, example, rank, abridged=abridged)

    def _together(
        self, numbers: Sequence[int], label: str, details: Details, example: str, rank: Rank, *, abridged: bool
    ) -> tuple[SectionRow, ...]:
        """Return one row for several entries, and the rows below it; with `BEHIND`, all these stand behind the row."""
        entries, behind, below = self.entries, list[SectionRow](), tuple[SectionRow, ...]()
        if self.extent.fold is Fold.BEHIND:
            for n in numbers:
                behind += (entries.row(n, ALL, True, rank), *entries.below((n,), Fold.NOTHING))
        else:
            below = entries.below(numbers, self.extent.fold)
        members = LazyMembers(entries, numbers)
        abridged = abridged and not behind
        row = SectionRow(entries.symbol, members, details, label, example, entries.depth, abridged, rank, tuple(behind))
        return (row, *below)
