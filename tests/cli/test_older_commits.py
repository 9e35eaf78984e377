"""The older of two pipelines does not win, whatever its clone knows (docs/planning.md 1.7)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .program import Ended, Project, tag
from .service import Service
from .test_unmerged import commit, git

FOREIGN = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
"""Git refuses to read a checkout, as it does in a container whose user is not the checkout's owner."""


@pytest.fixture
def merged(project: Project) -> Project:
    """Three commits, the last of which takes back what the second one did."""
    git(project.folder, "init", "-q", "-b", "main")
    (project.folder / ".gitignore").write_text("*.plan\n.syncengine/\n")
    for tags in ([tag("FIRST-1")], [tag("FIRST-1"), tag("SECOND-1")], [tag("FIRST-1")]):
        project.wants(tags=tags)
        commit(project)
    return project


def in_another_clone(project: Project, revision: str, *arguments: str) -> Ended:
    """Run the program where the history ends at a revision, with the state of the project."""
    folder = project.folder.parent / "clone"
    shutil.rmtree(folder, ignore_errors=True)
    id = git(project.folder, "rev-parse", revision)
    git(project.folder.parent, "init", "-q", "-b", "main", str(folder))
    git(folder, "fetch", "-q", str(project.folder), f"{id}:refs/heads/fetched")
    git(folder, "checkout", "-q", "fetched")
    state = f"sqlite:///{Path(project.loaded().state).resolve()}"
    other = Project(folder, project.url, {**project.environ, "SYNCENGINE_STATE": state})
    return other.run(*arguments)


@pytest.mark.parametrize("applied_before", ["HEAD", "HEAD~2"])
def test_an_older_commit_is_known_where_the_newer_one_is_not(
    merged: Project, service: Service, applied_before: str
) -> None:
    """A pipeline that waited was cloned before the newer commit was merged; an apply without changes counts, too."""
    git(merged.folder, "checkout", "-q", applied_before)
    assert merged.run("apply", "-y").code == 0
    git(merged.folder, "checkout", "-q", "main")
    assert merged.run("apply", "-y").code == 0
    asked = service.asked()
    planned = in_another_clone(merged, "main~1", "plan", "--format", "json")
    assert planned.codes == ["older-commit"]
    refused = in_another_clone(merged, "main~1", "apply", "-y", "--format", "json")
    assert (refused.code, refused.codes) == (5, ["older-commit"])
    assert service.asked() == asked
    assert in_another_clone(merged, "main~1", "apply", "-y", "--allow-older").code == 0
    assert in_another_clone(merged, "main", "apply", "-y").code == 0
    assert service.holds()["tags"]


def test_a_commit_of_another_history_is_said_not_to_be_known(merged: Project, service: Service) -> None:
    """As after a forced push: neither state nor clone tell which is older, and the run goes on."""
    assert merged.run("apply", "-y").code == 0
    git(merged.folder, "checkout", "-q", "--orphan", "other")
    merged.wants(tags=[tag("FIRST-1"), tag("THIRD-1")])
    commit(merged)
    done = in_another_clone(merged, "other", "apply", "-y", "--format", "json")
    assert (done.code, done.codes) == (0, ["unknown-ancestry"])


def test_a_checkout_that_git_does_not_read_is_said(merged: Project, service: Service, tmp_path: Path) -> None:
    """Plan and apply go on, and a saved plan whose tree cannot be compared is not merged."""
    merged.environ["SYNCENGINE_STATE"] = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    assert merged.run("apply", "-y").code == 0
    merged.wants(tags=[tag("FIRST-1"), tag("THIRD-1")])
    commit(merged)
    assert merged.run("plan", "--out", "saved.plan").code == 0
    merged.environ.update(FOREIGN)
    planned = merged.run("plan", "--format", "json")
    assert planned.codes == ["unknown-ancestry"]
    assert "dubious ownership" in planned.document["diagnostics"][0]["message"]
    asked = service.asked()
    refused = merged.run("apply", "saved.plan", "--format", "json")
    assert (refused.code, refused.codes) == (5, ["unknown-ancestry", "not-merged"])
    assert "dubious ownership" in refused.out
    assert service.asked() == asked
    assert merged.run("apply", "saved.plan", "--allow-unmerged").code == 0
    merged.wants(tags=[tag("FIRST-1"), tag("THIRD-1", description="changed")])
    done = merged.run("apply", "-y", "--format", "json")
    assert (done.code, done.codes) == (0, ["unknown-ancestry"])


def test_a_state_in_a_checkout_that_git_does_not_read_is_not_used(merged: Project) -> None:
    """It may be under Git, where the author of a change could edit it."""
    assert merged.run("apply", "-y").code == 0
    merged.environ.update(FOREIGN)
    refused = merged.run("plan", "--format", "json")
    assert refused.codes == ["state-in-git"]
    assert "dubious ownership" in refused.out
    assert "git rm" not in refused.out
