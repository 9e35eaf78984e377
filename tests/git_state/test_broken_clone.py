"""A local copy of the state that a power cut damaged is fetched again from the intact remote."""

from __future__ import annotations

import os
import re
import resource
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.cli.program import Project
from tests.support import warm
from tests.support.git import git

from .conftest import TWO, applies, fails, rests, succeeds, versions
from .places import REF

pytestmark = pytest.mark.slow


def _empty(repository: Path) -> None:
    for file in repository.glob("objects/??/*"):
        file.chmod(0o644)
        file.write_bytes(b"")


def _without_rows(repository: Path) -> None:
    """Delete only the objects of the tables."""
    listing = git(repository, "ls-tree", "refs/heads/seen").splitlines()
    for id in (line.split()[2] for line in listing if "\tstate_" in line):
        (repository / "objects" / id[:2] / id[2:]).unlink()


BREAKAGES: dict[str, Callable[[Path], object]] = {
    "empty objects": _empty,
    "no rows": _without_rows,
    "no head": lambda repository: (repository / "HEAD").write_text(""),
    "seen is garbage": lambda repository: (repository / "refs" / "heads" / "seen").write_bytes(b"\0\0"),
}


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_a_damaged_local_repository_is_fetched_again(begun: Project, remote: Path, breakage: str) -> None:
    BREAKAGES[breakage](next(begun.folder.glob(".syncengine/git-state/*")) / "repository.git")
    rests(begun)
    applies(begun, **TWO)
    assert git(remote, "rev-list", "--count", REF) == "6"


def test_a_damaged_remote_is_restored_from_a_clone(begun: Project, remote: Path) -> None:
    """If the ref leads to no state, it can be deleted and a version of the local repository restored."""
    version = versions(begun)[0]["id"]
    git(remote, "update-ref", REF, git(remote, "rev-parse", f"{REF}^{{tree}}"))
    assert "error[state-damaged]" in fails(begun, "plan", says="delete the ref").err
    git(remote, "update-ref", "-d", REF)
    git(remote, "gc", "--quiet", "--prune=now")
    succeeds(begun, "state", "restore", "-y", version)
    assert list(begun.rows()) == ["tag/ACME-1"]


def test_a_full_disk_is_reported(begun: Project) -> None:
    """Not as damage; the state stays unchanged."""
    before = versions(begun)
    for words in (("plan",), ("apply", "-y"), ("state", "history"), ("state", "restore", "-y", before[0]["id"])):
        for most in (0, 4096, 65536):
            shutil.rmtree(begun.folder / ".syncengine")
            code, said = limited(begun, words, most)
            assert code == 1, (words, most)
            assert re.search(r"error\[state-(io|full|unreachable)\]: state git\+ref:", said), said
        assert versions(begun) == before
    applies(begun, **TWO)


def limited(project: Project, words: Sequence[str], most: int) -> tuple[int, str]:
    """Run the program where no file may grow beyond `most` bytes, and return its exit code and output."""
    pipe = project.folder / "said"  # what is written to a pipe does not count
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most))
    environ = project.surroundings()
    code = warm.Started(words, folder=project.folder, environ=environ, log=pipe, first=limit).wait(60)
    said = os.read(reading, 65536).decode()
    os.close(reading)
    pipe.unlink()
    return code, said
