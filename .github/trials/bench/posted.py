"""The rows of posted time: groups a second into each sink over the loop that a person would write, and their cost."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

from trials.bench.measure import ENVIRON, HERE, SYNCENGINE, Watch, served
from trials.bench.table import Row

LIMIT = 500
"""Groups in one fetch, of both."""
GOALS = {"sqlite": 300, "postgresql": 300, "jsonl": 300, "http": 200}
"""Groups a second, at least."""
TABLE = "CREATE TABLE time (id TEXT, matter TEXT, secs INTEGER)"
SQL = """\
sql: {source: ledger, statement: "INSERT INTO time (id, matter, secs) VALUES (:id, :matter, :secs)",
  params: {id: "{{ group.groupId }}", matter: "{{ tag.name }}", secs: "{{ duration.seconds }}"}}
"""
HTTP = "http: {url: '%s', path: /time, json: {id: '{{ group.groupId }}', secs: '{{ duration.seconds }}'}}\n"
CALLER_KEY = "bench-caller"
CALLERS = 100


def of_posting(folder: Path, count: int) -> Iterator[Row]:
    """Each sink in turn, the bare loop first; then what a single group waits, and much at once."""
    for kind, goal in GOALS.items():
        with estate(folder / kind, kind) as posting:
            bare, used = posting.bare(count)
            seconds, processor, _ = posting.served(count)
            parts = {"bare groups/s": count / bare, "bare ms a group": used / count * 1000}
            yield Row(f"{count:,} groups to {kind}", count / seconds, "groups/s", goal, True, parts)
            yield Row(f"processor time a group to {kind}", processor / count * 1000, "ms", 5)
    with estate(folder / "single", "sqlite") as posting:
        yield Row("one group, from offer to acknowledgement", posting.single() * 1000, "ms", 50)
    for what, groups, limit in (("a backlog of 20,000", 20_000, LIMIT), ("a fetch of 10,000", 10_000, 10_000)):
        with estate(folder / f"{groups}", "sqlite", limit) as posting:
            seconds, _, megabytes = posting.served(groups)
            yield Row(what, seconds, "s", parts={"groups/s": groups / seconds})
            yield Row(f"{what}, peak memory", megabytes, "MB")
    with estate(folder / "idle", "sqlite") as posting:
        yield Row("`serve` with nothing to do, memory", posting.idle(), "MB")
    with estate(folder / "webhook", "jsonl", webhook=True) as posting:
        yield Row(f"webhook, {CALLERS} callers", count / posting.called(count), "calls/s", 300, True)


@contextmanager
def estate(folder: Path, kind: str, limit: int = LIMIT, *, webhook: bool = False) -> Iterator[Posting]:
    """A project with one sink, and the service that it takes posted time from."""
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        service = stack.enter_context(served("offering"))
        target = str(folder / "ledger.db")
        if kind == "postgresql":
            # Here, since a child counts as large as this process was when it began.
            import sqlalchemy as sa

            from tests import postgresql

            target = stack.enter_context(postgresql.running()).url()
            engine = sa.create_engine(target)
            with engine.begin() as connection:
                connection.exec_driver_sql(TABLE)
            engine.dispose()
        elif kind == "sqlite":
            with closing(sqlite3.connect(target)) as ledger:
                ledger.execute(TABLE)
        elif kind == "http":
            target = stack.enter_context(served("offering"))
        else:
            target = str(folder / "out.jsonl")
        yield Posting(folder, kind, service, target, limit, webhook)


@dataclass(frozen=True)
class Posting:
    """One sink and one service, for both."""

    folder: Path
    kind: str
    service: str
    target: str
    limit: int
    webhook: bool

    def bare(self, count: int) -> tuple[float, float]:
        """Seconds and processor seconds of the loop that a person would write."""
        target = f"{self.target}.bare" if self.kind == "jsonl" else self.target
        command = [sys.executable, str(HERE / "bare_posted.py"), self.kind, self.service, target]
        said = subprocess.run([*command, str(count), str(self.limit)], check=True, capture_output=True, text=True)
        found = json.loads(said.stdout)
        return found["seconds"], found["processor"]

    def served(self, count: int) -> tuple[float, float, float]:
        """Seconds, processor seconds and peak megabytes of `serve` for so many groups."""
        with self._serving() as process:
            before = self._told()["told"]
            used = _processor(process.pid)
            watch = Watch(process.pid)
            self._asked(f"post/{count}")
            while (found := self._told())["told"] < before + count:
                assert process.poll() is None, (self.folder / "log").read_text()[-2000:]
                time.sleep(0.02)
            assert found["repeats"] == 0
            return found["seconds"], _processor(process.pid) - used, watch.ended()

    def single(self) -> float:
        """Seconds of one group, the median of some."""
        with self._serving():
            seconds: list[float] = []
            for number in range(1, 32):
                self._asked("post/1")
                while (found := self._told())["told"] < number:
                    time.sleep(0.005)
                seconds.append(found["seconds"])
                time.sleep(0.05)
            return median(seconds[1:])

    def idle(self) -> float:
        """Megabytes of a process that waits for posted time."""
        with self._serving() as process:
            watch = Watch(process.pid)
            time.sleep(1.0)
            return watch.ended()

    def called(self, count: int) -> float:
        """Seconds of so many calls of the webhook by 100 callers."""
        with self._serving():
            return asyncio.run(_call(self._port, count))

    @property
    def _port(self) -> int:
        return 8765

    @contextmanager
    def _serving(self) -> Iterator[subprocess.Popen[bytes]]:
        self._write()
        environ = {**ENVIRON, "URL": self.target, "CALLER_KEY": CALLER_KEY}
        with (self.folder / "log").open("wb") as log:
            process = subprocess.Popen([*SYNCENGINE, "serve"], cwd=self.folder, env=environ, stdout=log, stderr=log)
        try:
            word = b'"receiving"' if self.webhook else b'"leading"'
            while word not in (self.folder / "log").read_bytes():
                assert process.poll() is None, (self.folder / "log").read_text()[-2000:]
                time.sleep(0.05)
            time.sleep(1.0)
            yield process
        finally:
            process.terminate()
            process.wait()

    def _write(self) -> None:
        sinks = {"sqlite": SQL, "postgresql": SQL, "http": HTTP % self.target, "jsonl": "jsonl: {path: out.jsonl}\n"}
        source = "{env: URL}" if self.kind == "postgresql" else "ledger.db"
        mode = f"mode: fetch\nfetchLimit: {self.limit}\n"
        if self.webhook:
            bind = f"bind: '127.0.0.1:{self._port}', callerKey: {{env: CALLER_KEY}}"
            mode = f"mode: webhook\nwebhook: {{callbackUrl: 'http://127.0.0.1:{self._port}/', {bind}}}\n"
        posted = f"{mode}deliver:\n  - name: target\n{textwrap.indent(sinks[self.kind], '    ')}"
        text = (
            f"version: 1\nservice: {{baseUrl: '{self.service}', apiKey: {{env: SYNCENGINE_API_KEY}}}}\n"
            f"sources: {{ledger: {{sql: {source}}}}}\nserve: {{every: 1h, listen: '127.0.0.1:0'}}\n"
            f"postedTime:\n{textwrap.indent(posted, '  ')}"
        )
        (self.folder / "syncengine.yaml").write_text(text, encoding="utf-8")
        (self.folder / "manifests").mkdir(exist_ok=True)

    def _asked(self, what: str) -> Any:
        with urlopen(f"{self.service}/bench/{what}") as response:
            return json.load(response)

    def _told(self) -> Any:
        return self._asked("told")


async def _call(port: int, count: int) -> float:
    """With a connection each, at next to no cost: httpx takes longer to make 100 calls at once than we to answer."""
    from trials.bench.offering import group

    numbers = iter(range(count))

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            document = json.dumps({**json.loads(group(number)), "callerKey": CALLER_KEY}).encode()
            head = f"POST / HTTP/1.1\r\nhost: bench\r\ncontent-length: {len(document)}\r\n\r\n"
            writer.write(head.encode() + document)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            await reader.readexactly(int(answer.lower().partition(b"content-length:")[2].split()[0]))
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(CALLERS)))
    return time.perf_counter() - start


def _processor(pid: int) -> float:
    """Processor seconds of a process so far (Linux)."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0
