"""Programs as processes: their wall seconds, and the peak of the memory that they and their children hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

HERE = Path(__file__).parent
ENVIRON = {**os.environ, "SYNCENGINE_API_KEY": "bench", "PYTHONPATH": f"{HERE.parents[2]}{os.pathsep}{HERE.parents[1]}"}
ENVIRON.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is not compiled at each start
SYNCENGINE = (sys.executable, "-m", "syncengine")


class Measured(NamedTuple):
    """Wall seconds and peak megabytes of one run."""

    seconds: float
    megabytes: float


def run(folder: Path, *command: str, memory: bool = False) -> Measured:
    """Run a program to its end, which must be a good one. With `memory` its children are looked at, too."""
    with (folder / "stderr.txt").open("wb") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, env=ENVIRON, stdout=subprocess.DEVNULL, stderr=errors)
        watched = Watch(process.pid) if memory else None
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        words = (folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{words[-2000:]}")
    own = usage.ru_maxrss / 1024 / (1024 if sys.platform == "darwin" else 1)
    return Measured(seconds, max(own, watched.ended() if watched else 0.0))


def syncengine(folder: Path, *arguments: str, memory: bool = False) -> Measured:
    """Run the program that is measured."""
    return run(folder, *SYNCENGINE, *arguments, memory=memory)


def bare(*arguments: str) -> float:
    """The seconds that a comparison says it took."""
    command = [sys.executable, str(HERE / "bare.py"), *arguments]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


class Watch:
    """Looks at a process and its children while they run, for at most a twentieth of the time."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def ended(self) -> float:
        """The peak in megabytes; 0 where the system does not tell."""
        self._over.set()
        self._thread.join()
        return self._peak

    def _look(self) -> None:
        pause = 0.02
        while not self._over.wait(pause):
            start = time.perf_counter()
            self._peak = max(self._peak, sum(map(_proportional, _family(self._pid))))
            pause = max(0.02, 20 * (time.perf_counter() - start))


def _family(pid: int) -> Iterator[int]:
    yield pid
    for children in _texts(Path("/proc", str(pid), "task").glob("*/children")):
        for child in children.split():
            yield from _family(int(child))


def _proportional(pid: int) -> float:
    """Megabytes, in which memory that processes share is counted once (Linux)."""
    for text in _texts([Path("/proc", str(pid), "smaps_rollup")]):
        for line in text.splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _texts(paths: Iterable[Path]) -> Iterator[str]:
    """What can be read of processes that may end at any time."""
    with suppress(OSError):
        for path in paths:
            with suppress(OSError):
                yield path.read_text()


@contextmanager
def served(name: str = "cheap") -> Iterator[str]:
    """The URL of a service of this folder, in a process of its own; `cheap` costs next to nothing."""
    command = [sys.executable, "-m", f"trials.bench.{name}"]
    process = subprocess.Popen(command, env=ENVIRON, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def asked(base_url: str) -> int:
    """Requests that the cheap service has answered since it was asked last, teamInfo aside."""
    with urlopen(f"{base_url}/bench/counts") as response:
        counts: dict[str, int] = json.load(response)
    return sum(count for path, count in counts.items() if path != "/team/info")


def pause_batches(base_url: str, seconds: float) -> None:
    """From now on the cheap service takes this long for each batch."""
    urlopen(f"{base_url}/bench/pause/{seconds}").close()
