"""Projects with a ledger in SQLite, and the routes and deliveries built from them."""

import json
import sqlite3
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from syncengine.errors import Diagnostic, Problems
from syncengine.posted_time.build_route import build
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.route import NARRATIVE, Narrative, Route
from syncengine.posted_time.templates import Compiler
from syncengine.project.delivery_schema import DurationSection, Unmatched
from syncengine.project.load import load_project
from syncengine.project.model import Project
from syncengine.state.inbox import open_inbox
from syncengine.state.inbox_model import InboxEntry

LEDGER = """
CREATE TABLE matter (id INTEGER PRIMARY KEY, no TEXT UNIQUE);
CREATE TABLE time (
    id TEXT NOT NULL, matter INTEGER NOT NULL REFERENCES matter (id), secs INTEGER NOT NULL CHECK (secs > 0), note TEXT
);
INSERT INTO matter VALUES (7, 'ACME-0042'), (8, 'ACME-0043');
"""
"""The table `time` has no unique key: a group that is delivered twice has two rows."""

SQL_SINK = """\
- name: ledger
  sql:
    source: ledger
    statement: INSERT INTO time (id, matter, secs, note) VALUES (:id, :matter, :secs, :note)
    params:
      id: "{{ group.groupId }}"
      matter: "{{ lookup.matter.id }}"
      secs: "{{ duration.seconds }}"
      note: "{{ narrative }}"
  externalId: "L-{{ group.groupId }}"
"""
BARE_SINK = SQL_SINK.replace("{{ lookup.matter.id }}", "7")
"""The same without a lookup."""
LOOKUPS = """\
lookups:
  - name: matter
    sql: {source: ledger, query: SELECT id FROM matter WHERE no = :no, params: {no: "{{ tag.name }}"}}
    missing: Matter {{ tag.name or "without a tag" }} is not in the ledger.
"""
JSONL = "- {name: archive, jsonl: {path: out/time.jsonl}}\n"


def http_sink(url: str, more: str = "", settings: str = "") -> str:
    return (
        f"- name: pms\n  http: {{url: '{url}/api', path: '/time/{{{{ tag.name }}}}',"
        f" json: {{id: '{{{{ group.groupId }}}}', secs: '{{{{ duration.seconds }}}}', flag: true, tags: [a, 1]}}"
        f"{more}}}\n"
        f"  externalId: '{{{{ response.id }}}}'\n{settings}"
    )


def ledger(folder: Path) -> Path:
    """A database with two matters."""
    path = folder / "ledger.db"
    if not path.exists():
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(LEDGER)
    return path


def rows(folder: Path, query: str = "SELECT id, matter, secs FROM time ORDER BY rowid") -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "ledger.db", timeout=20)) as connection:
        return connection.execute(query).fetchall()


def ids(folder: Path) -> list[str]:
    """The ids in the ledger, in the order in which they arrived."""
    return [id for (id,) in rows(folder, "SELECT id FROM time ORDER BY rowid")]


def entries(folder: Path) -> dict[str, InboxEntry]:
    with open_inbox(str(folder / ".syncengine/state.db"), write=False) as inbox:
        return {entry.group_id: entry for entry in inbox.entries()}


def files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def in_ledger(folder: Path, statement: str, values: tuple[object, ...] = ()) -> None:
    with closing(sqlite3.connect(folder / "ledger.db")) as connection, connection:
        connection.execute(statement, values)


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Another program holds the database for the duration of the block."""
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


def lines(folder: Path) -> list[dict[str, Any]]:
    """What the sink `archive` has written."""
    return [json.loads(line) for line in (folder / "out/time.jsonl").read_text().splitlines()]


def project(folder: Path, posted_time: str, sources: str = "ledger: {sql: ledger.db}", **environ: str) -> Project:
    ledger(folder)
    text = f"version: 1\nsources:\n{textwrap.indent(sources, '  ')}\npostedTime:\n{textwrap.indent(posted_time, '  ')}"
    (folder / "syncengine.yaml").write_text(text, encoding="utf-8")
    return load_project(folder=folder, environ=environ)


def into(deliver: str, more: str = "") -> str:
    return f"{more}deliver:\n{textwrap.indent(deliver, '  ')}"


def project_into(folder: Path, deliver: str, more: str = LOOKUPS, sources: str = "ledger: {sql: ledger.db}") -> Project:
    return project(folder, into(deliver, more), sources)


def delivery_to(folder: Path, url: str, posted_time: str) -> Delivery:
    """A delivery into a ledger at a database's URL."""
    return Delivery.of(project(folder, posted_time, "ledger: {sql: {env: URL}}", URL=url), {"URL": url})


def run_sql(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Execute statements, and return the rows of the last one."""
    engine = sa.create_engine(url)
    found: list[tuple[Any, ...]] = []
    with engine.begin() as connection:
        for statement in statements:
            result = connection.exec_driver_sql(statement)
            found = [tuple(row) for row in result] if result.returns_rows else []
    engine.dispose()
    return found


def delivering(
    folder: Path, deliver: str = SQL_SINK, more: str = LOOKUPS, *, now: Callable[[], float] = time.time, **given: Any
) -> Delivery:
    """A delivery into these sinks. `now` is the date and, unless it is given, the clock; `given` are variables."""
    clock = given.pop("clock", time.monotonic if now is time.time else now)
    found = project(folder, into(deliver, more), **given)
    return Delivery.of(found, given, now=now, clock=clock)


def problems(
    folder: Path, posted_time: str, environ: Mapping[str, str] | None = None, **given: str
) -> list[Diagnostic]:
    """The diagnostics for a project that cannot be built; an empty list if it can."""
    try:
        built = build(project(folder, posted_time, **given), environ or {}, now=time.time)
    except Problems as refused:
        return list(refused.found)
    built.databases.close()
    return []


@cache
def bare_route() -> Route:
    """A route without sinks, compiled once."""
    compiler = Compiler(Path(), "syncengine.yaml")
    duration = DurationSection.model_construct(from_=None, weighting=None, round_up_to=None)
    return Route(
        zone=None,
        duration=duration,
        unmatched=Unmatched.ACCEPT,
        needs_narrative=True,
        rules=(),
        lookups=(),
        narrative=Narrative(compiler.builtin(NARRATIVE)),
        sink_rules=(),
    )
