"""`state rebuild`: a lost state anew, from what Git declared, over a real service."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.pull_requests.clones import AUTHOR

from .program import Ended, Project, activity_type, category, tag
from .service import Service

PRIVATE = "private"


def git(project: Project, *arguments: str) -> str:
    command = ["git", "-C", str(project.folder), *arguments]
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, **AUTHOR})
    return done.stdout.decode().strip()


def commit(project: Project, file: str = "all.yaml", /, **sections: Any) -> str:
    project.wants(file, **sections)
    return commit_all(project)


def commit_all(project: Project) -> str:
    git(project, "add", "--all")
    git(project, "commit", "-q", "--allow-empty", "-m", "a change")
    return git(project, "rev-parse", "HEAD")


def apply(project: Project, *arguments: str) -> None:
    done = project.apply(*arguments)
    assert done.code == 0, (done.out, done.err)


def lose(project: Project) -> None:
    shutil.rmtree(project.folder / ".syncengine")


def rebuild(project: Project, *arguments: str, revision: str = "HEAD") -> Ended:
    return project.run("state", "rebuild", "--from-git", revision, "-y", *arguments)


@pytest.fixture
def kept(project: Project) -> Project:
    """A project in Git, of which two commits were applied: the second lets a tag go that stays in its category."""
    git(project, "init", "-q", "-b", "main", ".")
    (project.folder / ".gitignore").write_text(".syncengine/\n")
    both = [tag("ACME-1", category="acme"), tag("ACME-2", category="acme", keywords=["of it"])]
    commit(project, tagCategories=[category("acme"), category("other")], tags=both)
    apply(project)
    commit(project, tagCategories=[category("acme"), category("other")], tags=both[:1])
    apply(project)
    return project


def test_a_lost_state_is_rebuilt_and_sent_again(kept: Project, service: Service) -> None:
    """All is doubtful, with its places; nothing goes, and the apply of it leaves nothing to do."""
    held, recorded = service.holds(), kept.rows()
    lose(kept)
    done = rebuild(kept, "--all-history", "--format", "json")
    head = git(kept, "rev-parse", "HEAD")
    counts = {"commit": head, "rebuilt": 3, "released": 1, "diagnostics": []}
    assert (done.code, done.document) == (0, {"format": "syncengine.rebuild/v1", **counts})
    rows = kept.rows()
    assert {address: row["status"] for address, row in rows.items()} == {
        address: row["status"] for address, row in recorded.items()
    }
    assert all(row["doubtful"] for row in rows.values())
    listed = kept.run("state", "list").out
    assert "manifests/all.yaml:5" in listed
    planned = kept.plan()
    assert {str(each.key): each.action.word for each in planned.changes} == {
        "category/acme": "update",
        "category/other": "update",
        "tag/ACME-1": "update",
    }
    assert "without its id" in kept.run("plan").out
    apply(kept)
    assert service.holds() == held
    assert kept.run("plan", "--detailed-exitcode").code == 0


def test_a_category_takes_along_what_only_the_history_tells_of(kept: Project, service: Service) -> None:
    """Its deletion counts the released tag, as with the state that was lost; at once, and after the apply too."""
    lose(kept)
    assert rebuild(kept, "--all-history").code == 0
    for sends_first in (False, True):
        if sends_first:
            apply(kept)
        kept.wants(tagCategories=[category("other")])
        plan = kept.plan()
        going = {str(each.key): str(each.cascade) for each in plan.changes if each.cascade}
        assert going == {"tag/ACME-1": "category/acme", "tag/ACME-2": "category/acme"}
        assert plan.gate.tripped
        git(kept, "checkout", "-q", ".")
    kept.wants(tagCategories=[category("other")])
    apply(kept)
    assert service.tags() == []
    assert kept.run("plan", "--detailed-exitcode").code == 0


def test_a_renamed_category_takes_along_the_tags_of_its_old_name(project: Project) -> None:
    """A tag that was let go before the rename is in the category by its new name."""
    git(project, "init", "-q", ".")
    commit(project, tagCategories=[category("old")], tags=[tag("T-1", category="old"), tag("T-2", category="old")])
    commit(project, tagCategories=[category("old")], tags=[tag("T-1", category="old")])
    commit(project, tagCategories=[category("new", previously=["old"])], tags=[tag("T-1", category="new")])
    assert rebuild(project, "--all-history").code == 0
    project.wants(tagCategories=[], tags=[])
    going = {str(each.key) for each in project.plan().changes if str(each.cascade) == "category/new"}
    assert going == {"tag/T-1", "tag/T-2"}


def test_a_state_with_rows_is_kept_unless_asked(kept: Project) -> None:
    """With --replace its rows are recorded anew, its ids stay, and its lineage is another."""
    before = kept.files()[".syncengine/state.db"]
    refused = rebuild(kept)
    assert (refused.code, "--replace" in refused.err) == (1, True)
    assert kept.files()[".syncengine/state.db"] == before
    lineage = kept.plan().basis.lineage
    assert rebuild(kept, "--replace").code == 0
    assert kept.plan().basis.lineage != lineage
    shown = kept.run("state", "show", "category/acme", "--format", "json").document
    assert (shown["doubtful"], bool(shown["serverId"])) == (True, True)


def test_a_rebuild_is_a_run_of_the_history_and_uses_up_approvals(kept: Project) -> None:
    """With its commit, so that an older one is not applied after it; what is listed approves nothing any more."""
    kept.wants(tagCategories=[category("acme"), category("other")], tags=[])
    approval = kept.plan().gate.approve
    git(kept, "checkout", "-q", ".")
    kept.settings("approvals:", f"  - {approval}")
    head = commit_all(kept)
    lose(kept)
    assert rebuild(kept, "--all-history").code == 0
    run = kept.run("state", "history", "--format", "json").document["runs"][0]
    assert (run["command"], run["commit"], run["counts"], run["outcome"]) == (
        "state rebuild",
        head,
        {"applied": 4},
        "complete",
    )
    apply(kept)
    kept.wants(tagCategories=[category("acme"), category("other")], tags=[])
    assert kept.run("apply", "-y").code == 4


def test_an_invalid_revision_is_refused_with_its_places(kept: Project) -> None:
    """REV itself is exit 8; in the history it is passed over with a warning."""
    broken = commit(kept, "broken.yaml", tags=[tag("NEW-1", nmae="x")])
    lose(kept)
    refused = rebuild(kept, "--format", "json")
    assert (refused.code, [d["code"] for d in refused.document["diagnostics"]]) == (8, ["unknown-field"])
    assert refused.document["diagnostics"][0]["file"] == "manifests/broken.yaml"
    assert not (kept.folder / ".syncengine/state.db").exists()
    commit(kept, "broken.yaml", tags=[tag("NEW-1")])
    done = rebuild(kept, "--all-history", "--format", "json")
    assert done.code == 0
    (warning,) = done.document["diagnostics"]
    assert (warning["code"], warning["severity"]) == ("history-passed-over", "warning")
    assert warning["message"].startswith(f"at {broken[:10]} (")
    assert "manifests/broken.yaml:2: a tag has no field `nmae`" in warning["message"]
    assert "tag/NEW-1" in kept.rows()


def test_a_project_file_that_was_invalid_once_is_passed_over(kept: Project) -> None:
    """The commits around it still tell of what they declared."""
    (kept.folder / "syncengine.yaml").write_text("version: 1\nsrevice: {}\n")
    commit(kept, tagCategories=[category("acme")], tags=[tag("NEVER-1")])
    kept.settings()
    commit(kept, tagCategories=[category("acme")], tags=[tag("LATER-1")])
    commit(kept, tagCategories=[category("acme")], tags=[tag("NOW-1")])
    lose(kept)
    done = rebuild(kept, "--all-history")
    assert done.code == 0
    assert "there is no setting" in done.err or "unknown" in done.err or "srevice" in done.err
    assert set(kept.rows()) == {"category/acme", "category/other", *(f"tag/{n}" for n in NAMES)}


NAMES = ("ACME-1", "ACME-2", "LATER-1", "NOW-1")


def test_a_shallow_clone_tells_how_to_get_its_history(kept: Project, tmp_path: Path) -> None:
    """Its tip alone can be rebuilt; a commit that it lacks, and its history, name the depth of the fetch."""
    there = tmp_path / "shallow"
    command = ["git", "clone", "-q", "--depth", "1", f"file://{kept.folder}", str(there)]
    subprocess.run(command, check=True, env={**os.environ, **AUTHOR})
    shallow = Project(there, kept.url)
    for arguments in (("--all-history",), ()):
        refused = rebuild(shallow, *arguments, revision="HEAD" if arguments else "HEAD~1")
        assert (refused.code, "fetch-depth: 0" in refused.err) == (64, True), refused.err
    assert rebuild(shallow).code == 0


def test_what_databases_declare_cannot_be_rebuilt_from_git(kept: Project) -> None:
    """The block is named, and refused unless it may be missing."""
    kept.settings("sources:", "  matters: {sql: {env: MATTERS}}")
    block = (
        "generate:\n  - forEach: {sql: {source: matters, query: SELECT 1 AS n}}\n    tags: [{name: 'M-{{ row.n }}'}]\n"
    )
    (kept.folder / "manifests/rows.yaml").write_text(block)
    commit_all(kept)
    lose(kept)
    refused = rebuild(kept, "--format", "json")
    assert refused.code == 8
    (found,) = refused.document["diagnostics"]
    assert (found["code"], found["file"], found["line"]) == ("source-left-out", "manifests/rows.yaml", 2)
    assert "--allow-missing-sources" in found["message"]
    done = rebuild(kept, "--allow-missing-sources", "--format", "json")
    assert (done.code, done.document["rebuilt"]) == (0, 3)
    assert [d["code"] for d in done.document["diagnostics"]] == ["source-left-out"]


def test_rows_of_files_are_read_at_each_commit(kept: Project) -> None:
    """Also what a file of data had once, in a folder of manifests that had another name, and on a merged branch."""
    (kept.folder / "data").mkdir()
    (kept.folder / "data/matters.csv").write_text("n\n1\n2\n")
    block = "generate:\n  - forEach: {csv: ../data/matters.csv}\n    tags: [{name: 'M-{{ row.n }}', category: acme}]\n"
    (kept.folder / "manifests/rows.yaml").write_text(block)
    commit_all(kept)
    git(kept, "checkout", "-q", "-b", "side")
    (kept.folder / "data/matters.csv").write_text("n\n1\n2\n3\n")
    commit_all(kept)
    (kept.folder / "data/matters.csv").write_text("n\n1\n4\n")
    commit_all(kept)
    git(kept, "checkout", "-q", "main")
    commit(kept, "more.yaml", tags=[tag("ON-MAIN")])
    git(kept, "merge", "-q", "--no-ff", "-m", "merge", "side")
    git(kept, "mv", "manifests", "declared")
    kept.settings("manifests: [declared]")
    (kept.folder / "declared/more.yaml").unlink()
    commit_all(kept)
    lose(kept)
    assert rebuild(kept, "--all-history").code == 0
    status = {address: row["status"] for address, row in kept.rows().items() if address.startswith("tag/")}
    assert status == {
        "tag/ACME-1": "active",
        "tag/ACME-2": "released",
        "tag/M-1": "active",
        "tag/M-2": "released",
        "tag/M-3": "released",
        "tag/M-4": "active",
        "tag/ON-MAIN": "released",
    }
    # What was written while the history was read is not what is checked out.
    assert git(kept, "status", "--porcelain") == ""


def test_activity_types_of_the_history_are_no_reason_to_sweep(kept: Project) -> None:
    """They are recorded, and nothing is deleted that nobody asked to delete."""
    here = {"tagCategories": [category("acme"), category("other")], "tags": [tag("ACME-1", category="acme")]}
    commit(kept, **here, activityTypes=[{"code": "OLD", "label": "Old"}, {"code": "NOW", "label": "Now"}])
    commit(kept, **here, activityTypes=[{"code": "NOW", "label": "Now"}])
    lose(kept)
    assert rebuild(kept, "--all-history").code == 0
    assert kept.rows()["activity-type/OLD"]["status"] == "released"
    assert kept.plan().sweep is None
    apply(kept)
    assert kept.run("plan", "--detailed-exitcode").code == 0


def test_a_project_that_was_moved_in_its_repository_keeps_its_history(kept: Project) -> None:
    """The folder that its project file came from is read as well."""
    below = kept.folder / "tools" / "sync"
    below.mkdir(parents=True)
    for name in ("syncengine.yaml", "manifests"):
        git(kept, "mv", name, f"tools/sync/{name}")
    commit_all(kept)
    moved = Project(below, kept.url)
    assert git(moved, "status", "--porcelain") == ""
    assert rebuild(moved, "--all-history").code == 0
    assert moved.rows()["tag/ACME-2"]["status"] == "released"


def test_an_environment_is_rebuilt_by_itself(kept: Project) -> None:
    """Commits of before it was named are passed over; it has a state of its own."""
    kept.settings("environments:", "  live: {manifests: [live], state: live.db}", "  test: {}")
    (kept.folder / "live").mkdir()
    (kept.folder / "live/all.yaml").write_text("tags: [{name: LIVE-1}, {name: LIVE-2}]\n")
    commit_all(kept)
    (kept.folder / "live/all.yaml").write_text("tags: [{name: LIVE-1}]\n")
    commit_all(kept)
    done = kept.run("--env", "live", "state", "rebuild", "--from-git", "HEAD", "--all-history", "-y")
    assert done.code == 0, done.err
    assert "there is no environment `live`" in done.err
    listed = kept.run("--env", "live", "state", "list", "--format", "json").document["resources"]
    assert {row["address"]: row["status"] for row in listed} == {"tag/LIVE-1": "active", "tag/LIVE-2": "released"}


@pytest.mark.parametrize("arguments", [(), ("--from-git", "nowhere", "-y"), ("--from-git", "HEAD")])
def test_what_is_misspelt_changes_nothing(kept: Project, arguments: tuple[str, ...]) -> None:
    """No revision, one that is not there, and nobody to ask."""
    lose(kept)
    done = kept.run("state", "rebuild", *arguments)
    assert done.code == 64, done.err
    assert not (kept.folder / ".syncengine/state.db").exists()


@pytest.mark.parametrize("words", [["--sweep"], []], ids=["asked for by hand", "exact"])
def test_a_sweep_shows_the_activity_types_of_former_days(words: list[str], project: Project, service: Service) -> None:
    """They are no reason for a sweep, but go with one; its saved plan can be applied."""
    git(project, "init", "-q", ".")
    project.settings() if words else project.settings("policy: {activityTypes: exact}")
    commit(project, activityTypes=[activity_type("A1"), activity_type("OLD")])
    commit(project, activityTypes=[activity_type("A1")])
    assert rebuild(project, "--all-history").code == 0
    project.wants(activityTypes=[activity_type("A1", description="more")])
    planned = project.run("plan", *words, "--out", "sweeping.plan", "--format", "json").document
    assert planned["sweep"]["known"] == ["OLD"]
    assert {each["address"]: each["action"] for each in planned["changes"]}["activity-type/OLD"] == "delete"
    done = project.run("apply", "sweeping.plan", "--approve-deletes", planned["gate"]["approve"])
    assert done.code == 0, done.out
    assert project.rows()["activity-type/OLD"]["status"] == "deleted"
