"""The fixture `estate`: a project, the service and the processes of one test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .world import World, world


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made
