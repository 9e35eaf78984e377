"""Find today's templates of recorded rows. Pure.

A row records the line that its template had when the row was last written, and lines move. So the template of a row is
found through its neighbours: rows with the same line from the same run were made by one template, and those that are
still declared show where that template is now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from syncengine.resource import Key, Recorded, Resource, Source


class Template(NamedTuple):
    """A template: its manifest, its line there (0 for a whole text template), and the name of its source."""

    file: str
    line: int
    data: str


class Origins(NamedTuple):
    """The templates of each row, several if uncertain. `orphans` are rows that no template of today made."""

    by: Mapping[Key, frozenset[Template]]
    orphans: frozenset[Key]


TEXT_TEMPLATE = ".j2"


def template_of(source: Source | None) -> Template | None:
    """Return the template at a source, or `None` in a plain manifest. A text template may be its own data."""
    if source is None:
        return None
    if source.data:
        return Template(source.file, source.line, source.data.file)
    return Template(source.file, 0, source.file) if source.file.lower().endswith(TEXT_TEMPLATE) else None


def origins(rows: Iterable[Recorded], desired: Mapping[Key, Resource]) -> Origins:
    """Return the origins of all rows that templates made."""
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
    """The current templates of the rows recorded at a line, by run and over all runs."""

    def __init__(self) -> None:
        self._in_run: dict[tuple[str | None, Template], set[Template]] = defaultdict(set)
        self._ever: dict[Template, set[Template]] = defaultdict(set)
        self._lines: dict[tuple[str | None, Template], set[Template]] = defaultdict(set)

    def meet(self, run: str | None, was: Template, now: Template) -> None:
        self._in_run[run, was].add(now)
        self._ever[was].add(now)
        self._lines[run, now].add(was)

    def of(self, run: str | None, was: Template) -> frozenset[Template]:
        """Return today's templates for a recorded template, empty if none is left.

        A template that the same run recorded at another line was not at this line, whatever other runs recorded there.
        """
        near = self._in_run.get((run, was)) or {
            now for now in self._ever.get(was, ()) if not self._lines.get((run, now))
        }
        return frozenset(near)
