"""A statement that changes no row refuses the group, and a statement that may change none is an error at start."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from syncengine.posted_time.databases import Statement
from tests.posted_time.desk import REFUSED, SUCCESS, at_work, outcomes, taking
from tests.posted_time.projects import delivering, in_ledger, ledger, problems, rows
from tests.posted_time.samples import raw

SINK = """\
- name: ledger
  sql: {source: ledger, statement: "STATEMENT", params: {no: "{{ tag.name }}"}SETTINGS}
"""
UPDATE = "UPDATE matter SET id = id + 100 WHERE no = :no"
FORMS = {
    "update": UPDATE,
    "update with returning": f"{UPDATE} RETURNING id",
    "update after a comment": f"/* of the day */ {UPDATE}",
    "update with a common table": f"WITH one AS (SELECT :no AS no) {UPDATE.replace(':no', '(SELECT no FROM one)')}",
    "insert from a select": "INSERT INTO time SELECT no, id, 60, NULL FROM matter WHERE no = :no",
    "delete": "DELETE FROM matter WHERE no = :no",
}


def sink(statement: str, settings: str = "") -> str:
    return SINK.replace("STATEMENT", statement).replace("SETTINGS", settings)


@pytest.mark.parametrize("statement", FORMS.values(), ids=FORMS.keys())
def test_a_group_whose_statement_changes_no_row_is_refused(statement: str, tmp_path: Path) -> None:
    """Others beside it are delivered. It has no receipt, so a later offer is tried again."""
    groups = [raw(f"g{number}", tags=[{"name": name}]) for number, name in enumerate(["ACME-0042", "NO", "ACME-0043"])]
    with at_work(delivering(tmp_path, sink(statement), "")) as desk:
        verdicts = desk.together(*groups)
        assert outcomes(verdicts) == [SUCCESS, REFUSED, SUCCESS]
        assert verdicts[1].message == "ledger rejected the time: no row there belongs to it."
        assert verdicts[1].detail == "the statement changed no row (no-row)"
    assert rows(tmp_path, "SELECT group_id FROM syncengine_receipts ORDER BY 1") == [("g0",), ("g2",)]


def test_the_refusal_has_the_projects_message(tmp_path: Path) -> None:
    """The same group is delivered once the ledger has the row."""
    text = sink(UPDATE) + "  refused: Matter {{ tag.name }} is not open.\n"
    group = raw(tags=[{"name": "NO"}])
    (verdict,) = taking(delivering(tmp_path, text, ""), group)
    assert (verdict.outcome, verdict.message) == (REFUSED, "Matter NO is not open.")
    in_ledger(tmp_path, "INSERT INTO matter VALUES (9, 'NO')")
    assert taking(delivering(tmp_path, text, ""), group)[0].outcome is SUCCESS
    assert rows(tmp_path, "SELECT id FROM matter WHERE no = 'NO'") == [(109,)]


def test_allownorow_accepts_a_statement_that_changes_no_row(tmp_path: Path) -> None:
    """For example if somebody else may have written the row already."""
    text = sink(UPDATE, settings=", allowNoRow: true")
    (verdict,) = taking(delivering(tmp_path, text, ""), raw(tags=[{"name": "NO"}]))
    assert verdict.outcome is SUCCESS
    assert rows(tmp_path, "SELECT group_id FROM syncengine_receipts") == [("g1",)]


def test_a_view_with_an_instead_of_trigger_is_no_refusal(tmp_path: Path) -> None:
    """SQLite does not count the rows that such a trigger writes."""
    ledger(tmp_path)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as database, database:
        database.execute("CREATE VIEW booking AS SELECT no FROM matter")
        database.execute(
            "CREATE TRIGGER book INSTEAD OF INSERT ON booking BEGIN INSERT INTO time VALUES (NEW.no, 7, 60, ''); END"
        )
    assert taking(delivering(tmp_path, sink("INSERT INTO booking VALUES (:no)"), ""), raw())[0].outcome is SUCCESS
    assert rows(tmp_path) == [("ACME-0042", 7, 60)]


FORBEARING = {
    "INSERT INTO t VALUES (:no) ON CONFLICT DO NOTHING": "ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES (:no) on conflict (no)\n do nothing RETURNING no": "ON CONFLICT DO NOTHING",
    "WITH n AS (INSERT INTO t VALUES (:no) ON CONFLICT DO NOTHING RETURNING no) SELECT * FROM n": (
        "ON CONFLICT DO NOTHING"
    ),
    "INSERT INTO t VALUES (:no) ON CONFLICT (no) DO UPDATE SET no = :no WHERE t.no > 0": (
        "ON CONFLICT DO UPDATE … WHERE"
    ),
    "INSERT OR IGNORE INTO t VALUES (:no)": "INSERT OR IGNORE",
    "UPDATE OR IGNORE t SET no = :no": "UPDATE OR IGNORE",
    "INSERT IGNORE INTO t VALUES (:no)": "INSERT IGNORE",
    "insert low_priority ignore INTO t VALUES (:no)": "INSERT IGNORE",
    "UPDATE IGNORE t SET no = :no": "UPDATE IGNORE",
    "INSERT INTO t VALUES (:no) ON DUPLICATE KEY UPDATE no = no": "ON DUPLICATE KEY UPDATE",
    "MERGE INTO t USING (SELECT :no AS no) s ON t.no = s.no WHEN NOT MATCHED THEN INSERT VALUES (no)": "MERGE",
}
PLAIN = [
    "INSERT INTO t VALUES (:no)",
    "INSERT INTO t VALUES (:no) ON CONFLICT (no) DO UPDATE SET no = :no",
    "INSERT INTO t VALUES (:no) ON CONFLICT (no) WHERE no > 0 DO UPDATE SET no = (SELECT 1 FROM u WHERE v = 1)",
    "INSERT OR REPLACE INTO t VALUES (:no)",
    "INSERT INTO t VALUES (:no, 'insert or ignore')  -- on conflict do nothing",
    "UPDATE t SET no = :no WHERE merge = 1 /* insert ignore */",
    'INSERT INTO "merge" SELECT :no FROM u JOIN w USING (x)',
    "INSERT INTO t VALUES (:no, $q$ do nothing $q$)",
]


@pytest.mark.parametrize(("statement", "clause"), [*FORBEARING.items(), *((statement, None) for statement in PLAIN)])
def test_a_statement_that_may_change_no_row_is_recognized_by_its_clause(statement: str, clause: str | None) -> None:
    """Anywhere in the statement, but not in a comment, a string or a name."""
    assert Statement(statement).forbears == clause


def test_a_statement_that_may_change_no_row_needs_allownorow(tmp_path: Path) -> None:
    """Without the setting it is an error at start that names its line."""
    statement = "INSERT OR IGNORE INTO time VALUES (:no, 7, 60, NULL)"
    (told,) = problems(tmp_path, f"deliver:\n{sink(statement)}")
    assert (told.code, told.line) == ("no-row", 7)
    assert "with INSERT OR IGNORE, the statement may leave the table as it is" in told.message
    assert problems(tmp_path, f"deliver:\n{sink(statement, settings=', allowNoRow: true')}") == []
