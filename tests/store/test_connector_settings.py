"""The settings of the last registration are remembered, and no secret with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from syncengine.state.connector_settings import remember, settings_in
from syncengine.state.database import open_database
from syncengine.state.inbox_tables import CONNECTOR
from syncengine.state.store import new_lineage


def remembered(url: str, *, without_table: bool = False) -> dict[str, Any]:
    database = open_database(url, write=without_table, new_lineage=new_lineage)
    try:
        if without_table:
            with database.alone() as connection:
                CONNECTOR.drop(connection)
        return settings_in(database)
    finally:
        database.close()


def test_the_last_registration_counts_also_in_a_state_that_has_no_table_for_it(tmp_path: Path) -> None:
    """An engine from before made the state; what the service names no more is forgotten."""
    url = str(tmp_path / "state.db")
    remember(url, {"A": True, "B": "desk 7"})
    assert remembered(url) == {"A": True, "B": "desk 7"}
    assert remembered(url, without_table=True) == {}
    remember(url, {"A": True})
    remember(url, {"A": False})
    assert remembered(url) == {"A": False}
    remember(url, {})
    assert remembered(url) == {}


def test_nothing_that_may_be_a_secret_is_written(tmp_path: Path) -> None:
    """By its name; nor what is no plain value, which no template needs."""
    url = str(tmp_path / "state.db")
    remember(url, {"apiKey": "s3cr3t", "SESSION_TOKEN": "s3cr3t", "nested": {"x": "s3cr3t"}, "DESK": None, "n": 1})
    assert remembered(url) == {"DESK": None, "n": 1}
    assert all(b"s3cr3t" not in path.read_bytes() for path in tmp_path.iterdir())
