"""The tables of a state (docs/planning.md 1.4), and how their rows are read and written.

SQLite and PostgreSQL share one schema: plain columns, JSON as text, ordering by code point. Table names begin with
`state_`, so that a state can share a database with other data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from syncengine.document.json_text import decode_json
from syncengine.resource import Key, Kind, Recorded, Status
from syncengine.state.codec import COLUMNS, from_row, to_json
from syncengine.state.records import Facts

VERSION = 11
"""The version of the tables. A state of another version is refused: there are no migrations before 1.0."""

METADATA = sa.MetaData()

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""The type of text that sorts by code point, as SQLite does by default."""


class JsonText(sa.TypeDecorator[Any]):
    """A JSON value as text with sorted names, on every database; NULL for `None`. Damaged text raises `ValueError`."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:
        return None if value is None else to_json(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:
        return None if value is None else decode_json(value)


SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

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
    sa.Column("ancestors", JsonText, comment="commits before `revision`, which no run may apply"),
    sa.Column("generation", sa.Text, comment="Changes with every transaction that writes"),
    sa.Column("sources", JsonText, comment="the number of rows of each data source when last applied"),
    sa.Column("pruned", sa.Double, comment="The time of the last change that was removed from the history"),
    comment="One row. Every version of the program reads `version`, to refuse a state of another, so it never moves.",
)

LOCK = sa.Table(
    "state_lock",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("lock_id", sa.Text),
    sa.Column("holder", JsonText),
    sa.Column("acquired", sa.Double),
    sa.Column("expires", sa.Double, comment="NULL: taken by hand, never expires"),
    sa.Column("released", sa.Double),
    sa.Column("beats", sa.BigInteger, nullable=False, server_default="0", comment="Renewals under this epoch"),
    sa.Column("seconds", sa.Double, comment="How long one renewal is valid"),
    comment="One row per lock. Taking a lock increments `epoch`, and every write proves it.",
)

STATE_LOCK, INBOX_LOCK = 1, 2
"""The ids of the lock rows: of the state, taken by an apply, and of the inbox, taken by the process that delivers."""

MOVING: sa.ColumnElement[bool] = sa.literal_column("former", sa.Text).is_not(None)
"""The condition of a nearly empty index, which selects tags that may be in more than one category."""

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
    sa.Column("former", sa.Text, comment="JSON: former categories; NULL if only `category` may have the tag"),
    sa.Column("file", sa.Text),
    sa.Column("line", sa.Integer),
    sa.Column("data_file", sa.Text),
    sa.Column("data_row", sa.Integer),
    sa.Column("run", sa.Text),
    sa.Column("plan", sa.Text),
    sa.Column("body", sa.Text, nullable=False),
    comment="The resources that the service was last asked to store. Columns as in codec.COLUMNS.",
)

CALLS = sa.Table(
    "state_calls",
    METADATA,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False, comment="Grows with time"),
    sa.Column("run", sa.Text),
    sa.Column("call", sa.Text, comment="The name of the call in its plan; NULL: the changes were made without a call"),
    sa.Column("operation", sa.Text),
    sa.Column("at", sa.Double, nullable=False, index=True, comment="When it was recorded, before it was sent"),
    sa.Column("ended", sa.Double),
    sa.Column("outcome", sa.Text, comment="NULL: in flight. Otherwise one of those in journal"),
    sa.Column("message", sa.Text, comment="Why it failed"),
    sa.Column("content", sa.LargeBinary, comment="The encoded records.Attempt, until the call can no longer land"),
    sa.Column("clock", sa.Text, comment="The clock that `since` is read from; NULL: the run may still send the call"),
    sa.Column("since", sa.Double, comment="When the sender could no longer send the call"),
    sa.Index("state_calls_run", "run", "call"),
    comment="The calls of all runs, and what was recorded without a call. They are the history, with state_changes.",
)

CHANGES = sa.Table(
    "state_changes",
    METADATA,
    sa.Column("call", sa.BigInteger, primary_key=True, autoincrement=False, comment="The id in state_calls"),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", NAME, nullable=False),
    sa.Column("name", NAME, nullable=False),
    sa.Column("file", sa.Text),
    sa.Column("line", sa.Integer),
    sa.Column("detail", sa.Text, comment="JSON: the differences of the row, as in codec; NULL: none"),
    sa.Column("takes", sa.Boolean, nullable=False, comment="Whether the change may remove something"),
    sa.Column("outcome", sa.Text, comment="NULL: as the whole call's. Otherwise this resource ended before the others"),
    sa.Column("ended", sa.Double),
    sa.Column("message", sa.Text),
    sa.Index("state_changes_key", "kind", "name"),
    comment="What each call changes, resource by resource. A resource is in doubt while such a call has no outcome.",
)

MARKS = sa.Table(
    "state_marks",
    METADATA,
    sa.Column("id", SERIAL, primary_key=True, autoincrement=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("verb", sa.Text, nullable=False),
    sa.Column("change", sa.Text, nullable=False, comment="A random id"),
    comment="Marks of changes, by which a state that was set back is noticed, as in folder_memory.",
)

PATHS = sa.Table(
    "state_paths",
    METADATA,
    sa.Column("operation", sa.Text, primary_key=True),
    sa.Column("path", sa.Text, primary_key=True),
    comment="The operations that have answered with a 2xx, each with its path.",
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
    sa.Column("counts", JsonText, comment="numbers of what the run did"),
    sa.Column("actor", sa.Text),
    sa.Column("approvals", JsonText, comment="the approvals that the run needed; NULL: none"),
    sa.Column("units", sa.Boolean, comment="Whether state_approvals tells which losses each approval covers"),
    sa.Column("reviewed", JsonText, comment="the plans that the run was not to go beyond"),
    sa.Column("limits", JsonText, comment="the limits in the project file"),
    sa.Column("exit_code", sa.Integer),
    sa.Column("reason", sa.Text),
    sa.Column("undoes", sa.Text, comment="The run that this one undoes"),
    comment="The runs of commands that write. A pruned run that used up its plan stays, empty.",
)

APPROVALS = sa.Table(
    "state_approvals",
    METADATA,
    sa.Column("approval", sa.Text, primary_key=True, comment="COUNT@HASH, or a line under `removed:`"),
    sa.Column("run", sa.Text, nullable=False, comment="The first run that began with the approval"),
    sa.Column("plan", sa.Text),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("covers", JsonText, nullable=False, comment="the losses that are approved, as records.to_list"),
    sa.Column("remaining", JsonText, nullable=False, comment="the losses in `covers` that have not settled"),
    sa.Column("used", sa.Double, comment="When the approval was used up"),
    comment="Approvals that an apply began with. Each is good for one removal of the losses that it covers.",
)

REFUSALS = sa.Table(
    "state_refusals",
    METADATA,
    sa.Column("kind", NAME, primary_key=True),
    sa.Column("name", NAME, primary_key=True),
    sa.Column("times", sa.Integer, nullable=False, comment="Refused runs since it was last applied"),
    sa.Column("since", sa.Double, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("message", sa.Text, nullable=False, comment="The service's own message"),
    sa.Column("content", sa.Text, nullable=False, comment="Digest of the refused content, as records.content_of"),
    sa.Column("run", sa.Text, comment="The last run that was refused"),
    sa.Column("pending", sa.Text, comment="A later run whose call has no known outcome; NULL: there is none"),
    sa.Column("settled", sa.Text, comment="A later run that applied the resource, which ends the refusal"),
    comment="The refusals of resources that have not been applied since.",
)

QUARANTINE = sa.Table(
    "state_quarantine",
    METADATA,
    sa.Column("kind", NAME, primary_key=True),
    sa.Column("name", NAME, primary_key=True),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("until", sa.Double),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("content", sa.Text, nullable=False, comment="Digest of the refused content at that time"),
    comment="Resources set aside by `state quarantine`.",
)

UNDONE = sa.Table(
    "state_undone",
    METADATA,
    sa.Column("kind", NAME, primary_key=True),
    sa.Column("name", NAME, primary_key=True),
    sa.Column("run", sa.Text, primary_key=True, comment="The run that was undone"),
    sa.Column("made", sa.Text, nullable=False, comment="Digests of the parts added and removed, as records.made_of"),
    sa.Column("undone_by", sa.Text, nullable=False, comment="The run that undid the change"),
    comment="The changes of undone runs. Manifests that ask for such a change again are not applied.",
)

SESSIONS = sa.Table(
    "state_sessions",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("run", sa.Text),
    sa.Column("opened", sa.Double, nullable=False),
    sa.Column("closed", sa.Double),
)

STATE = (FACTS, LOCK, ROWS, CALLS, CHANGES, MARKS, PATHS, RUNS, APPROVALS, REFUSALS, QUARANTINE, UNDONE, SESSIONS)
"""All tables except those of posted time. They contain the names and contents of resources, and names of people."""

# --- posted time: the inbox (docs/posted-time.md 1), and what is known of the connector. Times are seconds since epoch.

GROUPS = sa.Table(
    "inbox_groups",
    METADATA,
    sa.Column("group_id", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False, index=True),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("digest", sa.Text, nullable=False, comment="digest of the user's content in this revision"),
    sa.Column("mechanism", sa.Text, nullable=False),
    sa.Column("received", sa.Double, nullable=False),
    sa.Column("offered", sa.Double, nullable=False, index=True),
    sa.Column("offers", sa.Integer, nullable=False),
    sa.Column("user_name", sa.Text),
    sa.Column("user_keys", sa.Text, comment="JSON: every name and id of the user"),
    sa.Column("tag", sa.Text),
    sa.Column("body", sa.Text, comment="JSON as received, without the caller key; NULL once reduced"),
    sa.Column("outcome", sa.Text),
    sa.Column("message", sa.Text),
    sa.Column("external_id", sa.Text),
    sa.Column("decided", sa.Double),
    sa.Column("waiting", sa.Boolean, nullable=False, index=True, comment="the service has not accepted the verdict"),
    sa.Column("answered", sa.Double, comment="when the service last accepted a verdict"),
    sa.Column("asked", sa.Double, index=True, comment="when somebody asked for another delivery; NULL: none is due"),
    sa.Column("note", sa.Text, comment="why the group was given up, or the nature of its conflict"),
)

DELIVERIES = sa.Table(
    "inbox_deliveries",
    METADATA,
    sa.Column("group_id", sa.Text, primary_key=True),
    sa.Column("revision", sa.Integer, primary_key=True),
    sa.Column("sink", sa.Text, primary_key=True),
    sa.Column("status", sa.Text, nullable=False, comment="attempting, accepted, refused, trouble, unknown, again"),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("first", sa.Double, nullable=False),
    sa.Column("last", sa.Double, nullable=False),
    sa.Column("external_id", sa.Text),
    sa.Column("message", sa.Text),
    sa.Column("memo", sa.Text, comment="JSON: the sink's own note for use after a crash"),
    sa.Index("inbox_deliveries_sink", "sink", "last"),
    comment="One row for each group, revision and sink.",
)

EVENTS = sa.Table(
    "inbox_events",
    METADATA,
    sa.Column("id", SERIAL, primary_key=True, autoincrement=True),
    sa.Column("group_id", sa.Text, nullable=False, index=True),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("sink", sa.Text),
    sa.Column("outcome", sa.Text),
    sa.Column("message", sa.Text),
    sa.Column("external_id", sa.Text),
    sa.Column("detail", sa.Text),
    comment="The history of each group. Append-only until the group is reduced.",
)

MECHANISM = sa.Table(
    "posted_time_mechanism",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, comment="always 1"),
    sa.Column("mechanism", sa.Text, nullable=False),
    sa.Column("base_url", sa.Text, nullable=False),
    sa.Column("callback_url", sa.Text),
    sa.Column("key_digest", sa.Text),
    sa.Column("registered", sa.Double, nullable=False),
)

CONNECTOR = sa.Table(
    "connector_settings",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, comment="always 1"),
    sa.Column("settings", sa.Text, nullable=False, comment="JSON: connectorConfiguration of the last registration"),
    sa.Column("registered", sa.Double, nullable=False),
)

HEALTH = sa.Table(
    "health_report",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, comment="always 1"),
    sa.Column("reported", sa.Double, nullable=False),
    comment="A row: this connector reported a health failure and has not rescinded it.",
)

RESTS = sa.Table(
    "sink_rests",
    METADATA,
    sa.Column("receiver", sa.Text, primary_key=True, comment="digest of the name and the URL of an HTTP sink"),
    sa.Column("until", sa.Double, nullable=False),
    comment="When the receiver's Retry-After ends.",
)

# --- version and creation

_VERSION = sa.select(FACTS.c.version)


def version(connection: sa.Connection) -> int:
    """Return the schema version of the state in the database, or 0 when there is no state."""
    if not sa.inspect(connection).has_table(FACTS.name):
        return 0
    return int(connection.execute(_VERSION).scalar_one())


# Not as sa.Index: its conditions for two databases would have every start import both dialects.
INDEXES = (
    "CREATE INDEX state_rows_moving ON state_rows (kind) WHERE former IS NOT NULL",
    "CREATE INDEX state_calls_in_flight ON state_calls (id) WHERE outcome IS NULL",
    "CREATE INDEX state_calls_landing ON state_calls (id) WHERE content IS NOT NULL",
    "CREATE INDEX state_changes_takes ON state_changes (call) WHERE takes",
)
"""Small indexes of what few rows have: tags that move, calls in flight and calls that may still land, removals."""


def create(connection: sa.Connection, lineage: str) -> None:
    """Create an empty state, unless there is one. The caller keeps other writers out."""
    if version(connection):
        return
    create_tables(connection)
    connection.execute(sa.insert(LOCK), [{"id": STATE_LOCK, "epoch": 0}, {"id": INBOX_LOCK, "epoch": 0}])
    connection.execute(sa.insert(FACTS).values(id=1, version=VERSION, lineage=lineage, owns_activity_types=False))


def create_tables(connection: sa.Connection) -> None:
    METADATA.create_all(connection)
    for index in INDEXES:
        connection.exec_driver_sql(index)


def write_many(
    connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, object]], *, upsert: bool = False
) -> None:
    """Insert rows, all with the same columns. With `upsert`, replace rows with the same keys."""
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert  # type: ignore[assignment] # the same interface
    insertion = insert(table)
    if upsert:
        new = {column.name: column for column in insertion.excluded if not table.c[column.name].primary_key}
        insertion = insertion.on_conflict_do_update(index_elements=table.primary_key, set_=new)
    # Only an insertion that returns something is sent to PostgreSQL as one statement of many rows, and not row by row.
    is_many = connection.dialect.name == "postgresql"
    connection.execute(insertion.returning(sa.literal_column("1")) if is_many else insertion, rows)


PIECE = 5000
"""The number of names in one IN: SQLite takes 32,766 parameters in a statement, PostgreSQL 65,535."""

STREAM = 2000
"""The number of rows fetched at a time: a few MB of memory, and few round trips to a server."""

T = TypeVar("T")
Query = sa.Select[Any]
Change = sa.Update | sa.Delete

STORED: Query = sa.select(*(ROWS.c[name] for name in COLUMNS))
"""The query for rows as stored, without doubts from calls in flight, for the verbs of the journal."""


def address_of(table: sa.Table) -> sa.ColumnElement[str]:
    return table.c.kind + "/" + table.c.name


def _in_flight() -> sa.ColumnElement[bool]:
    of_calls = sa.join(CALLS, CHANGES, CHANGES.c.call == CALLS.c.id)
    is_open = sa.and_(CALLS.c.outcome.is_(None), CHANGES.c.outcome.is_(None))
    # The subquery does not depend on the row, so that it runs once. With a pair of columns in place of a joined text,
    # SQLite would scan all open keys for each row.
    return address_of(ROWS).in_(sa.select(address_of(CHANGES)).select_from(of_calls).where(is_open))


IN_FLIGHT = _in_flight()
"""The condition that a call for the row was sent, or is about to be, and has no known outcome.

It belongs in the statement that reads the rows: in PostgreSQL, a call may begin between two statements.
"""

DOUBTFUL = sa.or_(ROWS.c.doubtful, IN_FLIGHT)

VISIBLE: Query = sa.select(*(DOUBTFUL.label(name) if name == "doubtful" else ROWS.c[name] for name in COLUMNS))
"""The query for rows as readers see them, where an intent without an end makes a row doubtful."""


def pieces(values: Sequence[T], size: int = PIECE) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def select_keyed(
    connection: sa.Connection, query: Query, table: sa.Table, keys: Iterable[Key]
) -> Iterator[sa.Row[*tuple[Any, ...]]]:
    """Yield the rows that a query finds for `keys`, queried in pieces. Repeated keys count once."""
    for kind, piece in by_kind(keys):
        yield from connection.execute(query.where(table.c.kind == kind.value, table.c.name.in_(piece)))


def change_keyed(
    connection: sa.Connection, change: Change, table: sa.Table, keys: Iterable[Key], **values: object
) -> None:
    """Execute a change for `keys`, in pieces. `values` are the columns' new values."""
    for kind, piece in by_kind(keys):
        connection.execute(change.where(table.c.kind == kind.value, table.c.name.in_(piece)), values)


def by_kind(keys: Iterable[Key]) -> Iterator[tuple[Kind, Sequence[str]]]:
    """Yield the names of each kind in pieces, without repetitions."""
    names: defaultdict[Kind, dict[str, None]] = defaultdict(dict)
    for kind, name in keys:
        names[kind][name] = None
    for kind, of_kind in names.items():
        for piece in pieces(list(of_kind)):
            yield kind, piece


LAST_LIMITS = (
    sa.select(RUNS.c.id, RUNS.c.limits)
    .where(RUNS.c.outcome == "complete", RUNS.c.limits.is_not(None))
    .order_by(RUNS.c.started.desc(), RUNS.c.id.desc())
    .limit(1)
)
"""The last complete run that recorded limits, with them."""


def facts(connection: sa.Connection) -> Facts:
    """Return the facts about the state, with its last limits. Raise `ValueError` for damaged ones."""
    names = [each.name for each in fields(Facts) if each.name != "limits"]
    row = connection.execute(sa.select(*(FACTS.c["revision" if name == "commit" else name] for name in names))).one()
    limits = connection.execute(sa.select(LAST_LIMITS.subquery().c.limits)).scalar_one_or_none()
    found = zip((*names, "limits"), (*row, limits), strict=True)
    return msgspec.convert({name: value for name, value in found if value is not None}, Facts)


def write_commit(connection: sa.Connection, commit: str, ancestors: Sequence[str]) -> None:
    """Record the last applied commit and those before it."""
    values = {"revision": commit, "ancestors": list(ancestors)}
    # Asked before each call, and written once a run: the ancestors are up to 16 kB.
    is_news = sa.or_(*(FACTS.c[name].is_distinct_from(value) for name, value in values.items()))
    connection.execute(sa.update(FACTS).where(is_news).values(values))


def count(connection: sa.Connection) -> int:
    """Return the number of recorded rows."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(ROWS)).scalar_one())


def fetch(connection: sa.Connection, keys: Iterable[Key], query: Query = STORED) -> dict[Key, Recorded]:
    """Return the recorded rows of `keys`. Keys that are not recorded are left out."""
    return {recorded.key: recorded for recorded in map(from_row, select_keyed(connection, query, ROWS, keys))}


def visible(connection: sa.Connection, keys: Iterable[Key]) -> dict[Key, Recorded]:
    """Return the recorded rows of `keys` as readers see them. Keys that are not recorded are left out."""
    return fetch(connection, keys, VISIBLE)


def stream(connection: sa.Connection, kind: Kind | None = None) -> Iterator[Recorded]:
    """Yield all recorded rows, or the rows of one kind, ordered by kind and name and read lazily."""
    query = VISIBLE.order_by(ROWS.c.kind, ROWS.c.name)
    query = query if kind is None else query.where(ROWS.c.kind == kind.value)
    return map(from_row, connection.execution_options(yield_per=STREAM).execute(query))


def addresses_like(connection: sa.Connection, prefix: str, most: int) -> list[str]:
    """Return the first `most` addresses that begin with `prefix`."""
    address = address_of(ROWS)
    query = sa.select(address).where(address.startswith(prefix, autoescape=True)).order_by(address).limit(most)
    return [each for each in connection.execute(query).scalars() if each.startswith(prefix)]  # LIKE ignores case


def members(connection: sa.Connection, categories: Iterable[str]) -> list[Recorded]:
    """Return the tags of `categories` that the service may still hold, of any status, ordered by name."""
    keys = [Key(Kind.CATEGORY, name) for name in categories]
    ids = {f"id/{row.server_id}" for row in fetch(connection, keys).values() if row.server_id}
    references = ids.union(map(str, keys))  # tags name a category by externalId, or by the server's id
    found = VISIBLE.where(ROWS.c.kind == Kind.TAG.value, sa.or_(ROWS.c.status != Status.DELETED.value, DOUBTFUL))
    queries = [
        found.where(MOVING),
        *(found.where(ROWS.c.category.in_(piece)) for piece in pieces(sorted(references))),
    ]
    rows = (from_row(row) for query in queries for row in connection.execute(query))
    tags = {tag.key: tag for tag in rows if not references.isdisjoint(tag.category_references())}
    return [tags[key] for key in sorted(tags)]


def answered(connection: sa.Connection, operation: str, path: str) -> None:
    """Record that the operation has answered at this path."""
    if (operation, path) not in paths(connection):
        connection.execute(sa.insert(PATHS).values(operation=operation, path=path))


def paths(connection: sa.Connection) -> set[tuple[str, str]]:
    """Return pairs of an operation and a path at which it has answered."""
    return {(operation, path) for operation, path in connection.execute(sa.select(PATHS.c.operation, PATHS.c.path))}
