"""`reviewed` fetches the plans of merged pull requests, and never one that a fork has made."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import Ended, Project
from tests.publish.hosts import TOKEN, Imitation, Trouble

pytestmark = pytest.mark.slow

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


# --- lists are read whole, and what they name is looked at


@pytest.mark.parametrize("paging", ["link", "keyset", "number", "bare"])
def test_lists_are_read_to_their_end(merged: Project, host: Imitation, paging: str) -> None:
    """Pull requests, runs, artifacts and jobs, on pages as the host makes them, whatever size it was asked for."""
    host.crowd, host.page, host.paging = 7, 3, paging
    assert fetch(merged, host).code == 0
    assert files(merged) == {"12.json": PLAN + b" ", "13.json": PLAN}


def test_the_newest_run_that_has_the_plan_counts(merged: Project, host: Imitation) -> None:
    """Jobs are repeated; one that was cancelled kept nothing."""
    host.kept = {500: {"of": 13}, 501: {"of": 13}, 499: {"of": 13}}
    host.artifacts |= {500: PLAN + b"  ", 499: PLAN + b"   "}
    assert fetch(merged, host, "--commits", "1").code == 0
    assert files(merged) == {"13.json": PLAN + b"  "}


def test_a_plan_in_a_folder_of_the_artifact_is_found(merged: Project, host: Imitation) -> None:
    """As of a project in a folder of its repository."""
    host.kept = {500: {"of": 13, "file": "tags/plan.json"}}
    host.artifacts[500] = PLAN + b"  "
    assert fetch(merged, host, "--commits", "1").code == 0
    assert files(merged) == {"13.json": PLAN + b"  "}


NOT_OURS = {
    "into another branch": {"base": {"ref": "next"}, "target_branch": "next"},
    "closed": {"merged_at": None, "state": "closed"},
    "open": {"merged_at": None, "state": "opened"},
    "of a deleted fork": {"head": {"repo": None}, "source_project_id": None},
    "into another repository": {"base": {"repo": {"full_name": "up/tags"}}, "target_project_id": 1},
}


@pytest.mark.parametrize("about", NOT_OURS.values(), ids=NOT_OURS)
def test_only_what_was_merged_into_this_branch_was_reviewed(
    merged: Project, host: Imitation, about: dict[str, object]
) -> None:
    """Anybody may merge into a branch that nobody protects."""
    host.about = {13: about}
    done = merged.run(
        *("reviewed", "--from", host.kind, "-o", "reviewed"),
        environ=host.environ(GITHUB_REF="refs/heads/main", CI_COMMIT_BRANCH="main"),
    )
    assert (done.code, list(files(merged))) == (0, ["12.json"]), done.err


def test_a_renamed_repository_keeps_its_plans(merged: Project, host: Imitation) -> None:
    """Its own lists have the new name."""
    if host.kind == "gitlab":
        pytest.skip("a project is named by its number")
    host.moved = True
    new = {"full_name": "acme/labels"}
    host.about = {n: {"base": {"repo": new}, "head": {"sha": host.heads[n], "repo": new}} for n in (12, 13)}
    host.kept = {n: {"of": n - 500, "head_repository": new} for n in (512, 513)}
    host.artifacts = {512: PLAN, 513: PLAN}
    assert fetch(merged, host).code == 0
    assert list(files(merged)) == ["12.json", "13.json"]


def test_another_workflow_s_artifact_stops_nothing(merged: Project, host: Imitation) -> None:
    """Many call theirs `plan`: it is no plan of ours, or one of another project, and this workflow's counts."""
    if host.kind == "gitlab":
        pytest.skip("has one workflow")
    ours = {"GITHUB_WORKFLOW_REF": "acme/tags/.github/workflows/syncengine.yml@refs/heads/main"}
    host.kept = {500: {"of": 13, "file": "tfplan.txt"}, 501: {"of": 13, "path": ".github/workflows/other.yml"}}
    host.artifacts |= {500: b"Plan: 1 to add", 501: PLAN + b"  "}
    host.kept[490] = {"of": 13, "path": ".github/workflows/syncengine.yml@main"}
    host.artifacts[490] = PLAN + b" " * 9
    command = ("reviewed", "--from", host.kind, "-o", "reviewed", "--commits", "1")
    assert merged.run(*command, environ=host.environ(**ours)).code == 0
    assert files(merged) == {"13.json": PLAN + b" " * 9}
    del host.kept[490], host.kept[501]
    assert merged.run(*command, environ=host.environ(**ours)).code == 0
    assert files(merged) == {"13.json": PLAN}


def test_a_run_of_a_fork_at_the_same_commit_is_not_read(merged: Project, host: Imitation) -> None:
    """Forks have our commits, too."""
    if host.kind == "gitlab":
        pytest.skip("asks by merge request")
    host.kept = {500: {"of": 13, "head_repository": {"full_name": "stranger/tags"}}, 501: {"of": 13}}
    host.kept[501]["head_repository"] = None
    host.artifacts |= {500: PLAN + b"  ", 501: PLAN + b"  "}
    assert fetch(merged, host, "--commits", "1").code == 0
    assert files(merged) == {"13.json": PLAN}


def test_pipelines_of_trains_and_children(merged: Project, host: Imitation) -> None:
    """A merge train plans after the review; the plan job may be in a child pipeline."""
    if host.kind == "github":
        pytest.skip("has neither")
    host.kept = {500: {"of": 13, "ref": "refs/merge-requests/13/train"}, 501: {"of": 13, "parent": 13}}
    host.artifacts |= {500: PLAN + b"  ", 501: PLAN + b"   "}
    assert fetch(merged, host, "--commits", "1").code == 0
    assert files(merged) == {"13.json": PLAN}
    del host.artifacts[13]
    assert fetch(merged, host, "--commits", "1").code == 0
    assert files(merged) == {"13.json": PLAN + b"   "}


# --- what this run did not fetch


def test_plans_that_are_there_already_are_no_reviewed_ones(merged: Project, host: Imitation) -> None:
    """`apply` takes all of the folder: one of an earlier run, or of a branch, would count. A repetition may go on."""
    assert fetch(merged, host).code == 0
    assert fetch(merged, host).code == 0
    (merged.folder / "reviewed/11.json").write_bytes(PLAN)
    done = fetch(merged, host)
    assert (done.code, "reviewed has 11.json" in done.err) == (1, True), done.err


@pytest.mark.parametrize("name", ["reviewed/11.json", "reviewed/13.json", "reviewed"])
def test_a_folder_of_the_branch_is_not_used(merged: Project, host: Imitation, name: str) -> None:
    """Not even when its files were removed: the next job's checkout would bring them back. A link leads elsewhere."""
    path = merged.folder / name
    path.parent.mkdir(exist_ok=True)
    path.symlink_to("elsewhere")
    git(merged, "add", "-f", name)
    git(merged, "commit", "-q", "-m", "forged")
    assert fetch(merged, host).code == 1
    path.unlink()
    done = fetch(merged, host)
    assert (done.code, "reviewed is in Git" in done.err) == (1, True), done.err
    assert not path.exists()
