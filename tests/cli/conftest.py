"""Fixtures: a sandbox and a project for each test. The two settled estates are made once per session."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import postgresql
from tests.postgresql import Server

from .estate import AFTER, BEFORE, prepared
from .program import Project
from .service import Json, Service, serving


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as started:
        yield started


@pytest.fixture
def project(service: Service, tmp_path: Path) -> Project:
    return Project(tmp_path / "project", service.url)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server of these tests alone: they stop it, and drop its databases."""
    with postgresql.running() as running:
        yield running


@dataclass(frozen=True)
class Settled:
    """Files of a service and state in which `BEFORE` is applied, and what an undisturbed apply of `AFTER` leaves."""

    data: Path
    state: Path
    held: Json
    recorded: dict[str, Json]


@pytest.fixture(scope="session")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Settled:
    folder = tmp_path_factory.mktemp("settled")
    data, state = folder / "service.db", folder / "state"
    with serving(data) as service:
        project = prepared(Project(folder / "project", service.url))
        project.settle(**BEFORE)
    shutil.copytree(project.folder / ".syncengine", state)
    with serving(_copy(data, folder / "after.db")) as service:
        project = prepared(Project(project.folder, service.url))
        moved(project.folder / ".syncengine" / "state.db", service.url)
        project.settle(**AFTER)
        return Settled(data, state, service.holds(), project.rows())


def _copy(data: Path, to: Path) -> Path:
    return Path(shutil.copyfile(data, to))


@dataclass(frozen=True)
class Estate:
    """A project in which `BEFORE` is applied and its manifests declare `AFTER`."""

    service: Service
    project: Project
    settled: Settled

    def assert_ended_undisturbed(self) -> None:
        """The service and the state equal those after an undisturbed apply, and the plan is empty.

        A removed row may still be in doubt: the state then records more than the service holds (docs/planning.md
        1.2).
        """
        assert self.service.holds() == self.settled.held
        assert _present(self.project.rows()) == _present(self.settled.recorded)
        planned = self.project.plan()
        assert (planned.changes, planned.stages, planned.sweep) == ((), (), None)

    def assert_converges(self) -> None:
        """The next apply, without faults, completes everything."""
        self.service.heal()
        done = self.project.apply("--lock-timeout", "0s")
        assert done.code == 0, (done.out, done.err)
        self.assert_ended_undisturbed()


def _present(recorded: dict[str, Json]) -> dict[str, Json]:
    """The rows of resources that certainly exist. A tag that a cascade may have missed is released and in doubt."""
    return {
        address: row
        for address, row in recorded.items()
        if row["status"] == "active" or (row["status"] == "released" and not row["doubtful"])
    }


def moved(state: Path, url: str) -> None:
    """Change the recorded address of the service."""
    with closing(sqlite3.connect(state)) as connection, connection:
        connection.execute("UPDATE state_facts SET base_url = ?", (url,))


@pytest.fixture
def estate(settled: Settled, tmp_path: Path) -> Iterator[Estate]:
    with serving(_copy(settled.data, tmp_path / "service.db")) as service:
        project = prepared(Project(tmp_path / "project", service.url))
        shutil.copytree(settled.state, project.folder / ".syncengine")
        moved(project.folder / ".syncengine" / "state.db", service.url)
        project.wants(**AFTER)
        yield Estate(service, project, settled)
