"""A bare repository, and clones of one project that share the state in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Ended, Project, tag
from tests.cli.service import Json, Service
from tests.support.git import bare

from .places import url

Clone = Callable[[str], Project]

ONE = {"tags": [tag("ACME-1", description="one")]}
TWO = {"tags": [tag("ACME-1", description="two"), tag("ACME-2")]}


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return bare(tmp_path / "remote.git")


@pytest.fixture
def clone(service: Service, remote: Path, tmp_path: Path) -> Clone:
    """Return a factory of project folders that share only the state, like separate machines."""

    def made(name: str) -> Project:
        project = Project(tmp_path / name, service.url)
        project.settings(f"state: {url(remote)}")
        project.wants(**ONE)
        return project

    return made


@pytest.fixture
def begun(clone: Clone) -> Project:
    """A clone with a state in which ONE is applied."""
    project = clone("one")
    succeeds(project, "apply", "-y", "--new-state")
    return project


def succeeds(project: Project, *words: str) -> Ended:
    done = project.run(*words)
    assert done.code == 0, (words, done.out, done.err)
    return done


def fails(project: Project, *words: str, code: int = 1, says: str, **variables: str) -> Ended:
    done = project.run(*words, environ=variables)
    assert (done.code, says in done.out + done.err) == (code, True), (words, done.out, done.err)
    return done


def applies(project: Project, **sections: list[Json]) -> None:
    """Apply these manifests, after which the next plan is empty."""
    project.wants(**sections)
    succeeds(project, "apply", "-y", *project.approvals())
    rests(project)


def rests(project: Project) -> None:
    succeeds(project, "plan", "--detailed-exitcode")


def versions(project: Project) -> list[Any]:
    found: list[Any] = project.run("state", "versions", "--format", "json").document["versions"]
    return found


def offered(done: Ended) -> str:
    """Return the version that an error suggests to restore."""
    return (done.out + done.err).split("`syncengine state restore ")[1].split("`")[0]
