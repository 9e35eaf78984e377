"""`state rebuild` makes a lost state again from the manifests in Git."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.git import commit_all, git

from .program import Ended, Project, category, tag
from .service import Service

pytestmark = pytest.mark.slow

CATEGORIES = [category("acme"), category("other")]


def commit(project: Project, file: str = "all.yaml", /, **sections: Any) -> str:
    project.wants(file, **sections)
    return commit_all(project.folder)


def lose(project: Project) -> None:
    shutil.rmtree(project.folder / ".syncengine")


def rebuild(project: Project, *arguments: str, revision: str = "HEAD") -> Ended:
    return project.run("state", "rebuild", "--from-git", revision, "-y", *arguments)


@pytest.fixture
def kept(project: Project) -> Project:
    """A project in Git with two applied commits; the second removes a tag whose category stays."""
    git(project.folder, "init", "-q", "-b", "main", ".")
    (project.folder / ".gitignore").write_text(".syncengine/\n")
    both = [tag("ACME-1", category="acme"), tag("ACME-2", category="acme", keywords=["of it"])]
    for tags in (both, both[:1]):
        commit(project, tagCategories=CATEGORIES, tags=tags)
        assert project.apply().code == 0
    return project


def test_a_lost_state_is_rebuilt_and_sent_again(kept: Project, service: Service) -> None:
    """All rows are in doubt and have their source lines; the next apply sends them, and then there are no changes."""
    held, recorded = service.holds(), kept.rows()
    lose(kept)
    done = rebuild(kept, "--format", "json")
    head = git(kept.folder, "rev-parse", "HEAD")
    counts = {"commit": head, "rebuilt": 3, "diagnostics": []}
    assert (done.code, done.document) == (0, {"format": "syncengine.rebuild/v1", **counts})
    rows = kept.rows()
    assert rows.keys() == {address for address, row in recorded.items() if row["status"] != "released"}
    assert {(row["status"], row["doubtful"]) for row in rows.values()} == {("active", True)}
    assert "manifests/all.yaml:5" in kept.run("state", "list").out
    changes = {str(each.key): each.action.word for each in kept.plan().changes}
    assert changes == dict.fromkeys(("category/acme", "category/other", "tag/ACME-1"), "update")
    assert "without its id" in kept.run("plan").out
    assert kept.apply().code == 0
    assert service.holds() == held
    assert kept.run("plan", "--detailed-exitcode").code == 0


def test_a_state_with_rows_is_rebuilt_only_with_replace(kept: Project) -> None:
    """With `--replace` the ids of the service are kept, and the state has a new lineage."""
    before, lineage = kept.files()[".syncengine/state.db"], kept.plan().basis.lineage
    refused = rebuild(kept)
    assert (refused.code, "--replace" in refused.err) == (1, True)
    assert kept.files()[".syncengine/state.db"] == before
    assert rebuild(kept, "--replace").code == 0
    assert kept.plan().basis.lineage != lineage
    shown = kept.run("state", "show", "category/acme", "--format", "json").document
    assert (shown["doubtful"], bool(shown["serverId"])) == (True, True)


def test_a_rebuild_is_a_run_of_the_history_and_uses_up_approvals(kept: Project) -> None:
    """The run has the commit, so that older ones are refused. Approvals in the project file become invalid."""
    kept.wants(tagCategories=CATEGORIES, tags=[])
    approval = kept.plan().gate.approve
    git(kept.folder, "checkout", "-q", ".")
    kept.settings("approvals:", f"  - {approval}")
    head = commit_all(kept.folder)
    lose(kept)
    assert rebuild(kept).code == 0
    run = kept.run("state", "history", "--format", "json").document["runs"][0]
    assert (run["command"], run["commit"], run["outcome"]) == ("state rebuild", head, "complete")
    assert run["counts"] == {"applied": 3}
    assert kept.apply().code == 0
    kept.wants(tagCategories=CATEGORIES, tags=[])
    assert kept.run("apply", "-y").code == 4


def test_an_invalid_revision_is_refused_with_its_places(kept: Project) -> None:
    """`state rebuild` exits with 8, names the file of each error, and creates no state."""
    commit(kept, "broken.yaml", tags=[tag("NEW-1", nmae="x")])
    lose(kept)
    refused = rebuild(kept, "--format", "json")
    assert (refused.code, [d["code"] for d in refused.document["diagnostics"]]) == (8, ["unknown-field"])
    assert refused.document["diagnostics"][0]["file"] == "manifests/broken.yaml"
    assert not (kept.folder / ".syncengine/state.db").exists()
    commit(kept, "broken.yaml", tags=[tag("NEW-1")])
    assert rebuild(kept).code == 0
    assert "tag/NEW-1" in kept.rows()


def test_a_missing_commit_of_a_shallow_clone_is_reported_with_the_cure(kept: Project, tmp_path: Path) -> None:
    """The message suggests `fetch-depth: 0`. The latest commit can be rebuilt."""
    there = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{kept.folder}", str(there))
    shallow = Project(there, kept.url)
    refused = rebuild(shallow, revision="HEAD~1")
    assert (refused.code, "fetch-depth: 0" in refused.err) == (64, True), refused.err
    assert rebuild(shallow).code == 0


def test_rows_of_databases_are_not_rebuilt(kept: Project) -> None:
    """A warning names each block with such a source, and everything else is recorded."""
    kept.settings("sources:", "  matters: {sql: {env: MATTERS}}")
    rows = "{forEach: {sql: {source: matters, query: SELECT 1 AS n}}, tags: [{name: 'M-{{ row.n }}'}]}"
    (kept.folder / "manifests/rows.yaml").write_text(f"generate:\n  - {rows}\n")
    commit_all(kept.folder)
    lose(kept)
    done = rebuild(kept, "--format", "json")
    assert (done.code, done.document["rebuilt"]) == (0, 3)
    (found,) = done.document["diagnostics"]
    assert (found["severity"], found["code"], "matters" in found["message"]) == ("warning", "source-left-out", True)
    assert (found["file"], found["line"]) == ("manifests/rows.yaml", 2)


def test_an_environment_is_rebuilt_by_itself(kept: Project) -> None:
    """Its own manifests at the commit are recorded in its own state."""
    kept.settings("environments:", "  live: {manifests: [live], state: live.db}", "  test: {}")
    (kept.folder / "live").mkdir()
    (kept.folder / "live/all.yaml").write_text("tags: [{name: LIVE-1}]\n")
    commit_all(kept.folder)
    done = kept.run("--env", "live", "state", "rebuild", "--from-git", "HEAD", "-y")
    assert done.code == 0, done.err
    listed = kept.run("--env", "live", "state", "list", "--format", "json").document["resources"]
    assert {row["address"]: row["status"] for row in listed} == {"tag/LIVE-1": "active"}


@pytest.mark.parametrize("arguments", [(), ("--from-git", "nowhere", "-y"), ("--from-git", "HEAD")])
def test_wrong_arguments_create_no_state(kept: Project, arguments: tuple[str, ...]) -> None:
    """A missing revision, an unknown one, and a missing `-y` without a terminal are usage errors."""
    lose(kept)
    done = kept.run("state", "rebuild", *arguments)
    assert done.code == 64, done.err
    assert not (kept.folder / ".syncengine/state.db").exists()
