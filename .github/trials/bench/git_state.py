"""How large a state in Git is after many applies, and what an apply costs: `python -m trials.bench.git_state`.

After each apply the state is read once, as a plan does; that is part of what it costs.
Rows, applies and the rows that each changes by SYNCENGINE_BENCH_ROWS, _APPLIES and _CHANGES. Sizes are those of bare
repositories once `git gc --prune=now` was run on copies of them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from syncengine.effects import Effect
from syncengine.project.git import ANCESTORS
from syncengine.project.runner import Holder
from syncengine.resource import Key, Kind, Source, Status
from syncengine.state.history import Run
from syncengine.state.records import Attempt, PublishedCalls, Settlement
from syncengine.state.store import State, open_state

ROWS = int(os.environ.get("SYNCENGINE_BENCH_ROWS", "20000"))
APPLIES = int(os.environ.get("SYNCENGINE_BENCH_APPLIES", "500"))
CHANGES = int(os.environ.get("SYNCENGINE_BENCH_CHANGES", "50"))
BATCH = 2000


def effects(numbers: range, version: int) -> Iterator[Effect]:
    for number in numbers:
        fields = {"description": f"Opposition against EP {number} {version}", "category": f"client-{number % 300}"}
        yield Effect(
            key=Key(Kind.TAG, f"ACME-{number:06}"),
            fields=fields,
            keywords=(f"ACME-{number:06}", f"EP {number}"),
            metadata={"Client": f"Client {number % 300}", "Billing Group": "billable"},
            status=Status.ACTIVE,
            whole=True,
            source=Source("manifests/all.yaml", number),
        )


def commit(number: int) -> str:
    return hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest()


def apply(place: str, number: int, effects: list[Effect]) -> None:
    """The verbs of one apply."""
    holder = Holder.here("apply", {})
    with open_state(place, write=True, create=True) as state, state.lock(holder, wait=5, request_timeout=1):
        run = Run(f"run-{number}", time.time(), "apply", f"plan-{number}", "h", "u", None, commit(number), True)
        state.begin_run(run, ancestors=[commit(each) for each in range(number - 1, number - 1 - ANCESTORS, -1)])
        calls = {
            f"{number}": Attempt("upsertTags", tuple(effects[start : start + BATCH]))
            for number, start in enumerate(range(0, len(effects), BATCH))
        }
        state.announce(lambda: PublishedCalls(calls))
        for call, attempt in calls.items():
            send(state, call, attempt)
        state.end_run("complete", {"applied": len(effects)})


def send(state: State, call: str, attempt: Attempt) -> None:
    state.intend({call: attempt})
    state.settle([Settlement(call, attempt.effects)])
    state.end_attempts([call], {})


def packed(repository: Path) -> float:
    """Megabytes of a copy once it is packed and what nothing leads to is gone."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.git"
        shutil.copytree(repository, copy)
        subprocess.run(["git", "-C", copy, "gc", "--quiet", "--prune=now"], check=True)
        return megabytes(copy)


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        remote = folder / "remote.git"
        subprocess.run(["git", "init", "--quiet", "--bare", remote], check=True)
        place = f"git+ref://file://{remote}/refs/syncengine/bench#{folder / 'project'}"
        for number in range(APPLIES):
            numbers = range(ROWS) if number == 0 else range((first := number * 37 % (ROWS - CHANGES)), first + CHANGES)
            began, before = time.monotonic(), os.times()
            apply(place, number, list(effects(numbers, number)))
            with open_state(place, write=False) as state:
                state.facts()
            own, gits = (sum(os.times()[at : at + 2]) - sum(before[at : at + 2]) for at in (0, 2))
            took = f"{time.monotonic() - began:.2f} s, {own:.2f} s of processor in Python, {gits:.2f} in Git"
            if number < 3 or number % 50 == 49:
                clone = next((folder / "project" / ".syncengine" / "git-state").iterdir())
                local = clone / "repository.git"
                disk = f"{megabytes(local):.1f} on the disk"
                sizes = f"remote {packed(remote):.1f} MB, local {packed(local):.1f} ({disk})"
                print(f"{number + 1:>4} applies: {sizes}; {took}", flush=True)


if __name__ == "__main__":
    main()
