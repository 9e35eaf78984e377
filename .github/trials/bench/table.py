"""Figures and goals as a table for people."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import log
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


def growth(figures: Mapping[int, Iterable[Row]]) -> str:
    """Markdown: seconds and memory of each row at every size, and the exponent between neighbours; 1 is linear."""
    sizes = sorted(figures)
    columns = [{name: value for row in figures[size] for name, value in _amounts(row)} for size in sizes]
    lines = [f"| what | {' | '.join(f'{size:,}' for size in sizes)} | exponents |", "|---" * (len(sizes) + 2) + "|"]
    for name in columns[0]:
        values = [column[name] for column in columns if name in column]
        if len(values) == len(sizes):
            pairs = zip(zip(sizes, values, strict=True), zip(sizes[1:], values[1:], strict=True), strict=False)
            exponents = (log(late / early) / log(large / small) for (small, early), (large, late) in pairs)
            shown = " | ".join(f"{value:,.3g}" for value in values)
            lines.append(f"| {name} | {shown} | {', '.join(f'{exponent:.2f}' for exponent in exponents)} |")
    return "\n".join(["### Growth", "", *lines, ""])


def _amounts(row: Row) -> Iterator[tuple[str, float]]:
    """The seconds and megabytes of a row, each by a name of its own."""
    if row.unit in ("s", "MB") and row.measured > 0:
        yield f"{row.what}, {row.unit}", row.measured
    yield from ((f"{row.what}: {name}", value) for name, value in row.parts.items() if name.split()[-1] in ("s", "MB"))


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
