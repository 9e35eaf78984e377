"""Files of lines (`jsonl`, `csv`): each group once wherever a write broke off, and lines of other programs are kept."""

import asyncio
import csv
import fcntl
import io
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from syncengine.errors import TroubleKind
from syncengine.posted_time.sinks.appended_file import AppendedFile, CsvRecords, JsonLines, record
from syncengine.posted_time.sinks.contract import Answer, Failed, Lacks, RenderedGroup, Took, Words
from syncengine.posted_time.templates import Json
from syncengine.state.inbox_model import DeliveryKey
from tests.posted_time.desk import SUCCESS, TROUBLE, at_work, taking
from tests.posted_time.projects import JSONL, delivering, into, lines, problems
from tests.posted_time.samples import raw

pytestmark = pytest.mark.slow


class Form(NamedTuple):
    """A form of files with a line of it, and the contents that a file may have before."""

    made: JsonLines | CsvRecords
    line: bytes
    before: list[bytes]
    header: bytes = b""


HEADER = b'Date,Matter,"Hours, worked",Note\r\n'
COLUMNS = ("Date", "Matter", "Hours, worked", "Note")
JSON_LINES = Form(
    JsonLines(None),
    msgspec.json.encode({"id": "g1", "note": "Müller ☃", "tags": [{"name": "{}"}]}) + b"\n",
    [b"", b'{"id": "g0"}\n'],
)
CSV = Form(
    CsvRecords(COLUMNS, Json(frozenset(), lambda variables: {})),
    record(["2024-05-02", "ACME-0042", 1, 'He said "no",\nthen\r\nleft; ü ☃']).encode(),
    [b"", HEADER, HEADER + record(["2024-05-01", "ACME-0042", 0.5, ""]).encode()],
    HEADER,
)
LINE, BEFORE = JSON_LINES.line, JSON_LINES.before[1]


def sink(folder: Path, form: Form = JSON_LINES, **given: float) -> AppendedFile:
    return AppendedFile("archive", folder / "lines", form.made, Words(None, None), **given)


KEY = DeliveryKey("g1", 1, "archive")


class Notebook(dict[DeliveryKey, str | None]):
    """Memos in memory, in place of those in the inbox."""

    def keep(self, key: DeliveryKey, memo: str | None) -> None:
        self[key] = memo

    def with_note(self, sink: str, memo: str) -> list[DeliveryKey]:
        return [key for key, noted in self.items() if noted == memo]


def deliver(
    to: AppendedFile, memo: str | None = None, notes: Notebook | None = None, form: Form = JSON_LINES
) -> Answer:
    notes = Notebook({KEY: memo}) if notes is None else notes
    return asyncio.run(delivery(to, notes, memo, form))


def delivery(
    to: AppendedFile, notes: Notebook, memo: str | None = None, form: Form = JSON_LINES
) -> Coroutine[Any, Any, Answer]:
    return to.deliver(RenderedGroup("g1", "archive", 1, "digest", form.line, {}), memo, notes)


CUTS = {
    f"{name} at {cut} below {len(before)}": (form, before, cut)
    for name, form in (("jsonl", JSON_LINES), ("csv", CSV))
    for before in form.before
    for cut in range(len(form.line) + 1)
}


@pytest.mark.parametrize(("form", "before", "cut"), CUTS.values(), ids=CUTS)
def test_a_line_is_there_once_wherever_its_write_broke_off(form: Form, before: bytes, cut: int, tmp_path: Path) -> None:
    """A line that lacks only its line end is completed, and `recall` finds it; anything shorter is written again."""
    file, notes = tmp_path / "lines", Notebook()
    file.write_bytes(before)
    assert deliver(sink(tmp_path, form), None, notes, form) == Took()
    whole = file.read_bytes()
    assert whole == (before or form.header) + form.line
    file.write_bytes(whole[: len(whole) - len(form.line) + cut])
    is_there = cut >= len(form.line) - 1
    recalled = Notebook(notes)
    found = asyncio.run(sink(tmp_path, form).recall(KEY, notes[KEY], recalled, None))
    assert (found, recalled[KEY]) == ((Took(), notes[KEY]) if is_there else (Lacks(), None))
    after_recall = file.read_bytes()
    assert deliver(sink(tmp_path, form), notes[KEY], Notebook(notes), form) == Took()
    assert file.read_bytes() == whole
    file.write_bytes(after_recall)
    assert deliver(sink(tmp_path, form), form=form) == Took()
    assert file.read_bytes() == (whole if is_there else whole[: -len(form.line)]) + form.line


def test_a_file_locked_by_another_program_is_trouble(tmp_path: Path) -> None:
    """Neither a delivery nor a probe waits for the lock without a limit. Lines that wait give up with the first."""
    archive = sink(tmp_path, patience=0.5)

    async def story() -> list[Answer]:
        return await asyncio.gather(*(delivery(archive, Notebook()) for _ in range(30)))

    with (tmp_path / "lines").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        began = time.monotonic()
        for answer in asyncio.run(story()):
            assert isinstance(answer, Failed)
            assert (answer.kind, answer.has_answered) == (TroubleKind.UNREACHABLE, False)
        assert time.monotonic() - began < 10
        trouble = asyncio.run(archive.probe())
        assert trouble is not None
        assert (trouble.kind, trouble.message) == (TroubleKind.UNREACHABLE, "archive cannot be written.")
        memo = '{"offset":0,"length":1,"hash":""}'
        assert isinstance(asyncio.run(archive.recall(KEY, memo, Notebook(), None)), Failed)
    assert asyncio.run(archive.probe()) is None
    assert deliver(archive) == Took()
    assert (tmp_path / "lines").read_bytes() == LINE


def replaced(file: Path) -> None:
    file.with_suffix(".new").write_bytes(BEFORE)
    file.with_suffix(".new").replace(file)


CHANGES: dict[str, Callable[[Path], object]] = {
    "rotated": lambda file: file.rename(file.with_suffix(".1")),
    "removed": lambda file: file.unlink(),
    "replaced": replaced,
    "emptied": lambda file: file.write_bytes(b""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_replaced_during_the_wait_for_its_lock_is_opened_again(change: str, tmp_path: Path) -> None:
    """For example by a log rotation under the lock: the line is in the file that now has the name."""
    file = tmp_path / "lines"
    with file.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        async def story() -> Answer:
            writing = asyncio.ensure_future(delivery(sink(tmp_path), Notebook()))
            await asyncio.sleep(0.2)
            CHANGES[change](file)
            fcntl.flock(other, fcntl.LOCK_UN)
            return await writing

        assert asyncio.run(story()) == Took()
    assert file.read_bytes() == (BEFORE + LINE if change == "replaced" else LINE)


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_replaced_during_a_write_is_trouble_if_the_line_is_lost(change: str, tmp_path: Path) -> None:
    """A line in a file that was renamed, or emptied before the write, is kept; otherwise it is written again."""
    file = tmp_path / "lines"
    file.write_bytes(BEFORE)

    class Meanwhile(Notebook):
        """Changes the file when the memo is kept, just before the line is written."""

        def keep(self, key: DeliveryKey, memo: str | None) -> None:
            super().keep(key, memo)
            CHANGES[change](file)

    notes = Meanwhile()
    first = deliver(sink(tmp_path), notes=notes)
    if change in ("rotated", "emptied"):
        kept = file.with_suffix(".1").read_bytes() if change == "rotated" else BEFORE + file.read_bytes()
        assert (first, kept) == (Took(), BEFORE + LINE)
        return
    assert isinstance(first, Failed)
    assert (first.kind, first.is_sure, first.has_answered) == (TroubleKind.UNREACHABLE, False, False)
    assert deliver(sink(tmp_path), notes[KEY], Notebook(notes)) == Took()
    assert file.read_bytes().count(LINE) == 1


# --- what a line holds, and files that cannot be written


def test_a_line_holds_the_group_its_seconds_and_its_narrative(tmp_path: Path) -> None:
    """Fields have the names of the API, the caller key is left out, and only the owner can read the file."""
    taking(delivering(tmp_path, JSONL, ""), raw("g1"), raw("g2"))
    first, second = lines(tmp_path)
    assert (first["groupId"], second["groupId"]) == ("g1", "g2")
    assert (first["seconds"], first["timeRows"][0]["activity"], "callerKey" in first) == (3600, "Word", False)
    assert first["narrative"].startswith("09:05 Word: Reply.docx (1h)")
    assert (tmp_path / "out/time.jsonl").stat().st_mode & 0o777 == 0o600


X, Y = b'{"id": "x"}\n', b'{"id": "y"}'
MENDED: dict[str, tuple[Form, bytes, bytes]] = {
    "torn": (JSON_LINES, X + b'{"id": "to', X),
    "torn first line": (JSON_LINES, b'{"id', b""),
    "complete without a line end": (JSON_LINES, X + Y, X + Y + b"\n"),
    "torn within a character": (JSON_LINES, X + b'{"id": "\xc3', X),
    "a number, which may be incomplete": (JSON_LINES, X + b"12", X),
    "a number as the first line": (JSON_LINES, b"12.5", b""),
    "an incomplete string": (JSON_LINES, X + b'"ab', X),
    "a complete string": (JSON_LINES, b'"ab"', b'"ab"\n'),
    "long and torn": (JSON_LINES, b'{"id": "' + b"x" * 3_000_000, b""),
    **{f"torn header at {cut}": (CSV, HEADER[:cut], HEADER) for cut in range(len(HEADER) + 1)},
    "carriage returns": (CSV, HEADER[:-1] + b"2024-05-01,A,1,x\r", HEADER[:-1] + b"2024-05-01,A,1,x\r\n"),
}
"""What a process or a power failure left, or another program saved → what of it stays above the next line."""
FOREIGN = {
    "byte order mark": b"\xef\xbb\xbf" + HEADER + b"2024-05-01,A,1,x\r\n",
    "line feeds": HEADER[:-2] + b'\n2024-05-01,A,1,"x\ny"\n2024-05-01,B,1,\n',
    "quotes": b'"Date","Matter","Hours, worked","Note"\n"2024-05-01","A","1","x"\n',
    "an inch": HEADER[:-2] + b'\n2024-05-01,A,1,pipe of 5"\n2024-05-02,B,1,x\n',
    "an inch below ours": HEADER + b'2024-05-01,A,1,"a ""b"", c"\n2024-05-02,5",1,x\n2024-05-03,C,1,"",\n',
}
MENDED |= {name: (CSV, text, text) for name, text in FOREIGN.items()}
MENDED |= {f"{name}, torn": (CSV, text + CSV.line[:9], text) for name, text in FOREIGN.items()}


@pytest.mark.parametrize(("form", "tail", "kept"), MENDED.values(), ids=MENDED.keys())
def test_the_end_of_a_file_is_mended_before_the_next_line(form: Form, tail: bytes, kept: bytes, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(tail)
    assert deliver(sink(tmp_path, form), form=form) == Took()
    assert (tmp_path / "lines").read_bytes() == kept + form.line


OTHERS = [
    *((JSON_LINES, text) for text in ("My notes", "version: 1\nbaseUrl: x", "[\n {}\n]", "2026-11-29 at", "- one")),
    *((CSV, text) for text in ('\ufeffA;D\nu1;5" pipe\nold;row\n', "A,D\r\n1,2", "Datum,Akte\r\n1,2\r\n")),
]


@pytest.mark.parametrize(("form", "text"), OTHERS)
def test_nothing_is_cut_off_a_file_that_is_not_ours(form: Form, text: str, tmp_path: Path) -> None:
    """The trouble says what to do. The header of a CSV file is looked at before its end is mended."""
    for encoding in ("utf-8", "utf-16")[: 2 if form is CSV else 1]:
        (tmp_path / "lines").write_bytes(text.encode(encoding))
        answer = deliver(sink(tmp_path, form), form=form)
        assert isinstance(answer, Failed)
        assert "move the file away" in (answer.detail or "")
        assert (tmp_path / "lines").read_bytes() == text.encode(encoding)


@pytest.mark.parametrize("obstacle", ["out", "out/time.jsonl"], ids=["a file in place of the folder", "a full disk"])
def test_a_file_that_cannot_be_written_is_trouble_until_a_line_is(obstacle: str, tmp_path: Path) -> None:
    """A second failure in a row is reported. On a full disk, opening the file proves nothing."""
    cause = tmp_path / obstacle
    with at_work(delivering(tmp_path, JSONL, "")) as desk:
        if obstacle == "out":
            cause.touch()
        else:
            cause.parent.mkdir()
            cause.symlink_to("/dev/full")
        for _ in range(2):
            assert desk.take(raw()).outcome is TROUBLE
            assert [t.message for t in desk.troubles] == ["archive cannot be written."]
        assert [t.message for t in desk.check_sinks()] == ["archive cannot be written."]
        cause.unlink()
        assert desk.take(raw()).outcome is SUCCESS
        assert (desk.troubles, desk.check_sinks()) == ((), ())


# --- csv


BOOKS = """\
- name: books
  csv: {path: out/time.csv, columns: {Date: "{{ start | date }}", Matter: "{{ tag.name }}", "Hours, worked":
    "{{ duration.hours }}", Note: "{{ group.description }}"}}
"""


def records(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def test_a_group_is_a_record_below_a_header(tmp_path: Path) -> None:
    """Quotes, commas and line breaks stay inside their field, and the header is written once."""
    text = 'He said "no",\r\nthen left; ü'
    for id in ("g1", "g2", "g1"):
        (verdict,) = taking(delivering(tmp_path, BOOKS, ""), raw(id, description=text))
        assert verdict.outcome is SUCCESS
    header, *found = records((tmp_path / "out/time.csv").read_bytes())
    assert header == [*COLUMNS]
    assert found == [["2024-05-02", "ACME-0042", "1", text.replace("\r", "")]] * 2


@pytest.mark.parametrize("change", ["rotated", "removed", "emptied"])
def test_a_new_file_gets_its_own_header(change: str, tmp_path: Path) -> None:
    for _ in range(2):
        assert deliver(sink(tmp_path, CSV), form=CSV) == Took()
        assert (tmp_path / "lines").read_bytes() == HEADER + CSV.line
        CHANGES[change](tmp_path / "lines")


def test_a_file_with_another_header_or_of_another_form_is_refused_at_start(tmp_path: Path) -> None:
    """The message shows the header and says how to solve it. Each form would cut off the lines of the other."""
    file = tmp_path / "out/time.csv"
    file.parent.mkdir()
    file.write_bytes(b"Date,Matter\r\n")
    (found,) = problems(tmp_path, into(BOOKS))
    assert found.code == "bad-path"
    assert "`Date,Matter`" in found.message
    assert "move the file away, or set `columns` to its header" in found.message
    assert file.read_bytes() == b"Date,Matter\r\n"
    file.unlink()
    (found,) = problems(tmp_path, into(BOOKS + "- {name: other, jsonl: {path: ./out/../out/time.csv}}\n"))
    assert (found.code, "another form" in found.message) == ("bad-path", True)


def test_no_text_runs_as_a_formula() -> None:
    """A text that a spreadsheet would run gets a leading apostrophe; numbers and other texts stay as they are."""
    formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " \n=1"]
    (cells,) = records(record([*formulas, -1, -0.5, "a=1"]).encode())
    assert cells == [*(f"'{text}" for text in formulas), "-1", "-0.5", "a=1"]
