"""A ledger in a real MariaDB, whose defaults are looser than those of other databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from syncengine.errors import Problems
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.receipts import all_of
from tests import mariadb
from tests.posted_time.desk import REFUSED, SUCCESS, outcomes, taking
from tests.posted_time.projects import delivery_to, into, run_sql
from tests.posted_time.samples import raw

pytestmark = pytest.mark.slow

ID = '{id: "{{ group.groupId }}"}'


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with mariadb.running() as url:
        yield url


@pytest.fixture
def url(server: str) -> str:
    """The URL of an empty database."""
    run_sql(server, "DROP DATABASE ledger", "CREATE DATABASE ledger CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    return server


def delivery(folder: Path, url: str, statement: str, params: str = ID, more: str = "") -> Delivery:
    sql = f'{{source: ledger, statement: "{statement}", params: {params}}}'
    sink = f"- name: ledger\n  sql: {sql}\n  refused: The ledger does not take it.\n"
    return delivery_to(folder, url, into(sink, more))


UNFIT = {
    "a text that is too long": ("note varchar(5)", "'too long'"),
    "a number beyond its column": ("note tinyint", "3600"),
    "a date that does not exist": ("note date", "'2024-02-31'"),
    "a division by zero": ("note int", "1 / 0"),
    "a value that an enumeration lacks": ("note enum('a', 'b')", "'c'"),
    "characters that the column cannot store": ("note varchar(9) character set latin1", "'\u0141\u00f3d\u017a'"),
    "a CHECK constraint": ("note int check (note < 5)", "7"),
}


@pytest.mark.parametrize(("column", "value"), UNFIT.values(), ids=UNFIT.keys())
def test_a_value_that_does_not_fit_is_refused_and_never_truncated(
    column: str, value: str, url: str, tmp_path: Path
) -> None:
    """In the server's default mode 3600 seconds would be stored as 127, and texts would be cut."""
    run_sql(url, f"CREATE TABLE time (id varchar(99), {column})")
    (verdict,) = taking(delivery(tmp_path, url, f"INSERT INTO time VALUES (:id, {value})"), raw())
    assert (verdict.outcome, verdict.message) == (REFUSED, "The ledger does not take it.")
    assert run_sql(url, "SELECT * FROM time") == run_sql(url, "SELECT group_id FROM syncengine_receipts") == []


@pytest.mark.parametrize("table", ["time", "`time`", "ledger.time"])
def test_a_table_without_transactions_is_refused_where_receipts_are_kept(table: str, url: str, tmp_path: Path) -> None:
    """A row stays there whatever becomes of its receipt, so the group would be delivered twice."""
    run_sql(url, "CREATE TABLE time (id varchar(99)) ENGINE=MyISAM")
    with pytest.raises(Problems) as refused:
        delivery(tmp_path, url, f"INSERT INTO {table} VALUES (:id)")
    assert "the engine MyISAM of the table has no transactions" in refused.value.found[0].message
    without = delivery(tmp_path, url, f"INSERT INTO {table} VALUES (:id)", f"{ID}, receipts: false")
    assert outcomes(taking(without, raw())) == [SUCCESS]


def test_ids_that_differ_only_in_case_blanks_or_form_are_different_groups(url: str, tmp_path: Path) -> None:
    """Each is delivered once, although the database would take them for the same."""
    run_sql(url, "CREATE TABLE time (id varbinary(99))")
    ids = ["aBc1", "AbC1", "aBc1 ", "e\u0301", "E\u0301", "stra\u00dfe", "strasse"]
    statement = "INSERT INTO time VALUES (:id)"
    assert [v.outcome for v in taking(delivery(tmp_path, url, statement), *map(raw, ids))] == [SUCCESS] * len(ids)
    (tmp_path / ".syncengine/state.db").unlink()
    assert [v.outcome for v in taking(delivery(tmp_path, url, statement), *map(raw, ids))] == [SUCCESS] * len(ids)
    assert sorted(id.decode() for (id,) in run_sql(url, "SELECT id FROM time")) == sorted(ids)
    engine = sa.create_engine(url)
    assert {one.group_id for one in all_of(engine, "ledger")} == {*ids}
    assert all_of(engine, "LEDGER") == []
    engine.dispose()


@pytest.mark.parametrize(
    "signal", ["SQLSTATE '45000'", "SQLSTATE '45000' SET MYSQL_ERRNO = 30001, MESSAGE_TEXT = 'closed since 1815'"]
)
def test_a_signal_of_a_trigger_is_a_refusal(signal: str, url: str, tmp_path: Path) -> None:
    """The message is the project's, without the trigger's text; the next group is delivered."""
    raised = f"IF NEW.id = 'g1' THEN SIGNAL {signal}; END IF"
    run_sql(url, "CREATE TABLE time (id varchar(99))")
    run_sql(url, f"CREATE TRIGGER closed BEFORE INSERT ON time FOR EACH ROW BEGIN {raised}; END")
    first, second = taking(delivery(tmp_path, url, "INSERT INTO time VALUES (:id)"), raw("g1"), raw("g2"))
    assert (first.outcome, first.message, second.outcome) == (REFUSED, "The ledger does not take it.", SUCCESS)
    assert "1815" not in (first.detail or "")


def test_an_update_without_a_matching_row_is_a_refusal(url: str, tmp_path: Path) -> None:
    """One that matches a row but changes no value is none, nor is a procedure, which reports no row count."""
    run_sql(url, "CREATE TABLE matter (no varchar(9), secs int)", "INSERT INTO matter VALUES ('ACME-0042', 3600)")
    run_sql(url, "CREATE PROCEDURE book(s int) UPDATE matter SET secs = secs WHERE no = 'none'")
    params = '{no: "{{ tag.name }}", s: "{{ duration.seconds }}"}'
    groups = [raw("g1"), raw("g2", tags=[{"name": "NO-SUCH"}])]
    verdicts = taking(delivery(tmp_path, url, "UPDATE matter SET secs = :s WHERE no = :no", params), *groups)
    assert outcomes(verdicts) == [SUCCESS, REFUSED]
    assert run_sql(url, "SELECT group_id FROM syncengine_receipts") == [(b"g1",)]
    booked = taking(delivery(tmp_path, url, "CALL book(:s)", '{s: "{{ duration.seconds }}"}'), raw("g3"))
    assert [v.outcome for v in booked] == [SUCCESS]


def test_the_start_is_local_in_every_column(url: str, tmp_path: Path) -> None:
    """A group that only has a date keeps that date."""
    run_sql(url, "CREATE TABLE time (a date, b datetime, c varchar(99))")
    group = raw(localDate="2026-11-21", tzOffsetMins=60, timeRows=[])
    statement, params = "INSERT INTO time VALUES (:a, :a, :a)", '{a: "{{ start }}"}'
    assert taking(delivery(tmp_path, url, statement, params, "timezone: Europe/Vienna\n"), group)[0].outcome is SUCCESS
    ((day, moment, text),) = run_sql(url, "SELECT CAST(a AS char), CAST(b AS char), c FROM time")
    assert (day, moment, text[:19]) == ("2026-11-21", "2026-11-21 00:00:00", "2026-11-21 00:00:00")
