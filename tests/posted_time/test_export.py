"""`time export`: what the sinks took, from the inbox, as a table or JSON."""

from __future__ import annotations

import csv
import io
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from syncengine.posted_time.delivery import Delivery
from syncengine.state.inbox import open_inbox
from tests.posted_time.projects import SQL_SINK, delivering
from tests.posted_time.samples import raw
from tests.posted_time.test_commands import Ended, program
from tests.posted_time.test_sinks import JSONL, run
from tests.settings.test_schema import judge

EACH = JSONL.replace("{name: archive,", "{name: archive, each: tag,")


def table(ended: Ended) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(ended.out, newline="")))


def taken(folder: Path, *groups: dict[str, object], deliver: str = JSONL + SQL_SINK) -> None:
    async def story(opened: Delivery) -> None:
        for group in groups:
            await opened.take(group, mechanism="fetch")

    run(delivering(folder, deliver), story)


def test_each_delivery_is_a_row_with_what_a_book_knows_it_by(tmp_path: Path) -> None:
    """Once for each sink that took it; what no sink took is not in it."""
    taken(tmp_path, raw("g1"), raw("g2", tags=[{"name": "NO-1"}]), raw("g3"))
    ended = program(tmp_path, "export", "--since", "30d", "--format", "csv")
    assert (ended.code, ended.err) == (0, "")
    rows = table(ended)
    assert [(row["groupId"], row["sink"], row["externalId"]) for row in rows] == [
        ("g1", "archive", ""),
        ("g1", "ledger", "L-g1"),
        ("g3", "archive", ""),
        ("g3", "ledger", "L-g3"),
    ]
    assert {row["seconds"] for row in rows} == {"3600"}
    assert {row["tag"] for row in rows} == {"ACME-0042"}
    assert {row["outcome"] for row in rows} == {"SUCCESS"}
    assert ended.out.splitlines()[0].startswith("delivered,groupId,sink,externalId,date,start,tag,user,")


def test_one_sink_and_a_time(tmp_path: Path) -> None:
    """An unknown sink is a mistake; a time that has passed since leaves the header."""
    taken(tmp_path, raw("g1"))
    assert [row["sink"] for row in table(program(tmp_path, "export", "--sink", "ledger"))] == ["ledger"]
    time.sleep(0.01)
    nothing = program(tmp_path, "export", "--since", datetime.now(UTC).isoformat())
    assert (nothing.code, len(nothing.out.splitlines())) == (0, 1)
    wrong = program(tmp_path, "export", "--sink", "ledgre")
    assert (wrong.code, wrong.out) == (64, "")
    assert "choose from archive, ledger" in wrong.err


def test_shares_of_tags_add_up_to_the_whole(tmp_path: Path) -> None:
    """One row for each tag, by today's settings."""
    taken(
        tmp_path, raw("g1", tags=[{"name": "ACME-0043"}, {"name": "ACME-0042"}], totalDurationSecs=3601), deliver=EACH
    )
    rows = table(program(tmp_path, "export"))
    assert sorted((row["tag"], row["seconds"], row["postedSeconds"]) for row in rows) == [
        ("ACME-0042", "1801", "3601"),
        ("ACME-0043", "1800", "3601"),
    ]


@pytest.mark.parametrize("text", ['=HYPERLINK("http://x","y")', "+1+1", "-2", "@SUM(A1)", "\t=1", "  =1+1"])
def test_no_text_runs_as_a_formula(text: str, tmp_path: Path) -> None:
    """In the table a text gets an apostrophe in front; JSON has it as it came."""
    taken(tmp_path, raw("g1", description=text), deliver=JSONL)
    (row,) = table(program(tmp_path, "export"))
    assert row["description"] == f"'{text}"
    (item,) = program(tmp_path, "export", "--format", "json").document["deliveries"]
    assert item["group"]["description"] == text


def test_texts_with_quotes_and_line_ends_stay_in_their_cell(tmp_path: Path) -> None:
    """As RFC 4180 has it."""
    text = 'He said "no",\nthen left; ü'
    taken(tmp_path, raw("g1", description=text), deliver=JSONL)
    assert table(program(tmp_path, "export"))[0]["description"] == text


def test_the_json_document_is_that_of_its_schema(tmp_path: Path) -> None:
    """With the whole group, from which a target that was lost can be filled again."""
    taken(tmp_path, raw("g1"))
    document = program(tmp_path, "export", "--format", "json").document
    judge("time-export.schema.json").validate(document)
    assert [item["group"]["groupId"] for item in document["deliveries"]] == ["g1", "g1"]
    assert "s3cr3t-caller" not in str(document)


def test_of_a_group_that_was_reduced_its_receipt_is_left(tmp_path: Path) -> None:
    """A row with the sink's reference, and a warning that says what keeps more."""
    taken(tmp_path, raw("g1"))
    with open_inbox(str(tmp_path / ".syncengine/state.db"), write=True) as inbox:
        inbox.write(lambda tx: tx.acknowledge("g1", "SUCCESS"))
        assert inbox.write(lambda tx: tx.reduce(time.time() + 60)) == 1
    ended = program(tmp_path, "export", "--sink", "ledger")
    (row,) = table(ended)
    assert (row["groupId"], row["externalId"], row["seconds"], row["user"]) == ("g1", "L-g1", "", "")
    assert "`postedTime.keep`" in ended.err


def test_without_an_inbox_there_is_a_header(tmp_path: Path) -> None:
    """Or an empty list."""
    delivering(tmp_path, JSONL)._databases.close()
    assert len(program(tmp_path, "export").out.splitlines()) == 1
