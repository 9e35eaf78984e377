"""Find the data sources that lost too much, from recorded rows and losses. Pure (docs/planning.md 2.7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from syncengine.manifest.sources.records import SourceUse
from syncengine.plan.diff import Change
from syncengine.plan.losses import Loss, is_ours, leaves, losses_of
from syncengine.plan.provenance import origins, template_of
from syncengine.project.schema import Limit
from syncengine.resource import Key, Recorded, Resource

SHRINKS = Limit(percent=25)
"""The share of one source's rows, or of one template's resources, that may be lost without an approval."""

LEFT_OUT = "; `when` leaves out "
"""The beginning of the part of a reason that is known only where the manifests are read."""

MOST_USES = 3
"""The most uses of one source that a reason names."""


class Shrunk(NamedTuple):
    """A data source that lost too much, with the reason to ask for an approval and its numbers.

    `files` are the manifests that use the source, if its rows are counted and not the resources made from them.
    """

    source: str
    reason: str
    missing: int
    total: int
    files: frozenset[str] = frozenset()


def shrunk(
    losses: Iterable[Loss],
    recorded: Mapping[Key, Recorded],
    desired: Mapping[Key, Resource] | None,
    uses: Collection[SourceUse] = (),
) -> Iterator[Shrunk]:
    """Yield the data sources that lose a large share of the resources made from them.

    If a source as a whole loses little, each of its templates is judged by its own share. The reasons name the rows
    that `when` leaves out in today's `uses`, since those explain a loss as well as rows that are gone.
    """
    leaving = {loss.key for loss in losses if leaves(loss)}
    going = {key for key in leaving if key in recorded and template_of(recorded[key].source)}
    if not going:
        return
    templates_of = origins((row for row in recorded.values() if is_ours(row) or row.key in going), desired or {}).by
    sources = {key: template.data for key in templates_of if (template := template_of(recorded[key].source))}
    totals, departures = Counter(sources.values()), Counter(sources[key] for key in going)
    shrinking = {data for data, count in departures.items() if SHRINKS.is_exceeded(count, totals[data])}
    for data in sorted(shrinking):
        made_of_it = f"{departures[data]} of {totals[data]} resources made from it are removed"
        reason = f"{data}: {made_of_it} (limit {SHRINKS}){left_out(data, uses)}"
        yield Shrunk(data, reason, departures[data], totals[data])
    if desired is None:
        return
    parts = Counter(template for templates in templates_of.values() for template in templates)
    for template, count in sorted(Counter(template for key in going for template in templates_of[key]).items()):
        if template.data not in shrinking and SHRINKS.is_exceeded(count, parts[template]):
            where = f"{template.file}:{template.line}" if template.line else template.file
            made_there = f"{count} of {parts[template]} resources made from it at {where} are removed"
            reason = f"{template.data}: {made_there} (limit {SHRINKS}){left_out(template.data, uses)}"
            yield Shrunk(template.data, reason, count, parts[template])


def left_out(source: str, uses: Iterable[SourceUse]) -> str:
    """Return `; `when` leaves out …` with the rows of a source that conditions leave out, or an empty text."""
    of_it = [use for use in uses if use.name == source]
    most = sorted((use for use in of_it if use.left_out), key=lambda use: -use.left_out / use.rows)[:MOST_USES]
    counts = [f"{'all' if use.left_out == use.rows else f'{use.left_out:,}'} of its {use.rows:,} rows" for use in most]
    if len(of_it) > 1:
        counts = [f"{count} at {use.file}:{use.line}" for count, use in zip(counts, most, strict=True)]
    return f"{LEFT_OUT}{', '.join(counts)}" if counts else ""


def loses_rows_of_data(changes: Iterable[Change], recorded: Mapping[Key, Recorded]) -> bool:
    """Return whether a removed resource was made from data, so that its source is judged by all that it made."""
    removed = (loss.key for change in changes for loss in losses_of(change) if leaves(loss))
    return any(key in recorded and template_of(recorded[key].source) is not None for key in removed)


def with_fewer_rows(uses: Iterable[SourceUse], had: Mapping[str, int]) -> Iterator[Shrunk]:
    """Yield the sources that lost a large share of the rows (`had`, by identity) that they had at the last apply."""
    for identity, use in {use.identity: use for use in uses}.items():
        missing, total = had.get(identity, 0) - use.rows, had.get(identity, 0)
        if SHRINKS.is_exceeded(missing, total):
            reason = f"{use.name} shrank: {missing:,} of {total:,} rows are gone (limit {SHRINKS})"
            yield Shrunk(use.name, reason, missing, total, frozenset({use.file}))
