"""The tables of a state, and how a state of an older schema becomes one of this (docs/planning.md 1.4).

One schema for SQLite and PostgreSQL: plain columns, JSON as text, order by code point in both. Names begin with
`state_`, so that a team's database may hold a state beside other things.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import sqlalchemy as sa

from syncengine.state.codec import from_json, to_json
from syncengine.state.columns import METADATA, NAME, SERIAL
from syncengine.state.inbox_tables import INBOX_TABLES, MECHANISM
from syncengine.state.info import VERSION
from syncengine.state.losses import COLUMNS

__all__ = ["METADATA", "NAME"]

FACTS = sa.Table(
    "state_facts",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("lineage", sa.Text, nullable=False),
    sa.Column("base_url", sa.Text),
    sa.Column("team", sa.Text),
    sa.Column("owns_activity_types", sa.Boolean, nullable=False),
    sa.Column("revision", sa.Text),
    sa.Column("ancestors", sa.Text, comment="JSON: commits before `revision`, which no run may apply any more"),
    sa.Column("generation", sa.Text, comment="Another one after each transaction that writes"),
    sa.Column("sources", sa.Text, comment="JSON: the rows that each source of data had when it was applied last"),
    comment="One row. `version` is read by engines of every age: it stays where it is.",
)

LOCK = sa.Table(
    "state_lock",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("lock_id", sa.Text),
    sa.Column("holder", sa.Text),
    sa.Column("acquired", sa.Double),
    sa.Column("expires", sa.Double, comment="NULL: held by hand, never expires"),
    sa.Column("released", sa.Double),
    sa.Column("beats", sa.BigInteger, nullable=False, server_default="0", comment="Renewals under this epoch"),
    sa.Column("seconds", sa.Double, comment="What one renewal is good for"),
    comment="A row for each thing that is held. Whoever takes a lock raises `epoch`; whoever writes proves it.",
)

STATE_LOCK, INBOX_LOCK = 1, 2
"""Rows of the lock's table: the state's, taken by one apply, and the inbox's, held by the one that delivers."""

MOVING: sa.ColumnElement[bool] = sa.literal_column("former", sa.Text).is_not(None)
"""The rows of an index that is nearly empty: tags that may be in more than one category."""

ROWS = sa.Table(
    "state_rows",
    METADATA,
    sa.Column("kind", NAME, primary_key=True),
    sa.Column("name", NAME, primary_key=True),
    sa.Column("category", NAME, index=True),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("doubtful", sa.Boolean, nullable=False),
    sa.Column("confirmed", sa.Boolean, nullable=False),
    sa.Column("server_id", sa.Text),
    sa.Column("protect", sa.Boolean, nullable=False),
    sa.Column("former", sa.Text, comment="NULL unless `category` does not say every category that may hold the tag"),
    sa.Column("file", sa.Text),
    sa.Column("line", sa.Integer),
    sa.Column("data_file", sa.Text),
    sa.Column("data_row", sa.Integer),
    sa.Column("run", sa.Text),
    sa.Column("plan", sa.Text),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("entry", sa.BigInteger, comment="The last packed line of the journal that tells of it"),
    comment="What the service was last asked to hold; columns as in codec.COLUMNS, and where its history ends.",
)

OPEN = sa.Table(
    "state_open",
    METADATA,
    sa.Column("call", sa.Text, primary_key=True),
    sa.Column("kind", NAME, primary_key=True),
    sa.Column("names", sa.Text, nullable=False, comment="JSON: what of this kind neither settled nor failed"),
    comment="Intents of the run without an end: as large as what is in flight.",
)

ATTEMPTS = sa.Table(
    "state_attempts",
    METADATA,
    sa.Column("run", sa.Text, primary_key=True),
    sa.Column("call", sa.Text, primary_key=True),
    sa.Column("operation", sa.Text, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False, comment="What it would make true, as in landing.Attempt"),
    sa.Column("clock", sa.Text, comment="Whose seconds `since` are; NULL: its run may still send it"),
    sa.Column("since", sa.Double, comment="From when on its sender could send no more"),
    comment="Calls that the service may still execute: under way, or of unknown end until the bound has passed.",
)

JOURNAL = sa.Table(
    "state_journal",
    METADATA,
    sa.Column("id", SERIAL, primary_key=True, autoincrement=True),
    sa.Column("run", sa.Text, index=True),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("verb", sa.Text, nullable=False),
    sa.Column("call", sa.Text),
    sa.Column("operation", sa.Text),
    sa.Column("kind", NAME, nullable=False),
    sa.Column("name", NAME, nullable=False),
    sa.Column("file", sa.Text),
    sa.Column("line", sa.Integer),
    sa.Column("detail", sa.Text),
    sa.Column("packed", sa.LargeBinary, comment="What calls that were written together say, as packed_lines.CallLines"),
    sa.Column("takes", sa.Boolean, comment="Whether something packed here may take something away"),
    sa.Column("entry", sa.BigInteger, comment="Of what was forgotten, the last packed line that tells of it"),
    sa.Index("state_journal_key", "kind", "name"),
    comment="Append-only: a packed line for all keys of a verb, found by `state_rows.entry`, or a line for one key.",
)

RUNS = sa.Table(
    "state_runs",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("started", sa.Double, nullable=False, index=True),
    sa.Column("ended", sa.Double),
    sa.Column("command", sa.Text, nullable=False),
    sa.Column("plan", sa.Text, index=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("job_url", sa.Text),
    sa.Column("revision", sa.Text),
    sa.Column("clean", sa.Boolean),
    sa.Column("outcome", sa.Text),
    sa.Column("counts", sa.Text),
)

APPROVALS = sa.Table(
    "state_approvals",
    METADATA,
    sa.Column("approval", sa.Text, primary_key=True, comment="COUNT@HASH, or a line under `removed:`"),
    sa.Column("run", sa.Text, nullable=False, comment="The first that began with it"),
    sa.Column("plan", sa.Text),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("covers", sa.Text, nullable=False, comment="JSON: the losses that it approves, as losses.to_list"),
    sa.Column("remaining", sa.Text, nullable=False, comment="JSON: those of them that have not settled"),
    sa.Column("used", sa.Double, comment="From when on it approves nothing any more"),
    comment="Approvals that applies began with: each is good for one removal of what it covers.",
)

REFUSALS = sa.Table(
    "state_refusals",
    METADATA,
    sa.Column("kind", NAME, primary_key=True),
    sa.Column("name", NAME, primary_key=True),
    sa.Column("times", sa.Integer, nullable=False, comment="Runs, since it was last applied"),
    sa.Column("since", sa.Double, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("message", sa.Text, nullable=False, comment="The service's words"),
    sa.Column("content", sa.Text, nullable=False, comment="The digest of what was refused, as refusals.content_of"),
    sa.Column("run", sa.Text, comment="The last that was refused"),
    sa.Column("pending", sa.Text, comment="A later run whose call has no known end; NULL: the refusal is the last"),
    sa.Column("settled", sa.Text, comment="A later run that applied it: this is over"),
    comment="What the service refused of resources that are not applied since: as large as what fails.",
)

QUARANTINE = sa.Table(
    "state_quarantine",
    METADATA,
    sa.Column("kind", NAME, primary_key=True),
    sa.Column("name", NAME, primary_key=True),
    sa.Column("origin", NAME, primary_key=True, comment="`state`, or the digest of an entry of the project file"),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("until", sa.Double),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("content", sa.Text, nullable=False, comment="The digest of what was refused when it was set aside"),
    sa.Column("ended", sa.Double, comment="From when on an entry of the project file counts no more"),
    comment="Resources that are set aside.",
)

UNDONE = sa.Table(
    "state_undone",
    METADATA,
    sa.Column("kind", NAME, primary_key=True),
    sa.Column("name", NAME, primary_key=True),
    sa.Column("made", sa.Text, nullable=False, comment="Digests of what came and went, as undone.made_of"),
    sa.Column("run", sa.Text, nullable=False),
    sa.Column("undone_by", sa.Text, nullable=False, comment="The run that took it back"),
    comment="What undone runs had made, a line for each: manifests that ask for it again are not applied.",
)

SESSIONS = sa.Table(
    "state_sessions",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("run", sa.Text),
    sa.Column("opened", sa.Double, nullable=False),
    sa.Column("closed", sa.Double),
)

STATE = (FACTS, LOCK, ROWS, OPEN, ATTEMPTS, JOURNAL, RUNS, APPROVALS, REFUSALS, QUARANTINE, UNDONE, SESSIONS)
"""All tables but those of posted time: names, contents of resources and people stand in them."""

Migration = Callable[[sa.Connection], None]


def _inbox_arrives(connection: sa.Connection) -> None:
    """1 → 2: posted time."""
    METADATA.create_all(connection, tables=INBOX_TABLES)
    connection.execute(sa.insert(LOCK).values(id=INBOX_LOCK, epoch=0))


def _generations(connection: sa.Connection) -> None:
    """2 → 3: rows that did not change are known without being read."""
    connection.exec_driver_sql("ALTER TABLE state_facts ADD COLUMN generation TEXT")


def _mechanism(connection: sa.Connection) -> None:
    """3 → 4: which mechanism was registered; states that registered one have the table since then.

    From here on the journal has lines of whole calls (`journal.CALL`), which an older engine would not understand.
    """
    METADATA.create_all(connection, tables=[MECHANISM])


def _sources(connection: sa.Connection) -> None:
    """4 → 5: how many rows sources had; of states from before, resources tell their sources."""
    connection.exec_driver_sql("ALTER TABLE state_facts ADD COLUMN sources TEXT")


def _attempts(connection: sa.Connection) -> None:
    """5 → 6: calls that may still be executed; heartbeats that are counted.

    Intents of a run that died before say nothing of their content: their rows are doubtful, as they were.
    """
    METADATA.create_all(connection, tables=[ATTEMPTS])
    connection.exec_driver_sql("ALTER TABLE state_lock ADD COLUMN beats BIGINT NOT NULL DEFAULT 0")
    connection.exec_driver_sql("ALTER TABLE state_lock ADD COLUMN seconds DOUBLE PRECISION")


def _packed_lines(connection: sa.Connection) -> None:
    """6 → 7: lines are packed, and rows point to them; lines of before stay as they are, and are read by their keys."""
    for table, column, kind in (
        ("state_rows", "entry", "BIGINT"),
        ("state_journal", "packed", "BLOB" if connection.dialect.name == "sqlite" else "BYTEA"),
        ("state_journal", "takes", "BOOLEAN"),
        ("state_journal", "entry", "BIGINT"),
    ):
        connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    open_names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for call, kind, name in connection.exec_driver_sql("SELECT call, kind, name FROM state_open ORDER BY 1, 2, 3"):
        open_names[call, kind].append(name)
    connection.exec_driver_sql("DROP TABLE state_open")
    METADATA.create_all(connection, tables=[OPEN])
    rows = [(call, kind, to_json(names)) for (call, kind), names in open_names.items()]
    write_many(connection, OPEN, ("call", "kind", "names"), rows)


def _approvals(connection: sa.Connection) -> None:
    """7 → 8: what approvals cover. Those of runs that came to their end are used; what they covered nobody wrote."""
    METADATA.create_all(connection, tables=[APPROVALS])
    ended = sa.and_(RUNS.c.outcome.in_(("complete", "incomplete")), RUNS.c.counts.contains('"approvals"'))
    used: dict[str, tuple[object, ...]] = {}
    query = sa.select(RUNS.c.id, RUNS.c.plan, RUNS.c.started, RUNS.c.ended, RUNS.c.counts).where(ended)
    for run, plan, started, end, about in connection.execute(query.order_by(RUNS.c.started)):
        for text in from_json(about).get("approvals", ()):
            used.setdefault(text, (text, run, plan, started, "[]", "[]", end))
    write_many(connection, APPROVALS, COLUMNS, list(used.values()))


def _operation(connection: sa.Connection) -> None:
    """8 → 9: tables for daily operation, and the commits before the one that was applied last."""
    connection.exec_driver_sql("ALTER TABLE state_facts ADD COLUMN ancestors TEXT")
    _quarantine(connection)
    _undone(connection)


def _quarantine(connection: sa.Connection) -> None:
    """Refusals, and the quarantine; refusals are counted from the next one on."""
    METADATA.create_all(connection, tables=[REFUSALS, QUARANTINE])


def _undone(connection: sa.Connection) -> None:
    METADATA.create_all(connection, tables=[UNDONE])


MIGRATIONS: tuple[Migration, ...] = (
    _inbox_arrives,
    _generations,
    _mechanism,
    _sources,
    _attempts,
    _packed_lines,
    _approvals,
    _operation,
)
"""The n-th turns a state of version n, from 1, into one of version n + 1; a new state starts at the last version.
Append; never edit one that was released."""


assert len(MIGRATIONS) + 1 == VERSION, "every migration raises the version by one"

ARRIVED = {"generation": 3, "sources": 5, "attempts": 6, "ancestors": 9}
"""The first schemas that have these columns of `state_facts`, and the table of attempts."""

READABLE = 1
"""The oldest schema whose recorded rows read as they do now: a `plan`, which never migrates, is content with it."""


_VERSION = sa.select(FACTS.c.version)


def version(connection: sa.Connection) -> int:
    """The schema that the database holds; 0 when it holds no state."""
    if not sa.inspect(connection).has_table(FACTS.name):
        return 0
    return int(connection.execute(_VERSION).scalar_one())


def create(connection: sa.Connection, lineage: str, last: int) -> None:
    """Write an empty state."""
    METADATA.create_all(connection)
    # No sa.Index: with a condition for two databases, every start would import the dialects of both.
    connection.exec_driver_sql("CREATE INDEX state_rows_moving ON state_rows (kind) WHERE former IS NOT NULL")
    connection.execute(sa.insert(LOCK), [{"id": STATE_LOCK, "epoch": 0}, {"id": INBOX_LOCK, "epoch": 0}])
    connection.execute(sa.insert(FACTS).values(id=1, version=last, lineage=lineage, owns_activity_types=False))


def upgrade(
    connection: sa.Connection, new_lineage: Callable[[], str], migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Migrate the database to the last version. The caller holds others off."""
    current, last = version(connection), len(migrations) + 1
    if current == 0:
        return create(connection, new_lineage(), last)
    for migration in migrations[current - 1 :]:
        migration(connection)
    connection.execute(sa.update(FACTS).values(version=last))
    return None


def write_many(
    connection: sa.Connection,
    table: sa.Table,
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    upsert: bool = False,
) -> None:
    """Insert rows, which hold the values of these columns; with `upsert` they replace rows of the same keys.

    Past SQLAlchemy's own executemany, whose work for each row and parameter would be half the time of a large apply. To
    PostgreSQL they go as one JSON parameter of one statement, unless there are bytes, which JSON cannot hold.
    """
    if not rows:
        return
    has_bytes = any(isinstance(table.c[name].type, sa.LargeBinary) for name in names)
    dialect = connection.dialect.name
    if dialect == "postgresql" and not has_bytes:
        text = _insertion(dialect, table, tuple(names), upsert=upsert, as_json=True)
        connection.exec_driver_sql(text, (to_json([dict(zip(names, row, strict=True)) for row in rows]),))
        return
    literals, values = _shared(rows) if dialect == "sqlite" and len(rows) >= WORTH_SHARING else ((), rows)
    text = _insertion(dialect, table, tuple(names), upsert=upsert, as_json=False, literals=literals)
    connection.exec_driver_sql(text, list(map(tuple, values)))


WORTH_SHARING = 100
"""Rows from which it is worth while to look for values that all of them have."""

LITERALS: Mapping[object, str] = {None: "NULL", False: "0", True: "1"}


def _shared(rows: Sequence[Sequence[object]]) -> tuple[tuple[str | None, ...], Sequence[Sequence[object]]]:
    """Literals of columns in which all rows have the same nothing or flag, and the rows without these columns.

    SQLite's driver takes as long for two values of a row as SQLite for writing it.
    """
    columns = list(zip(*rows, strict=True))
    literals = tuple(LITERALS.get(each[0]) if each.count(each[0]) == len(each) else None for each in columns)
    rest = [each for each, literal in zip(columns, literals, strict=True) if literal is None]
    return (literals, list(zip(*rest, strict=True))) if rest else ((), rows)


def insert_one(connection: sa.Connection, table: sa.Table, names: Sequence[str], row: Sequence[object]) -> int:
    """Insert a row; its id, which the database makes."""
    text = _insertion(connection.dialect.name, table, tuple(names), upsert=False, as_json=False)
    return int(connection.exec_driver_sql(f"{text} RETURNING id", tuple(row)).scalar_one())


@cache
def _insertion(
    dialect: str,
    table: sa.Table,
    names: tuple[str, ...],
    *,
    upsert: bool,
    as_json: bool,
    literals: tuple[str | None, ...] = (),
) -> str:
    columns, mark = ", ".join(names), "?" if dialect == "sqlite" else "%s"
    records = f"json_populate_recordset(CAST(NULL AS {table.name}), CAST({mark} AS json))"
    marks = [literal or mark for literal in literals or [None] * len(names)]
    values = f"SELECT {columns} FROM {records}" if as_json else f"VALUES ({', '.join(marks)})"  # noqa: S608 - names of columns
    keys = [column.name for column in table.primary_key]
    new = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    conflict = f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {new}" if upsert else ""
    return f"INSERT INTO {table.name} ({columns}) {values}{conflict}"
