"""Figures and goals as a table for people."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One figure. `goal` is the most that it may be, or with `least` the least; None: there is no goal."""

    what: str
    measured: float
    unit: str
    goal: float | None = None
    least: bool = False
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def missed_by(self) -> float:
        """How far it is from its goal; 0 where that is met."""
        if self.goal is None:
            return 0.0
        return max(0.0, self.goal - self.measured if self.least else self.measured - self.goal)

    @property
    def verdict(self) -> str:
        if self.goal is None:
            return ""
        return f"missed by {_shown(self.missed_by, self.unit)}" if self.missed_by else "met"

    def line(self) -> str:
        bound = "" if self.goal is None else f"{'≥' if self.least else '≤'} {_shown(self.goal, self.unit)}"
        parts = ", ".join(f"{name} {value:,.3g}" for name, value in self.parts.items())
        measured = _shown(self.measured, self.unit)
        return f"| {self.what} | {bound} | {measured}{f' ({parts})' if parts else ''} | {self.verdict} |"

    def json(self) -> dict[str, object]:
        return {**asdict(self), "missed_by": self.missed_by}


def _shown(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if unit in ("MB", "requests") else f"{value:.2f} {unit}"


def table(title: str, rows: Iterable[Row]) -> str:
    """Markdown."""
    head = [f"### {title}", "", "| what | goal | measured | |", "|---|---|---|---|"]
    return "\n".join([*head, *(row.line() for row in rows), ""])


def machine() -> dict[str, str | int]:
    """What it was measured on."""
    return {"cpu": _cpu(), "cores": os.cpu_count() or 0, "python": platform.python_version()}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
