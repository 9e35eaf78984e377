"""The files that a clone makes of versions to read from: a few stay, and whoever reads one is not disturbed."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from syncengine.state.info import recollection
from syncengine.state.store import open_state
from tests.cli.program import Project, tag

from .conftest import Clone
from .places import place_of


def reading_files(project: Project) -> list[Path]:
    return list(project.folder.glob(".syncengine/git-state/*/read-*.db*"))


def test_only_the_last_few_files_stay(clone: Clone) -> None:
    """Each apply makes a version, and each version a file of all rows."""
    project = clone("one")
    for number in range(6):
        project.wants(tags=[tag("ACME-1", description=f"number {number}")])
        done = project.run("apply", "-y", *(["--new-state"] if number == 0 else []))
        assert done.code == 0, done.err
        assert project.run("plan", "--detailed-exitcode").code == 0
    assert 1 <= len(reading_files(project)) <= 2


def test_a_state_that_is_open_is_read_on_once_its_file_is_dropped(clone: Clone, remote: Path) -> None:
    """A slow reader, while others write one version after the other."""
    project = clone("one")
    project.wants(tags=[tag("ACME-1")])
    assert project.run("apply", "-y", "--new-state").code == 0
    with open_state(place_of(remote, project.folder), write=False) as state:
        for file in reading_files(project):
            file.unlink()
        assert [row.key.name for row in state.rows()] == ["ACME-1"]


def drop(project: Project, times: int, over: threading.Event) -> None:
    """Drop what there is to read from as soon as it is there, so often."""
    while times > 0 and not over.is_set():
        for file in reading_files(project):
            file.unlink(missing_ok=True)
            times -= 1


def test_no_reader_takes_a_file_that_was_dropped_for_an_empty_state(clone: Clone, remote: Path) -> None:
    """Nor for a trouble: it is made anew."""
    project = clone("one")
    project.wants(tags=[tag("ACME-1")])
    assert project.run("apply", "-y", "--new-state").code == 0
    for _ in range(20):
        over = threading.Event()
        dropping = threading.Thread(target=drop, args=(project, 3, over))
        dropping.start()
        try:
            with recollection(place_of(remote, project.folder), time.time) as reader:
                assert [row.key.name for row in reader.rows()] == ["ACME-1"]
        finally:
            over.set()
            dropping.join()
