"""The state remembers the mechanism that was registered."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

from syncengine.state.connector import Mechanism, registered_mechanism, remember_mechanism

FETCH = Mechanism("fetch", "http://127.0.0.1:1")
WEBHOOK = Mechanism("webhook", "http://127.0.0.1:1", "https://here.example/hook", "salt$key")


def test_remember_mechanism_waits_for_another_writer(tmp_path: Path) -> None:
    """A receiver may write posted time into the same file meanwhile."""
    state = tmp_path / "state.db"
    remember_mechanism(str(state), FETCH)
    with closing(sqlite3.connect(state, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE elsewhere (id)")
        remembering = threading.Thread(target=remember_mechanism, args=(str(state), WEBHOOK))
        remembering.start()
        time.sleep(0.5)
        other.execute("COMMIT")
        remembering.join(20)
    assert registered_mechanism(str(state)) == WEBHOOK
