"""`reviewed` fetches the plans of merged pull requests, except those from forks."""

from pathlib import Path

import pytest

from tests.cli.program import Ended, Project
from tests.publish.hosts import TOKEN, Imitation, Trouble
from tests.support.git import git

pytestmark = pytest.mark.slow
on_github = pytest.mark.parametrize("host", ["github"], indirect=True)
on_gitlab = pytest.mark.parametrize("host", ["gitlab"], indirect=True)

DOCUMENTS = Path(__file__).parents[1] / "contract" / "documents"
PLAN = (DOCUMENTS / "plan-settled.json").read_bytes()


@pytest.fixture
def merged(project: Project, host: Imitation) -> Project:
    """A branch of three commits, two of them from pull requests with a plan."""
    git(project.folder, "init", "-q")
    for n in range(3):
        git(project.folder, "commit", "-q", "--allow-empty", "-m", f"commit {n}")
    newest, older, _ = git(project.folder, "rev-list", "HEAD").split()
    host.pulls = {newest: [13], older: [12]}
    host.heads = {12: "1" * 40, 13: "2" * 40}
    host.artifacts = {12: PLAN + b" ", 13: PLAN}
    return project


def fetch(project: Project, host: Imitation, *words: str, **environ: str) -> Ended:
    done = project.run("reviewed", "--from", host.kind, "-o", "reviewed", *words, environ=host.environ(1, **environ))
    assert TOKEN not in done.out + done.err
    return done


def newest(project: Project, host: Imitation, **environ: str) -> dict[str, bytes]:
    """The files that are written of the newest commit."""
    done = fetch(project, host, "--commits", "1", **environ)
    assert done.code == 0, done.err
    return files(project)


def files(project: Project) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((project.folder / "reviewed").glob("*"))}


def test_the_plans_of_the_last_merges_are_written(merged: Project, host: Imitation) -> None:
    """`--commits` says how many commits of the branch are looked at."""
    assert newest(merged, host) == {"13.json": PLAN}
    done = fetch(merged, host)
    assert done.code == 0, done.err
    assert files(merged) == {"12.json": PLAN + b" ", "13.json": PLAN}
    assert done.out == "Wrote reviewed/13.json\nWrote reviewed/12.json\n"


def test_artifacts_of_forks_or_that_have_expired_are_not_read(merged: Project, host: Imitation) -> None:
    host.forks = {12, 13}
    done = fetch(merged, host)
    assert (done.code, files(merged)) == (0, {})
    assert "No reviewed plan" in done.err
    assert not any("artifact" in path for _, path in host.requests)
    host.forks, host.expired = set(), True
    assert newest(merged, host) == {}


@on_github
def test_an_artifact_without_a_usable_plan_is_skipped(merged: Project, host: Imitation) -> None:
    host.artifacts[13] = PLAN[:-20]
    done = fetch(merged, host, "--format", "json")
    assert (done.code, list(files(merged)), done.document["written"]) == (0, ["12.json"], ["reviewed/12.json"])
    assert "plan.json of pull request 13 is not JSON, or incomplete" in done.err


@on_github
def test_the_token_is_not_sent_to_the_file_storage(merged: Project, host: Imitation) -> None:
    assert fetch(merged, host).code == 0
    assert host.anonymous == [True, True]


@on_github
def test_temporary_errors_are_retried_and_a_missing_permission_is_named(merged: Project, host: Imitation) -> None:
    host.troubles = [Trouble(503, "GET", 3, {"retry-after": "0"})]
    assert newest(merged, host) == {"13.json": PLAN}
    host.troubles = [Trouble(403, "GET", 1)]
    done = fetch(merged, host)
    assert (done.code, "actions: read" in done.err) == (1, True)


@on_github
def test_a_folder_without_commits_is_named(project: Project, host: Imitation) -> None:
    done = fetch(project, host)
    assert (done.code, "error[no-commit]" in done.err) == (1, True)


@pytest.mark.parametrize("paging", ["link", "keyset", "number", "nothing", "other link"])
def test_lists_are_read_to_their_end(merged: Project, host: Imitation, paging: str) -> None:
    """A proxy may keep the headers that name the next page: then one follows each full page."""
    host.crowd, host.page, host.paging = *((107, 100) if paging in ("nothing", "other link") else (7, 3)), paging
    assert fetch(merged, host).code == 0
    assert files(merged) == {"12.json": PLAN + b" ", "13.json": PLAN}


def test_the_newest_run_that_has_the_plan_counts(merged: Project, host: Imitation) -> None:
    """Its plan may be in a folder of the artifact."""
    host.kept = {500: {"of": 13}, 501: {"of": 13}, 499: {"of": 13}}
    host.artifacts |= {500: PLAN + b"  ", 499: PLAN + b"   "}
    assert newest(merged, host) == {"13.json": PLAN + b"  "}
    host.kept[500]["file"] = "tags/plan.json"
    assert newest(merged, host) == {"13.json": PLAN + b"  "}


@on_github
def test_a_renamed_repository_keeps_its_plans(merged: Project, host: Imitation) -> None:
    host.moved = True
    new = {"full_name": "acme/labels"}
    host.about = {n: {"base": {"repo": new}, "head": {"sha": host.heads[n], "repo": new}} for n in (12, 13)}
    host.kept = {n: {"of": n - 500, "head_repository": new} for n in (512, 513)}
    host.artifacts = {512: PLAN, 513: PLAN}
    assert fetch(merged, host).code == 0
    assert list(files(merged)) == ["12.json", "13.json"]


@on_github
def test_an_artifact_of_another_workflow_is_ignored(merged: Project, host: Imitation) -> None:
    ours = {"GITHUB_WORKFLOW_REF": "acme/tags/.github/workflows/syncengine.yml@refs/heads/main"}
    host.kept = {500: {"of": 13, "file": "tfplan.txt"}, 501: {"of": 13, "path": ".github/workflows/other.yml"}}
    host.artifacts |= {500: b"Plan: 1 to add", 501: PLAN + b"  "}
    host.kept[490] = {"of": 13, "path": ".github/workflows/syncengine.yml@main"}
    host.artifacts[490] = PLAN + b" " * 9
    assert newest(merged, host, **ours) == {"13.json": PLAN + b" " * 9}
    del host.kept[490], host.kept[501]
    assert newest(merged, host, **ours) == {"13.json": PLAN}


@on_github
def test_a_run_of_a_fork_at_the_same_commit_is_not_read(merged: Project, host: Imitation) -> None:
    host.kept = {500: {"of": 13, "head_repository": {"full_name": "stranger/tags"}}, 501: {"of": 13}}
    host.kept[501]["head_repository"] = None
    host.artifacts |= {500: PLAN + b"  ", 501: PLAN + b"  "}
    assert newest(merged, host) == {"13.json": PLAN}


@on_gitlab
def test_merge_trains_are_ignored_and_child_pipelines_are_used(merged: Project, host: Imitation) -> None:
    """A merge train's pipeline is ignored, since it ran after the review; a child pipeline's plan is used."""
    host.kept = {500: {"of": 13, "ref": "refs/merge-requests/13/train"}, 501: {"of": 13, "parent": 13}}
    host.artifacts |= {500: PLAN + b"  ", 501: PLAN + b"   "}
    assert newest(merged, host) == {"13.json": PLAN}
    del host.artifacts[13]
    assert newest(merged, host) == {"13.json": PLAN + b"   "}


OTHER = "3" * 40
PIPELINES = {
    "of an earlier commit": ("refs/merge-requests/13/head", [], False),
    "of the merge of the head": ("refs/merge-requests/13/merge", ["4" * 40, "2" * 40], True),
    "of the merge of an earlier commit": ("refs/merge-requests/13/merge", ["4" * 40, "5" * 40], False),
    "of a merge that is gone": ("refs/merge-requests/13/merge", [], False),
    "of a branch": ("topic/merge", ["2" * 40], False),
}


@on_gitlab
@pytest.mark.parametrize(("ref", "parents", "counts"), PIPELINES.values(), ids=PIPELINES)
def test_only_pipelines_of_the_head_count(
    merged: Project, host: Imitation, ref: str, parents: list[str], counts: bool
) -> None:
    """A later push changes what was reviewed. The commit of a pipeline of merged results is a merge of the head."""
    host.kept = {500: {"of": 13, "ref": ref, "sha": OTHER}}
    host.parents, host.artifacts[500] = {OTHER: parents}, PLAN + b"  "
    assert newest(merged, host) == {"13.json": PLAN + b"  " if counts else PLAN}


@on_github
def test_a_folder_with_other_plans_is_refused(merged: Project, host: Imitation) -> None:
    """A file that this run does not write is an error, since `apply` reads the whole folder; a repetition is fine."""
    assert fetch(merged, host).code == 0
    assert fetch(merged, host).code == 0
    (merged.folder / "reviewed/11.json").write_bytes(PLAN)
    done = fetch(merged, host)
    assert (done.code, "reviewed has 11.json" in done.err) == (1, True), done.err


@on_github
@pytest.mark.parametrize("name", ["reviewed/11.json", "reviewed/13.json", "reviewed"])
def test_a_folder_in_git_is_refused(merged: Project, host: Imitation, name: str) -> None:
    """A folder with files in Git is refused, even if they were deleted, and so is a symbolic link."""
    path = merged.folder / name
    path.parent.mkdir(exist_ok=True)
    path.symlink_to("elsewhere")
    git(merged.folder, "add", "-f", name)
    git(merged.folder, "commit", "-q", "-m", "forged")
    assert fetch(merged, host).code == 1
    path.unlink()
    done = fetch(merged, host)
    assert (done.code, "reviewed is in Git" in done.err) == (1, True), done.err
    assert not path.exists()
