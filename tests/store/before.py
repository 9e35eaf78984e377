"""A state as version 6 of its tables had it: a line of the journal for each key, and a row for each open intent.

`python -m tests.store.before STATE NUMBER` brings one up to date and is killed before the statement of that number.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import event

from syncengine.state.database import open_database
from syncengine.state.store import open_state

UNPACKED = (
    "ALTER TABLE state_rows DROP COLUMN entry",
    "ALTER TABLE state_journal DROP COLUMN packed",
    "ALTER TABLE state_journal DROP COLUMN takes",
    "ALTER TABLE state_journal DROP COLUMN entry",
    "DROP TABLE state_open",
    "DROP TABLE state_approvals",
    "DROP TABLE state_refusals",
    "DROP TABLE state_quarantine",
    "DROP TABLE state_undone",
    "ALTER TABLE state_facts DROP COLUMN ancestors",
    "CREATE TABLE state_open (kind TEXT, name TEXT, call TEXT, PRIMARY KEY (kind, name, call))",
    "UPDATE state_facts SET version = 6",
)
"""Turns tables of today that record nothing into those of version 6."""

REMOVED, STOPPED, UNDER_WAY = "T-00002", "T-00003", "T-00004"
NAMES = ("T-00000", "T-00001", REMOVED, STOPPED, UNDER_WAY)
CREATED = '{"added":["%s"],"fields":{"category":[null,"gone"]},"status":[null,"active"]}'
CALLS = 2


def unpack(connection: sa.Connection) -> None:
    for statement in UNPACKED:
        connection.exec_driver_sql(statement)


def record(url: str, count: int) -> None:
    """Make a state in which run 1 created tags with two calls, and run 2 died over one of three."""
    open_state(url, write=True).close()
    database = open_database(url, write=True, new_lineage=lambda: "never")
    with database.alone() as connection:
        unpack(connection)
        runs = [{"id": f"run-{n}", "plan": f"plan-{n}", "outcome": "complete" if n == 1 else None} for n in (1, 2)]
        connection.execute(sa.text(RUN), runs)
        names = [f"T-{n:05}" for n in range(count)]
        body = '{"fields":{"category":"gone"},"keywords":["%s"],"metadata":{}}'
        connection.execute(sa.text(ROW), [{"name": name, "body": body % name} for name in names])
        for call in range(CALLS):
            part = names[call::CALLS]
            _lines(connection, "run-1", "intended", f"tags {call}", "tag", part, [CREATED % name for name in part])
            _lines(connection, "run-1", "settled", f"tags {call}", "call", [f"tags {call}"])
        _changes(connection)
    database.close()


RUN = """INSERT INTO state_runs (id, started, command, plan, host, who, counts, outcome)
VALUES (:id, 1000, 'apply', :plan, 'ci', 'jo', '{}', :outcome)"""
ROW = """INSERT INTO state_rows (kind, name, category, status, doubtful, confirmed, protect, run, plan, body)
VALUES ('tag', :name, 'category/gone', 'active', FALSE, TRUE, FALSE, 'run-1', 'plan-1', :body)"""
LINE = """INSERT INTO state_journal (run, epoch, at, verb, call, operation, kind, name, file, line, detail)
VALUES (:run, 1, 1000, :verb, :call, 'upsertTags', :kind, :name, 'a.yaml', 3, :detail)"""


def _changes(connection: sa.Connection) -> None:
    """One tag retired, one refused and doubted, and one that nobody knows of."""
    for call, name, status in (("r", REMOVED, "retired"), ("d", UNDER_WAY, "deleted")):
        detail = f'{{"status":["active","{status}"]}}'
        _lines(connection, "run-2", "intended", call, "tag", [name], [detail])
    _lines(connection, "run-2", "settled", "r", "tag", [REMOVED])
    _lines(connection, "run-2", "intended", "s", "tag", [STOPPED])
    _lines(connection, "run-2", "failed", "s", "tag", [STOPPED], ['{"message":"no"}'])
    _lines(connection, "run-2", "doubted", None, "tag", [STOPPED])
    connection.execute(sa.text("INSERT INTO state_open VALUES ('tag', :name, 'd')"), {"name": UNDER_WAY})


def _lines(
    connection: sa.Connection,
    run: str,
    verb: str,
    call: str | None,
    kind: str,
    names: Sequence[str],
    details: Sequence[str | None] = (),
) -> None:
    common = {"run": run, "verb": verb, "call": call, "kind": kind}
    told = zip(names, details or [None] * len(names), strict=True)
    connection.execute(sa.text(LINE), [{**common, "name": name, "detail": detail} for name, detail in told])


def _die(number: int) -> None:
    """Have this process killed before the n-th statement of a migration; of the others, before its commit."""
    seen = 0

    def count(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        nonlocal seen
        if statement.startswith(("ALTER", "SELECT call", "DROP", "CREATE", "INSERT", "UPDATE")):
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1

    event.listen(sa.Engine, "before_cursor_execute", count)
    event.listen(sa.Engine, "commit", lambda _: seen and os.kill(os.getpid(), signal.SIGKILL))


if __name__ == "__main__":
    _die(int(sys.argv[2]))
    open_state(sys.argv[1], write=True)
