"""`reviewed` fetches the plans of merged pull requests, and never one that a fork has made."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import Ended, Project
from tests.publish.hosts import TOKEN, Imitation, Trouble

DOCUMENTS = Path(__file__).parents[1] / "contract" / "documents"
PLAN = (DOCUMENTS / "plan-settled.json").read_bytes()


@pytest.fixture
def merged(project: Project, host: Imitation) -> Project:
    """A branch of three commits, two of which came with a pull request that has a plan."""
    git(project, "init", "-q")
    for n in range(3):
        git(project, "commit", "-q", "--allow-empty", "-m", f"commit {n}")
    newest, older, _ = git(project, "rev-list", "HEAD").split()
    host.pulls = {newest: [13], older: [12]}
    host.heads = {12: "1" * 40, 13: "2" * 40}
    host.artifacts = {12: PLAN + b" ", 13: PLAN}
    return project


def git(project: Project, *words: str) -> str:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
    done = subprocess.run(["git", *identity, *words], cwd=project.folder, check=True, capture_output=True, text=True)
    return done.stdout


def fetch(project: Project, host: Imitation, *words: str) -> Ended:
    done = project.run("reviewed", "--from", host.kind, "-o", "reviewed", *words, environ=host.environ())
    assert TOKEN not in done.out + done.err
    return done


def files(project: Project) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((project.folder / "reviewed").glob("*"))}


def test_the_plans_of_the_last_merges_are_written(merged: Project, host: Imitation) -> None:
    """Each by the number of its pull request; a host that dropped runs leaves several to one apply."""
    done = fetch(merged, host)
    assert done.code == 0, done.err
    assert files(merged) == {"12.json": PLAN + b" ", "13.json": PLAN}
    assert done.out == "Wrote reviewed/13.json\nWrote reviewed/12.json\n"


def test_so_many_commits_are_looked_at(merged: Project, host: Imitation) -> None:
    """The newest first."""
    assert fetch(merged, host, "--commits", "1").code == 0
    assert list(files(merged)) == ["13.json"]


def test_what_a_fork_made_is_not_read(merged: Project, host: Imitation) -> None:
    """It may hold anything; its apply is one without a reviewed plan."""
    host.forks = {12, 13}
    done = fetch(merged, host)
    assert (done.code, files(merged)) == (0, {})
    assert "No reviewed plan" in done.err
    assert not any("artifact" in path for _, path in host.requests)


def test_an_artifact_that_has_expired_is_none(merged: Project, host: Imitation) -> None:
    """The apply says that there is none."""
    host.expired = True
    done = fetch(merged, host)
    assert (done.code, files(merged)) == (0, {})


UNFIT = {
    "errors": ((DOCUMENTS / "diagnostics.json").read_bytes(), "because planning failed"),
    "no basis": (json.dumps({**json.loads(PLAN), "basis": None}).encode(), "earlier version"),
    "cut off": (PLAN[:-20], "is damaged"),
}


@pytest.mark.parametrize(("content", "why"), UNFIT.values(), ids=UNFIT)
def test_an_artifact_that_is_no_plan_is_left_out(merged: Project, host: Imitation, content: bytes, why: str) -> None:
    """As of a pull request that was merged with a failed job: no apply could compare with it."""
    host.artifacts[13] = content
    done = fetch(merged, host, "--format", "json")
    assert (done.code, list(files(merged)), done.document["written"]) == (0, ["12.json"], ["reviewed/12.json"])
    assert "plan.json of pull request 13" in done.err
    assert why in done.err


def test_the_token_does_not_go_where_files_are_stored(merged: Project, host: Imitation) -> None:
    """A host hands out addresses of another one."""
    assert fetch(merged, host).code == 0
    assert host.kind == "gitlab" or host.anonymous == [True, True]


def test_trouble_that_passes_is_waited_for(merged: Project, host: Imitation) -> None:
    """As in `publish`."""
    host.troubles = [Trouble(503, "GET", 3, {"retry-after": "0"})]
    assert fetch(merged, host).code == 0
    assert list(files(merged)) == ["12.json", "13.json"]


def test_what_may_not_be_read_is_said_with_the_right_it_needs(merged: Project, host: Imitation) -> None:
    """403."""
    host.troubles = [Trouble(403, "GET", 1)]
    done = fetch(merged, host)
    assert (done.code, "actions: read" in done.err) == (1, True)


def test_a_folder_without_commits_is_named(project: Project, host: Imitation) -> None:
    """A job without a checkout."""
    done = fetch(project, host)
    assert (done.code, "has no commits" in done.err) == (1, True)
