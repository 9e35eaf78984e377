"""The goals of speed and scale, measured: `python -m trials.bench`, with `--help` for its options.

The real program runs as a process of its own, applying to a service that costs next to nothing, and what it is compared
with runs in the same few minutes: only ratios and differences mean anything on another machine. Short figures are the
median of a few runs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

from trials.bench.estate import Estate
from trials.bench.figures import Figures, of_generating, of_starting
from trials.bench.measure import served
from trials.bench.posted import of_posting
from trials.bench.table import Row, growth, machine, table


def main() -> None:
    """Print a table for each size as soon as it is measured, and write all of them as JSON."""
    given = arguments()
    found: dict[str, list[Row]] = {}
    on = machine()
    print(f"Machine: {on['cpu']}, {on['cores']} cores, Python {on['python']}\n", flush=True)
    with served() as base_url, tempfile.TemporaryDirectory(prefix="syncengine-bench-") as folder:
        found["starting"] = told("Starting", of_starting(Path(folder, "starting"), base_url))
        if given.generated:
            rows = of_generating(Path(folder, "generating"), base_url, given.generated)
            found["generated"] = told("Generated", rows)
        if given.posted:
            found["posted"] = told("Posted time", of_posting(Path(folder, "posted"), given.posted))
        for size in given.sizes:
            with tempfile.TemporaryDirectory(dir=folder) as place:
                figures = Figures(Estate(Path(place, "project"), base_url), size, given.deletes)
                found[str(size)] = told(f"{size:,} tags", figures.rows())
        if len(given.sizes) > 1:
            print(growth({size: found[str(size)] for size in given.sizes}), flush=True)
    if given.json:
        content = {"machine": on, "figures": {name: [row.json() for row in rows] for name, rows in found.items()}}
        given.json.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def told(title: str, rows: Iterable[Row]) -> list[Row]:
    """Measure, and print."""
    measured = list(rows)
    print(table(title, measured), flush=True)
    return measured


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m trials.bench")
    parser.add_argument("--sizes", type=numbers, default=[10_000, 100_000, 1_000_000], metavar="N,N,…")
    parser.add_argument("--deletes", type=int, default=100_000, metavar="N", help="keyword deletes, at most; 0: none")
    parser.add_argument("--generated", type=int, default=50_000, metavar="N", help="generated tags; 0: none")
    parser.add_argument("--posted", type=int, default=2_000, metavar="N", help="groups of posted time; 0: none")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args()


def numbers(text: str) -> list[int]:
    return [int(number.replace("_", "")) for number in text.split(",")]


if __name__ == "__main__":
    main()
