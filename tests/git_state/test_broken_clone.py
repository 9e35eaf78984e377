"""A local copy of the state that a power cut damaged is fetched again from the intact remote."""

from __future__ import annotations

import re
import resource
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.cli.program import ended, tag

from .conftest import Clone
from .places import REF, git

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
def test_a_damaged_local_repository_is_fetched_again(clone: Clone, remote: Path, breakage: str) -> None:
    project = clone("one")
    project.wants(tags=[tag("ACME-1")])
    assert project.run("apply", "-y", "--new-state").code == 0
    place = next(project.folder.glob(".syncengine/git-state/*"))
    BREAKAGES[breakage](place / "repository.git")
    done = project.run("plan", "--detailed-exitcode")
    assert done.code == 0, done.err
    project.wants(tags=[tag("ACME-1"), tag("ACME-2")])
    assert project.run("apply", "-y").code == 0
    assert git(remote, "rev-list", "--count", REF) == "6"


def test_a_damaged_remote_is_restored_from_a_clone(clone: Clone, remote: Path) -> None:
    """If the remote is damaged, the local repository is kept, and `state restore` can use its versions."""
    project = clone("one")
    project.wants(tags=[tag("ACME-1")])
    assert project.run("apply", "-y", "--new-state").code == 0
    version = project.run("state", "versions", "--format", "json").document["versions"][0]["id"]
    git(remote, "update-ref", REF, git(remote, "rev-parse", f"{REF}^{{tree}}"))
    assert "error[state-damaged]" in project.run("plan").err
    git(remote, "update-ref", "-d", REF)
    git(remote, "gc", "--quiet", "--prune=now")
    assert project.run("state", "restore", "-y", version).code == 0


@pytest.mark.parametrize("command", [("plan",), ("apply", "-y"), ("state", "history"), ("state", "restore", "-y")])
def test_a_full_disk_is_reported(clone: Clone, command: tuple[str, ...]) -> None:
    """A full disk is reported as such, not as damage, and leaves the state unchanged."""
    project = clone("one")
    project.wants(tags=[tag("ACME-1")])
    assert project.run("apply", "-y", "--new-state").code == 0
    versions = project.run("state", "versions", "--format", "json").document["versions"]
    project.wants(tags=[tag("ACME-1"), tag("ACME-2")])
    words = (*command, versions[0]["id"]) if "restore" in command else command
    for most in (0, 4096, 65536):
        shutil.rmtree(project.folder / ".syncengine")
        limited = partial(_limit_files, most)
        refused = ended(project.start(*words, environ={"PYTHONDONTWRITEBYTECODE": "1"}, preexec_fn=limited))
        assert refused.code == 1, most
        assert re.search(r"error\[state-(io|full|unreachable)\]: state git\+ref:", refused.err), refused.err
        assert project.run("state", "versions", "--format", "json").document["versions"] == versions
    assert project.run("apply", "-y").code == 0


def _limit_files(most: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
