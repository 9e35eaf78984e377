"""Where the states of these tests live: a SQLite file, and a PostgreSQL database where one is offered."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from syncengine.store.tables import METADATA

POSTGRESQL = os.environ.get("SYNCENGINE_TEST_POSTGRESQL")
"""A SQLAlchemy URL of a database that may be emptied."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture(params=["sqlite", *(["postgresql"] if POSTGRESQL else [])])
def url(request: pytest.FixtureRequest, path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(path)
        return
    assert POSTGRESQL is not None
    engine = sa.create_engine(POSTGRESQL)
    METADATA.drop_all(engine)
    yield POSTGRESQL
    METADATA.drop_all(engine)
    engine.dispose()
