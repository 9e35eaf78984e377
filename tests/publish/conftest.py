"""A project with a saved plan, and imitations of the hosts."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Project, category, tag
from tests.publish.hosts import Imitation, imitation


@pytest.fixture(params=["github", "gitlab"])
def host(request: pytest.FixtureRequest) -> Iterator[Imitation]:
    """Both hosts, for what differs between them."""
    with imitation(request.param) as running:
        yield running


@pytest.fixture
def github() -> Iterator[Imitation]:
    """One host, for its own features and for what is the same on both."""
    with imitation("github") as running:
        yield running


@pytest.fixture(scope="session")
def _planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = Project(tmp_path_factory.mktemp("planned") / "project", "sandbox")
    project.wants(tagCategories=[category("acme")], tags=[tag("ACME-0042", category="acme", description="Opposition")])
    done = project.run("plan", "--report", "json=plan.json")
    assert done.code == 0, done.err
    return project.folder


@pytest.fixture
def project(_planned: Path, tmp_path: Path) -> Project:
    """A project whose plan is in `plan.json`."""
    return Project(Path(shutil.copytree(_planned, tmp_path / "project")), "sandbox")
