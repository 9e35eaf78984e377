"""Rows and sections, from which every rendering of a plan for people is made, and their folding. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple, overload

from msgspec import Struct

from syncengine.render.arrangement import MANY, AlikeGroup, arranged
from syncengine.render.change_details import ALL, BRIEF, WIDE, Details, Room
from syncengine.render.escape import file_name
from syncengine.render.section_entries import SectionEntries
from syncengine.render.shape_details import example_of, group_details
from syncengine.render.style import Tone
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


class LazyMembers(Sequence[Member]):
    """The resources of a row, each made when it is looked at: a row may count a hundred thousand."""

    def __init__(self, make: RowMaker, numbers: Sequence[int]) -> None:
        self._member, self._source, self._numbers = make.member, make.source, numbers

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


@dataclass(frozen=True, slots=True)
class Folding:
    """The rules by which the rows of a section are folded.

    Up to `least` rows, none is folded; at most `most` rows are shown. `rank` overrides the rank of all rows. `unlike`
    is added to a count of hidden rows. `fresh` resources are new and have no old values; `lines` says that one line can
    stand for each. `total`, if set, makes the details of a group from the numbers of its entries, and `loses` the
    details of the first one for an example.
    """

    fold: Fold
    noun: str
    least: int = 0
    rank: Rank | None = None
    unlike: str = ""
    fresh: bool = False
    lines: bool = False
    total: Callable[[Sequence[int]], Details] | None = None
    loses: Callable[[int], Details] | None = None
    most: int = MOST

    @property
    def more(self) -> str:
        """The words after the number of rows that are only counted."""
        return f"more {plural(self.noun)}{self.unlike}"


class FoldedRows(NamedTuple):
    """The odd rows of a section, the number of their resources, and all other rows."""

    odd: tuple[SectionRow, ...]
    odd_count: int
    rest: tuple[SectionRow, ...]


class RowMaker(NamedTuple):
    """Makes the rows of a section from the numbers of its entries.

    `details` takes an entry's number, the room, and whether to include every field. `below` makes the rows of what goes
    along with entries, which follow the row of these entries, however that is folded.
    """

    symbol: str
    member: Callable[[int], Member]
    source: Callable[[int], Source | None]
    details: Callable[[int, Room, bool], Details]
    depth: int = 0
    below: Callable[[Sequence[int], Fold], tuple[SectionRow, ...]] = lambda numbers, fold: ()

    def row(self, number: int, room: Room, whole: bool, rank: Rank, *, is_line: bool = False) -> SectionRow:
        details = self.details(number, room, whole)
        abridged = room is not ALL and not _says(details) >= _says(self.details(number, ALL, whole))
        return SectionRow(
            self.symbol,
            (self.member(number),),
            details,
            depth=self.depth,
            abridged=abridged,
            rank=rank,
            is_line=is_line,
        )


def _says(details: Details) -> set[str]:
    return {str(detail) for detail in details}


def folded(entries: SectionEntries, make: RowMaker, how: Folding) -> FoldedRows:
    """Return the rows of all entries: odd ones, then groups of similar entries, then single ones."""
    is_folded = how.fold is not Fold.NOTHING and len(entries.names) > how.least
    found = arranged(entries, folding=is_folded)
    # Where no row stands for many, people read all of them, and an odd one needs no more room than the others.
    alone = len(found.singles) + (0 if is_folded else len(found.odd))
    fold = _Rows(entries, make, how, lines=how.fold is Fold.LINES and how.lines and alone > 1, is_folded=is_folded)
    odd = (
        *fold.singles(found.odd, is_odd=True),
        *fold.groups(found.odd_groups, _or(how.rank, Rank.ODD)),
    )
    count = len(found.odd) + sum(len(group.members) for group in found.odd_groups)
    budget = max(MANY, how.most - len(odd))
    groups = fold.groups(found.groups, _or(how.rank, Rank.MASS))
    return FoldedRows(odd, count, (*groups, *fold.singles(found.singles, is_odd=False, budget=budget)))


def _or(rank: Rank | None, other: Rank) -> Rank:
    return other if rank is None else rank


@dataclass(frozen=True, slots=True)
class _Rows:
    entries: SectionEntries
    make: RowMaker
    how: Folding
    lines: bool
    is_folded: bool

    def singles(self, numbers: Sequence[int], *, is_odd: bool, budget: int = 0) -> tuple[SectionRow, ...]:
        """Return a row for each entry, up to the limit; one last row counts the others."""
        rank, budget = _or(self.how.rank, Rank.ODD if is_odd else Rank.UNLIKE), budget or self.how.most
        room, whole = ROOMS[self.how.fold]
        is_line = self.lines and not (is_odd and self.is_folded)
        if is_line:
            room = ALL
        elif is_odd and room is BRIEF:
            room, whole = WIDE, True
        elif is_odd and self.is_folded:  # a flag that is false may be what is odd about it
            whole = True
        most = len(numbers) if self.how.fold is Fold.NOTHING or len(numbers) <= budget + 1 else budget
        rows = [
            row
            for number in numbers[:most]
            for row in (
                self.make.row(number, room, whole, rank, is_line=is_line),
                *self.make.below((number,), self.how.fold),
            )
        ]
        return (*rows, *self._rest(numbers[most:], rank)) if numbers[most:] else tuple(rows)

    def groups(self, groups: Sequence[AlikeGroup], rank: Rank) -> tuple[SectionRow, ...]:
        """Return the rows of groups, up to the limit, and one row that counts the others."""
        most = self.how.most
        if len(groups) <= most + 1 or self.how.fold is Fold.BEHIND:
            most = len(groups)
        rows = tuple(row for group in groups[:most] for row in self._group(group, rank))
        if not groups[most:]:
            return rows
        numbers = [number for group in groups[most:] for number in group.members]
        label = f"{number(len(numbers))} more {plural(self.how.noun)} in {number(len(groups) - most)} groups"
        return (*rows, *self._together(numbers, label, (), "", rank, abridged=True))

    def _group(self, group: AlikeGroup, rank: Rank) -> tuple[SectionRow, ...]:
        """Return one row for all changes with the same shapes, with an example when their values differ."""
        how, first, make_details = self.how, group.members[0], self.make.details
        details = how.total(group.members) if how.total else group_details(group, fresh=how.fresh)
        if how.total:
            lost = "; ".join(map(str, how.loses(first))) if how.loses else ""
            example = f"e.g. {self.make.member(first).name}: {lost}" if lost else ""
        else:
            example = example_of(self.entries.names[first], group, fresh=how.fresh)
        count = number(len(group.members))
        label = f"{count} ×" if details else count_of(len(group.members), how.noun)
        # A total names the losses of one resource at most, and a shape describes all of them.
        is_total = how.total is not None and any(make_details(number, ALL, True) for number in group.members)
        return self._together(group.members, label, details, example, rank, abridged=is_total or bool(example))

    def _rest(self, numbers: Sequence[int], rank: Rank) -> tuple[SectionRow, ...]:
        label = f"{number(len(numbers))} {self.how.more}"
        return self._together(numbers, label, (), "", rank, abridged=True)

    def _together(
        self, numbers: Sequence[int], label: str, details: Details, example: str, rank: Rank, *, abridged: bool
    ) -> tuple[SectionRow, ...]:
        """Return one row for several entries, and the rows below it; with `BEHIND`, all these stand behind the row."""
        make, behind, below = self.make, tuple[SectionRow, ...](), tuple[SectionRow, ...]()
        if self.how.fold is Fold.BEHIND:
            behind = tuple(
                row
                for number in numbers
                for row in (make.row(number, ALL, True, rank), *make.below((number,), Fold.NOTHING))
            )
        else:
            below = make.below(numbers, self.how.fold)
        members = LazyMembers(make, numbers)
        abridged = abridged and not behind
        return (SectionRow(make.symbol, members, details, label, example, make.depth, abridged, rank, behind), *below)


ROOMS = {
    Fold.NOTHING: (ALL, True),
    Fold.LONG: (BRIEF, False),
    Fold.LINES: (BRIEF, False),
    Fold.BEHIND: (ALL, False),
}
"""For each folding, the room of a single row's details, and whether they include every field."""
