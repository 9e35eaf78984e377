"""Many CI runners on one state: `python -m tests.operate.many_runners --minutes 5`. Outside the daily run.

Each runner is a machine with a name and a clone of its own; it plans and applies the newest commit in processes that
are killed at any time. The state is in PostgreSQL, which is restarted meanwhile. The description of every tag is the
number of its commit, so that a tag that was lost, set back or sent twice can be seen.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import postgresql
from tests.cli.program import Project
from tests.cli.service import Service, serving
from tests.support.git import commit_all, git

ELSEWHERE = [sys.executable, "-m", "tests.operate.elsewhere"]
LEASE_SECONDS, TIMEOUT_SECONDS = 6.0, 2.0
QUIET_SECONDS = 10.0
"""The longest time that an idle process may print nothing, unless it said what it waits for."""
SETTINGS = """\
version: 1
service: {{baseUrl: "{url}", apiKey: {{env: SYNCENGINE_API_KEY}}, timeout: {seconds:g}s, landing: 0s}}
state: {{env: SYNCENGINE_STATE}}
policy: {{maxDeletes: {{keywords: 100%}}}}
"""
TAGS = 30
WAITS = re.compile(r"locked by \S+ on (?P<host>\S+) .*lease until")
ANSWERED = {0, 2, 3, 4, 5, 6, 9}
"""Exit codes of processes that were not killed: done, changes, incomplete, gate, older, locked, unreachable."""
AWAY = "state-unreachable"


@dataclass
class Truth:
    """The repository with the merged commits, and the tags that each commit wants. One thread writes it."""

    folder: Path
    wanted: dict[str, dict[str, int]] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=lambda: {f"T{number:02}": 0 for number in range(TAGS)})
    number: int = 0

    def merge(self) -> None:
        self.number += 1
        for name in random.sample(sorted(self.tags), 4):
            self.tags[name] = self.number
        tags = [
            {"name": name, "description": str(n), "category": f"c{n % 3}", "keywords": [f"{name} k{n % 7}"]}
            for name, n in self.tags.items()
        ]
        categories = [{"externalId": f"c{number}", "label": f"Category {number}"} for number in range(3)]
        manifests = self.folder / "manifests"
        manifests.mkdir(exist_ok=True)
        text = json.dumps({"tagCategories": categories, "tags": tags}, indent=1)
        (manifests / "all.json").write_text(text, encoding="utf-8")
        self.wanted[commit_all(self.folder)] = dict(self.tags)


@dataclass
class Ran:
    """A process that has ended: its command, its exit code, and its lines with their times."""

    host: str
    command: str
    commit: str
    code: int
    seconds: float
    out: str
    lines: list[tuple[float, str]]
    busy: float

    def unexplained(self) -> float:
        """The longest silence without a line before it that says what the process waits for, minus its busy time."""
        longest, before, explained = 0.0, 0.0, False
        for at, line in [*self.lines, (self.seconds, "")]:
            if not explained:
                longest = max(longest, at - before)
            before, explained = at, "waiting" in line
        return max(0.0, longest - self.busy)


@dataclass
class Estate:
    service: Service
    database: postgresql.Server
    truth: Truth
    folder: Path
    lease: float
    ran: list[Ran] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def clone(self, host: str) -> Path:
        folder = self.folder / host
        if not folder.exists():
            git(self.folder, "clone", "-q", str(self.truth.folder), host)
        git(folder, "fetch", "-q")
        git(folder, "checkout", "-q", "origin/main")
        return folder

    def run(self, host: str, *arguments: str, kill_after: float | None = None) -> Ran:
        """Run a process on that host at the newest commit; `kill_after` is in seconds after its start."""
        folder = self.clone(host)
        commit = git(folder, "rev-parse", "HEAD")
        given = {"SYNCENGINE_STATE": self.database.url()}
        begin, lines = time.monotonic(), list[tuple[float, str]]()
        with subprocess.Popen(
            [*ELSEWHERE, host, str(self.lease), *arguments],
            cwd=folder,
            env=Project(self.folder / "home", self.service.url).surroundings(given),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            killer = threading.Timer(kill_after or 3600, process.kill)
            assert process.stdout is not None
            assert process.stderr is not None
            said = ((time.monotonic() - begin, line.rstrip("\n")) for line in process.stderr)
            reading = threading.Thread(target=lines.extend, args=[said])
            for thread in (killer, reading):
                thread.start()
            out = process.stdout.read()
            busy = _busy(process.pid)
            code = process.wait()
            killer.cancel()
            reading.join()
        ran = Ran(host, arguments[0], commit, code, time.monotonic() - begin, out, lines, busy)
        self.check(ran)
        self.ran.append(ran)
        return ran

    def check(self, ran: Ran) -> None:
        """Check the output of one process and, after a complete apply, the tags that the service holds."""
        said = "\n".join(line for _, line in ran.lines)
        if "Traceback" in said + ran.out:
            self.broken.append(f"traceback of {ran.command} on {ran.host}: {said[-1500:]}")
        if ran.code >= 0 and ran.code not in ANSWERED and AWAY not in said + ran.out:
            self.broken.append(f"{ran.command} on {ran.host} ended with {ran.code}: {said[-500:]}{ran.out[-500:]}")
        if ran.code == 6 and not WAITS.search(said + ran.out):
            self.broken.append(f"{ran.command} on {ran.host} was refused without a word of who has the lock: {said}")
        if ran.unexplained() > QUIET_SECONDS:
            at = [f"{seconds:.1f} {line}" for seconds, line in [*ran.lines, (ran.seconds, f"ended with {ran.code}")]]
            self.broken.append(f"{ran.command} on {ran.host} said nothing for {ran.unexplained():.0f} s: {at}")
        if ran.command == "apply" and ran.code == 0:
            lost = behind(self.service.holds()["tags"], self.truth.wanted[ran.commit])
            self.broken += [f"after an apply of {ran.commit[:8]} on {ran.host}: {it}" for it in lost]


def behind(tags: list[dict[str, Any]], wanted: dict[str, int]) -> list[str]:
    """Tags that are missing, that exist twice, or that are older than a commit that was applied."""
    names = Counter(tag["name"] for tag in tags)
    held = {tag["name"]: int(tag["description"]) for tag in tags}
    return [
        f"{name} is there {names[name]} times, of commit {held.get(name)} instead of {number}"
        for name, number in wanted.items()
        if names[name] != 1 or held[name] < number
    ]


def backwards(requests: list[dict[str, Any]]) -> list[str]:
    """Requests that gave a tag an older description than an earlier request did."""
    newest, found = Counter[str](), []
    for request in requests:
        if request["operation"] in ("upsertTags", "upsertTag") and isinstance(request["body"], dict):
            for tag in request["body"].get("tags", [request["body"]]):
                name, number = tag["name"], int(tag.get("description", -1))
                if number < newest[name]:
                    found.append(f"request {request['seq']}: {name} went from {newest[name]} to {number}")
                newest[name] = max(number, newest[name])
    return found


def _busy(pid: int) -> float:
    """The seconds for which an ended process ran or waited for a processor."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    worked, waited, _ = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()
    return (int(worked) + int(waited)) / 1e9


@contextmanager
def estate(folder: Path, lease: float) -> Iterator[Estate]:
    with postgresql.running() as database, serving() as service:
        truth = Truth(folder / "truth")
        truth.folder.mkdir(parents=True)
        git(truth.folder, "init", "-q", "-b", "main")
        (truth.folder / ".gitignore").write_text(".syncengine/\n", encoding="utf-8")
        settings = SETTINGS.format(url=service.url, seconds=TIMEOUT_SECONDS)
        (truth.folder / "syncengine.yaml").write_text(settings, encoding="utf-8")
        truth.merge()
        made = Estate(service, database, truth, folder, lease)
        first = made.run("runner-0", "apply", "-y", "--format", "json")
        assert first.code == 0, first.lines
        yield made


def runner(made: Estate, host: str, begin: threading.Barrier) -> None:
    """One machine, which starts one process after another until `stop` is set."""
    chance = random.Random(host)
    begin.wait()
    while not made.stop.is_set():
        kill_after = chance.uniform(0.5, 25) if chance.random() < 0.4 else None
        words = ("plan",) if chance.random() < 0.2 else ("apply", "-y")
        made.run(host, *words, "--format", "json", kill_after=kill_after)


def turmoil(made: Estate, runners: int, minutes: float, restarts: int) -> None:
    """Run all runners at once, with merges all the time and a database that restarts."""
    begin = threading.Barrier(runners)
    hosts = [f"runner-{number}" for number in range(1, runners + 1)]
    threads = [threading.Thread(target=runner, args=(made, host, begin)) for host in hosts]
    for thread in threads:
        thread.start()
    for rest in range(restarts, -1, -1):
        end = time.monotonic() + minutes * 60 / (restarts + 1)
        while time.monotonic() < end:
            time.sleep(random.uniform(0.5, 3))
            made.truth.merge()
        if rest:
            made.database.stop()
            time.sleep(1)
            made.database.start()
    made.stop.set()
    for thread in threads:
        thread.join()


def wrong(made: Estate) -> list[str]:
    """What went wrong, and what is wrong after one plain apply: the next plan must be empty, and the service must hold
    the manifests."""
    done = made.run("runner-0", "apply", "-y", "--format", "json", "--lock-timeout", "120")
    after = made.run("runner-0", "plan", "--format", "json", "--detailed-exitcode")
    tags = {tag["name"]: int(tag["description"]) for tag in made.service.holds()["tags"]}
    found = [
        f"the last {ran.command} ended with {ran.code}: {ran.lines} {ran.out}" for ran in (done, after) if ran.code
    ]
    found += [] if tags == made.truth.tags else [f"the service holds {tags}, not {made.truth.tags}"]
    return [*found, *made.broken, *backwards(made.service.requests())]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.operate.many_runners")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--runners", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, estate(Path(folder), LEASE_SECONDS) as made:
        turmoil(made, given.runners, given.minutes, restarts=2)
        broken = wrong(made)
        ended = Counter(f"{ran.command} {'killed' if ran.code < 0 else ran.code}" for ran in made.ran)
        silence = max(ran.unexplained() for ran in made.ran)
        found = {"commits": made.truth.number, "ended": ended, "seconds of silence": silence, "broken": broken}
        print(json.dumps(found, indent=2))
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
