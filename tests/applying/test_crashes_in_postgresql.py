"""The crash model with a state in PostgreSQL, whose own clock counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from syncengine.project.runner import Holder
from syncengine.state.store import open_state
from syncengine.state.tables import FACTS, LOCK, METADATA
from tests.support.profiles import tried

from .crash_model import House, Time
from .test_crashes import HISTORIES, HISTORY, OFTEN, RENAMES, Step, refused_histories, walk

pytestmark = pytest.mark.slow

SCHEMA = "crashes"
CLOCK = f"""
CREATE TABLE {SCHEMA}.now AS SELECT 1000.0::float8 AS at;
CREATE FUNCTION {SCHEMA}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT pg_catalog.to_timestamp(at) FROM {SCHEMA}.now'
"""
"""A clock of the server that stands still, found before its own by the `search_path` below."""


class ServerTime(Time):
    """The time of a history, told to the server whenever it passes."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        super().__init__()

    @property
    def at(self) -> float:
        return self._at

    @at.setter
    def at(self, value: float) -> None:
        self._at = value
        with self._engine.begin() as connection:
            connection.execute(sa.text(f"UPDATE {SCHEMA}.now SET at = :at"), {"at": value})


@pytest.fixture(scope="module")
def place(postgresql_url: str) -> Iterator[str]:
    """The URL of a schema with a state and a clock of its own."""
    engine = sa.create_engine(postgresql_url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}; {CLOCK}")
    url = sa.make_url(postgresql_url).update_query_dict({"options": f"-csearch_path={SCHEMA},pg_catalog"})
    there = url.render_as_string(hide_password=False)
    open_state(there, write=True).close()
    yield there
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP SCHEMA {SCHEMA} CASCADE")
    engine.dispose()


@contextmanager
def house(place: str) -> Iterator[House]:
    """Yield a house with an empty service and an empty, locked state."""
    engine = sa.create_engine(place)
    with engine.begin() as connection:  # a state that is as new, in a tenth of the time
        connection.exec_driver_sql(f"TRUNCATE {', '.join({*METADATA.tables} - {FACTS.name, LOCK.name})}")
        unknown = {column: None for column in FACTS.c if column.nullable}
        connection.execute(sa.update(FACTS).values({**unknown, FACTS.c.owns_activity_types: False}))
    time = ServerTime(engine)
    with (
        open_state(place, write=True, seconds=time.seconds) as state,
        state.lock(Holder.here("test", {}), wait=5, request_timeout=0),
    ):
        yield House(state, time)
    engine.dispose()


@settings(OFTEN, max_examples=tried(max(6, HISTORIES // 10)))
@given(history=st.one_of(HISTORY, RENAMES, refused_histories()))
def test_after_any_trouble_applies_end_at_what_the_manifests_say(place: str, history: list[Step]) -> None:
    """As in SQLite, also of renames and with resources in quarantine."""
    walk(history, lambda: house(place))
