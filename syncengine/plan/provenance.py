"""The templates that made each recorded row, as they are now; pure.

A row records the line of its template as it was when the row was written last, and lines move. So the template of a row
is found through its neighbours: rows with the same line from the same run were made by one template, and those of them
that are still declared show where that template is now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from syncengine.resource import Key, Recorded, Resource, Source


class Template(NamedTuple):
    """A template: its manifest, its line there (0: all of a text template), and the name of its source."""

    file: str
    line: int
    data: str


class Origins(NamedTuple):
    """The templates of each row; more than one where that is uncertain. `orphans` are by none of today's."""

    by: Mapping[Key, frozenset[Template]]
    orphans: frozenset[Key]


TEXT_TEMPLATE = ".j2"


def template_of(source: Source | None) -> Template | None:
    """The template of a place; None in a plain manifest. A text template is its own source where no row is known."""
    if source is None:
        return None
    if source.data:
        return Template(source.file, source.line, source.data.file)
    return Template(source.file, 0, source.file) if source.file.lower().endswith(TEXT_TEMPLATE) else None


def origins(rows: Iterable[Recorded], desired: Mapping[Key, Resource]) -> Origins:
    """Return the templates of the rows that templates made."""
    pairs = [(row, template) for row in rows if (template := template_of(row.source))]
    keys = (row.key for row, _ in pairs if row.key in desired)
    now = {key: maker for key in keys if (maker := template_of(desired[key].source))}
    neighbours = _Neighbours()
    for row, template in pairs:
        if row.key in now:
            neighbours.meet(row.run, template, now[row.key])
    by: dict[Key, frozenset[Template]] = {}
    orphans = set()
    for row, template in pairs:
        makers = frozenset({now[row.key]}) if row.key in now else neighbours.of(row.run, template)
        by[row.key] = makers or frozenset({template})
        if not makers:
            orphans.add(row.key)
    return Origins(by, frozenset(orphans))


class _Neighbours:
    """Current templates of the rows recorded at a line, by run and over all runs."""

    def __init__(self) -> None:
        self._in_run: dict[tuple[str | None, Template], set[Template]] = defaultdict(set)
        self._ever: dict[Template, set[Template]] = defaultdict(set)
        self._lines: dict[tuple[str | None, Template], set[Template]] = defaultdict(set)

    def meet(self, run: str | None, was: Template, now: Template) -> None:
        self._in_run[run, was].add(now)
        self._ever[was].add(now)
        self._lines[run, now].add(was)

    def of(self, run: str | None, was: Template) -> frozenset[Template]:
        """The templates of today for a recorded one; empty where none is left.

        A template at another line in the same run was not at this one, whatever other runs had there.
        """
        near = self._in_run.get((run, was)) or {
            now for now in self._ever.get(was, ()) if not self._lines.get((run, now))
        }
        return frozenset(near)
