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


def save(project: Project, *more: str) -> Ended:
    done = project.run("plan", "--out", "saved.plan", *more)
    assert done.code == 0, done.err
    return done


def assert_not_merged(project: Project, service: Service, said: str = "") -> None:
    """The apply is refused and sends nothing; `--allow-unmerged` overrides that."""
    asked = service.asked()
    done = project.run("apply", "saved.plan", "--format", "json")
    assert (done.code, done.codes[-1]) == (5, "not-merged"), done.out
    assert said in done.document["diagnostics"][-1]["message"], done.out
    assert service.asked() == asked
    assert project.run("apply", "saved.plan", "--allow-unmerged").code == 0


def assert_applied(project: Project) -> None:
    done = project.run("apply", "saved.plan", "--format", "json")
    assert done.code == 0, done.out


def test_a_plan_that_was_never_merged_is_refused(repository: Project, service: Service) -> None:
    save(repository)
    git(repository.folder, "checkout", "-q", "main")
    assert_not_merged(repository, service, "manifests/all.yaml differs)")


MEANWHILE = ("commit", "-q", "--allow-empty", "-m", "Meanwhile")
MERGES = {
    "a merge": [MEANWHILE, ("merge", "-q", "--no-ff", "-m", "Merge", "topic")],
    "a squash": [MEANWHILE, ("merge", "-q", "--squash", "topic"), ("commit", "-qm", "Squash")],
    "a rebase": [MEANWHILE, ("cherry-pick", "topic")],
    "fast forward": [("merge", "-q", "--ff-only", "topic")],
}


@pytest.mark.parametrize("commands", MERGES.values(), ids=MERGES)
def test_the_tree_is_the_same_after_any_way_of_merging(repository: Project, commands: list[tuple[str, ...]]) -> None:
    save(repository)
    git(repository.folder, "checkout", "-q", "main")
    for words in commands:
        git(repository.folder, *words)
    assert_applied(repository)


def test_a_plan_is_refused_after_another_merge(repository: Project, service: Service) -> None:
    """The project's tree differs, whichever resources the other merge changes."""
    save(repository)
    git(repository.folder, "checkout", "-q", "main")
    repository.wants("more.yaml", tags=[tag("THIRD-1")])
    commit_all(repository.folder)
    git(repository.folder, "merge", "-q", "--no-ff", "-m", "Merge", "topic")
    assert_not_merged(repository, service, "manifests/more.yaml differs)")


def test_only_the_folder_of_the_project_counts(repository: Project, tmp_path: Path) -> None:
    """In a repository with several projects, files outside the project's folder may change."""
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    (repository.folder / ".git").rename(tmp_path / "former")
    repository.folder.rename(outer / "project")
    repository.folder = outer / "project"
    commit_all(repository.folder)
    save(repository)
    (outer / "elsewhere.txt").write_text("changed\n")
    git(outer, "add", "-A")
    git(outer, "commit", "-qm", "Elsewhere")
    assert_applied(repository)


def test_an_uncommitted_manifest_is_named_and_must_not_change(repository: Project, service: Service) -> None:
    """No tree has it, so its content is compared when the plan is applied."""
    repository.wants(tags=[tag("FIRST-1"), tag("UNCOMMITTED-1")])
    planned = save(repository)
    assert "made from uncommitted files: manifests/all.yaml" in planned.out
    basis = repository.run("show", "saved.plan", "--format", "json").document["basis"]
    assert basis["uncommitted"] == ["manifests/all.yaml"]
    git(repository.folder, "checkout", "-q", "--", ".")
    assert_not_merged(repository, service, "missing or different here: manifests/all.yaml")


def test_an_uncommitted_manifest_may_be_committed_as_it_was(repository: Project) -> None:
    """The plan is applied if the tree has no other change."""
    repository.wants(tags=[tag("FIRST-1"), tag("UNCOMMITTED-1")])
    save(repository)
    commit_all(repository.folder)
    assert_applied(repository)


def test_a_plan_is_refused_if_another_file_was_committed_too(repository: Project, service: Service) -> None:
    repository.wants(tags=[tag("FIRST-1"), tag("UNCOMMITTED-1")])
    save(repository)
    repository.wants("more.yaml", tags=[tag("THIRD-1")])
    commit_all(repository.folder)
    assert_not_merged(repository, service)


def test_an_uncommitted_delete_of_a_manifest_is_an_input(repository: Project, service: Service) -> None:
    """The plan removes its tags, but no tree lacks the manifest."""
    repository.wants("more.yaml", tags=[tag("THIRD-1")])
    commit_all(repository.folder)
    (repository.folder / "manifests" / "more.yaml").unlink()
    assert "manifests/more.yaml" in save(repository).out
    git(repository.folder, "checkout", "-q", "--", ".")
    assert_not_merged(repository, service)


def generates(project: Project, data: str) -> None:
    template = "{name: '{{ row.name }}'}"
    (project.folder / "manifests" / "rows.yaml").write_text(
        f"generate:\n  - forEach: {{csv: {data}}}\n    tags: [{template}]\n"
    )


@pytest.mark.parametrize("name", ["ignored.csv", "data/ignored.csv", "../beyond/rows.csv"])
def test_data_that_no_tree_has_is_an_input(repository: Project, service: Service, name: str) -> None:
    """A file that Git ignores is compared, wherever it is in the project, and one outside of the project."""
    file = repository.folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("name\nROW-1\n")
    repository.settings("dataFolders: [., ..]")
    generates(repository, f"../{name}")
    commit_all(repository.folder)
    assert name in save(repository).out
    file.write_text("name\nROW-2\n")
    assert_not_merged(repository, service, name)


def test_templates_and_their_parts_are_inputs(repository: Project, service: Service) -> None:
    """A file that a text template includes is compared as well."""
    (repository.folder / "ignored.j2").write_text("- {name: PART-1}\n")
    (repository.folder / "manifests" / "text.yaml.j2").write_text("tags:\n{% include 'ignored.j2' %}")
    commit_all(repository.folder)
    assert "ignored.j2" in save(repository).out
    (repository.folder / "ignored.j2").write_text("- {name: PART-2}\n")
    assert_not_merged(repository, service, "ignored.j2")


def test_a_changed_project_file_is_an_input(repository: Project) -> None:
    repository.settings("policy: {tagRemoval: retire}")
    assert "syncengine.yaml" in save(repository).out


def test_files_that_are_no_inputs_do_not_matter(repository: Project) -> None:
    """Untracked notes and reports, and the saved plan itself, are not compared."""
    (repository.folder / "notes.txt").write_text("mine\n")
    assert "does not hold" not in save(repository).out
    (repository.folder / "notes.txt").unlink()
    assert_applied(repository)


def test_a_plan_with_a_base_is_of_the_merged_tree(repository: Project, service: Service) -> None:
    """With `--base`, the plan is refused on the branch and applied once the branch is merged."""
    git(repository.folder, "checkout", "-q", "main")
    repository.wants("more.yaml", tags=[tag("THIRD-1")])
    commit_all(repository.folder)
    git(repository.folder, "checkout", "-q", "topic")
    save(repository, "--base", "main")
    done = repository.run("apply", "saved.plan", "--format", "json")
    assert (done.code, done.codes[-1]) == (5, "not-merged"), done.out
    git(repository.folder, "checkout", "-q", "main")
    git(repository.folder, "merge", "-q", "--no-ff", "-m", "Merge", "topic")
    assert_applied(repository)


@pytest.mark.parametrize("name", ["data/ignored.csv", "../beyond.csv"])
def test_inputs_outside_the_merged_tree_are_compared(repository: Project, service: Service, name: str) -> None:
    """With `--base`, ignored data and data outside the project are compared."""
    file = repository.folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("name\nROW-1\n")
    repository.settings("dataFolders: [..]")
    generates(repository, f"../{name}")
    commit_all(repository.folder)
    git(repository.folder, "checkout", "-q", "main")
    repository.wants("more.yaml", tags=[tag("THIRD-1")])
    commit_all(repository.folder)
    git(repository.folder, "checkout", "-q", "topic")
    said = save(repository, "--base", "main").out
    assert name in said
    assert "more.yaml" not in said.partition("does not hold")[2].partition(";")[0]
    git(repository.folder, "checkout", "-q", "main")
    git(repository.folder, "merge", "-q", "--no-ff", "-m", "Merge", "topic")
    file.write_text("name\nROW-2\n")
    done = repository.run("apply", "saved.plan", "--format", "json")
    assert (done.code, done.codes[-1]) == (5, "not-merged"), done.out
    file.write_text("name\nROW-1\n")
    assert_applied(repository)


def test_outside_git_nothing_is_compared(project: Project) -> None:
    project.wants(tags=[tag("FIRST-1")])
    assert "does not hold" not in save(project).out
    assert project.run("show", "saved.plan", "--format", "json").document["basis"]["tree"] is None
    assert_applied(project)


def test_a_plan_made_before_the_projects_first_commit_can_be_applied(repository: Project, tmp_path: Path) -> None:
    """It is merged once its files are committed unchanged."""
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    git(outer, "commit", "-q", "--allow-empty", "-m", "Nothing")
    (repository.folder / ".git").rename(tmp_path / "former")
    (repository.folder / ".gitignore").unlink()
    (repository.folder / "syncengine.yaml").rename(tmp_path / "kept")
    repository.folder.rename(outer / "project")
    (tmp_path / "kept").rename(outer / "project" / "syncengine.yaml")
    repository.folder = outer / "project"
    save(repository)
    git(outer, "add", "project/manifests", "project/syncengine.yaml")
    git(outer, "commit", "-qm", "Project")
    assert_applied(repository)


def forge(project: Project, tree: Tree) -> None:
    """Replace the tree in the saved plan."""
    path = project.folder / "saved.plan"
    plan = load(path, SHOWN)
    save_plan(replace(plan, basis=replace(plan.basis, tree=tree)), SHOWN, path)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000], ids=["zero", "long"])
def test_a_forged_name_of_an_input_is_refused(repository: Project, service: Service, name: str) -> None:
    save(repository)
    forge(repository, Tree("0" * 40, {name: "digest"}))
    assert_not_merged(repository, service, "files that are missing or different here")


def test_a_forged_tree_is_no_option_for_git(repository: Project, service: Service, tmp_path: Path) -> None:
    """A tree such as `--output=FILE` must not make `git diff-tree` overwrite the file."""
    save(repository)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    forge(repository, Tree(f"--output={victim}"))
    asked = service.asked()
    done = repository.run("apply", "saved.plan", "--format", "json")
    assert victim.read_text() == "precious"
    assert (done.code, done.codes) == (5, ["plan-inconsistent"])
    assert service.asked() == asked
