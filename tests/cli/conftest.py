"""An estate for each test, which is settled once per session."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from .estate import AFTER, BEFORE, prepared
from .program import Project
from .service import Service, serving


@dataclass(frozen=True)
class Estate:
    """A project in which `BEFORE` is applied and its manifests declare `AFTER`."""

    service: Service
    project: Project

    def assert_converges(self) -> None:
        """The next apply, without faults, completes everything; the next plan is empty."""
        self.service.heal()
        done = self.project.apply("--lock-timeout", "0s")
        assert done.code == 0, (done.out, done.err)
        planned = self.project.plan()
        assert (planned.changes, planned.stages, planned.sweep) == ((), (), None)
        places = self.service.places()
        assert {each["name"]: each.get("category") for each in AFTER["tags"]}.items() <= places.items()
        assert {"DELETED-1", "CASCADES-1"}.isdisjoint(places)


@pytest.fixture(scope="session")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of a service and of a project in which `BEFORE` is applied."""
    folder = tmp_path_factory.mktemp("settled")
    with serving(folder / "service.db") as service:
        prepared(Project(folder / "project", service.url)).settle(**BEFORE)
    return folder


def moved(state: Path, url: str) -> None:
    """Change the recorded address of the service."""
    with closing(sqlite3.connect(state)) as connection, connection:
        connection.execute("UPDATE state_facts SET base_url = ?", (url,))


@pytest.fixture
def estate(settled: Path, tmp_path: Path) -> Iterator[Estate]:
    with serving(Path(shutil.copyfile(settled / "service.db", tmp_path / "service.db"))) as service:
        project = prepared(Project(tmp_path / "project", service.url))
        shutil.copytree(settled / "project" / ".syncengine", project.folder / ".syncengine")
        moved(project.folder / ".syncengine" / "state.db", service.url)
        project.wants(**AFTER)
        yield Estate(service, project)
