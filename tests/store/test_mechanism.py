"""The state remembers the mechanism that was registered last."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from syncengine.state.connector import Mechanism, digest, registered_mechanism, remember_mechanism

KEY = "caller-key-of-a-test"
FETCH = Mechanism("fetch", "https://service.example")
HOOK = Mechanism("webhook", "https://service.example", "https://hook.example", digest(KEY))


def test_the_last_mechanism_is_remembered(tmp_path: Path) -> None:
    """There is none at first and after an unregistration. Reading creates no state."""
    state = str(tmp_path / "state.db")
    assert registered_mechanism(state) is None
    assert not Path(state).exists()
    for mechanism in (FETCH, HOOK, None):
        remember_mechanism(state, mechanism)
        assert registered_mechanism(state) == mechanism


def test_a_mechanism_is_remembered_once_another_writer_has_ended(tmp_path: Path) -> None:
    """A receiver may write posted time into the same file meanwhile."""
    state = tmp_path / "state.db"
    remember_mechanism(str(state), FETCH)
    with closing(sqlite3.connect(state, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE elsewhere (id)")
        remembering = threading.Thread(target=remember_mechanism, args=(str(state), HOOK))
        remembering.start()
        time.sleep(0.5)
        other.execute("COMMIT")
        remembering.join(20)
    assert registered_mechanism(str(state)) == HOOK


def test_the_caller_key_is_recognized_but_not_stored(tmp_path: Path) -> None:
    """The state holds a salted digest: two digests of one key differ."""
    state = tmp_path / "state.db"
    remember_mechanism(str(state), HOOK)
    found = registered_mechanism(str(state))
    assert found is not None
    assert found.has_key(KEY)
    assert not found.has_key(KEY + "x")
    assert digest(KEY) != digest(KEY)
    assert KEY.encode() not in state.read_bytes()


def test_a_key_is_recognized_without_memory() -> None:
    """`serve` does so at each registration, in whatever thread is free: what a thread takes, it keeps for ever."""

    def megabytes() -> float:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    before = megabytes()
    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(HOOK.has_key, [KEY] * 18))
    assert megabytes() - before < 16


def test_a_fetch_client_has_no_key(tmp_path: Path) -> None:
    assert not FETCH.has_key("")
