"""The `csv` sink: one header, each group once wherever a write broke off, and lines of other programs kept."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from syncengine.posted_time.sinks.appended_file import AppendedFile, CsvRecords, record
from syncengine.posted_time.sinks.contract import Answer, Failed, Lacks, RenderedGroup, Took, Words
from syncengine.posted_time.templates import Json
from tests.posted_time.desk import SUCCESS, taking
from tests.posted_time.projects import delivering, problems
from tests.posted_time.samples import raw
from tests.posted_time.test_jsonl_line import KEY, Notebook, emptied, removed, rotated

SINK = """\
- name: books
  csv: {path: out/time.csv, columns: {Date: "{{ start | date }}", Matter: "{{ tag.name }}", "Hours, worked":
    "{{ duration.hours }}", Note: "{{ group.description }}"}}
"""
HEADER = b'Date,Matter,"Hours, worked",Note\r\n'
LINE = record(["2024-05-02", "ACME-0042", 1, 'He said "no",\nthen\r\nleft; ü ☃']).encode()
BEFORE = record(["2024-05-01", "ACME-0042", 0.5, ""]).encode()
COLUMNS = ("Date", "Matter", "Hours, worked", "Note")


def sink(folder: Path) -> AppendedFile:
    form = CsvRecords(COLUMNS, Json(frozenset(), lambda variables: {}))
    return AppendedFile("books", folder / "time.csv", form, Words(None, None))


def deliver(to: AppendedFile, memo: str | None = None, notes: Notebook | None = None) -> Answer:
    notes = Notebook({KEY: memo}) if notes is None else notes
    return asyncio.run(to.deliver(RenderedGroup("g1", "archive", 1, "digest", LINE, {}), memo, notes))


def records(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def lines(folder: Path) -> list[dict[str, str]]:
    with (folder / "out/time.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_group_is_a_record_below_a_header(tmp_path: Path) -> None:
    """Quotes, commas and line breaks stay inside their field, and the header is written once."""
    text = 'He said "no",\r\nthen left; ü'
    for id in ("g1", "g2", "g1"):
        (verdict,) = taking(delivering(tmp_path, SINK, ""), raw(id, description=text))
        assert verdict.outcome is SUCCESS
    assert (tmp_path / "out/time.csv").read_bytes().startswith(HEADER)
    expected = {"Date": "2024-05-02", "Matter": "ACME-0042", "Hours, worked": "1", "Note": text.replace("\r", "")}
    assert lines(tmp_path) == [expected, expected]


@pytest.mark.parametrize("before", [b"", HEADER, HEADER + BEFORE], ids=["empty", "header", "record"])
@pytest.mark.parametrize("cut", range(len(LINE) + 1))
def test_a_record_is_written_once_wherever_its_write_broke_off(cut: int, before: bytes, tmp_path: Path) -> None:
    """Even inside a quoted field with line breaks, or between the CR and the LF at its end."""
    file, notes = tmp_path / "time.csv", Notebook()
    if before:
        file.write_bytes(before)
    assert deliver(sink(tmp_path), notes=notes) == Took()
    whole = file.read_bytes()
    assert whole == (before or HEADER) + LINE
    file.write_bytes(whole[: len(whole) - len(LINE) + cut])
    is_there = cut >= len(LINE) - 1  # of the end, CR alone is enough: the LF is completed
    assert asyncio.run(sink(tmp_path).recall(KEY, notes[KEY], Notebook(notes), None)) == (
        Took() if is_there else Lacks()
    )
    assert deliver(sink(tmp_path), notes[KEY], Notebook(notes)) == Took()
    assert file.read_bytes() == whole


@pytest.mark.parametrize("cut", range(len(HEADER) + 1))
def test_a_header_is_written_once_wherever_its_write_broke_off(cut: int, tmp_path: Path) -> None:
    """The first record follows the complete header."""
    (tmp_path / "time.csv").write_bytes(HEADER[:cut])
    assert deliver(sink(tmp_path)) == Took()
    assert (tmp_path / "time.csv").read_bytes() == HEADER + LINE


@pytest.mark.parametrize("change", [rotated, removed, emptied])
def test_a_new_file_gets_its_own_header(change: Callable[[Path], None], tmp_path: Path) -> None:
    """After the file is rotated, removed or emptied."""
    assert deliver(sink(tmp_path)) == Took()
    change(tmp_path / "time.csv")
    assert deliver(sink(tmp_path)) == Took()
    assert (tmp_path / "time.csv").read_bytes() == HEADER + LINE


@pytest.mark.parametrize(
    "text",
    [
        '\ufeffDate,Matter,"Hours, worked",Note\r\n2024-05-01,A,1,x\r\n',
        'Date,Matter,"Hours, worked",Note\n2024-05-01,A,1,"x\ny"\n2024-05-01,B,1,\n',
        '"Date","Matter","Hours, worked","Note"\n"2024-05-01","A","1","x"\n',
        'Date,Matter,"Hours, worked",Note\n2024-05-01,A,1,pipe of 5"\n2024-05-02,B,1,x\n',
        'Date,Matter,"Hours, worked",Note\r\n2024-05-01,A,1,"a ""b"", c"\n2024-05-02,5",1,x\n2024-05-03,C,1,"",\n',
    ],
    ids=["byte order mark", "line feeds", "quotes", "an inch", "an inch below ours"],
)
def test_lines_that_another_program_saved_are_kept(text: str, tmp_path: Path) -> None:
    """They may have a byte order mark, other line ends or more quotes; the next record is appended below."""
    file = tmp_path / "time.csv"
    file.write_bytes(text.encode())
    assert deliver(sink(tmp_path)) == Took()
    assert file.read_bytes() == text.encode() + LINE
    file.write_bytes(text.encode() + LINE[:9])
    assert deliver(sink(tmp_path)) == Took()
    assert file.read_bytes() == text.encode() + LINE


def test_lines_that_end_with_a_carriage_return_are_kept(tmp_path: Path) -> None:
    """As some programs end them; the end of the last line is completed."""
    text = 'Date,Matter,"Hours, worked",Note\r2024-05-01,A,1,x\r2024-05-02,B,1,y\r'
    file = tmp_path / "time.csv"
    file.write_bytes(text.encode())
    assert deliver(sink(tmp_path)) == Took()
    assert file.read_bytes() == text.encode() + b"\n" + LINE


@pytest.mark.parametrize("text", ['\ufeffA;D\nu1;5" pipe\nold;row\n', "A,D\r\n1,2"])
def test_nothing_is_cut_off_a_file_with_another_header(text: str, tmp_path: Path) -> None:
    """Its header is looked at before its end is mended."""
    for encoding in ("utf-8", "utf-16"):
        (tmp_path / "time.csv").write_bytes(text.encode(encoding))
        assert not isinstance(deliver(sink(tmp_path)), Took)
        assert (tmp_path / "time.csv").read_bytes() == text.encode(encoding)


def test_a_file_takes_lines_of_one_form(tmp_path: Path) -> None:
    """A JSON Lines sink on the file of a CSV sink is refused: each would cut off the lines of the other."""
    other = "- {name: other, jsonl: {path: ./out/../out/time.csv}}\n"
    (found,) = problems(tmp_path, f"deliver:\n{SINK}{other}".replace("\n", "\n  "))
    assert (found.code, "another form" in found.message) == ("bad-path", True)


def test_a_file_with_another_header_is_refused_at_start(tmp_path: Path) -> None:
    """The message shows the header and says how to solve it; the file is unchanged."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/time.csv").write_text("Date,Matter\r\n", encoding="utf-8")
    (found,) = problems(tmp_path, f"deliver:\n{SINK}".replace("\n", "\n  "))
    assert found.code == "bad-path"
    assert "`Date,Matter`" in found.message
    assert "move the file away, or set `columns` to its header" in found.message
    assert (tmp_path / "out/time.csv").read_text(encoding="utf-8") == "Date,Matter\n"


def test_a_file_whose_header_changes_later_is_trouble(tmp_path: Path) -> None:
    """Nothing is appended to it."""
    file = tmp_path / "time.csv"
    file.write_bytes(b"Datum,Akte\r\n1,2\r\n")
    answer = deliver(sink(tmp_path))
    assert isinstance(answer, Failed)
    assert "move the file away" in (answer.detail or "")
    assert file.read_bytes() == b"Datum,Akte\r\n1,2\r\n"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " \n=1"])
def test_no_text_runs_as_a_formula(text: str) -> None:
    """A text that a spreadsheet would run gets a leading apostrophe; numbers and other texts stay as they are."""
    assert records(record([text, -1, -0.5, "a=1", "2024-05-02"]).encode()) == [
        [f"'{text}", "-1", "-0.5", "a=1", "2024-05-02"]
    ]


def test_a_csv_sink_needs_at_least_one_column(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "deliver:\n  - {name: books, csv: {path: out/time.csv, columns: {}}}\n")
    assert "at least one column" in found.message
