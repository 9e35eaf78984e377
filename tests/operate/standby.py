"""Two machines run `serve` with one inbox in PostgreSQL: the first is lost, and the second takes over.

`python -m tests.operate.standby` measures this with leases of the usual length; the tests use shorter ones.
"""

import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import postgresql
from tests.cli.program import Project
from tests.cli.service import Service, serving
from tests.posted_time.receiver import Got, Receiver, receiving
from tests.serve.world import Served
from tests.support.quiet import unused_port
from tests.support.waiting import eventually

from .many_runners import ELSEWHERE

ONCE = '{id: "{{ group.groupId }}"}'
PATIENCE_SECONDS = 180.0


class Line:
    """A line between a machine and the port of its database.

    Once it is cut, nothing arrives, and neither end is notified; once it is mended, what lost bytes is closed.
    """

    def __init__(self, target: int) -> None:
        self.target, self.port = target, 0
        self.is_whole, self.is_over, self.is_listening = asyncio.Event(), asyncio.Event(), threading.Event()
        self.is_whole.set()

    def cut(self) -> None:
        self.loop.call_soon_threadsafe(self.is_whole.clear)

    def mend(self) -> None:
        self.loop.call_soon_threadsafe(self.is_whole.set)

    async def work(self) -> None:
        self.loop = asyncio.get_running_loop()
        async with await asyncio.start_server(self._join, "127.0.0.1", 0) as server:
            self.port = server.sockets[0].getsockname()[1]
            self.is_listening.set()
            await self.is_over.wait()

    async def _join(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            far, forth = await asyncio.open_connection("127.0.0.1", self.target)
            await asyncio.gather(self._pass(near, forth), self._pass(far, back))
        back.close()

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while (data := await source.read(1 << 16)) and self.is_whole.is_set():
                target.write(data)
                await target.drain()
            await self.is_whole.wait()
        finally:
            target.close()


@contextmanager
def line(target: int) -> Iterator[Line]:
    made = Line(target)
    working = threading.Thread(target=asyncio.run, args=[made.work()])
    working.start()
    made.is_listening.wait()
    try:
        yield made
    finally:
        made.loop.call_soon_threadsafe(made.is_over.set)
        working.join()


@dataclass
class Pair:
    """The two machines, and the service, database and receiver that both of them use."""

    folder: Path
    service: Service
    database: postgresql.Server
    receiver: Receiver
    wire: Line
    lease: float
    """Seconds; 0 for the usual length."""
    served: dict[str, Served] = field(default_factory=dict)
    posted: list[str] = field(default_factory=list)

    def start(self, host: str) -> Served:
        """Start `serve` on that machine. The first machine reaches the database through `wire`."""
        project = Project(self.folder / host, self.service.url)
        sinks = f"""\
postedTime:
  deliver:
    - name: ledger
      sql: {{source: ledger, statement: "INSERT INTO time (id) VALUES (:id)", params: {ONCE}}}
    - name: pms
      http: {{url: "{self.receiver.url}", method: POST, timeout: 5s, headers: {{x-host: {host}}}, json: {ONCE}}}
"""
        settings = ["state: {env: SYNCENGINE_STATE}", "sources: {ledger: {sql: {env: SYNCENGINE_STATE}}}"]
        listen = f"serve: {{listen: '127.0.0.1:{unused_port()}'}}"
        project.settings(*settings, listen, *sinks.splitlines())
        port = self.wire.port if host == "first" else self.database.port
        url = self.database.url().replace(f":{self.database.port}/", f":{port}/")
        log = project.folder / f"serve-{len(self.served)}.log"
        with log.open("w") as stream:
            process = subprocess.Popen(
                [*ELSEWHERE, host, str(self.lease), "serve"],
                cwd=project.folder,
                env=project.surroundings({"SYNCENGINE_STATE": url}),
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
            )
        self.served[host] = Served(process, log)
        return self.served[host]

    def post(self) -> None:
        self.posted.append(f"g{len(self.posted):04}")
        self.service.say("/posted-time", {"groups": [{"groupId": self.posted[-1]}]})

    def has_all(self) -> bool:
        groups = self.service.state()["postedTime"]
        return {group["groupId"] for group in groups if group["state"] == "success"} == set(self.posted)

    def sent_by(self, host: str) -> list[Got]:
        return [got for got in self.receiver.got if got.method == "POST" and got.headers["x-host"] == host]


@contextmanager
def pair(folder: Path, lease: float) -> Iterator[Pair]:
    with postgresql.running() as database, serving() as service, receiving() as receiver, line(database.port) as wire:
        database.sql("CREATE TABLE time (id TEXT NOT NULL)")
        service.choose(holdSeconds=1, reofferSeconds=2, retrySeconds=1)
        made = Pair(folder, service, database, receiver, wire, lease)
        try:
            yield made
        finally:
            for served in made.served.values():
                served.process.kill()
                served.process.wait()


def slow(got: Got) -> tuple[int, Any]:
    if got.method == "POST":
        time.sleep(random.uniform(0.05, 0.3))
    return 201, {}


LOSSES: Mapping[str, tuple[Callable[[Pair], None], Callable[[Pair], None] | None]] = {
    "SIGKILL": (lambda made: made.served["first"].process.kill(), None),
    "SIGSTOP, SIGCONT": (
        lambda made: made.served["first"].process.send_signal(signal.SIGSTOP),
        lambda made: made.served["first"].process.send_signal(signal.SIGCONT),
    ),
    "cut off from the database": (lambda made: made.wire.cut(), lambda made: made.wire.mend()),
}
"""How the first machine is lost, and how it comes back."""


def taken_over(made: Pair, loss: str) -> dict[str, Any]:
    """Lose the first machine during delivery; measure until the second leads and delivers, and list what is wrong."""
    lose, back = LOSSES[loss]
    made.receiver.answer = slow
    first = made.start("first")
    first.says("leading")
    second = made.start("second")
    second.says("standby")
    for _ in range(20):
        made.post()
    eventually(lambda: len(made.sent_by("first")) >= 5)
    lose(made)
    lost, begun = time.monotonic(), set(made.posted)
    leads = _until(made, lambda: bool(second.messages("leading")))
    sent = len(made.sent_by("first"))
    delivers = _until(made, lambda: bool(made.sent_by("second")))
    if back is not None:
        back(made)
        eventually(lambda: "lock-lost" in first.events())
    _until(made, made.has_all, posting=False)
    rows = Counter(made.database.column("SELECT id FROM time"))
    keys = {(got.body["id"], got.headers["idempotency-key"]) for got in made.receiver.got if got.method == "POST"}
    late = made.sent_by("first")[sent:]
    broken = [f"{id} is {rows[id]} times in the ledger" for id in made.posted if rows[id] != 1]
    broken += [f"{id} came with {n} keys" for id, n in Counter(id for id, _ in keys).items() if n != 1]
    broken += [f"the first one began {got.body} after it was lost" for got in late if got.body["id"] not in begun]
    return {
        "loss": loss,
        "seconds until it leads": round(leads - lost, 1),
        "seconds until it delivers": round(delivers - lost, 1),
        "groups": len(made.posted),
        "requests that had begun and arrived late": len(late),
        "broken": broken,
    }


def _until(made: Pair, seen: Callable[[], bool], *, posting: bool = True) -> float:
    """Post time until `seen` is true, and return that instant."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not seen():
        assert time.monotonic() < end, [each.lines()[-5:] for each in made.served.values()]
        if posting:
            made.post()
        time.sleep(0.25)
    return time.monotonic()


def main() -> int:
    broken = False
    for loss in LOSSES:
        with tempfile.TemporaryDirectory() as folder, pair(Path(folder), 0) as made:
            found = taken_over(made, loss)
        broken |= bool(found["broken"])
        print(json.dumps(found), flush=True)
    return broken


if __name__ == "__main__":
    sys.exit(main())
