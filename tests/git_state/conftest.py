"""A service, a bare repository, and clones of one project that share the state in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.program import Project
from tests.cli.service import Service, serving

from .places import bare, url

Clone = Callable[[str], Project]


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as started:
        yield started


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return bare(tmp_path / "remote.git")


@pytest.fixture
def clone(service: Service, remote: Path, tmp_path: Path) -> Clone:
    """Return a factory of project folders that share only the state, like separate machines."""

    def made(name: str) -> Project:
        project = Project(tmp_path / name, service.url)
        project.settings(f"state: {url(remote)}")
        return project

    return made
