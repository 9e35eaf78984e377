"""Find the data sources that have become empty, or lost too much, and the templates of rows. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from syncengine.document.diagnostics import Collector
from syncengine.errors import Diagnostic, Problems
from syncengine.manifest.desired import Desired
from syncengine.manifest.sources.records import SourceUse
from syncengine.plan.losses import is_ours
from syncengine.project.schema import Limit
from syncengine.resource import Key, Recorded, Source, Status

SHRINKS = Limit(percent=25)
"""The share of one source's rows, or of the resources made from it, that may be lost without an approval."""

MOST_USES = 3
"""The most uses of one source that a reason names."""

TEXT_TEMPLATE = ".j2"


class Template(NamedTuple):
    """The templates of one manifest that use one source, by its name. Lines move, so they tell nothing."""

    file: str
    data: str


def template_of(source: Source | None) -> Template | None:
    """Return the templates at a source, or `None` in a plain manifest. A text template may be its own data."""
    if source is None:
        return None
    if source.data:
        return Template(source.file, source.data.file)
    return Template(source.file, source.file) if source.file.lower().endswith(TEXT_TEMPLATE) else None


# --- empty sources


def refuse_emptied(desired: Desired, recorded: Mapping[Key, Recorded], had: Mapping[str, int]) -> None:
    """Raise `Problems` for sources that have become empty, which rarely means "delete everything".

    `had` has each source's rows at the last apply, by identity. An adopted or rebuilt state does not know them; there,
    the recorded resources that were made from the source decide.
    """
    emptied = [use for use in desired.sources if use.is_empty]
    if not emptied:
        return
    orphans = (row for row in recorded.values() if row.status is Status.ACTIVE and row.key not in desired.resources)
    made = Counter(template for row in orphans if (template := template_of(row.source)))
    # A manifest that is gone may have been renamed, so what it made counts for every use of its source.
    elsewhere: Counter[str] = Counter()
    for template, count in made.items():
        elsewhere[template.data] += 0 if template.file in desired.files else count
    problems: list[Diagnostic] = []
    for use in emptied:
        count = made[Template(use.file, use.name)] + made[Template(use.file, use.file)] + elsewhere[use.name]
        rows = had.get(use.identity)
        if count and rows != 0:  # one query of a database that never had rows may be empty beside others
            why = f"{count} resource{'s were' if count > 1 else ' was'} made from it before"
        elif rows:
            why = f"had {rows:,} row{'s' if rows > 1 else ''} at the last apply"
        else:
            continue
        message = f"{use.name} has no rows, but {why}; set `allowEmpty: true` if that is intended"
        Collector(use.file, problems).at("source-empty", use.line, use.column, message)
    if problems:
        raise Problems(problems)


# --- shrunken sources


class Shrunk(Struct, frozen=True, gc=False):
    """A source that lost `missing` of `total` rows, or resources made from it, with the `reason` to ask for approval.

    `files` are the manifests that use it, if its rows are counted and not the resources made from them.
    """

    source: str
    reason: str
    missing: int
    total: int
    files: tuple[str, ...] = ()


def shrunken(
    leaving: Collection[Key], recorded: Mapping[Key, Recorded], uses: Collection[SourceUse], had: Mapping[str, int]
) -> Iterator[Shrunk]:
    """Yield the sources that lost a large share of their rows or of the resources made from them.

    The rows (`had`, by identity) are those of the last apply. Of the resources made by one manifest from one source,
    `leaving` ones may leave with rows that are gone, or with rows that `when` leaves out, which the reason names.
    """
    found: dict[str, Shrunk] = {}
    departures = Counter(
        template for key in leaving if key in recorded and (template := template_of(recorded[key].source))
    )
    if departures:
        rows = (row for row in recorded.values() if is_ours(row) or row.key in leaving)
        made = Counter(template for row in rows if (template := template_of(row.source)))
        for template, count in sorted(departures.items()):
            if SHRINKS.is_exceeded(count, made[template]):
                where = f"{count} of {made[template]} resources made from it in {template.file} are removed"
                reason = f"{template.data}: {where} (limit {SHRINKS}){_left_out(template.data, uses)}"
                found.setdefault(template.data, Shrunk(template.data, reason, count, made[template]))
        for one in _emptied_blocks(leaving, recorded, uses):
            found.setdefault(one.source, one)
    for identity, use in {use.identity: use for use in uses}.items():
        before = had.get(identity, 0)
        if SHRINKS.is_exceeded(before - use.rows, before):
            reason = f"{use.name} shrank: {before - use.rows:,} of {before:,} rows are gone (limit {SHRINKS})"
            files = tuple(sorted({each.file for each in uses if each.identity == identity}))
            reason = found[use.name].reason if use.name in found else reason
            found[use.name] = Shrunk(use.name, reason, before - use.rows, before, files)
    yield from found.values()


def _emptied_blocks(
    leaving: Collection[Key], recorded: Mapping[Key, Recorded], uses: Collection[SourceUse]
) -> Iterator[Shrunk]:
    """Yield sources of which all that was made at one line leaves, while `when` leaves out every row of a block.

    A condition that is misspelt empties one block of several, which may be little of what the source made.
    """
    silent = {(use.file, use.name) for use in uses if use.rows and use.left_out == use.rows}
    rows = (row for row in recorded.values() if is_ours(row) or row.key in leaving)
    made: Counter[tuple[str, int, str]] = Counter()
    departures: Counter[tuple[str, int, str]] = Counter()
    for row in rows:
        if row.source is not None and row.source.data and (row.source.file, row.source.data.file) in silent:
            place = (row.source.file, row.source.line, row.source.data.file)
            made[place] += 1
            departures[place] += row.key in leaving
    for (file, line, data), count in sorted(departures.items()):
        if count == made[file, line, data] and SHRINKS.is_exceeded(count, count):
            where = f"{count} of {count} resources made from it at {file}:{line} are removed"
            yield Shrunk(data, f"{data}: {where} (limit {SHRINKS}){_left_out(data, uses)}", count, count)


def _left_out(source: str, uses: Iterable[SourceUse]) -> str:
    """Return `; `when` leaves out …` with the rows of a source that conditions leave out, or an empty text."""
    of_it = [use for use in uses if use.name == source]
    most = sorted((use for use in of_it if use.left_out), key=lambda use: -use.left_out / use.rows)[:MOST_USES]
    counts = [f"{'all' if use.left_out == use.rows else f'{use.left_out:,}'} of its {use.rows:,} rows" for use in most]
    if len(of_it) > 1:
        counts = [f"{count} at {use.file}:{use.line}" for count, use in zip(counts, most, strict=True)]
    return f"; `when` leaves out {', '.join(counts)}" if counts else ""
