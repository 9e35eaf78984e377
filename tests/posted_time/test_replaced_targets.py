"""A ledger file that is restored, moved or replaced while in use: no row goes into a file that was replaced."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.posted_time.desk import SUCCESS, TROUBLE, at_work
from tests.posted_time.projects import LOOKUPS, SQL_SINK, delivering, ledger, rows
from tests.posted_time.samples import raw


def beside(folder: Path) -> list[Path]:
    """The ledger with the files that SQLite keeps next to it."""
    return sorted(folder.glob("ledger.db*"))


def restored(folder: Path) -> None:
    """Restore the ledger from a copy that was made before the first group."""
    for path in beside(folder):
        path.unlink()
    shutil.copy(folder / "backup.db", folder / "ledger.db")


def moved_over(folder: Path) -> None:
    shutil.copy(folder / "backup.db", folder / "new.db")
    for path in beside(folder)[1:]:
        path.unlink()
    (folder / "new.db").replace(folder / "ledger.db")


def folder_replaced(folder: Path) -> None:
    """Replace the ledger by a symbolic link to another folder, like a changed mount."""
    (folder / "elsewhere").mkdir()
    shutil.copy(folder / "backup.db", folder / "elsewhere/ledger.db")
    for path in beside(folder):
        path.unlink()
    (folder / "ledger.db").symlink_to("elsewhere/ledger.db")


@pytest.mark.parametrize("replace", [restored, moved_over, folder_replaced])
@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_replaced_ledger_is_opened_again(replace: Callable[[Path], None], journal: str, tmp_path: Path) -> None:
    """SQLite itself would go on writing to the old file. The receipts table is created if the new file has none."""
    with closing(sqlite3.connect(ledger(tmp_path))) as database:
        database.execute(f"PRAGMA journal_mode = {journal}")
    shutil.copy(tmp_path / "ledger.db", tmp_path / "backup.db")
    with at_work(delivering(tmp_path, SQL_SINK, LOOKUPS)) as desk:
        assert desk.take(raw("g1")).outcome is SUCCESS
        replace(tmp_path)
        for number in (2, 3, 4):
            assert desk.take(raw(f"g{number}")).outcome is SUCCESS
    assert [id for id, *_ in rows(tmp_path)] == ["g2", "g3", "g4"]
    assert rows(tmp_path, "SELECT group_id FROM syncengine_receipts") == [("g2",), ("g3",), ("g4",)]


def test_a_ledger_that_is_replaced_during_a_write_is_trouble(tmp_path: Path) -> None:
    """The row went into the old file; the next offer of the group writes it into the new one."""
    with closing(sqlite3.connect(ledger(tmp_path))) as database:
        database.execute("PRAGMA journal_mode = wal")
    shutil.copy(tmp_path / "ledger.db", tmp_path / "backup.db")
    with at_work(delivering(tmp_path, SQL_SINK, LOOKUPS)) as desk, ThreadPoolExecutor() as pool:
        with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            taking = pool.submit(desk.take, raw("g1"))
            time.sleep(0.5)  # the delivery waits for the other writer, with the old file open
            assert not taking.done()
            restored(tmp_path)
            other.execute("ROLLBACK")
        first = taking.result()
        assert (first.outcome, first.message) == (TROUBLE, "ledger cannot be reached.")
        assert first.detail == "the file was removed or replaced while it was written"
        assert rows(tmp_path) == []
        assert desk.take(raw("g1")).outcome is SUCCESS
    assert [id for id, *_ in rows(tmp_path)] == ["g1"]


def test_a_ledger_that_is_gone_is_trouble_until_it_is_back(tmp_path: Path) -> None:
    """No new file is created in its place."""
    shutil.copy(ledger(tmp_path), tmp_path / "backup.db")
    with at_work(delivering(tmp_path, SQL_SINK, LOOKUPS)) as desk:
        assert desk.take(raw("g1")).outcome is SUCCESS
        (tmp_path / "ledger.db").unlink()
        assert desk.take(raw("g2")).outcome is TROUBLE
        assert [trouble.sink for trouble in desk.troubles] == ["ledger"]
        assert not (tmp_path / "ledger.db").exists()
        restored(tmp_path)
        assert desk.check_sinks() == ()
        assert desk.take(raw("g2")).outcome is SUCCESS
    assert [id for id, *_ in rows(tmp_path)] == ["g2"]
