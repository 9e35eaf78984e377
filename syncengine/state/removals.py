"""Query the journal for lines of plan runs that removed something."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from syncengine.resource import Key
from syncengine.state import packed_lines
from syncengine.state.codec import KINDS, from_json
from syncengine.state.journal_detail import Detail, read

LONGEST_RUN = 86_400.0
"""The assumed maximum duration of a run in seconds, needed because the index of runs is by their start."""

SIGNS = ('"status":["', '"deleted":[', '"unset":[', ",null]", ',""]', ",[]]")
"""Substrings of canonical JSON, one of which occurs in every detail that records a loss."""

RUNS_OF_PLANS = """
FROM state_runs r JOIN state_journal j ON j.run = r.id
WHERE r.started >= :began AND r.plan IS NOT NULL AND j.at >= :since AND j.verb IN ('intended', 'recorded')
"""
"""The clause that selects lines of plan runs. Adoption and imports have no plan, and `state forget` writes other verbs.
`at` is the writer's wall clock, whose error of minutes does not matter within a day."""

PACKED = f"SELECT j.at, j.verb, j.packed, r.counts {RUNS_OF_PLANS} AND j.takes ORDER BY j.id"

SINGLE = f"""
SELECT j.at, j.verb, j.kind, j.name, j.detail, r.counts {RUNS_OF_PLANS}
AND ({" OR ".join(f"j.detail LIKE '%{sign}%'" for sign in SIGNS)}) ORDER BY j.id
"""
"""The query for single lines, one per key, which older versions wrote."""


class RemovalLine(NamedTuple):
    """A journal line that may record a loss. `is_sent`: by a call. `approved`: its run needed approval and had it."""

    at: float
    is_sent: bool
    key: Key
    detail: Detail
    approved: bool


def may_take(detail: str) -> bool:
    """Return whether a row's encoded differences may contain a loss."""
    return any(sign in detail for sign in SIGNS)


def removals_since(since: float, execute: Callable[[str, Mapping[str, float]], Iterable[Any]]) -> Iterator[RemovalLine]:
    """Yield lines of plan runs that may record a loss, oldest first.

    `execute` returns the rows of a query with parameters. `packed`: the schema has packed lines, which are all later
    than the single ones. Raise `ValueError`, `LookupError` or `TypeError` for a damaged line.
    """
    bounds = {"since": since, "began": since - LONGEST_RUN}
    for at, verb, kind, name, detail, about in execute(SINGLE, bounds):
        yield RemovalLine(float(at), verb == "intended", Key(KINDS[kind], name), read(detail), _is_approved(about))
    for at, verb, parts, about in execute(PACKED, bounds):
        for key, line, *_ in packed_lines.entries(parts):
            if line.detail is not None and may_take(line.detail):
                yield RemovalLine(float(at), verb == "intended", key, line.read(), _is_approved(about))


def _is_approved(about: str) -> bool:
    """Return whether a run was approved as a whole. With approvals by unit, the approvals list the losses."""
    found = from_json(about)
    return "approvals" in found and not found.get("units")
