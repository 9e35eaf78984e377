"""A service that refuses the resources that a test names, in place of the sandbox."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.program import Project, tag

from .refusing import Refusing, refusing


@pytest.fixture
def service() -> Iterator[Refusing]:
    with refusing() as started:
        yield started


@pytest.fixture
def refused(project: Project, service: Refusing) -> Project:
    """A project with two tags, of which the service refuses one."""
    project.settle(tags=[tag("GOOD")])
    service.refuse("BAD")
    project.wants(tags=[tag("GOOD"), tag("BAD")])
    assert project.apply().code == 3
    return project
