"""What the state remembers of the connector: its last mechanism, and the configuration of its last registration."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from syncengine.state.connector import (
    Mechanism,
    digest,
    registered_mechanism,
    remember_mechanism,
    remember_settings,
    settings_in,
)
from syncengine.state.database import open_database

KEY = "caller-key-of-a-test"
FETCH = Mechanism("fetch", "https://service.example")
HOOK = Mechanism("webhook", "https://service.example", "https://hook.example", digest(KEY))


def remembered(path: Path) -> dict[str, Any]:
    with closing(open_database(str(path), write=False)) as database:
        return settings_in(database)


def test_the_last_mechanism_and_registration_count(path: Path) -> None:
    """There are none at first and after an unregistration. Reading creates no state."""
    assert (registered_mechanism(str(path)), remembered(path)) == (None, {})
    assert not path.exists()
    for mechanism in (FETCH, HOOK, None):
        remember_mechanism(str(path), mechanism)
        assert registered_mechanism(str(path)) == mechanism
    for settings in ({"A": True, "B": "desk 7"}, {"A": True}, {"A": False}, {}):
        remember_settings(str(path), settings)
        assert remembered(path) == settings


def test_settings_that_may_be_secret_are_not_written(path: Path) -> None:
    """They are recognized by their names. Values that are not plain are left out as well."""
    values = {"apiKey": "s3cr3t", "SESSION_TOKEN": "s3cr3t", "nested": {"x": "s3cr3t"}, "DESK": None, "n": 1}
    remember_settings(str(path), values)
    assert remembered(path) == {"DESK": None, "n": 1}
    assert all(b"s3cr3t" not in file.read_bytes() for file in path.parent.iterdir())


def test_a_mechanism_is_remembered_once_another_writer_has_ended(path: Path) -> None:
    """A receiver may write posted time into the same file meanwhile."""
    remember_mechanism(str(path), FETCH)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE elsewhere (id)")
        remembering = threading.Thread(target=remember_mechanism, args=(str(path), HOOK))
        remembering.start()
        time.sleep(0.2)
        other.execute("COMMIT")
        remembering.join(20)
    assert registered_mechanism(str(path)) == HOOK


def test_the_caller_key_is_recognized_but_not_stored(path: Path) -> None:
    """The state holds a salted digest: two digests of one key differ. A fetch client has no key."""
    remember_mechanism(str(path), HOOK)
    found = registered_mechanism(str(path))
    assert found is not None
    assert [found.has_key(KEY), found.has_key(KEY + "x"), FETCH.has_key("")] == [True, False, False]
    assert digest(KEY) != digest(KEY)
    assert KEY.encode() not in path.read_bytes()


def test_a_key_is_recognized_without_memory() -> None:
    """`serve` does so at each registration, in whatever thread is free: what a thread takes, it keeps for ever."""

    def megabytes() -> float:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    before = megabytes()
    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(HOOK.has_key, [KEY] * 6))
    assert megabytes() - before < 16
