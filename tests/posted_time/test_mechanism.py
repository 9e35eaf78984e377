"""What a state remembers of the mechanism that it registered."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

from syncengine.state.connector import Mechanism, registered_mechanism, remember_mechanism

FETCH = Mechanism("fetch", "http://127.0.0.1:1")
WEBHOOK = Mechanism("webhook", "http://127.0.0.1:1", "https://here.example/hook", "salt$key")


def test_another_writer_is_waited_for(tmp_path: Path) -> None:
    """A receiver writes posted time into the same file while its webhook is being remembered."""
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
