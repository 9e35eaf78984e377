"""Which mechanism was registered last, as the state remembers it."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from syncengine.state import tables
from syncengine.state.database import open_database
from syncengine.state.inbox_tables import MECHANISM
from syncengine.state.info import VERSION
from syncengine.state.mechanism import Mechanism, digest, registered, remember
from syncengine.state.store import open_state

from .before import unpack

KEY = "caller-key-of-a-test"
FETCH = Mechanism("fetch", "https://service.example")
HOOK = Mechanism("webhook", "https://service.example", "https://hook.example", digest(KEY))


def test_what_is_remembered_is_found_again(tmp_path: Path) -> None:
    """The last one only; nothing at first, and nothing once it was ended. Looking creates no state."""
    state = str(tmp_path / "state.db")
    assert registered(state) is None
    assert not Path(state).exists()
    for mechanism in (Mechanism("fetch", "https://service.example"), HOOK, None):
        remember(state, mechanism)
        assert registered(state) == mechanism


def test_the_key_is_known_again_and_is_nowhere(tmp_path: Path) -> None:
    """Two digests of one key differ, and neither is the key."""
    state = tmp_path / "state.db"
    remember(str(state), HOOK)
    found = registered(str(state))
    assert found is not None
    assert found.has_key(KEY)
    assert not found.has_key(KEY + "x")
    assert digest(KEY) != digest(KEY)
    assert KEY.encode() not in state.read_bytes()


@pytest.mark.parametrize("has_table", [True, False])
def test_an_older_state_gains_the_table_and_keeps_what_it_remembers(has_table: bool, url: str) -> None:
    """States of version 3 have the table once they registered something."""
    if has_table:
        remember(url, HOOK)
    database = open_database(url, write=True, new_lineage=lambda: "x")
    with database.alone() as connection:
        unpack(connection)
        connection.execute(sa.update(tables.FACTS).values(version=3))
        for column in ("beats", "seconds"):
            connection.exec_driver_sql(f"ALTER TABLE state_lock DROP COLUMN {column}")
        tables.ATTEMPTS.drop(connection)
        connection.exec_driver_sql("ALTER TABLE state_facts DROP COLUMN sources")
        if not has_table:
            MECHANISM.drop(connection)
    database.close()
    assert registered(url) == (HOOK if has_table else None)
    with open_state(url, write=True) as state, state.database.transaction() as connection:
        assert tables.version(connection) == VERSION
        assert sa.inspect(connection).has_table(MECHANISM.name)
    assert registered(url) == (HOOK if has_table else None)
    remember(url, FETCH)
    assert registered(url) == FETCH


def test_a_fetch_client_has_no_key(tmp_path: Path) -> None:
    """Whatever is asked."""
    assert not Mechanism("fetch", "https://service.example").has_key("")
