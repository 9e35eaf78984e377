"""The state stores the connector configuration of the last registration, without secrets."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from syncengine.state.connector import remember_settings, settings_in
from syncengine.state.database import open_database


def remembered(url: str) -> dict[str, Any]:
    with closing(open_database(url, write=False)) as database:
        return settings_in(database)


def test_the_last_registration_counts(tmp_path: Path) -> None:
    """Settings that the service no longer sends are dropped. Reading creates no state."""
    url = str(tmp_path / "state.db")
    assert remembered(url) == {}
    assert not Path(url).exists()
    remember_settings(url, {"A": True, "B": "desk 7"})
    assert remembered(url) == {"A": True, "B": "desk 7"}
    remember_settings(url, {"A": True})
    remember_settings(url, {"A": False})
    assert remembered(url) == {"A": False}
    remember_settings(url, {})
    assert remembered(url) == {}


def test_settings_that_may_be_secret_are_not_written(tmp_path: Path) -> None:
    """They are recognized by their names. Values that are not plain are left out as well."""
    url = str(tmp_path / "state.db")
    values = {"apiKey": "s3cr3t", "SESSION_TOKEN": "s3cr3t", "nested": {"x": "s3cr3t"}, "DESK": None, "n": 1}
    remember_settings(url, values)
    assert remembered(url) == {"DESK": None, "n": 1}
    assert all(b"s3cr3t" not in path.read_bytes() for path in tmp_path.iterdir())
