"""`python -m tests.bench [TAGS …]`: how long plan and apply take, against the embedded sandbox. Prints a table.

Manifest shape: about 360 bytes a tag with three keywords, two metadata entries and a URL; 1,000 tags a file. Every
figure is one run of the real program as a process of its own: wall seconds, and peak memory of that process.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TAG = """\
  - name: M-{n:07}
    description: "Opposition against EP {n:07}, a matter of some length with words that people would write"
    keywords: ["EP {n:07} B1", "matter {n:07} file", "docket {n:07}/2026"]
    metadata: {{Client: "ACME Holding Corporation {n:07}", Billing Group: billable}}
    externalId: "{n}"
    url: https://pms.example.com/matters/{n:07}/overview
    visibility: PUBLIC
"""
TAGS_A_FILE = 1000
RUNS = (
    ("plan, nothing recorded", ("plan", "--sandbox", "--format", "json")),
    ("apply, all new", ("apply", "--sandbox", "-y", "--format", "json")),
    ("plan, no change", ("plan", "--sandbox", "--format", "json")),
)


def main(sizes: list[int]) -> None:
    """Measure each size in a folder of its own."""
    print("| tags | run | seconds | peak memory |")
    print("|---|---|---|---|")
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_estate(Path(folder), size)
            for name, arguments in RUNS:
                seconds, megabytes = measured(Path(folder), arguments)
                print(f"| {size:,} | {name} | {seconds:.1f} | {megabytes:.0f} MB |", flush=True)


def write_estate(folder: Path, size: int) -> None:
    """Manifests with `size` tags."""
    (folder / "manifests").mkdir()
    for start in range(0, size, TAGS_A_FILE):
        tags = "".join(TAG.format(n=n) for n in range(start, min(start + TAGS_A_FILE, size)))
        (folder / "manifests" / f"matters-{start:07}.yaml").write_text("tags:\n" + tags, encoding="utf-8")


def measured(folder: Path, arguments: tuple[str, ...]) -> tuple[float, float]:
    """Wall seconds and peak megabytes of one run, which must succeed."""
    command = [sys.executable, "-m", "syncengine", *arguments]
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}")
    return time.perf_counter() - start, kilobytes(usage) / 1024


def kilobytes(usage: resource.struct_rusage) -> float:
    """Peak resident size; Linux counts it in kilobytes, macOS in bytes."""
    return usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)


if __name__ == "__main__":
    main([int(size.replace(",", "")) for size in sys.argv[1:]] or [1000, 10_000])
