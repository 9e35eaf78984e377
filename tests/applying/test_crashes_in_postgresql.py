"""The crash model with a state in PostgreSQL, whose own clock counts."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from syncengine.project.runner import Holder
from syncengine.state.store import open_state
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


@contextmanager
def house(url: str) -> Iterator[House]:
    """Yield a house with an empty service and an empty, locked state in a schema with a clock of its own."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}; {CLOCK}")
    place = sa.make_url(url).update_query_dict({"options": f"-csearch_path={SCHEMA},pg_catalog"})
    time = ServerTime(engine)
    with (
        open_state(place.render_as_string(hide_password=False), write=True, seconds=time.seconds) as state,
        state.lock(Holder.here("test", {}), wait=5, request_timeout=0),
    ):
        yield House(state, time)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP SCHEMA {SCHEMA} CASCADE")
    engine.dispose()


@settings(OFTEN, max_examples=tried(max(6, HISTORIES // 10)))
@given(history=st.one_of(HISTORY, RENAMES, refused_histories()))
def test_after_any_trouble_applies_end_at_what_the_manifests_say(postgresql_url: str, history: list[Step]) -> None:
    """As in SQLite, also of renames and with resources in quarantine."""
    walk(history, lambda: house(postgresql_url))
