"""A state as version 6 of its tables had it: a line of the journal for each key, and a row for each open intent."""

from __future__ import annotations

import sqlalchemy as sa

UNPACKED = (
    "ALTER TABLE state_rows DROP COLUMN entry",
    "ALTER TABLE state_journal DROP COLUMN packed",
    "ALTER TABLE state_journal DROP COLUMN takes",
    "ALTER TABLE state_journal DROP COLUMN entry",
    "DROP TABLE state_open",
    "CREATE TABLE state_open (kind TEXT, name TEXT, call TEXT, PRIMARY KEY (kind, name, call))",
    "UPDATE state_facts SET version = 6",
)


def unpack(connection: sa.Connection) -> None:
    """Turn tables of version 7 that record nothing into those of version 6."""
    for statement in UNPACKED:
        connection.exec_driver_sql(statement)
