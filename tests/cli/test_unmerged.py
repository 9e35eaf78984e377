"""A saved plan is applied only if the checked-out tree is the one it was made from (docs/reviews.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from syncengine.plan.model import Tree
from syncengine.plan.saved import load
from syncengine.plan.saved import save as save_plan
from syncengine.render.documents import SHOWN
from tests.support.git import commit_all, git

from .program import Ended, Project, tag
from .service import Service

pytestmark = pytest.mark.slow

MERGE = ("merge", "-q", "--no-ff", "-m", "Merge", "topic")


@pytest.fixture
def repository(project: Project) -> Project:
    """One tag is declared on branch `main`, and a second one on the checked-out branch `topic`."""
    git(project.folder, "init", "-q", "-b", "main")
    (project.folder / ".gitignore").write_text("*.plan\n*.json\nignored*\n")
    project.wants(tags=[tag("FIRST-1")])
    commit_all(project.folder)
    git(project.folder, "checkout", "-qb", "topic")
    project.wants(tags=[tag("FIRST-1"), tag("SECOND-1")])
    commit_all(project.folder)
    return project


def commit_meanwhile(project: Project) -> None:
    """Add a manifest on `main`, as another merge does, and check out `topic` again."""
    git(project.folder, "checkout", "-q", "main")
    project.wants("more.yaml", tags=[tag("THIRD-1")])
    commit_all(project.folder)
    git(project.folder, "checkout", "-q", "topic")


def merge(project: Project, *commands: tuple[str, ...]) -> None:
    git(project.folder, "checkout", "-q", "main")
    for words in commands or [MERGE]:
        git(project.folder, *words)


def save(project: Project, *more: str) -> Ended:
    done = project.run("plan", "--out", "saved.plan", *more)
    assert done.code == 0, done.err
    return done


def assert_not_merged(project: Project, service: Service, said: str = "") -> None:
    """The apply is refused and sends nothing."""
    asked = service.asked()
    done = project.run("apply", "saved.plan", "--format", "json")
    assert (done.code, done.codes[-1]) == (5, "not-merged"), done.out
    assert said in done.document["diagnostics"][-1]["message"], done.out
    assert service.asked() == asked


def assert_applied(project: Project, *more: str) -> None:
    done = project.run("apply", "saved.plan", "--format", "json", *more)
    assert done.code == 0, done.out


def test_a_plan_that_was_not_merged_alone_is_refused(repository: Project, service: Service) -> None:
    """The project's tree differs, whichever resources another merge changes. `--allow-unmerged` overrides that."""
    save(repository)
    git(repository.folder, "checkout", "-q", "main")
    assert_not_merged(repository, service, "manifests/all.yaml differs)")
    commit_meanwhile(repository)
    merge(repository)
    assert_not_merged(repository, service, "manifests/more.yaml differs)")
    assert_applied(repository, "--allow-unmerged")


MEANWHILE = ("commit", "-q", "--allow-empty", "-m", "Meanwhile")
MERGES = {
    "a merge": [MEANWHILE, MERGE],
    "a squash": [MEANWHILE, ("merge", "-q", "--squash", "topic"), ("commit", "-qm", "Squash")],
    "a rebase": [MEANWHILE, ("cherry-pick", "topic")],
    "fast forward": [("merge", "-q", "--ff-only", "topic")],
}


@pytest.mark.parametrize("commands", MERGES.values(), ids=MERGES)
def test_the_tree_is_the_same_after_any_way_of_merging(repository: Project, commands: list[tuple[str, ...]]) -> None:
    save(repository)
    merge(repository, *commands)
    assert_applied(repository)


def test_a_plan_with_a_base_is_of_the_merged_tree(repository: Project, service: Service) -> None:
    """With `--base`, the plan is refused on the branch and applied once the branch is merged."""
    commit_meanwhile(repository)
    save(repository, "--base", "main")
    assert_not_merged(repository, service)
    merge(repository)
    assert_applied(repository)


def test_an_uncommitted_file_is_named_and_must_not_change(repository: Project, service: Service) -> None:
    """No tree has it, so its content is compared when the plan is applied."""
    repository.wants(tags=[tag("FIRST-1"), tag("UNCOMMITTED-1")])
    repository.settings("policy: {tagRemoval: retire}")
    files = ["manifests/all.yaml", "syncengine.yaml"]
    assert f"made from uncommitted files: {', '.join(files)}" in save(repository).out
    assert repository.run("show", "saved.plan", "--format", "json").document["basis"]["uncommitted"] == files
    git(repository.folder, "checkout", "-q", "--", ".")
    assert_not_merged(repository, service, "missing or different here: manifests/all.yaml")


@pytest.mark.parametrize("more", [False, True], ids=["alone", "with another file"])
def test_an_uncommitted_manifest_may_be_committed_as_it_was(repository: Project, service: Service, more: bool) -> None:
    """The plan is applied if the tree has no other change."""
    repository.wants(tags=[tag("FIRST-1"), tag("UNCOMMITTED-1")])
    save(repository)
    if more:
        repository.wants("more.yaml", tags=[tag("THIRD-1")])
    commit_all(repository.folder)
    if more:
        assert_not_merged(repository, service)
    else:
        assert_applied(repository)


def test_an_uncommitted_delete_of_a_manifest_is_an_input(repository: Project, service: Service) -> None:
    """The plan removes its tags, but no tree lacks the manifest."""
    repository.wants("more.yaml", tags=[tag("THIRD-1")])
    commit_all(repository.folder)
    (repository.folder / "manifests" / "more.yaml").unlink()
    assert "manifests/more.yaml" in save(repository).out
    git(repository.folder, "checkout", "-q", "--", ".")
    assert_not_merged(repository, service)


def generates(project: Project, name: str) -> Path:
    """Commit a manifest that generates tags of a file that no tree has, or of a part of a template."""
    file = project.folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("name\nROW-1\n" if file.suffix == ".csv" else "- {name: ROW-1}\n")
    project.settings("dataFolders: [., ..]")
    block = f"generate:\n  - forEach: {{csv: ../{name}}}\n    tags: [{{name: '{{{{ row.name }}}}'}}]\n"
    manifest = ("rows.yaml", block) if file.suffix == ".csv" else ("t.yaml.j2", f"tags:\n{{% include '{name}' %}}")
    (project.folder / "manifests" / manifest[0]).write_text(manifest[1])
    commit_all(project.folder)
    return file


@pytest.mark.parametrize("name", ["ignored.csv", "data/ignored.csv", "../beyond/rows.csv", "ignored.j2"])
def test_data_that_no_tree_has_is_an_input(repository: Project, service: Service, name: str) -> None:
    """A file that Git ignores is compared, wherever it is in the project, and one outside of the project."""
    file = generates(repository, name)
    assert name in save(repository).out
    file.write_text(file.read_text().replace("ROW-1", "ROW-2"))
    assert_not_merged(repository, service, name)


@pytest.mark.parametrize("name", ["data/ignored.csv", "../beyond.csv"])
def test_inputs_outside_the_merged_tree_are_compared(repository: Project, service: Service, name: str) -> None:
    """With `--base`, ignored data and data outside the project are compared."""
    file = generates(repository, name)
    commit_meanwhile(repository)
    said = save(repository, "--base", "main").out
    assert name in said
    assert "more.yaml" not in said.partition("does not hold")[2].partition(";")[0]
    merge(repository)
    file.write_text("name\nROW-2\n")
    assert_not_merged(repository, service, name)
    file.write_text("name\nROW-1\n")
    assert_applied(repository)


def test_files_that_are_no_inputs_do_not_matter(repository: Project) -> None:
    """Untracked notes and reports, and the saved plan itself, are not compared."""
    (repository.folder / "notes.txt").write_text("mine\n")
    assert "does not hold" not in save(repository).out
    (repository.folder / "notes.txt").unlink()
    assert_applied(repository)


def test_outside_git_nothing_is_compared(project: Project) -> None:
    project.wants(tags=[tag("FIRST-1")])
    assert "does not hold" not in save(project).out
    assert project.run("show", "saved.plan", "--format", "json").document["basis"]["tree"] is None
    assert_applied(project)


@pytest.mark.parametrize("is_committed", [True, False])
def test_only_the_folder_of_the_project_counts(project: Project, tmp_path: Path, is_committed: bool) -> None:
    """In a repository of several projects, others may change. A plan made before the first commit is merged by it."""
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    git(outer, "commit", "-q", "--allow-empty", "-m", "Nothing")
    project.wants(tags=[tag("FIRST-1")])
    project.folder.rename(outer / "project")
    project.folder = outer / "project"
    if is_committed:
        commit_all(outer)
    save(project)
    (outer / "elsewhere.txt").write_text("changed\n")
    git(outer, "add", "project/manifests", "project/syncengine.yaml", "elsewhere.txt")
    git(outer, "commit", "-qm", "Elsewhere")
    assert_applied(project)


def forge(project: Project, tree: Tree) -> None:
    """Replace the tree in the saved plan."""
    path = project.folder / "saved.plan"
    plan = load(path, SHOWN)
    save_plan(replace(plan, basis=replace(plan.basis, tree=tree)), SHOWN, path)


def test_a_forged_tree_is_refused_and_is_no_option_for_git(
    repository: Project, service: Service, tmp_path: Path
) -> None:
    """A tree such as `--output=FILE` must not make `git diff-tree` overwrite the file."""
    save(repository)
    for name in ("a\0b", "x" * 5000):
        forge(repository, Tree("0" * 40, {name: "digest"}))
        assert_not_merged(repository, service, "files that are missing or different here")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    forge(repository, Tree(f"--output={victim}"))
    asked = service.asked()
    done = repository.run("apply", "saved.plan", "--format", "json")
    assert victim.read_text() == "precious"
    assert (done.code, done.codes, service.asked()) == (5, ["plan-inconsistent"], asked)
