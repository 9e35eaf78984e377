"""Many rows go to PostgreSQL in few round trips, each as it goes alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from syncengine.database import batches

EVIL = "x\n; DROP TABLE many; --"
NAMED_TWICE = "INSERT INTO many (id, share, words) VALUES (:id, :share / 8, :words) -- :words, as they were written"


@pytest.fixture
def connection(postgresql_url: str) -> Iterator[sa.Connection]:
    """A connection to a database with an empty table."""
    engine = sa.create_engine(postgresql_url)
    assert batches.prepare(engine)
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TEMPORARY TABLE many (id text PRIMARY KEY, share numeric, words text)")
        connection.commit()
        yield connection
        connection.rollback()
    engine.dispose()


def rows(connection: sa.Connection) -> Sequence[Any]:
    return connection.exec_driver_sql("SELECT id, share, words FROM many ORDER BY id").all()


def alone(connection: sa.Connection, statement: str, sets: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
    """The rows that are written where each set is executed by itself."""
    for values in sets:
        connection.execute(sa.text(statement), dict(values))
    written = rows(connection)
    connection.rollback()
    return written


def test_values_are_written_as_where_each_goes_alone(connection: sa.Connection) -> None:
    """A number stays of its type, and a text is a text wherever the statement names it."""
    words = (EVIL, "'; --", "$$", "100 %", "%(id)s", ":id", "\\", "", "\N{CLASSICAL BUILDING}")
    sets = [{"id": f"{n}", "share": Decimal(n), "words": each} for n, each in enumerate(words)]
    expected = alone(connection, NAMED_TWICE, sets)
    assert batches.changed_rows(connection, sa.text(NAMED_TWICE), sets) == [1] * len(sets)
    assert rows(connection) == expected
    assert [str(row.share.normalize()) for row in expected[:3]] == ["0", "0.125", "0.25"]


def test_a_round_trip_takes_as_much_as_the_library_sends_at_once(connection: sa.Connection) -> None:
    """Rows beyond that, and rows that are larger by themselves, are written by the next ones."""
    sets = [{"id": f"{n:03}", "share": None, "words": "é" * size} for n, size in enumerate([1000] * 99 + [200_000])]
    assert batches.changed_rows(connection, sa.text(NAMED_TWICE), sets) == [1] * 100
    assert [len(row.words) for row in rows(connection)] == [1000] * 99 + [200_000]


def test_after_an_error_the_connection_goes_on(connection: sa.Connection) -> None:
    """The error is that of the first set that fails, and names no value of another."""
    sets = [{"id": id, "share": None, "words": f"words of {id}"} for id in ("a", "b", "b", "c")]
    with pytest.raises(exc.IntegrityError) as caught:
        batches.changed_rows(connection, sa.text(NAMED_TWICE), sets)
    assert "words of" not in str(caught.value.orig)
    connection.rollback()
    assert rows(connection) == []
    assert batches.changed_rows(connection, sa.text(NAMED_TWICE), sets[:2]) == [1, 1]


def test_an_ended_connection_is_one_that_is_gone(connection: sa.Connection) -> None:
    """Not an error of the pipeline."""
    identifier = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    statement = sa.text(
        f"INSERT INTO many (id) SELECT :id FROM pg_terminate_backend(CASE :id WHEN 'b' THEN {identifier} END)"
    )
    with pytest.raises(exc.OperationalError):
        batches.changed_rows(connection, statement, [{"id": "a"}, {"id": "b"}, {"id": "c"}])
    assert connection.invalidated
