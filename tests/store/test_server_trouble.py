"""A state on a server that does not let us in: what is wrong is told apart, and each time with its cure."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from syncengine import DISTRIBUTION
from syncengine.database.state_errors import NO_DRIVER
from syncengine.errors import SyncengineError
from syncengine.state.store import open_state


def refused(url: str) -> SyncengineError:
    with pytest.raises(SyncengineError) as refusal:
        open_state(url, write=True).close()
    assert "\n" not in refusal.value.message
    return refusal.value


def test_what_is_wrong_with_a_server_is_told_apart(postgresql_url: str) -> None:
    """A wrong password, no such database, no right to make tables, nobody there."""
    there = make_url(postgresql_url)
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
    }
    found = {code: refused(url.render_as_string(hide_password=False)) for code, url in tried.items()}
    assert {code: error.code for code, error in found.items()} == {code: code for code in tried}
    assert len({error.message for error in found.values()}) == len(tried)
    assert "wrong-pa55" not in "".join(error.message for error in found.values())


def test_a_missing_driver_names_the_line_to_type() -> None:
    """By the name that the package is installed by."""
    assert f"pip install '{DISTRIBUTION}[postgresql]'" in NO_DRIVER.error("x").message
    assert refused("postgresql+nodriver://jo@db/state").code == "state-driver"
