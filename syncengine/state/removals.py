"""Query the journal for lines by which runs of plans removed something."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from syncengine.resource import Key
from syncengine.state import packed_lines
from syncengine.state.codec import KINDS, from_json
from syncengine.state.journal_detail import Detail, read

LONGEST_RUN = 86_400.0
"""Seconds that a run takes at most: the index of runs is by their beginning."""

SIGNS = ('"status":["', '"deleted":[', '"unset":[', ",null]", ',""]', ",[]]")
"""Each detail that records a loss contains one of these, in canonical JSON."""

RUNS_OF_PLANS = """
FROM state_runs r JOIN state_journal j ON j.run = r.id
WHERE r.started >= :began AND r.plan IS NOT NULL AND j.at >= :since AND j.verb IN ('intended', 'recorded')
"""
"""Adoption and imports make no plan, and `state forget` writes other lines. `at` is the wall clock of whoever wrote:
what it is off by is minutes of a day."""

PACKED = f"SELECT j.at, j.verb, j.packed, r.counts {RUNS_OF_PLANS} AND j.takes ORDER BY j.id"

SINGLE = f"""
SELECT j.at, j.verb, j.kind, j.name, j.detail, r.counts {RUNS_OF_PLANS}
AND ({" OR ".join(f"j.detail LIKE '%{sign}%'" for sign in SIGNS)}) ORDER BY j.id
"""
"""A line for each key, as all were before they were packed."""


class RemovalLine(NamedTuple):
    """A line that may tell of a loss. `is_sent`: with a call; `approved`: its run asked for approval and had it."""

    at: float
    is_sent: bool
    key: Key
    detail: Detail
    approved: bool


def may_take(detail: str) -> bool:
    """Whether the differences of a row may be a loss; a new row has none."""
    return any(sign in detail for sign in SIGNS)


def removals_since(
    since: float, execute: Callable[[str, Mapping[str, float]], Iterable[Any]], *, packed: bool = True
) -> Iterator[RemovalLine]:
    """Lines of runs of plans, oldest first; ValueError, LookupError or TypeError for a damaged one.

    `execute` gives the rows of a query with its parameters. `packed`: the schema has packed lines, all of which are
    later than the others.
    """
    bounds = {"since": since, "began": since - LONGEST_RUN}
    for at, verb, kind, name, detail, about in execute(SINGLE, bounds):
        yield RemovalLine(float(at), verb == "intended", Key(KINDS[kind], name), read(detail), _is_approved(about))
    for at, verb, parts, about in execute(PACKED, bounds) if packed else ():
        for key, line, *_ in packed_lines.entries(parts):
            if line.detail is not None and may_take(line.detail):
                yield RemovalLine(float(at), verb == "intended", key, line.read(), _is_approved(about))


def _is_approved(about: str) -> bool:
    """Whether all of a run was approved; of those that tell what each approval covers, the approvals know."""
    found = from_json(about)
    return "approvals" in found and not found.get("units")
