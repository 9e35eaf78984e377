"""`time export` prints the deliveries that the inbox records, as CSV or JSON."""

from __future__ import annotations

import csv
import io
import time
from datetime import UTC, datetime
from pathlib import Path

from syncengine.state.inbox import open_inbox
from tests.posted_time.desk import at_work
from tests.posted_time.projects import JSONL, SQL_SINK, delivering
from tests.posted_time.samples import raw
from tests.posted_time.test_commands import Ended, program
from tests.settings.test_schema import judge

EACH = JSONL.replace("{name: archive,", "{name: archive, each: tag,")


def table(ended: Ended) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(ended.out, newline="")))


def taken(folder: Path, *groups: dict[str, object], deliver: str = JSONL + SQL_SINK) -> None:
    with at_work(delivering(folder, deliver)) as desk:
        for group in groups:
            desk.take(group)


def test_each_delivery_is_a_row_with_its_reference(tmp_path: Path) -> None:
    """A group has one row for each sink that took it; groups that no sink took have none."""
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


def test_sink_and_since_filter_the_deliveries(tmp_path: Path) -> None:
    """An unknown sink is a usage error; without a delivery only the header is printed."""
    taken(tmp_path, raw("g1"))
    assert [row["sink"] for row in table(program(tmp_path, "export", "--sink", "ledger"))] == ["ledger"]
    time.sleep(0.01)
    nothing = program(tmp_path, "export", "--since", datetime.now(UTC).isoformat())
    assert (nothing.code, len(nothing.out.splitlines())) == (0, 1)
    wrong = program(tmp_path, "export", "--sink", "ledgre")
    assert (wrong.code, wrong.out) == (64, "")
    assert "choose from archive, ledger" in wrong.err


def test_shares_of_tags_add_up_to_the_whole(tmp_path: Path) -> None:
    """Each tag has its own row, split by the current settings."""
    taken(
        tmp_path, raw("g1", tags=[{"name": "ACME-0043"}, {"name": "ACME-0042"}], totalDurationSecs=3601), deliver=EACH
    )
    rows = table(program(tmp_path, "export"))
    assert sorted((row["tag"], row["seconds"], row["postedSeconds"]) for row in rows) == [
        ("ACME-0042", "1801", "3601"),
        ("ACME-0043", "1800", "3601"),
    ]


def test_no_text_runs_as_a_formula(tmp_path: Path) -> None:
    """In CSV such a text gets a leading apostrophe; in JSON it is unchanged."""
    texts = ['=HYPERLINK("http://x","y")', "+1+1", "-2", "@SUM(A1)", "\t=1", "  =1+1"]
    taken(tmp_path, *(raw(f"g{number}", description=text) for number, text in enumerate(texts)), deliver=JSONL)
    assert [row["description"] for row in table(program(tmp_path, "export"))] == [f"'{text}" for text in texts]
    items = program(tmp_path, "export", "--format", "json").document["deliveries"]
    assert [item["group"]["description"] for item in items] == texts


def test_texts_with_quotes_and_line_ends_stay_in_their_cell(tmp_path: Path) -> None:
    """The quoting follows RFC 4180."""
    text = 'He said "no",\nthen left; ü'
    taken(tmp_path, raw("g1", description=text), deliver=JSONL)
    assert table(program(tmp_path, "export"))[0]["description"] == text


def test_the_json_document_matches_its_schema(tmp_path: Path) -> None:
    """It holds the whole groups, so that a lost target can be filled again."""
    taken(tmp_path, raw("g1"))
    document = program(tmp_path, "export", "--format", "json").document
    judge("time-export.schema.json").validate(document)
    assert [item["group"]["groupId"] for item in document["deliveries"]] == ["g1", "g1"]
    assert "s3cr3t-caller" not in str(document)


def test_a_reduced_group_is_exported_with_its_receipt_only(tmp_path: Path) -> None:
    """A warning names `postedTime.keep`, which keeps groups longer."""
    taken(tmp_path, raw("g1"))
    with open_inbox(str(tmp_path / ".syncengine/state.db"), write=True) as inbox:
        inbox.write(lambda tx: tx.acknowledge("g1", "SUCCESS"))
        assert inbox.write(lambda tx: tx.reduce(time.time() + 60)) == 1
    ended = program(tmp_path, "export", "--sink", "ledger")
    (row,) = table(ended)
    assert (row["groupId"], row["externalId"], row["seconds"], row["user"]) == ("g1", "L-g1", "", "")
    assert "`postedTime.keep`" in ended.err


def test_without_an_inbox_only_the_header_is_printed(tmp_path: Path) -> None:
    delivering(tmp_path, JSONL)._databases.close()
    assert len(program(tmp_path, "export").out.splitlines()) == 1
