"""The lines of the journal by which runs of plans took something away: one query for whoever asks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from syncengine.resource import Key
from syncengine.state.codec import KINDS, from_json
from syncengine.state.journal_detail import Detail, read

LONGEST_RUN = 86_400.0
"""Seconds that a run takes at most: the index of runs is by their beginning."""

TAKES = " OR ".join(
    f"j.detail LIKE '%{part}%'" for part in ('"status":["', '"deleted":[', '"unset":[', ",null]", ',""]', ",[]]")
)
"""Whether a detail may tell of a loss, as canonical JSON has it; of what appears, hardly any does."""

QUERY = f"""
SELECT j.at, j.verb, j.kind, j.name, j.detail, r.counts
FROM state_runs r JOIN state_journal j ON j.run = r.id
WHERE r.started >= :began AND r.plan IS NOT NULL AND j.at >= :since AND j.verb IN ('intended', 'recorded') AND ({TAKES})
ORDER BY j.id
"""  # noqa: S608 - only constants
"""Adoption and imports make no plan, and `state forget` writes other lines. `at` is the wall clock of whoever wrote:
what it is off by is minutes of a day."""


class RemovalLine(NamedTuple):
    """A line that may tell of a loss. `sent`: with a call; `approved`: the gate of its run asked and was approved."""

    at: float
    sent: bool
    key: Key
    detail: Detail
    approved: bool


def bounds(since: float) -> Mapping[str, float]:
    """The parameters of QUERY."""
    return {"since": since, "began": since - LONGEST_RUN}


def removal_of(values: Sequence[Any]) -> RemovalLine:
    """A row of QUERY as a value; ValueError, LookupError or TypeError for a damaged one."""
    at, verb, kind, name, said, about = values
    return RemovalLine(
        float(at), verb == "intended", Key(KINDS[kind], name), read(said), "approvals" in from_json(about)
    )
