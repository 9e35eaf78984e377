"""The states of these tests: a SQLite file, and a PostgreSQL database if a server is available."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from syncengine.state.store import State
from syncengine.state.tables import METADATA
from tests import postgresql

from .estate import applying


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(path)
        return
    there: str = request.getfixturevalue("postgresql_url")
    engine = sa.create_engine(there)
    METADATA.drop_all(engine)
    yield there
    METADATA.drop_all(engine)
    engine.dispose()


@pytest.fixture
def state(url: str) -> Iterator[State]:
    """A state that is open, locked, and in a run."""
    with applying(url) as state:
        yield state


@pytest.fixture
def database(server: postgresql.Server) -> str:
    """The URL of a new database of that server, named `st`."""
    server.sql("DROP DATABASE IF EXISTS st WITH (FORCE)", "CREATE DATABASE st")
    return server.url(database="st")
