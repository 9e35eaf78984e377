"""The rows of the table: what is run for each, and what it is compared with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median

from syncengine.service.operations import BATCH_LIMIT
from trials.bench.estate import TAGS_A_FILE, Estate
from trials.bench.measure import Measured, asked, bare, pause_batches, run, syncengine
from trials.bench.table import Row

CONCURRENCY = 8
"""The default of `service.concurrency`."""
SHORT_RUNS = 5
SLICE = 100_000
"""Tags that are applied at once, and loaded for a comparison; larger sizes are reached in slices, or by scaling."""
PLAN, BODIES = "plan.json", "bodies.jsonl"
LARGE = 1_000_000
"""From so many tags on a plan may take longer for each."""


def of_starting(folder: Path, base_url: str) -> Iterator[Row]:
    """What the smallest of runs cost beyond the interpreter's own start."""
    estate = Estate(folder, base_url)
    estate.holds(0, 10)
    python = median(run(folder, sys.executable, "-c", "pass").seconds for _ in range(15))
    for what, goal, arguments in (
        ("plan of ten tags, over `python -c pass`", 0.5, ("plan", "--sandbox")),
        ("`--version`, over `python -c pass`", 0.1, ("--version",)),
        ("`--help`, over `python -c pass`", 0.1, ("--help",)),
    ):
        seconds = median(syncengine(folder, *arguments).seconds for _ in range(11))
        yield Row(what, seconds - python, "s", goal, parts={"python s": python})


def of_generating(folder: Path, base_url: str, count: int) -> Iterator[Row]:
    """What a block of CSV costs, over the same tags written out."""
    written, made = Estate(folder / "written", base_url), Estate(folder / "made", base_url)
    written.holds(0, count)
    made.generates(count)
    cold, bare = (median(_cold(estate).seconds for _ in range(3)) for estate in (made, written))
    yield _over(f"cold plan of {count:,} generated tags, over written out", cold, bare, goal=2)
    for estate in (written, made):
        syncengine(estate.folder, "apply", "-y", "--format", "json")
    settled, bare = (median(syncengine(e.folder, "plan").seconds for _ in range(SHORT_RUNS)) for e in (made, written))
    yield _over("no-change plan of them, over written out", settled, bare, goal=2)
    changed = []
    for version in range(1, SHORT_RUNS + 1):
        written.changes_one(version, count)
        made.generates(count, version)
        changed.append([syncengine(estate.folder, "plan").seconds for estate in (made, written)])
    yield _over("one row changed, over one written tag", *(median(seconds) for seconds in zip(*changed, strict=True)))


def _over(what: str, generated: float, written: float, goal: float | None = None) -> Row:
    return Row(what, generated / written, "×", goal, parts={"generated s": generated, "written s": written})


def _cold(estate: Estate, *options: str) -> Measured:
    """A plan with nothing cached and nothing recorded."""
    estate.forgets()
    return syncengine(estate.folder, "plan", *options, memory=True)


@dataclass(frozen=True)
class Figures:
    """The figures of an estate of `size` tags, to be asked for in this order; each needs what those before it left."""

    estate: Estate
    size: int
    deletes: int

    def rows(self) -> Iterator[Row]:
        self.estate.holds(0, self.size)
        loading = self._loading()
        yield from self.cold_plan(loading)
        yield from self.creates(loading)
        yield from self.no_change()
        yield from self.keyword_deletes()

    @property
    def _files(self) -> list[str]:
        return sorted(str(path) for path in (self.estate.folder / "manifests").iterdir())

    def _loading(self) -> float:
        """The seconds in which `CSafeLoader` merely loads the files."""
        files = self._files[: SLICE // TAGS_A_FILE]
        return bare("load", *files) * len(self._files) / len(files)

    def cold_plan(self, loading: float) -> Iterator[Row]:
        """Nothing cached, nothing recorded."""
        runs = [_cold(self.estate) for _ in range(3 if self.size <= SLICE else 1)]
        seconds = median(one.seconds for one in runs)
        parts = {"plan s": seconds, "CSafeLoader s": loading}
        yield Row("cold plan, over CSafeLoader's load", seconds / loading, "×", 1.3, parts=parts)
        megabytes = max(one.megabytes for one in runs)
        parts = {"KB a tag": megabytes * 1024 / self.size}
        yield Row("cold plan, peak memory", megabytes, "MB", self._goal(150, 600, 6000), parts=parts)
        saving = [_cold(self.estate, "--out", PLAN) for _ in runs]
        seconds = median(one.seconds for one in saving)
        parts = {"plan s": seconds}
        yield Row("cold plan with --out, over that load", seconds / loading, "×", 1.6, parts=parts)
        yield Row(
            "cold plan with --out, peak memory", max(one.megabytes for one in saving), "MB", self._goal(150, 600, 6000)
        )

    def _goal(self, small: float, medium: float, large: float) -> float:
        return small if self.size < SLICE else medium if self.size < LARGE else large

    def creates(self, loading: float) -> Iterator[Row]:
        """The first slice from a saved plan, measured; then the others, so that all is recorded."""
        folder, count = self.estate.folder, min(self.size, SLICE)
        hidden = self._hide_from(count)
        for pause, service in ((1.0, "a service that takes 1 s a call"), (0.0, "one that answers at once")):
            self.estate.forgets()
            syncengine(folder, "plan", "--out", PLAN)
            pause_batches(self.estate.base_url, pause)
            applied, posting, requests = self._applied()
            parts = {"apply s": applied.seconds, "httpx s": posting, "MB": applied.megabytes}
            goal = None if pause else 1.8
            yield Row(f"apply of creates, over that load, {service}", applied.seconds / loading, "×", goal, parts=parts)
        yield Row("apply of creates", requests, "requests", ceil(count / BATCH_LIMIT))
        for start in range(0, len(hidden), SLICE // TAGS_A_FILE):
            for file in hidden[start : start + SLICE // TAGS_A_FILE]:
                file.rename(folder / "manifests" / file.name)
            syncengine(folder, "apply", "-y", "--format", "json")
        yield self._state()

    def _state(self) -> Row:
        """The state's file once all is recorded, with its history."""
        megabytes = (self.estate.folder / ".syncengine" / "state.db").stat().st_size / 1024 / 1024
        return Row("state on disk", megabytes, "MB", parts={"KB a tag": megabytes * 1024 / self.size})

    def _hide_from(self, count: int) -> list[Path]:
        (self.estate.folder / "hidden").mkdir()
        files = [Path(file) for file in self._files[ceil(count / TAGS_A_FILE) :]]
        return [file.rename(self.estate.folder / "hidden" / file.name) for file in files]

    def no_change(self) -> Iterator[Row]:
        """All is recorded as it is desired; then one tag is not."""
        folder = self.estate.folder
        hashing = median(bare("hash", *self._files) for _ in range(SHORT_RUNS))
        syncengine(folder, "plan")
        runs = [syncengine(folder, "plan", memory=True) for _ in range(SHORT_RUNS)]
        seconds = median(one.seconds for one in runs)
        parts = {"plan s": seconds, "hashing s": hashing}
        yield Row("no-change plan, over hashing the bytes", seconds - hashing, "s", 0.4, parts=parts)
        yield Row("no-change plan, peak memory", max(one.megabytes for one in runs), "MB", 150)
        changed = median(self._plan_changed(version) for version in range(SHORT_RUNS))
        yield Row("one tag changed", changed, "s", 2.0)

    def _plan_changed(self, version: int) -> float:
        self.estate.changes_one(version, self.size)
        return syncengine(self.estate.folder, "plan").seconds

    def keyword_deletes(self) -> Iterator[Row]:
        """Single calls, each of one keyword."""
        folder, count = self.estate.folder, min(self.deletes, self.size, SLICE)
        if not count:
            return
        self.estate.holds(0, self.size, without_keyword=count)
        syncengine(folder, "plan", "--out", PLAN)
        applied, posting, requests = self._applied()
        parts = {
            "apply s": applied.seconds,
            "calls/s": requests / applied.seconds,
            "httpx calls/s": count / posting,
            "MB": applied.megabytes,
        }
        rate = requests / applied.seconds / (count / posting)
        yield Row("keyword deletes, rate over bare httpx", rate, "×", parts=parts)

    def _applied(self) -> tuple[Measured, float, int]:
        """The saved plan applied; the seconds that bare httpx needs for the same; how many requests it sent."""
        folder, base_url = self.estate.folder, self.estate.base_url
        run(folder, sys.executable, "-m", "trials.bench.bodies", PLAN, BODIES)
        posting = bare("post", base_url, str(CONCURRENCY), str(folder / BODIES))
        asked(base_url)
        applied = syncengine(folder, "apply", PLAN, "--format", "json", memory=True)
        return applied, posting, asked(base_url)
