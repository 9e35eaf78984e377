"""A state on a server that cannot be used: each cause has its own error, which says what to do."""

from __future__ import annotations

import os
import socket

import pytest
import sqlalchemy as sa

from syncengine import DISTRIBUTION
from syncengine.database.errors import cause
from syncengine.database.open import open_engine
from syncengine.errors import SyncengineError
from syncengine.state.database import NO_DRIVER, diagnose
from syncengine.state.store import open_state
from syncengine.state.tables import METADATA


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


def test_a_missing_driver_names_the_command_that_installs_it() -> None:
    assert f"pip install '{DISTRIBUTION}[postgresql]'" in NO_DRIVER.error("x").message
    assert refused(sa.make_url("postgresql+nodriver://jo@db/state")).code == "state-driver"
