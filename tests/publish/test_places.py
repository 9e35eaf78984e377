"""The pull request that gets the comment: the one of the job's event, or the one by which a commit was merged.

There is no comment in a pull request that is open, from a fork, or unrelated to the event.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Ended, Project
from tests.publish.hosts import Imitation, Trouble
from tests.publish.test_publish import publish

COMMIT, OTHER = f"{1:040x}", "d" * 40
BRANCH = {"GITHUB_REF": "refs/heads/main", "CI_MERGE_REQUEST_IID": "", "CI_COMMIT_BRANCH": "main"}


@pytest.fixture
def reported(project: Project) -> Project:
    """A project whose `plan.json` holds the report of an apply."""
    done = project.run("apply", "-y", "--format", "json")
    (project.folder / "plan.json").write_text(done.out)
    return project


def still_open(host: Imitation) -> dict[str, Any]:
    return {"state": "open" if host.kind == "github" else "opened", "merged_at": None}


def said(done: Ended, host: Imitation) -> bool:
    """Return whether a comment was written; if not, the output must say `No comment`."""
    assert done.code == 0, done.err
    assert bool(host.bodies()) is not ("No comment: " in done.err)
    return bool(host.bodies())


def test_a_report_goes_into_the_merged_pull_request_of_many(reported: Project, host: Imitation) -> None:
    host.crowd, host.page = 7, 3
    host.pulls, host.about = {"*": [71, 65]}, {71: still_open(host)}
    host.number = 65
    assert said(publish(reported, host, **BRANCH), host)
    assert "Applied 2 changes" in host.bodies()[0]


UP = {"repo": {"full_name": "up/tags"}}
UNRELATED = {
    "open": {"state": "open", "merged_at": None},
    "open on GitLab": {"state": "opened", "merged_at": None},
    "closed": {"state": "closed", "merged_at": None},
    "a fork": {"head": {"repo": {"full_name": "stranger/tags"}}, "source_project_id": 8},
    "a deleted fork": {"head": {"repo": None}, "source_project_id": None},
    "another repository": {"base": UP, "head": UP, "source_project_id": 1, "target_project_id": 1},
    "another branch": {"base": {"ref": "production"}, "target_branch": "production"},
}


def test_a_report_is_not_posted_to_an_unrelated_pull_request(reported: Project, host: Imitation) -> None:
    host.pulls = {"*": [12]}
    for what, about in UNRELATED.items():
        host.about = {12: about}
        assert not said(publish(reported, host, **BRANCH), host), what


def test_a_commit_without_a_pull_request_has_no_comment(reported: Project, host: Imitation) -> None:
    """A host that does not know the commit, as before it is pushed, answers with an error, which is none of ours."""
    done = publish(reported, host, **BRANCH)
    assert f"belongs to no {'pull' if host.kind == 'github' else 'merge'} request; " in done.err
    status, words = {"github": (422, b'{"message": "No commit found for SHA: 1"}'), "gitlab": (404, b"{}")}[host.kind]
    host.troubles, host.pulls = [Trouble(status, "GET", 1, body=words)], {"*": [12]}
    assert not said(publish(reported, host, **BRANCH), host)


def test_the_pull_request_whose_merge_made_the_commit_is_preferred(reported: Project, host: Imitation) -> None:
    for name in ("merge_commit_sha", "squash_commit_sha" if host.kind == "gitlab" else "merge_commit_sha"):
        host.pulls = {"*": [70, 12, 5]}
        host.about = {12: {name: COMMIT}, 70: {"merged_at": "2026-02-02T00:00:00Z"}}
        assert said(publish(reported, host, **BRANCH), host)
        host.comments.clear()
    host.about = {12: {"merged_at": "2026-03-03T00:00:00Z"}}
    assert said(publish(reported, host, **BRANCH), host)


@pytest.mark.parametrize("event", ["schedule", "check_run", "repository_dispatch", "merge_group"])
def test_an_event_about_no_commit_of_a_branch_has_no_place(reported: Project, host: Imitation, event: str) -> None:
    """The commit of such a job is just the newest one of the main branch."""
    host.pulls = {"*": [12]}
    environ = {"GITHUB_EVENT_NAME": event, "CI_PIPELINE_SOURCE": "schedule"}
    assert not said(publish(reported, host, **BRANCH, **environ), host)


def test_a_repository_that_was_renamed_is_followed(reported: Project, github: Imitation) -> None:
    github.moved, github.pulls = True, {"*": [12]}
    new = {"repo": {"full_name": "acme/labels"}}
    github.about = {12: {"base": new, "head": new}}
    for run in (1, 2):
        assert said(publish(reported, github, **BRANCH, run=run), github)


def test_a_repository_that_is_a_fork_has_own_pull_requests(project: Project, host: Imitation, tmp_path: Path) -> None:
    """The job of a fork has no token and ends well; others need one. A pull request is from a fork if head and base are
    in different repositories, even if the base is a fork."""
    event = tmp_path / "event.json"
    none = {"GITHUB_TOKEN": "", "GITLAB_TOKEN": "", "GITHUB_EVENT_PATH": str(event)}
    base = {"repo": {"fork": True, "full_name": "acme/tags"}}
    for repo, source, code in ((base["repo"], "77", 1), ({"full_name": "x/tags"}, "8", 0), (None, "8", 0)):
        event.write_text(json.dumps({"pull_request": {"number": 12, "head": {"repo": repo}, "base": base}}))
        done = publish(project, host, **none, CI_MERGE_REQUEST_SOURCE_PROJECT_ID=source)
        assert (done.code, "is not set: pass it to this step" in done.err) == (code, code == 1)
    assert host.requests == []


EARLIER = {"id": 8000, "run_number": 3, "run_attempt": 1, "head_sha": OTHER, "event": "pull_request"}


def after(project: Project, host: Imitation, run: int = 1, **earlier: object) -> Ended:
    """Publish in a run that follows another one. Its own commit has a pull request, which is not the right one."""
    event = project.folder / "event.json"
    event.write_text(json.dumps({"repository": {"id": 5}, "workflow_run": {**EARLIER, "pull_requests": [], **earlier}}))
    environ = {"GITHUB_EVENT_NAME": "workflow_run", "GITHUB_EVENT_PATH": str(event), **BRANCH}
    host.pulls = host.pulls or {"*": [4]}
    return publish(project, host, run=run, **environ)


def test_a_run_after_another_writes_where_that_belongs(project: Project, github: Imitation) -> None:
    """Into the pull request of that run, unless a run after a newer one has been there."""
    number = [{"number": 12}]
    assert said(after(project, github, pull_requests=number), github)
    assert f"head={OTHER} run=3 id=8000 " in github.bodies()[0]
    assert "run 3 is newer" in after(project, github, 2, pull_requests=number, id=7999, run_number=2).err


OTHERS = {
    "none": [],
    "one of a fork": [{"number": 12, "base": {"repo": {"id": 6}}}],
    "two": [{"number": 12}, {"number": 13}],
    "one that went on": [{"number": 12, "head": {"sha": "e" * 40}}],
}


@pytest.mark.parametrize("pulls", OTHERS.values(), ids=OTHERS)
def test_a_run_after_one_without_a_place_writes_nothing(
    project: Project, github: Imitation, pulls: list[object]
) -> None:
    github.number = 4
    assert not said(after(project, github, pull_requests=pulls), github)


def test_a_run_after_that_of_a_fork_finds_its_pull_request(project: Project, github: Imitation) -> None:
    """GitHub does not name a fork's pull request; it is found as the open one with the run's head commit."""
    github.pulls, github.forks = {OTHER: [11, 12]}, {12}
    github.about = {n: still_open(github) for n in (11, 12)}
    github.heads = {11: "e" * 40, 12: OTHER}
    assert said(after(project, github), github)


def test_a_run_after_one_of_the_branch_writes_into_its_merge(reported: Project, github: Imitation) -> None:
    github.pulls, github.about = {OTHER: [71, 12]}, {71: still_open(github)}
    earlier = {"event": "push", "head_branch": "main", "pull_requests": [{"number": 71}]}
    assert said(after(reported, github, **earlier), github)


def test_a_remark_has_the_place_of_its_pull_request(reported: Project, github: Imitation, tmp_path: Path) -> None:
    """The number of an issue is that of no pull request."""
    for issue, is_there in (({"number": 12}, False), ({"number": 12, "pull_request": {}}, True)):
        (tmp_path / "event.json").write_text(json.dumps({"issue": issue}))
        remark = {"GITHUB_EVENT_NAME": "issue_comment", "GITHUB_EVENT_PATH": str(tmp_path / "event.json")}
        assert said(publish(reported, github, **BRANCH, **remark), github) is is_there
