"""A running `serve`, the service that it calls, the sinks that it delivers to, and helpers that look at all of them."""

import json
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from tests.cli.program import Project
from tests.cli.service import KEY, Service, serving
from tests.support import loopback
from tests.support.quiet import unused_port
from tests.support.waiting import PATIENCE_SECONDS, eventually
from tests.support.warm import Started

LAST_ANSWERS = 1.0
"""The seconds that a hurried process takes for its last answers."""
CALLER_KEY = "caller-9b1d-never-to-be-seen"

LEDGER = """\
    - name: ledger
      sql: {source: ledger, statement: "INSERT INTO time (id, matter) VALUES (:id, :matter)",
            params: {id: "{{ group.groupId }}", matter: "{{ tag.name }}"}}
      externalId: "L-{{ group.groupId }}"
"""
HTTP_SINK = """\
    - name: pms
      http: {{url: "{url}", method: POST, json: {{id: "{{{{ group.groupId }}}}"}}}}
"""


def hurry() -> None:
    """Shorten the waits of `serve` in this process; it still waits for the same things."""
    from syncengine.posted_time import databases, sink_health
    from syncengine.posted_time.pace import Pace
    from syncengine.serve import process, shift

    process.LOOK_SECONDS = shift.LOOK_AT_LEASE = shift.LOOK_AT_DATABASE = 0.2
    shift.LAST_ANSWERS = LAST_ANSWERS
    sink_health.FIRST_REST, sink_health.LONGEST_REST = 1.0, 2.0
    databases.PATIENCE_SECONDS = 5.0
    # The command imports this name as it starts.
    pace = Pace(first=0.1, longest=1.0, empty=0.2, down=0.5)
    process.Process = partial(process.Process, pace=pace)  # type: ignore[assignment, misc]


@dataclass
class Served:
    """A process, and its log while it is written."""

    process: Started | subprocess.Popen[Any]
    log: Path

    def lines(self) -> list[dict[str, Any]]:
        """The complete lines of the log, each of which must be JSON."""
        written = self.log.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in written if line.endswith("\n")]

    def events(self) -> list[str]:
        return [line["event"] for line in self.lines()]

    def messages(self, event: str) -> list[str]:
        return [line["message"] for line in self.lines() if line["event"] == event]

    def says(self, event: str, count: int = 1) -> list[str]:
        """The messages of `event`, once there are at least `count` of them."""

        def look() -> list[str]:
            assert self.process.poll() is None or self.events().count(event) >= count, self.log.read_text()
            found = self.messages(event)
            return found if len(found) >= count else []

        return eventually(look)

    def ends(self) -> int:
        """The exit code, once the process has ended by itself."""
        return self.process.wait(PATIENCE_SECONDS)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.ends()


@dataclass
class World:
    service: Service
    project: Project
    port: int
    started: list[Served] = field(default_factory=list)

    # --- the project

    def settings(
        self,
        *,
        sinks: str = LEDGER,
        posted: str = "",
        more: str = "",
        every: str = "1h",
        ledger: str = "ledger.db",
        service: tuple[str, ...] = (),
    ) -> None:
        """Write the project file: `posted` goes into `postedTime`, `more` beside it, `service` into `service`."""
        serve = f"serve: {{every: {every}, listen: '127.0.0.1:{self.port}'}}"
        sources = f"sources: {{ledger: {{sql: {ledger}}}}}"
        text = "\n".join([serve, sources, more, "postedTime:", posted, "  deliver:", sinks])
        self.project.settings(*[line for line in text.splitlines() if line.strip()], service=service)

    def ledger(self, column: str = "id") -> list[str]:
        """The group ids in the ledger, or another column, in the order of the ids."""
        with closing(sqlite3.connect(self.project.folder / "ledger.db", timeout=30)) as database:
            return [value for (value,) in database.execute(f"SELECT {column} FROM time ORDER BY id")]

    def matters(self) -> list[str]:
        return self.ledger("matter")

    # --- the process

    def serve(self, *arguments: str, environ: dict[str, str] | None = None, hurried: bool = True) -> Served:
        log = self.project.folder / f"serve-{len(self.started)}.log"
        log.touch()
        surroundings = self.project.surroundings({"CALLER_KEY": CALLER_KEY, **(environ or {})})
        first = hurry if hurried else None
        process = Started(["serve", *arguments], folder=self.project.folder, environ=surroundings, log=log, first=first)
        served = Served(process, log)
        self.started.append(served)
        return served

    def serve_ready(self, *arguments: str, **given: Any) -> Served:
        """A process that is ready."""
        served = self.serve(*arguments, **given)
        eventually(self.ready)
        return served

    def probe(self, path: str) -> httpx.Response | None:
        try:
            return loopback.get(f"http://127.0.0.1:{self.port}{path}")
        except httpx.TransportError:
            return None

    def answer(self, path: str) -> dict[str, Any]:
        """The JSON of a probe, once it answers 200."""

        def look() -> dict[str, Any] | None:
            response = self.probe(path)
            return response.json() if response is not None and response.status_code == 200 else None

        return eventually(look)

    def ready(self) -> bool:
        response = self.probe("/readyz")
        return response is not None and response.status_code == 200

    def figures(self) -> dict[str, str]:
        """The metrics, by name and labels."""
        metrics = self.probe("/metrics")
        assert metrics is not None
        return dict(line.rsplit(" ", 1) for line in metrics.text.splitlines() if not line.startswith("#"))

    # --- the service

    def post(self, *ids: str, **given: Any) -> None:
        """Post time as a user does, in one operation."""
        groups = [{"groupId": id, "tag": "ACME", **given} for id in ids]
        self.service.say("/posted-time", {"groups": groups})

    def subscribe_another(self) -> None:
        """Register the webhook of another connector."""
        hook = {"callbackUrl": "http://127.0.0.1:9/theirs", "callerKey": "theirs"}
        response = loopback.post(f"{self.service.url}/postedtime/subscribe", json=hook, headers={"x-api-key": KEY})
        assert response.status_code == 200, response.text

    def deliver(self, *ids: str, **given: Any) -> None:
        """Post time, and wait until the service has all that was posted as successful."""
        self.post(*ids, **given)
        self.all_succeed()

    def all_succeed(self) -> None:
        eventually(lambda: set(self.states().values()) == {"success"})

    def posted(self) -> dict[str, dict[str, Any]]:
        """Posted groups as the service sees them, by id."""
        return {group["groupId"]: group for group in self.service.state()["postedTime"]}

    def states(self) -> dict[str, str]:
        return {id: group["state"] for id, group in self.posted().items()}

    def connection(self) -> dict[str, Any]:
        connection: dict[str, Any] = self.service.state()["connection"]
        return connection

    def health(self) -> dict[str, Any] | None:
        health: dict[str, Any] | None = self.connection()["health"]
        return health

    def told(self, operation: str) -> int:
        """How often the service was called with this operation."""
        return self.service.asked().count(operation)

    def files(self) -> bytes:
        """The content of all files in the project's folder, logs included."""
        return b"".join(path.read_bytes() for path in self.project.folder.rglob("*") if path.is_file())


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """A world whose processes are ended afterwards; no log may hold a traceback or a secret, in any test."""
    with serving() as service:
        made = World(service, Project(folder / "project", service.url), unused_port())
        service.choose(holdSeconds=1, reofferSeconds=2, retrySeconds=1)
        made.settings()
        with closing(sqlite3.connect(made.project.folder / "ledger.db")) as database, database:
            database.execute("PRAGMA journal_mode = WAL").fetchall()
            database.execute("CREATE TABLE time (id TEXT, matter TEXT)")
        try:
            yield made
        finally:
            for served in made.started:
                served.process.kill()
                served.process.wait()
    for served in made.started:
        text = served.log.read_text(encoding="utf-8")
        assert "Traceback" not in text, text
    written = made.files()
    assert KEY.encode() not in written
    assert CALLER_KEY.encode() not in written
