"""An apply of an older commit than the last applied one is refused, whatever the clone has (docs/planning.md 1.7)."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.git import commit_all, git

from .program import Ended, Project, tag
from .service import Service

pytestmark = pytest.mark.slow

NOBODY = 65_533
"""The id of a user who does not run tests."""


@pytest.fixture
def merged(project: Project) -> Project:
    """Three commits, the last of which reverts the second."""
    git(project.folder, "init", "-q", "-b", "main")
    (project.folder / ".gitignore").write_text("*.plan\n.syncengine/\n")
    for tags in ([tag("FIRST-1")], [tag("FIRST-1"), tag("SECOND-1")], [tag("FIRST-1")]):
        project.wants(tags=tags)
        commit_all(project.folder)
    return project


def in_another_clone(project: Project, revision: str, *arguments: str) -> Ended:
    """Run the program with the project's state in a clone whose history ends at a revision."""
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
def test_an_older_commit_is_refused_in_a_clone_without_the_newer_one(
    merged: Project, service: Service, applied_before: str
) -> None:
    """A waiting pipeline may have been cloned before the newer commit. An apply without changes counts as well."""
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


def test_a_saved_plan_is_recorded_with_the_commit_that_merged_it(merged: Project, service: Service) -> None:
    """The run records the checked-out commit, not that of the branch, which a squash leaves out of the history."""
    save_on_a_branch(merged)
    git(merged.folder, "commit", "-q", "--allow-empty", "-m", "Meanwhile")
    git(merged.folder, "merge", "-q", "--squash", "topic")
    git(merged.folder, "commit", "-qm", "Squash")
    merged.kill_during(service, "upsertTags", "apply", "saved.plan")
    assert merged.run("apply", "saved.plan").code == 0
    (last, *_) = merged.run("state", "history", "--format", "json").document["runs"]
    assert last["commit"] == git(merged.folder, "rev-parse", "HEAD")
    for older in ("main~1", "main~2"):
        refused = in_another_clone(merged, older, "apply", "-y", "--format", "json")
        assert (refused.code, refused.codes) == (5, ["older-commit"])
    assert in_another_clone(merged, "main", "apply", "-y").code == 0


def test_a_saved_plan_of_a_branch_does_not_make_its_base_older(merged: Project) -> None:
    """After applying a branch's plan before its merge, an apply of the base branch is not refused."""
    assert merged.run("apply", "-y").code == 0
    merged.wants(tags=[tag("FIRST-1"), tag("THIRD-1")])
    commit_all(merged.folder)
    git(merged.folder, "checkout", "-qb", "topic")
    git(merged.folder, "commit", "-q", "--allow-empty", "-m", "Elsewhere")
    assert merged.run("plan", "--out", "saved.plan").code == 0
    git(merged.folder, "checkout", "-q", "main")
    assert merged.run("apply", "saved.plan").code == 0
    done = merged.run("apply", "-y", "--format", "json")
    assert (done.code, done.codes) == (0, [])


def save_on_a_branch(project: Project) -> None:
    """Save the plan of a branch that adds a tag, and check out the main branch again."""
    git(project.folder, "checkout", "-qb", "topic")
    project.wants(tags=[tag("FIRST-1"), tag("THIRD-1")])
    commit_all(project.folder)
    assert project.run("plan", "--out", "saved.plan").code == 0
    git(project.folder, "checkout", "-q", "main")


def test_a_long_branch_that_is_merged_hides_no_older_commit(merged: Project, service: Service) -> None:
    """An older commit is refused even after a merge of 251 commits with later dates."""
    before = git(merged.folder, "rev-parse", "main")
    entry = "commit refs/heads/topic\ncommitter a <a@example.com> {date} +0000\ndata 0\n{parent}\n"
    parents = [f"from {before}\n", *([""] * 250)]
    lines = (entry.format(date=4_000_000_000 + number, parent=parent) for number, parent in enumerate(parents))
    words = ["git", "-C", str(merged.folder), "fast-import", "--quiet"]
    subprocess.run(words, input="".join(lines), text=True, check=True)
    git(merged.folder, "merge", "-q", "--no-ff", "-m", "Merge", "topic")
    assert merged.run("apply", "-y").code == 0
    refused = in_another_clone(merged, before, "apply", "-y", "--format", "json")
    assert (refused.code, refused.codes) == (5, ["older-commit"])


def test_a_shallow_clone_forgets_no_older_commit(merged: Project, service: Service) -> None:
    """Applies from shallow clones keep the earlier commits in the state."""
    assert merged.run("apply", "-y").code == 0
    shallow = in_a_shallow_clone(merged, 1)
    assert shallow.run("apply", "-y", "--reassert").code == 0
    merged.wants(tags=[tag("FIRST-1"), tag("THIRD-1")])
    commit_all(merged.folder)
    shallow = in_a_shallow_clone(merged, 2)
    assert shallow.run("apply", "-y").code == 0
    refused = in_another_clone(merged, "main~2", "apply", "-y", "--format", "json")
    assert (refused.code, refused.codes) == (5, ["older-commit"])


def in_a_shallow_clone(project: Project, depth: int) -> Project:
    folder = project.folder.parent / f"shallow-{depth}"
    git(project.folder.parent, "clone", "-q", f"--depth={depth}", f"file://{project.folder}", str(folder))
    state = f"sqlite:///{Path(project.loaded().state).resolve()}"
    return Project(folder, project.url, {**project.environ, "SYNCENGINE_STATE": state})


def test_an_imported_state_refuses_older_commits(merged: Project, tmp_path: Path) -> None:
    """Importing an earlier export afterwards does not change this."""
    export = str(tmp_path / "export.jsonl")
    git(merged.folder, "checkout", "-q", "main~1")
    assert merged.run("apply", "-y").code == 0
    assert merged.run("state", "export", "-o", str(tmp_path / "before.jsonl")).code == 0
    git(merged.folder, "checkout", "-q", "main")
    assert merged.apply().code == 0
    assert merged.run("state", "export", "-o", export).code == 0
    merged.environ["SYNCENGINE_STATE"] = str(tmp_path / "elsewhere.db")
    for file in (export, str(tmp_path / "before.jsonl")):
        assert merged.run("state", "import", "-y", file).code == 0
        refused = in_another_clone(merged, "main~1", "apply", "-y", "--format", "json")
        assert (refused.code, refused.codes) == (5, ["older-commit"])
    assert merged.run("apply", "-y").code == 0


@pytest.mark.parametrize("damage", ["[" * 100_000, "[1]", "{", '"text"'], ids=["deep", "number", "broken", "text"])
def test_damaged_ancestors_in_the_state_are_an_error(merged: Project, damage: str) -> None:
    assert merged.run("apply", "-y").code == 0
    with closing(sqlite3.connect(merged.loaded().state)) as state, state:
        state.execute("UPDATE state_facts SET ancestors = ?", (damage,))
    for command in (["plan"], ["apply", "-y"]):
        refused = merged.run(*command, "--format", "json")
        assert (refused.code, refused.codes) == (1, ["state-damaged"])


def test_an_unrelated_commit_is_applied_with_a_warning(merged: Project, service: Service) -> None:
    """After a forced push neither state nor clone show which commit is older."""
    assert merged.run("apply", "-y").code == 0
    git(merged.folder, "checkout", "-q", "--orphan", "other")
    merged.wants(tags=[tag("FIRST-1"), tag("THIRD-1")])
    commit_all(merged.folder)
    done = in_another_clone(merged, "other", "apply", "-y", "--format", "json")
    assert (done.code, done.codes) == (0, ["unknown-ancestry"])


def made_unreadable(folder: Path) -> None:
    """Make Git refuse the repository, like one that a newer version wrote."""
    for setting in (("core.repositoryFormatVersion", "1"), ("extensions.ofTheFuture", "true")):
        git(folder, "config", *setting)


def test_a_checkout_that_git_cannot_read_gives_a_warning(merged: Project, service: Service, tmp_path: Path) -> None:
    """Plan and apply go on with a warning, but a saved plan counts as not merged."""
    merged.environ["SYNCENGINE_STATE"] = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    assert merged.run("apply", "-y").code == 0
    merged.wants(tags=[tag("FIRST-1"), tag("THIRD-1")])
    commit_all(merged.folder)
    assert merged.run("plan", "--out", "saved.plan").code == 0
    made_unreadable(merged.folder)
    planned = merged.run("plan", "--format", "json")
    assert planned.codes == ["unknown-ancestry"]
    assert "extension" in planned.document["diagnostics"][0]["message"]
    asked = service.asked()
    refused = merged.run("apply", "saved.plan", "--format", "json")
    assert (refused.code, refused.codes) == (5, ["unknown-ancestry", "not-merged"])
    assert service.asked() == asked
    assert merged.run("apply", "saved.plan", "--allow-unmerged").code == 0
    merged.wants(tags=[tag("FIRST-1"), tag("THIRD-1", description="changed")])
    done = merged.run("apply", "-y", "--format", "json")
    assert (done.code, done.codes) == (0, ["unknown-ancestry"])


def test_a_state_in_a_checkout_that_git_cannot_read_is_refused(merged: Project) -> None:
    """The state may be committed, where the author of a change could edit it."""
    assert merged.run("apply", "-y").code == 0
    made_unreadable(merged.folder)
    refused = merged.run("plan", "--format", "json")
    assert refused.codes == ["state-in-git"]
    assert "git rm" not in refused.out


def as_owner(folder: Path, *words: str) -> str:
    """Run Git as if the clone belonged to the current user."""
    return git(folder, "-c", "safe.directory=*", *words)


@pytest.fixture
def foreign(merged: Project) -> Project:
    """A clone that another user owns, except for the `.syncengine` folder."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a clone to another user")
    assert merged.run("apply", "-y").code == 0
    own = merged.folder / ".syncengine"
    for path in (merged.folder, *merged.folder.rglob("*")):
        if not path.is_relative_to(own):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    told = subprocess.run(["git", "-C", str(merged.folder), "status"], capture_output=True, text=True, check=False)
    assert "dubious ownership" in told.stderr
    return merged


def test_a_clone_of_another_user_is_read_like_any_other(foreign: Project) -> None:
    """Plan, apply of a saved plan and refusal of an older commit work as usual."""
    head = as_owner(foreign.folder, "rev-parse", "HEAD")
    foreign.wants(tags=[tag("FIRST-1"), tag("THIRD-1")])
    as_owner(foreign.folder, "commit", "-qam", "third")
    planned = foreign.run("plan", "--out", "saved.plan", "--format", "json")
    assert (planned.code, planned.codes) == (0, [])
    done = foreign.run("apply", "saved.plan", "--format", "json")
    assert (done.code, done.codes) == (0, [])
    as_owner(foreign.folder, "checkout", "-q", head)
    refused = foreign.run("apply", "-y", "--format", "json")
    assert (refused.code, refused.codes) == (5, ["older-commit"])


def test_programs_that_a_clone_of_another_user_names_are_not_run(foreign: Project, tmp_path: Path) -> None:
    """The owner's filters, monitors and hooks are not run.

    A command that needs them is refused and names `safe.directory`.
    """
    trap = f"touch {tmp_path / 'run'}; cat"
    for name in ("filter.trap.clean", "filter.trap.smudge", "core.fsmonitor", "diff.external", "core.sshCommand"):
        as_owner(foreign.folder, "config", name, trap)
    (foreign.folder / ".gitattributes").write_text("* filter=trap\n")
    foreign.wants(tags=[tag("FIRST-1"), tag("THIRD-1")])
    planned = foreign.run("plan", "--out", "saved.plan", "--format", "json")
    assert (planned.code, planned.codes) == (0, ["uncommitted-inputs"])
    refused = foreign.run("plan", "--base", "HEAD")
    assert (refused.code, "dubious ownership" in refused.err, "safe.directory" in refused.err) == (64, True, True)
    assert not (tmp_path / "run").exists()
