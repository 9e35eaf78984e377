"""A ledger file that is restored, moved or replaced while in use: no row goes into a file that was replaced."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from syncengine.posted_time.delivery import Delivery
from syncengine.state.inbox_model import PostedTimeStatus
from tests.posted_time.projects import LOOKUPS, SQL_SINK, delivering, ledger, rows
from tests.posted_time.samples import raw
from tests.posted_time.test_sinks import run

SUCCESS, TROUBLE = PostedTimeStatus.SUCCESS, PostedTimeStatus.TROUBLE


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

    async def story(opened: Delivery) -> None:
        assert (await opened.take(raw("g1"), mechanism="fetch")).outcome is SUCCESS
        replace(tmp_path)
        for number in (2, 3, 4):
            assert (await opened.take(raw(f"g{number}"), mechanism="fetch")).outcome is SUCCESS

    run(delivering(tmp_path, SQL_SINK, LOOKUPS), story)
    assert [id for id, *_ in rows(tmp_path)] == ["g2", "g3", "g4"]
    assert rows(tmp_path, "SELECT group_id FROM syncengine_receipts") == [("g2",), ("g3",), ("g4",)]


def test_a_ledger_that_is_replaced_during_a_write_is_trouble(tmp_path: Path) -> None:
    """The row went into the old file; the next offer of the group writes it into the new one."""
    with closing(sqlite3.connect(ledger(tmp_path))) as database:
        database.execute("PRAGMA journal_mode = wal")
    shutil.copy(tmp_path / "ledger.db", tmp_path / "backup.db")

    async def story(opened: Delivery) -> None:
        with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            taking = asyncio.ensure_future(opened.take(raw("g1"), mechanism="fetch"))
            await asyncio.sleep(0.5)  # the delivery waits for the other writer, with the old file open
            assert not taking.done()
            restored(tmp_path)
            other.execute("ROLLBACK")
        first = await taking
        assert (first.outcome, first.message) == (TROUBLE, "ledger cannot be reached.")
        assert first.detail == "the file was removed or replaced while it was written"
        assert rows(tmp_path) == []
        assert (await opened.take(raw("g1"), mechanism="fetch")).outcome is SUCCESS

    run(delivering(tmp_path, SQL_SINK, LOOKUPS), story)
    assert [id for id, *_ in rows(tmp_path)] == ["g1"]


def test_a_ledger_that_is_gone_is_trouble_until_it_is_back(tmp_path: Path) -> None:
    """No new file is created in its place."""
    shutil.copy(ledger(tmp_path), tmp_path / "backup.db")

    async def story(opened: Delivery) -> None:
        assert (await opened.take(raw("g1"), mechanism="fetch")).outcome is SUCCESS
        (tmp_path / "ledger.db").unlink()
        assert (await opened.take(raw("g2"), mechanism="fetch")).outcome is TROUBLE
        assert [trouble.sink for trouble in opened.troubles] == ["ledger"]
        assert not (tmp_path / "ledger.db").exists()
        restored(tmp_path)
        assert await opened.check_sinks() == ()
        assert (await opened.take(raw("g2"), mechanism="fetch")).outcome is SUCCESS

    run(delivering(tmp_path, SQL_SINK, LOOKUPS), story)
    assert [id for id, *_ in rows(tmp_path)] == ["g2"]
