"""A state's URL → its database, open for reading or for writing; and its errors, each with one plain sentence.

A SQLite state at rest is one file in rollback mode, which can be copied, cached by a pipeline and read in a read-only
folder. While a process writes it is in WAL mode, so that a `plan` can read while an `apply` commits. No message shows
the driver's own words, or a password.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.engine import make_url
from sqlalchemy.pool import StaticPool

from syncengine import DISTRIBUTION
from syncengine.database import errors as faults
from syncengine.database.errors import DatabaseFault, sqlite_code
from syncengine.database.open import connect_arguments, end_idle_transactions, identity, sqlite_engine
from syncengine.document.text import as_word
from syncengine.errors import ExitCode, SyncengineError
from syncengine.project import git
from syncengine.project.files import make_folder
from syncengine.project.git_ref import is_git_ref, read_ref
from syncengine.project.references import BESIDE, sqlite_file
from syncengine.state import tables
from syncengine.state.tables import VERSION

if TYPE_CHECKING:
    from syncengine.state.working_copy import WorkingCopy


@dataclass(frozen=True, slots=True)
class StateTrouble:
    """The code and the message of an error. In the message, `{state}` stands for the path or URL of the state."""

    code: str
    sentence: str

    def error(self, state: str) -> SyncengineError:
        return SyncengineError(self.sentence.format(state=state), code=self.code)


class LockLost(SyncengineError):
    """The error of a write whose lock was taken over, or never held. Its transaction is rolled back."""

    exit_code, code = ExitCode.LOCKED, "lock-lost"


class StateReplaced(LockLost):
    """The error of a state that was removed, replaced or set back while it was open, together with our lock."""

    exit_code, code = ExitCode.ERROR, "state-replaced"

    @classmethod
    def of(cls, state: str) -> StateReplaced:
        return cls(
            f"state {state} was removed, replaced or set back while it was open, so that what was recorded meanwhile is"
            " lost: bring the state back, from a backup or with `syncengine state rebuild`, and repeat the command"
        )


OTHER_VERSION = StateTrouble(
    "state-version",
    "state {state} was written by another version of syncengine; run `syncengine state export` with that version, and"
    " `syncengine state import` with this one, into a new state. Posted time that waits in it must be delivered by that"
    " version first. Nothing was changed",
)
FOREIGN = StateTrouble("state-foreign", "{state} is a database, but not a state of syncengine")
UNSUPPORTED = StateTrouble(
    "state-url", "state {state}: expected a path, or a sqlite:///, postgresql+psycopg:// or git+ref:// URL"
)
UNQUOTED = StateTrouble(
    "state-url",
    "state {state}: the URL has more than one `@`; in the user's name, the password and parameters, write `@` as %40,"
    " `/` as %2F and `%` as %25",
)
NO_DRIVER = StateTrouble(
    "state-driver",
    f"state {{state}} needs a database driver that is not installed: `pip install '{DISTRIBUTION}[postgresql]'`",
)
NO_INBOX = StateTrouble(
    "state-without-inbox",
    "state {state}: posted time and registrations need a database, which a state in Git does not have; use a file or"
    " PostgreSQL (docs/state.md)",
)
NO_SCHEMA = StateTrouble(
    "state-no-schema",
    "state {state}: `search_path` begins with no schema in which tables can be created; create one with CREATE SCHEMA,"
    " or correct `search_path`",
)
UNFIT_ENCODING = StateTrouble(
    "state-encoding",
    "state {state}: the database cannot store every character, as names and descriptions need; create one with"
    " `createdb --encoding=UTF8 --template=template0`",
)


def trouble_of(fault: DatabaseFault) -> StateTrouble:
    """Return what a fault of the database is for a state: its cause and its cure."""
    cure = f"; {fault.cure}" if fault.cure else ""
    return StateTrouble(f"state-{fault.code}", f"state {{state}}: {fault.words}{cure}")


MISSING, NO_DATABASE = map(trouble_of, (faults.CANNOT_OPEN, faults.NO_DATABASE))
BUSY, DAMAGED, CHANGED, REFUSED = map(trouble_of, (faults.BUSY, faults.DAMAGED, faults.NO_TABLE, faults.OTHER))

UNLIKE_OURS = (ValueError, RecursionError, LookupError, TypeError)
"""The errors of reading back what this program does not write."""

FAILURES: tuple[type[Exception], ...] = (*faults.FAILURES, OverflowError, *UNLIKE_OURS)


def diagnose(error: Exception) -> StateTrouble:
    fault = faults.fault_of(error)
    return DAMAGED if fault is faults.OTHER and isinstance(error, UNLIKE_OURS) else trouble_of(fault)


def is_of_disk(error: Exception) -> bool:
    """Return whether the disk or the access to it failed, rather than the data read from it."""
    return faults.fault_of(error).code in ("full", "io", "unreadable", "busy")


@contextmanager
def as_state_errors(state: str) -> Iterator[None]:
    """Turn every database or disk error raised inside the block into a `SyncengineError`."""
    try:
        yield
    except FAILURES as error:
        raise diagnose(error).error(state) from error


BUSY_SECONDS = 20.0
"""The seconds that SQLite waits for another writer, far fewer than a lease lasts."""

ROWS_AT_ONCE = 2000
"""The rows of one statement of PostgreSQL, as many as a call has items: their parameters stay below 32,767."""

COMPACT_SECONDS = 10
"""The seconds that PostgreSQL waits for the readers of a table that it rewrites."""

POSTGRESQL = ("postgres", "postgresql")

ENCODINGS = ("UTF8", "SQL_ASCII")
"""The encodings of a database that can store every character, the second without knowing what it stores."""

CREATING = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(7305806421)"}
"""By dialect, the statement that keeps two first runs from creating the same tables until the transaction ends."""


LEAST_SECONDS = 60
"""The least limit of a statement, as of its wait for a lock: about as long as a lease."""

OUR_SETTINGS = f"""
SELECT set_config(name, value, true) FROM (VALUES
    ('synchronous_commit', 'on', current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')),
    ('extra_float_digits', '1', current_setting('extra_float_digits')::int < 1),
    ('standard_conforming_strings', 'on', current_setting('standard_conforming_strings') <> 'on'),
    ('statement_timeout', '{LEAST_SECONDS}s', current_setting('statement_timeout')::interval
        BETWEEN '1 ms' AND '{LEAST_SECONDS} s'),
    ('lock_timeout', '{LEAST_SECONDS}s', current_setting('lock_timeout')::interval
        BETWEEN '1 ms' AND '{LEAST_SECONDS} s')
) AS ours (name, value, is_needed) WHERE is_needed
"""  # noqa: S608 - a number of ours
"""What a transaction needs, whatever the server, database or role sets. What is committed must outlast a crash, numbers
come back as they were written, and a limit does not cut the statements of a large apply. The settings end with the
transaction, since a pooler may give the connection to another client.
"""


def new_lineage() -> str:
    return str(uuid.uuid4())


@dataclass(slots=True)
class StateDatabase:
    """The open database of a state, with a `name` that is safe to show.

    `absent`: there is no state, and the database is an empty one in memory. `working_copy` publishes the database
    where it is the private copy of a state in Git. `files` are the identities of a SQLite state's open files, by path:
    SQLite goes on writing to a file that was removed or replaced. `is_new`: the state was created by opening it.
    """

    name: str
    engine: sa.Engine
    absent: bool = False
    is_new: bool = False
    at_rest: Callable[[], None] | None = None
    working_copy: WorkingCopy | None = None
    resources: ExitStack = field(default_factory=ExitStack)
    files: Mapping[Path, tuple[int, int]] = field(default_factory=dict)

    @contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """Open a transaction in which every database error is raised as a `SyncengineError`.

        Raise `StateReplaced` if the files of the state are no longer those that this process has open, even where they
        were replaced while the transaction was committed.
        """
        try:
            with as_state_errors(self.name), self.engine.begin() as connection:
                yield connection
        finally:
            self.refuse_replaced()

    def refuse_replaced(self) -> None:
        if self.is_replaced():
            raise StateReplaced.of(self.name)

    def is_replaced(self) -> bool:
        return any(identity(path) != opened for path, opened in self.files.items())

    @contextmanager
    def alone(self) -> Iterator[sa.Connection]:
        """Open a transaction that waits for other writers before it reads: SQLite lets no reader wait to write."""
        exclusive = sa.text(CREATING[self.engine.dialect.name])
        engine = self.engine.execution_options(began=True)
        with as_state_errors(self.name), engine.begin() as connection:
            connection.execute(exclusive)
            yield connection

    def compact(self) -> bool:
        """Remove the bytes of deleted rows. Return `False` when other processes or missing rights prevent that."""
        with as_state_errors(self.name):
            if self.engine.dialect.name == "sqlite":
                try:
                    return not pragma(self.engine, "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
                except exc.OperationalError as error:
                    if sqlite_code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL):
                        raise
                    return False
            try:
                with self.engine.begin() as connection:
                    now = connection.exec_driver_sql("SELECT pg_current_xact_id()::xid::text").scalar_one()
                return all(self._rewrite(table, now) for table in tables.STATE)
            except exc.DBAPIError:
                return False

    def _rewrite(self, table: sa.Table, now: str) -> bool:
        """Write a table of PostgreSQL anew. Return whether no row stayed that was deleted before the transaction `now`.

        CLUSTER does what VACUUM FULL does, but within a transaction, where limits can be set: those of a session would
        stay behind in a pooler's connection. Rows stay that a transaction can see which is older than their deletion;
        the oldest one is told by the oldest number that the new table may contain.
        """
        oldest = sa.text(
            "SELECT age(relfrozenxid) <= age(CAST(:now AS xid)) FROM pg_class WHERE oid = to_regclass(:name)"
        )
        with self.engine.begin() as connection:
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{COMPACT_SECONDS}s'")
            connection.exec_driver_sql(f"CLUSTER {table.name} USING {table.name}_pkey")
            return bool(connection.execute(oldest, {"now": now, "name": table.name}).scalar_one())

    def close(self) -> None:
        is_replaced = self.is_replaced()
        self.engine.dispose()  # first: only the last connection can end WAL mode
        if self.at_rest and not is_replaced:  # or SQLite would delete the write-ahead log of the new file
            with suppress(exc.SQLAlchemyError):
                self.at_rest()
        self.engine.dispose()
        self.resources.close()


def open_database(url: str, *, write: bool) -> StateDatabase:
    """Open the state at a path or URL, and create it if `write`. Raise an error for a state in Git."""
    if is_git_ref(url):
        raise NO_INBOX.error(read_ref(url).name)
    path = sqlite_path(url)
    database = _open_server(url, write) if path is None else _open_file(path, write)
    try:
        database = _prepared(database, write)
        if write and path is not None:
            _share(database, path)
    except BaseException:
        database.close()
        raise
    return database


def sqlite_path(url: str) -> Path | None:
    """Return the file that a path or a `sqlite:///` URL names, or `None` for another URL."""
    file = sqlite_file(url)
    if file is not None and "://" in url and str(file) in (".", ":memory:"):
        raise UNSUPPORTED.error(url)
    return file


def _open_server(url: str, write: bool) -> StateDatabase:
    try:
        address = make_url(url)
    except (exc.ArgumentError, ValueError):
        raise UNSUPPORTED.error(f"{url.partition('://')[0]}://…") from None
    if url.count("@") > 1:  # what is read as the host, or even as the user, may be a part of the password
        user = re.split("[:@/?]", url.partition("://")[2])[0]
        raise UNQUOTED.error(f"{address.drivername}://{user}:***@…")
    secrets = [name for name in address.query if "password" in name.lower()]
    name = address.difference_update_query(secrets).render_as_string(hide_password=True)
    backend, _, driver = address.drivername.partition("+")
    if backend not in POSTGRESQL:
        raise UNSUPPORTED.error(name)
    try:
        address = address.set(drivername=f"postgresql+{driver or 'psycopg'}")
        engine = sa.create_engine(
            address,
            pool_pre_ping=True,  # a server that was restarted between two writes is no error
            # Whatever the default is: with a snapshot, a writer who had to wait for another would fail.
            isolation_level="READ COMMITTED",
            connect_args=connect_arguments(address),
            insertmanyvalues_page_size=ROWS_AT_ONCE,
        )
        event.listen(engine, "do_executemany", _one_by_one)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(OUR_SETTINGS))
        if write:  # a reader may be slow: a person with a pager
            end_idle_transactions(engine)
    except (ImportError, exc.NoSuchModuleError):
        raise NO_DRIVER.error(name) from None
    return StateDatabase(name, engine.execution_options(postgresql_readonly=not write))


def _one_by_one(cursor: Any, statement: str, parameters: Sequence[Any], _context: object) -> bool:
    """Execute a statement with one set of values after another, instead of psycopg's pipeline.

    A process that is stopped within a pipeline keeps its locks for as long as it stands still: for the server it is at
    work, so that `idle_in_transaction_session_timeout` does not end it, and no standby could take over.
    """
    for values in parameters:
        cursor.execute(statement, values)
    return True


def _open_file(path: Path, write: bool) -> StateDatabase:
    refuse_no_state(path)
    with as_state_errors(str(path)):
        if path.is_dir():  # SQLite would open a folder, and then fail to read it
            raise MISSING.error(str(path))
        if not write:
            return StateDatabase(str(path), _sqlite(path, "ro")) if path.exists() else empty(str(path))
        make_folder(path.parent)
        is_new = not path.exists()
        if is_new:
            _make(path)
        return StateDatabase(str(path), _sqlite(path, "rw"), is_new=is_new, files=_identities(path))


def _identities(*paths: Path) -> dict[Path, tuple[int, int]]:
    return {path: found for path in paths if (found := identity(path)) is not None}


def _make(path: Path) -> None:
    """Create a state under a temporary name and link it to `path` once complete: no empty file ever appears there."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:50]}-")
    os.close(handle)
    # Not at its own name: whoever dies on the way would leave a file that is no state, and cannot be told from one.
    engine = _sqlite(Path(name), "rw")
    try:
        with engine.begin() as connection:
            tables.create(connection, new_lineage())
        engine.dispose()
        with suppress(FileExistsError):  # another first run was quicker
            os.link(name, path)
    finally:
        engine.dispose()
        Path(name).unlink()


def _sqlite(path: Path, mode: str) -> sa.Engine:
    return sqlite_engine(path, mode, busy_seconds=BUSY_SECONDS, prepare=_synchronous, begin=begin_transaction)


def _synchronous(connection: sqlite3.Connection, _record: object) -> None:
    # An intent must be on the disk before its call is sent; WAL's default would lose it in a power cut, and so would
    # macOS, unless it is asked to empty the disk's own cache.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")


def begin_transaction(connection: sa.Connection) -> None:
    """Begin a transaction in SQLite, unless one has begun."""
    # The driver would begin only at the first write; reads before that would see another snapshot.
    if not connection.get_execution_options().get("began"):
        connection.exec_driver_sql("BEGIN")


def _share(database: StateDatabase, path: Path) -> None:
    """Switch to WAL mode, so that others can read while this process writes, unless a reader is in the way now."""
    engine = database.engine
    with as_state_errors(database.name):
        try:
            # Reading creates the files beside the state, which stay while it is open.
            pragma(engine, "PRAGMA journal_mode = WAL", "PRAGMA schema_version")
            beside = _identities(*(Path(f"{path.resolve()}{suffix}") for suffix in BESIDE[2:]))
            database.files = {**database.files, **beside}
        except exc.OperationalError as error:
            if sqlite_code(error) != sqlite3.SQLITE_BUSY:
                raise
    # Without waiting: whoever still reads or writes the file ends WAL mode as the last one.
    database.at_rest = lambda: pragma(engine, "PRAGMA busy_timeout = 0", "PRAGMA journal_mode = DELETE")


def pragma(engine: sa.Engine, *statements: str) -> Any:
    """Execute statements outside a transaction, and return the value of the last one, if it has any."""
    with engine.execution_options(began=True).connect() as connection:
        values = [
            result.scalar() if result.returns_rows else None for result in map(connection.exec_driver_sql, statements)
        ]
    return values[-1]


def empty(name: str) -> StateDatabase:
    """Return an empty in-memory state in place of a state that does not exist."""
    engine = sa.create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    with engine.begin() as connection:
        tables.create(connection, "")
    return StateDatabase(name, engine, absent=True)


def _prepared(database: StateDatabase, write: bool) -> StateDatabase:
    if database.absent:
        return database
    with database.transaction() as connection:
        version = tables.version(connection)
        foreign = version == 0 and connection.dialect.name == "sqlite" and sa.inspect(connection).get_table_names()
        if connection.dialect.name == "postgresql":
            if connection.exec_driver_sql("SHOW server_encoding").scalar_one() not in ENCODINGS:
                raise UNFIT_ENCODING.error(database.name)
            # A schema that lacks permissions counts as existing: what is missing is then said by the server. In
            # `pg_catalog` nobody may create tables, whatever is granted.
            lacks_schema = (
                "SELECT current_schema() IS NOT DISTINCT FROM 'pg_catalog'"
                " OR current_schema() IS NULL AND NOT EXISTS (SELECT FROM pg_namespace WHERE nspname"
                " = ANY(string_to_array(translate(current_setting('search_path'), ' \"', ''), ',')))"
            )
            if version == 0 and connection.exec_driver_sql(lacks_schema).scalar_one():
                raise NO_SCHEMA.error(database.name)
    if foreign:
        raise FOREIGN.error(database.name)
    if version == 0:
        if not write:
            database.close()
            return empty(database.name)
        database.is_new = True
        with database.alone() as connection:
            tables.create(connection, new_lineage())
    elif version != VERSION:
        raise OTHER_VERSION.error(database.name)
    return database


def refuse_no_state(path: Path) -> None:
    """Raise `SyncengineError` for a path that cannot be a state: a dangling link, a pipe, an empty or tracked file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise _unfit(path, "is a link to a file that does not exist") from None
        return
    except OSError:
        return  # opening the file reports the reason
    if stat.S_ISDIR(status.st_mode):
        return
    if not stat.S_ISREG(status.st_mode):
        raise _unfit(path, "is not a regular file")
    if status.st_size == 0 and not any(Path(f"{path}{suffix}").exists() for suffix in BESIDE[1:]):
        raise _unfit(path, "is empty, which no state is: restore it, or remove it and begin a new one with --new-state")
    # The author of a change could use a state that Git tracks to claim that nothing has to be done.
    real = path.resolve()
    if git.may_keep(real.parent, *(f"{real.name}{suffix}" for suffix in BESIDE)):
        cure = f"run `git rm --cached -- {as_word(real.name)}` in its folder, and add it to .gitignore"
        why = f"is tracked by Git and is not used: {cure}"
        if refusal := git.refusal(real.parent):
            why = f"may be tracked by Git and is not used: Git cannot read the checkout ({refusal}; {git.CURE})"
        raise SyncengineError(f"state {path} {why}", code="state-in-git")


def _unfit(path: Path, why: str) -> SyncengineError:
    return SyncengineError(f"state {path} {why}", code="state-unreadable")
