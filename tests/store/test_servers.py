"""A state in PostgreSQL works with any settings of the server, the database, the role or a pooler. Each cause of which
it cannot be used has its own error, which says what to do. The steps of docs/state.md work."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from syncengine import DISTRIBUTION
from syncengine.database.errors import cause
from syncengine.database.open import open_engine
from syncengine.errors import LockHeld, SyncengineError
from syncengine.resource import Body, Recorded
from syncengine.state.database import NO_DRIVER, diagnose
from syncengine.state.inbox import open_inbox
from syncengine.state.store import open_state
from syncengine.state.tables import LOCK, METADATA, STATE
from tests.cli.service import KEY, serving
from tests.manifest.loading import write
from tests.postgresql import Server
from tests.support import warm
from tests.support.pages import ROOT, blocks
from tests.support.quiet import database_answers, unused_port
from tests.support.waiting import eventually

from .estate import HERE, tag

TEXT = "5 € – Łódź \\ 'x' %s :y"


def row(name: str, description: str) -> Recorded:
    return Recorded(tag(name), Body({"description": description}, (name,), {}))


def works(url: str) -> None:
    """Three runs in a row write rows, and a reader reads what the last one wrote."""
    for number in range(3):
        with open_state(url, write=True) as state, state.lock(HERE, wait=5, request_timeout=0):
            for _ in range(7):  # the driver would prepare a statement at its sixth execution
                state.put([row(f"T-{each}", f"{TEXT} {number}") for each in range(3)])
    with open_state(url, write=False) as state:
        found = [(each.key.name, each.body.fields["description"]) for each in state.rows()]
    assert found == [(f"T-{each}", f"{TEXT} 2") for each in range(3)]


SETTINGS = {
    "strict transactions": "default_transaction_isolation=serializable default_transaction_read_only=on"
    " default_transaction_deferrable=on synchronous_commit=off",
    "short limits": "statement_timeout=10ms lock_timeout=10ms",
    "other forms of values": "idle_in_transaction_session_timeout=9900ms extra_float_digits=0 bytea_output=escape"
    " standard_conforming_strings=off DateStyle=German IntervalStyle=postgres_verbose TimeZone=Asia/Kathmandu"
    " client_encoding=LATIN1 enable_hashjoin=off",
}


def set_by_default(server: Server, settings: str) -> None:
    named = (each.split("=") for each in settings.split())
    server.sql(*(f"ALTER DATABASE st SET {name} = '{value}'" for name, value in named))


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_state_works_with_any_default_of_the_database(server: Server, database: str, kind: str) -> None:
    """Runs wait for each other, rows are read as they were written, and tables are rewritten. A limit that stopped the
    rewriting each time would leave erased data in the files for ever."""
    set_by_default(server, SETTINGS[kind])
    works(database)
    with open_state(database, write=True) as state, state.lock(HERE, wait=5, request_timeout=0):
        state.put([row(f"T-{each}", TEXT) for each in range(2000)])
        assert state.compact()


def test_a_lock_that_cannot_be_taken_is_waited_for_as_long_as_given(server: Server, database: str) -> None:
    """Here the server silently ignores the update."""
    open_state(database, write=True).close()
    server.sql("CREATE RULE never AS ON UPDATE TO state_lock DO INSTEAD NOTHING", database="st")
    began = time.monotonic()
    with open_state(database, write=True) as state, pytest.raises(LockHeld, match="whenever it was free"):
        state.lock(HERE, wait=1, request_timeout=0)
    assert 1 <= time.monotonic() - began < 10


def test_concurrent_writers_wait_for_each_other(server: Server, database: str) -> None:
    """With the database's default isolation, the later one would fail."""
    set_by_default(server, "default_transaction_isolation=serializable")
    beat = sa.update(LOCK).values(beats=LOCK.c.beats + 1)
    with (
        open_state(database, write=True) as one,
        open_state(database, write=True) as other,
        one.database.transaction() as late,
    ):
        late.execute(sa.select(LOCK)).all()
        with other.database.transaction() as quick:
            quick.execute(beat)
        late.execute(beat)
        assert set(late.execute(sa.select(LOCK.c.beats)).scalars()) == {2}


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("synchronous_commit=off lock_timeout=10ms statement_timeout=10ms extra_float_digits=0",
         "synchronous_commit=on lock_timeout=1min statement_timeout=1min extra_float_digits=1"),
        ("standard_conforming_strings=off", "standard_conforming_strings=on"),
        ("synchronous_commit=local lock_timeout=2min statement_timeout=0",
         "synchronous_commit=on lock_timeout=2min statement_timeout=0"),
        ("synchronous_commit=remote_apply", "synchronous_commit=remote_apply"),
    ],
)  # fmt: skip
def test_a_transaction_sets_what_it_needs_and_keeps_the_rest(
    server: Server, database: str, given: str, used: str
) -> None:
    """A commit is on disk before it is confirmed, numbers keep all digits, and no limit cuts a large apply."""
    set_by_default(server, given)
    with open_state(database, write=True) as state, open_inbox(database, write=True) as inbox:
        for each in (state.database, inbox.database):
            with each.transaction() as connection:
                for name, expected in (setting.split("=") for setting in used.split()):
                    assert connection.exec_driver_sql(f"SHOW {name}").scalar_one() == expected


def test_a_database_without_an_encoding_works_and_one_that_lacks_characters_is_refused(
    server: Server, database: str
) -> None:
    """One stores plain bytes, which the driver would return as bytes; the other is refused at once, to readers, too."""
    again = "DROP DATABASE st", "CREATE DATABASE st LOCALE 'C' TEMPLATE template0 ENCODING "
    server.sql(again[0], again[1] + "'SQL_ASCII'")
    works(database)
    server.sql(again[0], again[1] + "'LATIN1'")
    for writes in (False, True):
        with pytest.raises(SyncengineError, match="--encoding=UTF8") as refusal:
            open_state(database, write=writes)
        assert refusal.value.code == "state-encoding"


def test_rows_that_an_older_transaction_can_still_see_are_said_to_remain(server: Server, database: str) -> None:
    """It need not have read the state: deleted rows are copied as long as anybody could ask for them."""
    server.sql("CREATE TABLE other (x int)", database="st")
    engine = sa.create_engine(database, isolation_level="REPEATABLE READ", poolclass=sa.pool.NullPool)
    with open_state(database, write=True) as state, state.lock(HERE, wait=5, request_timeout=0):
        state.put([row("T-1", "first")])
        with engine.begin() as older:
            older.exec_driver_sql("SELECT * FROM other").all()
            state.put([row("T-1", "second")])
            assert not state.compact()
        with engine.begin() as younger:
            younger.exec_driver_sql("SELECT * FROM other").all()
            assert state.compact()


@pytest.fixture
def pooler(server: Server, database: str) -> Iterator[str]:
    """The URL of a PgBouncer that gives each transaction another connection of the server."""
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("PgBouncer is not installed")
    address, port = sa.make_url(database), unused_port()
    there = address.set(port=port).render_as_string(hide_password=False)
    user = {"user": "postgres"} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if user:
            os.chown(folder, pwd.getpwnam("postgres").pw_uid, -1)
        folder.chmod(0o755)  # another user can enter it
        (folder / "users").write_text(f'"{address.username}" "{address.password}"\n')
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr=127.0.0.1\n"
            f"listen_port={port}\nauth_type=plain\nauth_file={folder}/users\npool_mode=transaction\n"
            "default_pool_size=3\nunix_socket_dir=\n"
        )
        command = [program, "-q", folder / "pgbouncer.ini"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd="/", **user)
        try:
            eventually(lambda: database_answers(there))
            yield there
        finally:
            process.terminate()
            process.wait(20)


def test_a_state_works_through_a_pooler(pooler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No run leaves prepared statements or settings behind in its connections. It rejects `options`, which is told."""
    monkeypatch.setattr("syncengine.state.database.COMPACT_SECONDS", 1)
    works(pooler)
    with open_state(pooler, write=True) as state, state.lock(HERE, wait=5, request_timeout=0):
        with open_state(pooler, write=True) as other, pytest.raises(LockHeld):
            other.lock(HERE, wait=0, request_timeout=0)
        with open_state(pooler, write=False) as reader, reader.database.transaction() as connection:
            connection.execute(sa.select(LOCK)).all()  # which is in the way of rewriting the tables
            assert not state.compact()
    engine = sa.create_engine(pooler, connect_args={"prepare_threshold": None}, poolclass=sa.pool.NullPool)
    with engine.connect() as connection:
        names = ("idle_in_transaction_session_timeout", "extra_float_digits", "lock_timeout")
        left = [connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in names]
    assert left == ["0", "1", "0"]
    with pytest.raises(SyncengineError, match="accepts no `options`") as refusal:
        open_state(f"{pooler}?options=-csearch_path%3Dstaging", write=True)
    assert refusal.value.code == "state-url"


def refused(url: sa.URL) -> SyncengineError:
    with pytest.raises(SyncengineError) as refusal:
        open_state(url.render_as_string(hide_password=False), write=True).close()
    assert "\n" not in refusal.value.message
    return refusal.value


def test_each_trouble_with_a_server_has_its_own_error(postgresql_url: str) -> None:
    """A wrong password, a missing database or schema, missing rights, an unreachable host, no encryption."""
    there = sa.make_url(postgresql_url)
    engine = sa.create_engine(there, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("DROP ROLE IF EXISTS reader")
        connection.exec_driver_sql("CREATE ROLE reader LOGIN PASSWORD 'reader'")
    engine.dispose()
    reader = there.set(username="reader", password="reader")
    tried = {
        "state-login": there.set(password="wrong-pa55"),
        "state-no-database": there.set(database="nowhere"),
        "state-rights": reader,
        "state-unreachable": there.set(port=1),
        "state-tls": there.update_query_dict({"sslmode": "require"}),
        "state-no-schema": there.update_query_dict({"options": "-csearch_path=nowhere"}),
    }
    found = {code: refused(url) for code, url in tried.items()}
    assert {code: error.code for code, error in found.items()} == {code: code for code in tried}
    found["host"] = refused(there.set(host="db.example.invalid"))
    assert len({error.message for error in found.values()}) == len(found)
    parameters = dict.fromkeys(("target_session_attrs", "sslmod", "connect_timeout", "keepalives"), "x")
    for name, value in {"sslmode": "requir", **parameters}.items():
        wrong = refused(there.update_query_dict({name: value}))
        words = "verify-full" if name == "sslmode" else "a parameter in"
        assert (wrong.code, words in wrong.message) == ("state-url", True), wrong.message
    assert "nothing is listening" in found["state-unreachable"].message
    assert "cannot be resolved" in found["host"].message
    assert refused(sa.make_url("postgresql+nodriver://jo@db/state")).code == "state-driver"
    assert f"pip install '{DISTRIBUTION}[postgresql]'" in NO_DRIVER.error("x").message
    # The driver accepts a password in the query, too.
    found["query"] = refused(there.set(password=None).update_query_dict({"password": "wrong-pa55"}))
    assert found["query"].code == "state-login"
    assert "wrong-pa55" not in "".join(error.message for error in found.values())


def test_a_missing_schema_is_not_taken_for_an_empty_state(postgresql_url: str) -> None:
    """A plan would show every resource as new, and then the apply would be refused, as it is in `pg_catalog`."""
    engine = sa.create_engine(postgresql_url)
    METADATA.drop_all(engine)  # the state of another test would be found
    engine.dispose()

    def opened(path: str) -> str | None:
        url = sa.make_url(postgresql_url).update_query_dict({"options": f"-csearch_path={path}"})
        try:
            open_state(url.render_as_string(hide_password=False), write=False).close()
        except SyncengineError as error:
            return error.code
        return None

    assert [opened(path) for path in ("public", "nowhere,public")] == [None] * 2
    assert [opened(path) for path in ("nowhere", "pg_catalog", "pg_catalog,public")] == ["state-no-schema"] * 3


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system has no such option")
@pytest.mark.parametrize(
    ("more", "seconds"), [("", 20), ("?tcp_user_timeout=7000", 7)], ids=["default", "set-by-the-url"]
)
def test_a_lost_connection_is_noticed_within_seconds(postgresql_url: str, more: str, seconds: int) -> None:
    """Linux would retry for about 15 minutes. The URL can set another timeout."""
    for engine in (
        open_engine(postgresql_url + more, "ledger"),
        open_state(postgresql_url + more, write=True).database.engine,
    ):
        with engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            with socket.socket(fileno=os.dup(driver.pgconn.socket)) as line:
                assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == seconds * 1000
                assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10
        engine.dispose()


class Stated(Exception):
    """An error like those of drivers, with or without a SQLSTATE."""

    def __init__(self, text: str, state: str | None = None) -> None:
        super().__init__(text)
        self.sqlstate = state


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (Stated('FATAL:  password authentication failed for user "jo"'), "state-login", "the user or the password"),
        (Stated('FATAL:  Peer authentication failed for user "jo"'), "state-login", "the user or the password"),
        (Stated("fe_sendauth: no password supplied"), "state-login", "the user or the password"),
        (Stated('FATAL:  no pg_hba.conf entry for host "h", user "jo"'), "state-login", "accepts no connections"),
        (Stated('FATAL:  database "d" does not exist'), "state-no-database", "no database of that name"),
        (Stated('FATAL:  permission denied for database "d"'), "state-rights", "lacks the right to do this"),
        (Stated("connection refused"), "state-unreachable", "nothing is listening"),
        (Stated("SSL error: certificate verify failed"), "state-tls", "no encrypted connection"),
        (Stated("x", "53300"), "state-unreachable", "connection limit"),
        (Stated("x", "3F000"), "state-no-schema", "no schema of that name"),
        (Stated("x", "25006"), "state-rights", "is read-only (SQLSTATE 25006)"),
        (Stated("x", "40P01"), "state-busy", "must be repeated (SQLSTATE 40P01)"),
        (Stated("x"), "state-unreachable", "cannot be reached, or it ended the connection (Stated)"),
        (Stated("x", "57P03"), "state-unreachable", "starting or stopping (SQLSTATE 57P03)"),
    ],
)
def test_states_and_sinks_classify_a_fault_alike(error: Stated, code: str, words: str) -> None:
    """Each has its own message for it."""
    failed = sa.exc.OperationalError("x", None, error)
    assert diagnose(failed).code == code
    assert words in cause(failed)


PAGE = ROOT / "docs/state.md"


def test_a_state_moves_to_a_schema_in_which_a_role_may_only_read(tmp_path: Path, postgresql_url: str) -> None:
    """From a file; the next apply sends its resources again. The role can plan, and reads no posted time. It has the
    grants of the page, which are for the tables of the state alone. `apply` is refused as well."""

    def runs(state: str, *arguments: str) -> warm.Ended:
        environ = {"HOME": str(tmp_path), "SYNCENGINE_STATE": state, "SYNCENGINE_API_KEY": KEY}
        return warm.run(arguments, folder=tmp_path, environ=environ)

    def execute(*statements: str) -> None:
        with engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    engine = sa.create_engine(postgresql_url)
    execute("DROP SCHEMA IF EXISTS staging CASCADE", "DROP ROLE IF EXISTS planner")
    execute("CREATE SCHEMA staging", "CREATE ROLE planner LOGIN PASSWORD 'p'")
    staging, file = f"{postgresql_url}?options=-csearch_path%3Dstaging", str(tmp_path / "state.db")
    planner = sa.make_url(staging).set(username="planner", password="p").render_as_string(hide_password=False)
    with serving() as service:
        settings = blocks(PAGE, "yaml")[0].replace("https://wisetime.com/connect/api", f'"{service.url}"')
        write(tmp_path, {"syncengine.yaml": settings, "manifests/tags.yaml": "tags: [{name: A}]\n"})
        assert runs(file, "apply", "-y").code == 0
        assert runs(file, "state", "export", "-o", "state.jsonl").code == 0
        assert runs(staging, "state", "import", "state.jsonl", "-y").code == 0
        assert "1 to update" in runs(staging, "plan").out
        assert runs(staging, "apply", "-y").code == 0
        execute(*blocks(PAGE, "sql")[0].replace("public", "staging").strip().rstrip(";").split(";\n"))
        planned = runs(planner, "plan")
        assert (planned.code, planned.out.splitlines()[0]) == (0, "No changes. 1 resource matches the recorded state.")
        for command in (("state", "list"), ("state", "export"), ("state", "history")):
            assert runs(planner, *command).code == 0
        write(tmp_path, {"manifests/tags.yaml": "tags: [{name: A}, {name: B}]\n"})
        assert runs(planner, "plan", "--detailed-exitcode").code == 2
        for command in (("apply", "-y"), ("time", "inbox"), ("time", "show", "g"), ("time", "audit")):
            refused = runs(planner, *command)
            assert (refused.code, "[state-rights]" in refused.err) == (1, True), (command, refused)
    readable = sa.text(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'staging'::regnamespace"
        " AND has_table_privilege('planner', oid, 'SELECT')"
    )
    with engine.connect() as connection:
        assert set(connection.execute(readable).scalars()) == {table.name for table in STATE}
    engine.dispose()
