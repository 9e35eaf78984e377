"""Memory and file handles of `serve` as time goes by, and what its log is to somebody who reads it."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NUMBERS = re.compile(r"\b[0-9a-f]{8,}\b|\d+(\.\d+)?")


@dataclass
class Samples:
    """Of one life: seconds, megabytes, handles."""

    points: list[tuple[float, float, int]] = field(default_factory=list)

    def look(self, pid: int, at: float) -> None:
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
            handles = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        except OSError:
            return
        if found := re.search(r"VmRSS:\s+(\d+) kB", status):
            self.points.append((at, int(found[1]) / 1024, handles))

    def figures(self, skipped: float) -> dict[str, Any]:
        """Slopes by least squares, without the first seconds."""
        if not self.points:
            return {}
        begin = self.points[0][0] + skipped
        points = [point for point in self.points if point[0] >= begin] or self.points
        times = [at for at, _, _ in points]
        found: dict[str, Any] = {"seconds": round(times[-1] - times[0]), "samples": len(points)}
        for place, name in ((1, "rssMegabytes"), (2, "handles")):
            values = [float(point[place]) for point in points]
            slope = statistics.linear_regression(times, values).slope * 3600 if len(set(times)) > 2 else 0.0
            found[name] = {"min": min(values), "max": max(values), "last": values[-1], "slopePerHour": round(slope, 2)}
        return found


NEXT = re.compile(
    r"retrying|again|stays in use|standing by|calls again|is tried|waits|`syncengine [a-z ]+|is checked|next apply"
    r"|write `"
)
"""What happens next by itself, or what a person does about it."""


DETAILS = ("not-reconciled", "not-applied")
"""They follow a line that says when the next apply is."""


def kind(line: dict[str, Any]) -> str:
    """The line without what differs from case to case."""
    return f"{line['level']} {line['event']}: {NUMBERS.sub('#', line['message'])}"


def judged(lines: Iterable[dict[str, Any]]) -> tuple[Counter[str], Counter[str]]:
    """All lines by level and event; and those that a person cannot act on: no cause, or nothing about what is next."""
    events: Counter[str] = Counter()
    idle: Counter[str] = Counter()
    for line in lines:
        events[f"{line['level']} {line['event']}"] += 1
        speaks = line["level"] in ("warning", "error") and line["event"] not in DETAILS
        if speaks and not NEXT.search(line["message"]):
            idle[kind(line)] += 1
    return events, idle
