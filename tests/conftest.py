"""What tests of several rooms share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import postgresql


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """A database that may be emptied."""
    if postgresql.OFFERED:
        yield postgresql.OFFERED
        return
    with postgresql.running() as server:
        yield server.url()
