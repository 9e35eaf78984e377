"""Row and receipt are one transaction; what the ledger rejects is refused, and a ledger that is away is trouble."""

import shutil
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from syncengine.connector.registration import failure_of
from syncengine.errors import TroubleKind
from syncengine.posted_time.databases import Statement
from syncengine.posted_time.events import Verdict
from syncengine.posted_time.sink_health import IN_DOUBT
from syncengine.posted_time.sinks.contract import MAX_MESSAGE, MAX_REFERENCE, NO_TEXT, TOO_LARGE, TOO_LONG
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE, at_work, outcomes, refused, taking
from tests.posted_time.projects import (
    BARE_SINK,
    JSONL,
    LOOKUPS,
    SQL_SINK,
    delivering,
    http_sink,
    ids,
    in_ledger,
    ledger,
    lines,
    locked,
    problems,
    rows,
)
from tests.posted_time.receiver import Receiver
from tests.posted_time.samples import raw

pytestmark = pytest.mark.slow


def test_a_row_and_its_receipt_are_written_together(tmp_path: Path) -> None:
    """The verdict has the sink's reference; posted text is bound as a parameter and never run as SQL."""
    bobby = "x'); DROP TABLE time; --"
    assert taking(delivering(tmp_path), raw(bobby, description=bobby)) == [Verdict(SUCCESS, None, f"L-{bobby}")]
    assert rows(tmp_path) == [(bobby, 7, 3600)]
    receipts = rows(tmp_path, "SELECT group_id, sink, revision, external_id FROM syncengine_receipts")
    assert receipts == [(bobby, "ledger", 1, f"L-{bobby}")]


def test_without_receipts_a_lost_inbox_repeats_a_delivery(tmp_path: Path) -> None:
    """With `receipts: false` no receipts table is created."""
    sink = SQL_SINK.replace("source: ledger", "source: ledger\n    receipts: false")
    taking(delivering(tmp_path, sink), raw())
    (tmp_path / ".syncengine/state.db").unlink()
    taking(delivering(tmp_path, sink), raw())
    assert len(rows(tmp_path)) == 2
    assert rows(tmp_path, "SELECT name FROM sqlite_master WHERE name LIKE 'syncengine%'") == []


def test_a_violated_constraint_refuses_the_group(tmp_path: Path) -> None:
    """With a message of our own, or the project's; neither row nor receipt is stored. Foreign keys count, too."""
    none = {"totalDurationSecs": 0, "timeRows": []}
    (verdict,) = taking(delivering(tmp_path), raw(**none))
    assert verdict == Verdict(REFUSED, "ledger rejected the time: something in it does not fit there.")
    assert verdict.detail == "a constraint is violated (SQLITE_CONSTRAINT_CHECK)"
    sink = SQL_SINK + "  refused: Nothing is booked on {{ tag.name }} for free.\n"
    assert (
        taking(delivering(tmp_path, sink), raw("g2", **none))[0].message == "Nothing is booked on ACME-0042 for free."
    )
    foreign = SQL_SINK.replace("{{ lookup.matter.id }}", "99")
    assert taking(delivering(tmp_path, foreign, ""), raw("g3"))[0].outcome is REFUSED
    assert rows(tmp_path) == rows(tmp_path, "SELECT group_id FROM syncengine_receipts") == []


@pytest.mark.parametrize(
    ("database", "told"),
    [
        ("source: ledger", ""),
        ("source: register", "register cannot be reached. "),
        ("url: 'sqlite:///other.db?timeout=0.05'", "The database where matter is looked up cannot be reached. "),
    ],
    ids=["source of a sink", "another source", "own url"],
)
def test_an_outage_is_reported_once_under_a_name_that_users_know(database: str, told: str, tmp_path: Path) -> None:
    """The database of a lookup is named after the sink that uses it, or after its source. Once it is free, it is up."""
    sources = "ledger: {sql: 'sqlite:///ledger.db?timeout=0.05'}\nregister: {sql: 'sqlite:///other.db?timeout=0.05'}"
    sink, lookups = SQL_SINK.replace("name: ledger", "name: time"), LOOKUPS.replace("source: ledger", database)
    shutil.copy(ledger(tmp_path), tmp_path / "other.db")
    with at_work(delivering(tmp_path, sink, lookups, sources=sources)) as desk:
        with locked(tmp_path / "ledger.db"), locked(tmp_path / "other.db"):
            verdict = desk.take(raw())
            first = desk.troubles
            desk.check_sinks()
            found = desk.check_sinks()
            words = failure_of(found).message or ""
            assert (words, verdict.outcome) == (f"{told}time cannot be reached.", TROUBLE)
            assert verdict.message in words
            assert len(found) == len({trouble.sink for trouble in found}) == len(first) + bool(told)
        assert desk.check_sinks() == desk.troubles == ()
        assert desk.take(raw()).outcome is SUCCESS
    assert rows(tmp_path) == [("g1", 7, 3600)]


def test_a_missing_table_is_trouble_until_a_delivery_succeeds(tmp_path: Path) -> None:
    """A good probe of the database is not enough: one group tries the sink, which stays reported until then."""
    now = 1e9
    with at_work(delivering(tmp_path, now=lambda: now)) as desk:
        in_ledger(tmp_path, "ALTER TABLE time RENAME TO hours")
        verdict = desk.take(raw())
        assert (verdict.outcome, verdict.message) == (TROUBLE, "ledger does not work as expected.")
        assert (bool(desk.troubles), desk.check_sinks()) == (True, ())
        now += IN_DOUBT
        assert [t.kind for t in desk.check_sinks()] == [TroubleKind.UNKNOWN]
        assert desk.troubles == ()
        in_ledger(tmp_path, "ALTER TABLE hours RENAME TO time")
        assert desk.take(raw()).outcome is SUCCESS
        assert desk.check_sinks() == ()


@pytest.mark.parametrize("tag", ["ACME-0043", "ACME-0042", "NO"])
def test_a_lookup_is_up_again_once_it_answers_for_a_group(tag: str, tmp_path: Path) -> None:
    """A group that skips the lookup proves nothing; a group that the lookup does not find proves that it answers."""
    lookups = LOOKUPS.replace("- name: matter", "- name: matter\n    when: tag.name != 'ACME-0043'")
    with at_work(delivering(tmp_path, BARE_SINK, lookups)) as desk:
        in_ledger(tmp_path, "ALTER TABLE matter RENAME TO away")
        assert desk.take(raw("g1")).outcome is TROUBLE
        in_ledger(tmp_path, "ALTER TABLE away RENAME TO matter")
        desk.take(raw("g2", tags=[{"name": tag}]))
        assert desk.is_cautious is (tag == "ACME-0043")


# --- a statement that changes no row


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
    params = '{no: "{{ tag.name }}"}'
    return f'- name: ledger\n  sql: {{source: ledger, statement: "{statement}", params: {params}{settings}}}\n'


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


def test_a_refused_group_is_delivered_once_the_ledger_has_its_row(tmp_path: Path) -> None:
    """The refusal has the project's message. With `allowNoRow` it is a success, as somebody else may write the row."""
    text = sink(UPDATE) + "  refused: Matter {{ tag.name }} is not open.\n"
    none = [{"name": "NO"}]
    assert taking(delivering(tmp_path, text, ""), raw(tags=none)) == [Verdict(REFUSED, "Matter NO is not open.")]
    allowed = taking(delivering(tmp_path, sink(UPDATE, settings=", allowNoRow: true"), ""), raw("g2", tags=none))
    assert outcomes(allowed) == [SUCCESS]
    in_ledger(tmp_path, "INSERT INTO matter VALUES (9, 'NO')")
    assert taking(delivering(tmp_path, text, ""), raw(tags=none))[0].outcome is SUCCESS
    assert rows(tmp_path, "SELECT id FROM matter WHERE no = 'NO'") == [(109,)]


def test_a_view_with_an_instead_of_trigger_is_no_refusal(tmp_path: Path) -> None:
    """SQLite does not count the rows that such a trigger writes."""
    ledger(tmp_path)
    in_ledger(tmp_path, "CREATE VIEW booking AS SELECT no FROM matter")
    insert = "INSERT INTO time VALUES (NEW.no, 7, 60, '')"
    in_ledger(tmp_path, f"CREATE TRIGGER book INSTEAD OF INSERT ON booking BEGIN {insert}; END")
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
    "INSERT IGNORE INTO t VALUES (:no)": "INSERT IGNORE",
    "UPDATE IGNORE t SET no = :no": "UPDATE IGNORE",
    "INSERT INTO t VALUES (:no) ON DUPLICATE KEY UPDATE no = no": "ON DUPLICATE KEY UPDATE",
    "MERGE INTO t USING (SELECT :no AS no) s ON t.no = s.no WHEN NOT MATCHED THEN INSERT VALUES (no)": "MERGE",
}
PLAIN = [
    "INSERT INTO t VALUES (:no)",
    "INSERT INTO t VALUES (:no) ON CONFLICT (no) DO UPDATE SET no = :no",
    "INSERT INTO t VALUES (:no) ON CONFLICT (no) WHERE no > 0 DO UPDATE SET no = (SELECT 1 FROM u WHERE v = 1)",
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


# --- values that no target takes


HALF = "{{ '%c' | format(55296) }}"
"""Half of a surrogate pair, which cannot be encoded. The service never sends one, but a template can make one."""


PARAMETERS = {
    "half a surrogate pair": (HALF, NO_TEXT),
    "a NUL": ("{{ '%c' | format(0) }}", NO_TEXT),
    "more than 64 bits": ("{{ tag.externalId | int }}", TOO_LARGE),
}


@pytest.mark.parametrize(("value", "why"), PARAMETERS.values(), ids=PARAMETERS.keys())
def test_a_parameter_that_no_database_takes_refuses_the_group(value: str, why: str, tmp_path: Path) -> None:
    """A parameter of a statement or of a lookup."""
    sent = raw(tags=[{"name": "ACME-0042", "externalId": "9" * 30}])
    by_statement = delivering(tmp_path, SQL_SINK.replace("{{ narrative }}", value))
    by_lookup = delivering(tmp_path, SQL_SINK, LOOKUPS.replace('{{ tag.name }}"}', value + '"}'))
    for delivery in (by_statement, by_lookup):
        told, note = refused(delivery, sent)
        assert (why in told, "a parameter" in note, rows(tmp_path)) == (True, True, [])


def test_half_a_surrogate_pair_in_json_refuses_the_group(tmp_path: Path, receiver: Receiver) -> None:
    """In a request body and in a line. In text of the service it is replaced when the group is read."""
    body = http_sink(receiver.url).replace("flag: true", f'flag: "{HALF}"')
    line = JSONL.replace("}}", f', json: {{x: "{HALF}"}}}}}}')
    for id, sink in (("g1", body), ("g2", line)):
        assert NO_TEXT in refused(delivering(tmp_path, sink, ""), raw(id))[0]
    assert receiver.got == []
    assert taking(delivering(tmp_path, JSONL, ""), raw("g3", description="\ud800\x00"))[0].outcome is SUCCESS
    assert [found["description"] for found in lines(tmp_path)] == ["\ufffd\ufffd"]


LONG = "x" * (MAX_REFERENCE + 1)


def test_a_reference_that_is_too_long_is_not_sent(tmp_path: Path, receiver: Receiver) -> None:
    """An HTTP receiver has the group, so it is a success without one; a statement is not run."""
    receiver.answer = lambda got: (201, {"id": LONG})
    assert taking(delivering(tmp_path, http_sink(receiver.url), ""), raw()) == [Verdict(SUCCESS)]
    sink = SQL_SINK.replace("L-{{ group.groupId }}", LONG)
    assert TOO_LONG in refused(delivering(tmp_path, sink), raw("g2"))[0]
    assert rows(tmp_path) == []


@pytest.mark.parametrize("name", ["N" * 100_000, "NO\r\n\x07-1"])
def test_a_message_is_shortened_and_has_no_control_characters(name: str, tmp_path: Path) -> None:
    """Otherwise the service would never accept the status."""
    with at_work(delivering(tmp_path)) as desk:
        told = desk.take(raw(tags=[{"name": name}])).message or ""
        (waiting,) = desk.inbox.waiting()
    assert waiting.message == told
    assert told.startswith("Matter N")
    assert len(told) <= MAX_MESSAGE
    assert "\x07" not in told


# --- a ledger file that is restored, moved or replaced while in use


def removed(folder: Path) -> None:
    """Remove the ledger with the files that SQLite keeps next to it."""
    for path in folder.glob("ledger.db*"):
        path.unlink()


def restored(folder: Path) -> None:
    """Restore the ledger from a copy that was made before the first group."""
    removed(folder)
    shutil.copy(folder / "backup.db", folder / "ledger.db")


def folder_replaced(folder: Path) -> None:
    """Replace the ledger by a symbolic link to another folder, like a changed mount."""
    (folder / "elsewhere").mkdir()
    shutil.copy(folder / "backup.db", folder / "elsewhere/ledger.db")
    removed(folder)
    (folder / "ledger.db").symlink_to("elsewhere/ledger.db")


@pytest.mark.parametrize("replace", [restored, folder_replaced])
@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_replaced_ledger_is_opened_again(replace: Callable[[Path], None], journal: str, tmp_path: Path) -> None:
    """SQLite would go on writing to the old file. One that is gone is trouble, and no new file takes its place."""
    with closing(sqlite3.connect(ledger(tmp_path))) as database:
        database.execute(f"PRAGMA journal_mode = {journal}")
    shutil.copy(tmp_path / "ledger.db", tmp_path / "backup.db")
    with at_work(delivering(tmp_path)) as desk:
        assert desk.take(raw("g1")).outcome is SUCCESS
        replace(tmp_path)
        assert [desk.take(raw(id)).outcome for id in ("g2", "g3")] == [SUCCESS] * 2
        assert ids(tmp_path) == ["g2", "g3"]
        assert rows(tmp_path, "SELECT group_id FROM syncengine_receipts") == [("g2",), ("g3",)]
        removed(tmp_path)
        assert desk.take(raw("g4")).outcome is TROUBLE
        assert [trouble.sink for trouble in desk.troubles] == ["ledger"]
        assert not (tmp_path / "ledger.db").exists()
        restored(tmp_path)
        assert desk.check_sinks() == ()
        assert desk.take(raw("g4")).outcome is SUCCESS
    assert ids(tmp_path) == ["g4"]


def test_a_ledger_that_is_replaced_during_a_write_is_trouble(tmp_path: Path) -> None:
    """The row went into the old file; the next offer of the group writes it into the new one."""
    with closing(sqlite3.connect(ledger(tmp_path))) as database:
        database.execute("PRAGMA journal_mode = wal")
    shutil.copy(tmp_path / "ledger.db", tmp_path / "backup.db")
    with at_work(delivering(tmp_path)) as desk, ThreadPoolExecutor() as pool:
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
    assert ids(tmp_path) == ["g1"]
