"""Lines of a JSONL file: after an attempt that died, and while another program locks or replaces the file."""

from __future__ import annotations

import asyncio
import fcntl
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from syncengine.errors import TroubleKind
from syncengine.posted_time.sinks.appended_file import AppendedFile, JsonLines
from syncengine.posted_time.sinks.contract import Answer, Failed, Lacks, RenderedGroup, Took, Words
from syncengine.state.inbox_model import DeliveryKey

LINE = msgspec.json.encode({"id": "g1", "note": "Müller ☃", "tags": [{"name": "{}"}]}) + b"\n"
BEFORE = b'{"id": "g0"}\n'


def sink(folder: Path, **given: float) -> AppendedFile:
    return AppendedFile("archive", folder / "time.jsonl", JsonLines(None), Words(None, None), **given)


KEY = DeliveryKey("g1", 1, "archive")


class Notebook(dict[DeliveryKey, str | None]):
    """Memos in memory, in place of those in the inbox."""

    def keep(self, key: DeliveryKey, memo: str | None) -> None:
        self[key] = memo

    def with_note(self, sink: str, memo: str) -> list[DeliveryKey]:
        return [key for key, noted in self.items() if noted == memo]


def deliver(to: AppendedFile, memo: str | None = None, notes: Notebook | None = None) -> Answer:
    notes = Notebook({KEY: memo}) if notes is None else notes
    return asyncio.run(delivering(to, notes, memo))


def delivering(to: AppendedFile, notes: Notebook, memo: str | None = None) -> Coroutine[Any, Any, Answer]:
    return to.deliver(RenderedGroup("g1", "archive", 1, "digest", LINE, {}), memo, notes)


@pytest.fixture(params=[b"", BEFORE], ids=["first", "second"])
def died(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[bytes, str]:
    """The content of the file before a line was written, and the memo of that line."""
    (tmp_path / "time.jsonl").write_bytes(request.param)
    notes = Notebook()
    assert deliver(sink(tmp_path), notes=notes) == Took()
    return request.param, notes[KEY] or ""


@pytest.mark.parametrize("cut", range(len(LINE) + 1))
def test_a_line_is_written_once_wherever_its_write_broke_off(cut: int, died: tuple[bytes, str], tmp_path: Path) -> None:
    """A line that lacks only its line end is completed; anything shorter is removed and written again."""
    before, memo = died
    file = tmp_path / "time.jsonl"
    file.write_bytes(before + LINE[:cut])
    assert deliver(sink(tmp_path), memo) == Took()
    assert file.read_bytes() == before + LINE


@pytest.mark.parametrize("cut", range(len(LINE) + 1))
def test_recall_finds_a_line_wherever_its_write_broke_off(cut: int, died: tuple[bytes, str], tmp_path: Path) -> None:
    """A line of another group can be appended in each case."""
    before, memo = died
    file = tmp_path / "time.jsonl"
    file.write_bytes(before + LINE[:cut])
    is_there = cut >= len(LINE) - 1
    assert asyncio.run(sink(tmp_path).recall(KEY, memo, Notebook({KEY: memo}), None)) == (
        Took() if is_there else Lacks()
    )
    assert deliver(sink(tmp_path)) == Took()
    assert file.read_bytes() == before + is_there * LINE + LINE


def test_a_file_locked_by_another_program_is_trouble(tmp_path: Path) -> None:
    """Neither a delivery nor a probe waits for the lock without a limit."""
    archive = sink(tmp_path, patience=0.05)
    with (tmp_path / "time.jsonl").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        answer, trouble = deliver(archive), asyncio.run(archive.probe())
        assert isinstance(answer, Failed)
        assert (answer.kind, answer.has_answered) == (TroubleKind.UNREACHABLE, False)
        assert trouble is not None
        assert (trouble.kind, trouble.message) == (TroubleKind.UNREACHABLE, "archive cannot be written.")
        assert isinstance(
            asyncio.run(archive.recall(KEY, '{"offset":0,"length":1,"hash":""}', Notebook(), None)), Failed
        )
    assert asyncio.run(archive.probe()) is None
    assert deliver(archive) == Took()
    assert (tmp_path / "time.jsonl").read_bytes() == LINE


def test_lines_that_wait_behind_a_lock_give_up_with_the_first(tmp_path: Path) -> None:
    """Otherwise each of 30 would wait for as long once more."""
    archive = sink(tmp_path, patience=0.5)

    async def story() -> list[Answer]:
        return await asyncio.gather(*(delivering(archive, Notebook()) for _ in range(30)))

    with (tmp_path / "time.jsonl").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        began = time.monotonic()
        assert {type(answer) for answer in asyncio.run(story())} == {Failed}
        assert time.monotonic() - began < 10


def rotated(file: Path) -> None:
    file.rename(file.with_suffix(".1"))


def removed(file: Path) -> None:
    file.unlink()


def replaced(file: Path) -> None:
    file.with_suffix(".new").write_bytes(BEFORE)
    file.with_suffix(".new").replace(file)


def emptied(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("change", [rotated, removed, replaced, emptied])
def test_a_file_replaced_during_the_wait_for_its_lock_is_opened_again(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    """For example by a log rotation under the lock: the line is in the file that now has the name."""
    file = tmp_path / "time.jsonl"
    with file.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        async def story() -> Answer:
            writing = asyncio.ensure_future(delivering(sink(tmp_path), Notebook()))
            await asyncio.sleep(0.2)
            change(file)
            fcntl.flock(other, fcntl.LOCK_UN)
            return await writing

        assert asyncio.run(story()) == Took()
    assert file.read_bytes() == (BEFORE + LINE if change is replaced else LINE)


@pytest.mark.parametrize("change", [rotated, removed, replaced, emptied])
def test_a_file_replaced_during_a_write_is_trouble_if_the_line_is_lost(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    """A line in a file that was renamed, or emptied before the write, is kept; otherwise it is written again."""
    file = tmp_path / "time.jsonl"
    file.write_bytes(BEFORE)

    class Meanwhile(Notebook):
        """Changes the file when the memo is kept, just before the line is written."""

        def keep(self, key: DeliveryKey, memo: str | None) -> None:
            super().keep(key, memo)
            change(file)

    notes = Meanwhile()
    first = deliver(sink(tmp_path), notes=notes)
    if change in (rotated, emptied):
        kept = file.with_suffix(".1").read_bytes() if change is rotated else BEFORE + file.read_bytes()
        assert (first, kept) == (Took(), BEFORE + LINE)
        return
    assert isinstance(first, Failed)
    assert (first.kind, first.is_sure, first.has_answered) == (TroubleKind.UNREACHABLE, False, False)
    assert deliver(sink(tmp_path), notes[KEY], Notebook(notes)) == Took()
    assert file.read_bytes().count(LINE) == 1
