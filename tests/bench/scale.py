"""What a large installation costs, computed from measured figures: `python -m tests.bench.scale FIGURES.json`.

FIGURES.json is what `python -m tests.bench --sizes 10_000,100_000 --json FIGURES.json` wrote. Prints Markdown.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TEAMS = 1_000
TAGS_A_TEAM = 10_000
INTERVAL = 300
"""Seconds between two plans of a team, as `serve.every` has it by default."""
GROUPS_A_TEAM = 2_000
"""Groups of posted time that a team of a hundred people posts in a day."""
BUSY_HOURS = 2
"""Hours of a day in which half of its groups are posted."""


class Figures:
    """Measured rows, by title and name."""

    def __init__(self, document: Any) -> None:
        self._rows = {title: {row["what"]: row for row in rows} for title, rows in document["figures"].items()}

    def measured(self, title: str, what: str) -> float:
        return float(self._rows[title][what]["measured"])

    def part(self, title: str, what: str, name: str) -> float:
        return float(self._rows[title][what]["parts"][name])


def lines(figures: Figures) -> Iterator[str]:
    """One line a resource: its cost for one, and for all teams."""
    team = f"{TAGS_A_TEAM}"
    plan = figures.part(team, "no-change plan, over hashing the bytes", "plan s")
    cold = figures.part(team, "cold plan, over CSafeLoader's load", "plan s")
    create = figures.part(team, "apply of creates, over bare httpx, one that answers at once", "apply s")
    disk = figures.part("100000", "state on disk", "KB a tag")
    group = figures.measured("posted", "processor time a group to sqlite")
    idle = figures.measured("posted", "`serve` with nothing to do, memory")
    peak = TEAMS * GROUPS_A_TEAM / 2 / (BUSY_HOURS * 3600)
    cores, gigabytes = TEAMS * plan / INTERVAL, TEAMS * TAGS_A_TEAM * disk / 1024 / 1024
    hours = TEAMS * (cold + create) / 3600
    yield f"| plan with no change | {plan:.2f} s a team | {cores:.1f} cores at one every {INTERVAL} s |"
    yield f"| first plan and apply | {cold + create:.1f} s a team | {hours:.1f} core hours, once |"
    yield f"| state and history | {disk:.1f} KB a tag | {gigabytes:.0f} GB |"
    yield f"| `serve`, waiting | {idle:.0f} MB a team | {TEAMS * idle / 1024:.0f} GB, in {TEAMS:,} processes |"
    yield f"| posted time | {group:.1f} ms a group | {peak * group / 1000:.2f} cores at {peak:.0f} groups a second |"


def main() -> None:
    figures = Figures(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    print(f"| what | measured | {TEAMS:,} teams of {TAGS_A_TEAM:,} tags |\n|---|---|---|")
    print("\n".join(lines(figures)))


if __name__ == "__main__":
    main()
