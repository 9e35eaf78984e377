"""All that a soak runs: the service, PostgreSQL, a receiver of HTTP, `serve`, and what is in each sink."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
import sqlalchemy as sa

from tests import postgresql
from tests.cli.program import PROGRAM, Project
from tests.posted_time.receiver import Receiver, receiving
from tests.support.quiet import unused_port
from tests.support.waiting import eventually

TABLE = "CREATE TABLE time (id TEXT NOT NULL, matter TEXT)"
INSERT = '"INSERT INTO time (id, matter) VALUES (:id, :matter)"'
GROUP = '{id: "{{ group.groupId }}", matter: "{{ tag.name }}"}'
SINKS = f"""\
    - name: ledger
      sql: {{source: ledger, statement: {INSERT}, params: {GROUP}}}
    - name: books
      sql: {{source: books, statement: {INSERT}, params: {GROUP}}}
    - name: pms
      http: {{url: "URL", method: POST, timeout: 3s, json: {GROUP}}}
    - name: archive
      jsonl: {{path: out/time.jsonl, json: {GROUP}}}
"""


@dataclass
class World:
    project: Project
    control: httpx.Client
    database: postgresql.Server
    receiver: Receiver
    hook: int
    probes: int
    api_key: Path
    caller_key: Path
    mode: str = "fetch"
    edits: int = 0
    secrets: list[str] = field(default_factory=list)
    lives: list[subprocess.Popen[str]] = field(default_factory=list)
    ended_by_itself: list[int] = field(default_factory=list)
    posted: int = 0

    # --- settings

    def rotate(self, file: Path) -> str:
        """A key that nobody had before."""
        secret = f"secret-{len(self.secrets):03}-never-to-be-seen"
        self.secrets.append(secret)
        file.write_text(secret)
        return secret

    def settings(self) -> None:
        """The project file; each time another one."""
        self.edits += 1
        hook = f"http://127.0.0.1:{self.hook}/hook"
        webhook = f'{{callbackUrl: "{hook}", callerKey: {{file: caller.key}}, bind: "127.0.0.1:{self.hook}"}}'
        text = f"""\
version: 1
service: {{baseUrl: {self.project.url}, apiKey: {{file: api.key}}, timeout: 5s, landing: 0s}}
state: {{env: SYNCENGINE_STATE}}
serve: {{every: 15s, listen: "127.0.0.1:{self.probes}"}}
sources: {{ledger: {{sql: {{env: LEDGER}}}}, books: {{sql: books.db}}}}
postedTime:
  mode: {self.mode}
  webhook: {webhook}
  keep: {30 + self.edits}d
  deliver:
{SINKS.replace("URL", self.receiver.url)}"""
        (self.project.folder / "syncengine.yaml").write_text(text, encoding="utf-8")

    # --- serve

    @property
    def life(self) -> subprocess.Popen[str]:
        return self.lives[-1]

    def serve(self) -> None:
        """Another life of `serve`, with a log of its own."""
        with (self.project.folder / f"serve-{len(self.lives):03}.log").open("w") as log:
            environ = self.project.surroundings()
            del environ["SYNCENGINE_API_KEY"]  # it would go before the file
            life = subprocess.Popen(
                [*PROGRAM, "serve"],
                cwd=self.project.folder,
                env=environ,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            self.lives.append(life)

    def revived(self) -> None:
        """What a supervisor does; it should never have to."""
        if self.life.poll() is not None:
            self.ended_by_itself.append(self.life.returncode)
            self.serve()

    def stop(self, number: signal.Signals) -> int:
        self.life.send_signal(number)
        return self.life.wait(120)

    def log_lines(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self.project.folder.glob("serve-*.log")):
            for line in path.read_text(encoding="utf-8").splitlines():
                if line.startswith("{"):
                    yield msgspec.json.decode(line)
                elif line not in ("", "interrupted"):  # of one that was still starting
                    yield {"level": "error", "event": "raw", "message": line}

    # --- the service

    def tell(self, path: str, body: Any) -> Any:
        response = self.control.post(path, json=body)
        assert response.status_code == 200, response.text
        return response.json()

    def post(self, count: int) -> None:
        ids = [f"g{self.posted + number:06}" for number in range(count)]
        self.posted += count
        self.tell("/posted-time", {"groups": [{"groupId": id, "tag": "ACME"} for id in ids]})

    def groups(self) -> list[dict[str, Any]]:
        return list(self.control.get("/state", timeout=60).json()["postedTime"])

    # --- what is in the sinks

    def delivered(self) -> dict[str, Counter[str]]:
        """Sink → how often each group is there. The receiver keeps one body for each key, as the contract has it."""
        engine = sa.create_engine(self.database.url())
        with engine.connect() as connection:
            ledger = Counter(connection.exec_driver_sql("SELECT id FROM time").scalars())
        engine.dispose()
        with closing(sqlite3.connect(self.project.folder / "books.db", timeout=30)) as books:
            rows = Counter(id for (id,) in books.execute("SELECT id FROM time"))
        lines = (self.project.folder / "out" / "time.jsonl").read_bytes().splitlines()
        archive = Counter(msgspec.json.decode(line)["id"] for line in lines)
        taken = Counter(body["id"] for body in TAKEN.values())
        return {"ledger": ledger, "books": rows, "pms": taken, "archive": archive}


TAKEN: dict[str, Any] = {}
"""Key → body of what the receiver answered with 2xx, or took without being able to say so."""


@contextmanager
def world(folder: Path) -> Iterator[World]:
    with ExitStack() as stack:
        database = stack.enter_context(postgresql.running())
        receiver = stack.enter_context(receiving())
        keys = folder / "project"
        keys.mkdir(parents=True)
        api_key, port = keys / "api.key", unused_port()
        api_key.write_text("")
        accepted = folder / "accepted.key"
        accepted.write_text("")
        command = [sys.executable, "-m", "trials.soak.service", str(port), str(accepted)]
        service = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        stack.callback(service.wait)
        stack.callback(service.terminate)
        control = stack.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{port}/sandbox", trust_env=False))
        environ = {"SYNCENGINE_STATE": database.url(), "LEDGER": database.url()}
        project = Project(keys, f"http://127.0.0.1:{port}/connect/api", environ)
        made = World(project, control, database, receiver, unused_port(), unused_port(), api_key, keys / "caller.key")
        eventually(lambda: _answers(control))
        accepted.write_text(made.rotate(api_key))
        made.rotate(made.caller_key)
        made.tell("/settings", {"holdSeconds": 5, "reofferSeconds": 20, "retrySeconds": 2, "webhookCalls": 100000})
        _tables(made)
        made.settings()
        project.wants(tags=[{"name": "ACME"}])
        made.serve()
        try:
            yield made
        finally:
            for life in made.lives:
                life.kill()
                life.wait()


def accepted_key(made: World) -> Path:
    """The file of the key that the service accepts."""
    return made.project.folder.parent / "accepted.key"


def _answers(control: httpx.Client) -> bool:
    try:
        return control.get("/state").status_code == 200
    except httpx.TransportError:
        return False


def _tables(made: World) -> None:
    engine = sa.create_engine(made.database.url())
    with engine.begin() as connection:
        connection.exec_driver_sql(TABLE)
    engine.dispose()
    with closing(sqlite3.connect(made.project.folder / "books.db")) as books, books:
        books.execute("PRAGMA journal_mode = WAL").fetchall()
        books.execute(TABLE)


def seconds_until(end: float) -> float:
    return max(0.0, end - time.monotonic())
