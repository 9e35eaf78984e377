"""Comparison of a plan with reviewed plans → lines for people; pure."""

from __future__ import annotations

from collections.abc import Iterator

from syncengine.plan.since import Since
from syncengine.render.escape import visible
from syncengine.render.words import count_of

AT_MOST = 10
"""The number of differences beyond the reviewed plan that are listed; further ones are counted."""


def since_heading(since: Since) -> str:
    """Return the counts of the comparison in one line."""
    counts = {"new": len(since.new), "different": len(since.different), "gone": len(since.gone), "the same": since.same}
    listed = ", ".join(f"{count:,} {word}" for word, count in counts.items())
    return f"Compared with the reviewed plan {', '.join(map(visible, since.plans))}: {listed}."


def verdict(since: Since) -> str:
    if not since.excess:
        return "Today's plan does not go beyond the reviewed plan."
    return f"Today's plan goes beyond the reviewed plan in {count_of(len(since.excess), 'place')}:"


def excess_lines(since: Since) -> Iterator[str]:
    """Yield one line for each way in which today's plan goes beyond the reviewed plan, up to `AT_MOST`."""
    yield from (visible(each.message) for each in since.excess[:AT_MOST])
    if (more := len(since.excess) - AT_MOST) > 0:
        yield f"and {more:,} more"
