"""`python -m trials.soak --minutes 60`: `serve` while everything around it goes wrong, and what it came to."""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from .troubles import ENDS, TROUBLES, take
from .watch import Samples, judged
from .world import World, seconds_until, world

PATIENCE_SECONDS = 300.0
LOOK_SECONDS = 5.0


class Soak:
    """One run: troubles one after the other, time posted all along, samples of every life."""

    def __init__(self, made: World, minutes: float) -> None:
        self.made = made
        self.begin = time.monotonic()
        self.end = self.begin + minutes * 60
        self.half = self.begin + minutes * 30
        self.happened: Counter[str] = Counter()
        self.samples: dict[int, Samples] = {}
        self._look_at = self._post_at = 0.0

    def run(self) -> None:
        while seconds_until(self.end):
            ends = ENDS if seconds_until(self.half) else {}
            name = random.choice([*TROUBLES, *ends, *ends])
            self.happened[name] += 1
            with {**TROUBLES, **ends}[name](self.made):
                self.wait(random.uniform(1, 12))
            self.wait(random.uniform(0, 10))

    def wait(self, seconds: float) -> None:
        """Time goes by: somebody posts, and the process is looked at."""
        until = time.monotonic() + seconds
        while seconds_until(until):
            now = time.monotonic()
            if now >= self._post_at:
                self.made.post(random.randint(1, 8))
                self._post_at = now + random.uniform(0.5, 4)
            if now >= self._look_at:
                self.made.revived()
                self.look(now)
            time.sleep(0.1)

    def look(self, now: float) -> None:
        self.samples.setdefault(len(self.made.lives), Samples()).look(self.made.life.pid, now - self.begin)
        self._look_at = now + LOOK_SECONDS

    def settle(self) -> tuple[float, int]:
        """The seconds until all is delivered once nothing is wrong any more, and how many groups a person offered:
        those that came while no mechanism was registered.
        """
        begin, offered = time.monotonic(), set[str]()
        while True:
            self.made.revived()
            groups = self.made.groups()
            open_groups = [group for group in groups if group["state"] != "success"]
            if not open_groups or time.monotonic() > begin + PATIENCE_SECONDS:
                return time.monotonic() - begin, len(offered)
            for group in open_groups:
                if not group["recorded"] and group["groupId"] not in offered:
                    offered.add(group["groupId"])
                    self.made.tell("/posted-time/offer", {"groupId": group["groupId"]})
            self.look(time.monotonic())
            time.sleep(1)


def figures(soak: Soak, seconds: float, offered: int, code: int) -> dict[str, Any]:
    made = soak.made
    states = Counter(group["state"] for group in made.groups())
    wanted = {f"g{number:06}" for number in range(made.posted)}
    sinks = {
        name: {
            "groups": len(found),
            "missing": sorted(wanted - set(found))[:20],
            "more than once": sorted(id for id, count in found.items() if count > 1)[:20],
        }
        for name, found in made.delivered().items()
    }
    events, idle = judged(made.log_lines())
    written = b"".join(path.read_bytes() for path in made.project.folder.rglob("serve-*.log"))
    return {
        "minutes": round((time.monotonic() - soak.begin) / 60, 1),
        "posted": made.posted,
        "states": states,
        "offered by hand": offered,
        "seconds until settled": round(seconds, 1),
        "sinks": sinks,
        "happened": soak.happened,
        "lives": len(made.lives),
        "ended by itself": made.ended_by_itself,
        "exit code": code,
        "longest life": max((each.figures(60) for each in soak.samples.values()), key=lambda it: it.get("seconds", 0)),
        "last life": soak.samples[max(soak.samples)].figures(60),
        "events": dict(sorted(events.items())),
        "lines without a next step": dict(idle.most_common(60)),
        "tracebacks": written.count(b"Traceback"),
        "secrets seen": sum(written.count(secret.encode()) for secret in made.secrets),
    }


def failures(found: dict[str, Any]) -> list[str]:
    """Promises that were broken."""
    broken = [f"{name}: {it}" for name, it in found["sinks"].items() if it["missing"] or it["more than once"]]
    broken += [f"{name}: {found[name]}" for name in ("ended by itself", "exit code", "tracebacks", "secrets seen")
               if found[name]]  # fmt: skip
    broken += [f"a log line says nothing to do: {line}" for line in found["lines without a next step"]]
    broken += [f"{count} groups are {state}" for state, count in found["states"].items() if state != "success"]
    return broken


def soaked(folder: Path, minutes: float) -> dict[str, Any]:
    """Run it in a folder; all that was found."""
    with world(folder) as made:
        made.receiver.answer = take
        soak = Soak(made, minutes)
        soak.run()
        seconds, offered = soak.settle()
        return figures(soak, seconds, offered, made.stop(signal.SIGTERM))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m trials.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where the figures go, too")
    parser.add_argument("--folder", type=Path, help="where logs and files stay; a temporary one unless given")
    given = parser.parse_args()
    random.seed(given.seed)
    with tempfile.TemporaryDirectory() as temporary:
        found = soaked(given.folder or Path(temporary), given.minutes)
    broken = failures(found)
    text = json.dumps({**found, "broken": broken}, indent=2)
    if given.json:
        given.json.write_text(text + "\n", encoding="utf-8")
    print(text)
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
