"""Rows and sections, from which every rendering of a plan for people is made; and folding many rows into few. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from syncengine.render.change_details import ChangeDetail, Details, Span, SpanMark
from syncengine.render.escape import file_name
from syncengine.render.style import Tone
from syncengine.render.words import FEW, count_of, number, place
from syncengine.resource import Source

SAME = FEW + 1
"""The number of rows with equal details from which on they are one."""

MANY = 20
"""The number of rows above which a section is folded."""

MOST = 200
"""Rows of a section, at most."""


class Fold(IntEnum):
    """The amount of folding: none; equal details; and long lists too."""

    NOTHING = 0
    SAME = 1
    LONG = 2


class Member(NamedTuple):
    """A resource that a row speaks of; its name is safe to show."""

    name: str
    source: Source | None


class SectionRow(Struct, frozen=True, gc=False):
    """One line of a section: one resource, or several under a `label` with their number and kind.

    `theme` is a phrase after a count, by which rows are folded when there are many; without one it is the file.
    `differing`: the members' own details are not shown, at most one as an example.
    """

    symbol: str
    members: tuple[Member, ...]
    details: Details = ()
    label: str = ""
    theme: str = ""
    depth: int = 0
    differing: bool = False

    @property
    def subject(self) -> str:
        return self.label or self.members[0].name

    @property
    def names(self) -> list[str]:
        return [member.name for member in self.members]

    @property
    def place(self) -> str:
        """The place of a single resource; the file, or how many files, of several."""
        if len(self.members) == 1:
            return place(self.members[0].source)
        files = {member.source.file for member in self.members if member.source}
        return file_name(files.pop()) if len(files) == 1 else count_of(len(files), "file") if files else ""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, its meaning in plain words, and its rows."""

    title: str
    tone: Tone
    says: tuple[str, ...]
    rows: tuple[SectionRow, ...]


def folded(rows: Sequence[SectionRow], noun: str, fold: Fold, *, same: bool) -> tuple[SectionRow, ...]:
    """Fewer rows for the same resources, in the order of their first; `same` details may make one row."""
    if same and fold >= Fold.SAME:
        rows = _together(
            rows, lambda row: row.details, lambda group: replace(_joined(group, noun), details=group[0].details)
        )
    if fold >= Fold.LONG and len(rows) > MANY:
        rows = _capped(_together(rows, _theme, lambda group: _themed(group, noun)), noun)
    return tuple(rows)


def _together(
    rows: Iterable[SectionRow], key: Callable[[SectionRow], object], join: Callable[[list[SectionRow]], SectionRow]
) -> list[SectionRow]:
    groups: dict[object, list[SectionRow]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return [row for group in groups.values() for row in ([join(group)] if len(group) >= SAME else group)]


def _theme(row: SectionRow) -> tuple[str, str, str]:
    """The theme of a row: folded rows keep to themselves; those without a theme go by their file."""
    source = row.members[0].source
    return row.label, row.theme, source.file if source and not row.theme else ""


def _themed(group: list[SectionRow], noun: str) -> SectionRow:
    """Rows with different details, described by their theme, with the first as an example."""
    row = replace(_joined(group, noun, f" {group[0].theme}".rstrip()), differing=True)
    return replace(row, details=(_example(group[0]),)) if group[0].details else row


def _example(row: SectionRow) -> ChangeDetail:
    return ChangeDetail("", (Span(f"e.g. {row.subject}: {'; '.join(map(str, row.details))}", SpanMark.REMARK),))


def _joined(group: list[SectionRow], noun: str, phrase: str = "") -> SectionRow:
    members = tuple(member for row in group for member in row.members)
    return SectionRow(group[0].symbol, members, label=f"{count_of(len(members), noun)}{phrase}", depth=group[0].depth)


def _capped(rows: list[SectionRow], noun: str) -> list[SectionRow]:
    if len(rows) <= MOST:
        return rows
    rest = _joined(rows[MOST:], noun)
    label = f"{number(len(rest.members))} more {count_of(2, noun).removeprefix('2 ')}"
    return [*rows[:MOST], replace(rest, label=label, differing=True)]
