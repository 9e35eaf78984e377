"""A service that refuses what a test says, and a project beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Project

from .refusing import Refusing, refusing


@pytest.fixture
def service() -> Iterator[Refusing]:
    with refusing() as started:
        yield started


@pytest.fixture
def project(service: Refusing, tmp_path: Path) -> Project:
    return Project(tmp_path / "project", service.url)
