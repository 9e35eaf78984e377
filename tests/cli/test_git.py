"""The checked-out commit: a saved plan is of its tree (docs/reviews.md), and none is older (docs/planning.md 1.7)."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from syncengine.plan.model import Tree
from syncengine.plan.saved import load
from syncengine.plan.saved import save as save_plan
from syncengine.render.documents import SHOWN
from tests.manifest.loading import write
from tests.support.git import commit_all, git

from .program import Ended, Project, tag
from .service import Service

pytestmark = pytest.mark.slow


@pytest.fixture
def repository(project: Project) -> Project:
    """One tag is declared on branch `main`, and a second one on the checked-out branch `topic`."""
    project.begin_git("*.plan", "*.json", "ignored*")
    project.commit(tags=[tag("FIRST-1")])
    git(project.folder, "checkout", "-qb", "topic")
    project.commit(tags=[tag("FIRST-1"), tag("SECOND-1")])
    return project


MERGE = ("merge", "-q", "--no-ff", "-m", "Merge", "topic")
MEANWHILE = ("commit", "-q", "--allow-empty", "-m", "Meanwhile")


def merge(project: Project, *commands: tuple[str, ...], meanwhile: bool = False) -> None:
    """Merge `topic`, after another merge that adds a manifest if there is one `meanwhile`."""
    git(project.folder, "checkout", "-q", "main")
    if meanwhile:
        project.commit("more.yaml", tags=[tag("THIRD-1")])
    for words in commands or [MERGE]:
        git(project.folder, *words)


def succeeds(project: Project, line: str) -> Ended:
    """Run a command that reports no problem."""
    done = project.run(*line.split())
    assert done.code == 0, (done.out, done.err)
    return done


SAVE, APPLY = "plan --out saved.plan", "apply saved.plan"


def assert_not_merged(project: Project, service: Service, said: str = "") -> None:
    """The apply is refused and sends nothing."""
    asked = service.asked()
    done = project.run("apply", "saved.plan", "--format", "json")
    assert (done.code, done.codes[-1]) == (5, "not-merged"), done.out
    assert said in done.document["diagnostics"][-1]["message"], done.out
    assert service.asked() == asked


def test_a_plan_that_was_not_merged_alone_is_refused(repository: Project, service: Service) -> None:
    """The project's tree differs, whichever resources another merge changes. `--allow-unmerged` overrides that."""
    succeeds(repository, SAVE)
    git(repository.folder, "checkout", "-q", "main")
    assert_not_merged(repository, service, "manifests/all.yaml differs)")
    merge(repository, meanwhile=True)
    assert_not_merged(repository, service, "manifests/more.yaml differs)")
    succeeds(repository, f"{APPLY} --allow-unmerged")


MERGES = {
    "a merge": [MEANWHILE, MERGE],
    "a squash": [MEANWHILE, ("merge", "-q", "--squash", "topic"), ("commit", "-qm", "Squash")],
    "a rebase": [MEANWHILE, ("cherry-pick", "topic")],
    "fast forward": [("merge", "-q", "--ff-only", "topic")],
}


@pytest.mark.parametrize("commands", MERGES.values(), ids=MERGES)
def test_the_tree_is_the_same_after_any_way_of_merging(repository: Project, commands: list[tuple[str, ...]]) -> None:
    succeeds(repository, SAVE)
    merge(repository, *commands)
    succeeds(repository, APPLY)


def test_an_uncommitted_change_is_named_and_must_not_change(repository: Project, service: Service) -> None:
    """No tree has it, so the files are compared when the plan is applied: also a deleted one, with which tags go."""
    repository.commit("more.yaml", tags=[tag("THIRD-1")])
    (repository.folder / "manifests" / "more.yaml").unlink()
    repository.wants(tags=[tag("FIRST-1"), tag("UNCOMMITTED-1")])
    repository.settings("policy: {tagRemoval: retire}")
    files = ["manifests/all.yaml", "syncengine.yaml", "manifests/more.yaml"]
    assert f"made from uncommitted files: {', '.join(files)}" in succeeds(repository, SAVE).out
    assert repository.run("show", "saved.plan", "--format", "json").document["basis"]["uncommitted"] == files
    git(repository.folder, "checkout", "-q", "--", ".")
    assert_not_merged(repository, service, "missing or different here: manifests/all.yaml")


def test_an_uncommitted_manifest_may_be_committed_as_it_was(repository: Project, service: Service) -> None:
    """The plan is applied if the tree has no other change. What is no input, as a note or the plan, may come and go."""
    repository.wants(tags=[tag("FIRST-1"), tag("UNCOMMITTED-1")])
    (repository.folder / "notes.txt").write_text("mine\n")
    assert "notes.txt" not in succeeds(repository, SAVE).out
    (repository.folder / "notes.txt").unlink()
    repository.commit("more.yaml", tags=[tag("THIRD-1")])
    assert_not_merged(repository, service)
    (repository.folder / "manifests" / "more.yaml").unlink()
    commit_all(repository.folder)
    succeeds(repository, APPLY)


@pytest.mark.parametrize("name", ["ignored.csv", "data/ignored.csv", "../beyond/rows.csv", "ignored.j2"])
def test_data_that_no_tree_has_is_an_input(repository: Project, service: Service, name: str) -> None:
    """A file that Git ignores is compared, wherever it is in the project, and one outside of the project. With
    `--base`, the plan is of the merged tree: it is refused on the branch, and applied once that is merged."""
    file = repository.folder / name
    is_csv = file.suffix == ".csv"
    repository.settings("dataFolders: [., ..]")
    block = f"generate:\n  - forEach: {{csv: ../{name}}}\n    tags: [{{name: '{{{{ row.name }}}}'}}]\n"
    template = f"tags:\n{{% include '{name}' %}}"
    write(repository.folder, {"manifests/rows.yaml": block} if is_csv else {"manifests/t.yaml.j2": template})
    write(repository.folder, {name: "name\nROW-1\n" if is_csv else "- {name: ROW-1}\n"})
    commit_all(repository.folder)
    git(repository.folder, "checkout", "-q", "main")
    repository.commit("more.yaml", tags=[tag("THIRD-1")])
    git(repository.folder, "checkout", "-q", "topic")
    said = succeeds(repository, f"{SAVE} --base main").out
    assert name in said
    assert "more.yaml" not in said.partition("does not hold")[2].partition(";")[0]
    assert_not_merged(repository, service)
    merge(repository)
    rows = file.read_text()
    file.write_text(rows.replace("ROW-1", "ROW-2"))
    assert_not_merged(repository, service, name)
    file.write_text(rows)
    succeeds(repository, APPLY)


def test_outside_git_nothing_is_compared(project: Project) -> None:
    project.wants(tags=[tag("FIRST-1")])
    assert "does not hold" not in succeeds(project, SAVE).out
    assert project.run("show", "saved.plan", "--format", "json").document["basis"]["tree"] is None
    succeeds(project, APPLY)


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
    succeeds(project, SAVE)
    (outer / "elsewhere.txt").write_text("changed\n")
    git(outer, "add", "project/manifests", "project/syncengine.yaml", "elsewhere.txt")
    git(outer, "commit", "-qm", "Elsewhere")
    succeeds(project, APPLY)


def test_a_forged_tree_is_no_option_for_git(repository: Project, service: Service, tmp_path: Path) -> None:
    """A tree such as `--output=FILE` must not make `git diff-tree` overwrite the file."""
    succeeds(repository, SAVE)
    path = repository.folder / "saved.plan"
    plan = load(path, SHOWN)

    def forge(tree: Tree) -> None:
        save_plan(replace(plan, basis=replace(plan.basis, tree=tree)), SHOWN, path)

    for name in ("a\0b", "x" * 5000):
        forge(Tree("0" * 40, {name: "digest"}))
        assert_not_merged(repository, service, "files that are missing or different here")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    forge(Tree(f"--output={victim}"))
    asked = service.asked()
    done = repository.run("apply", "saved.plan", "--format", "json")
    assert victim.read_text() == "precious"
    assert (done.code, done.codes, service.asked()) == (5, ["plan-inconsistent"], asked)


# --- an older commit than the last applied one is refused, whatever the clone has


NOBODY = 65_533
"""The id of a user who does not run tests."""


@pytest.fixture
def merged(project: Project) -> Project:
    """Three commits, the last of which reverts the second."""
    project.begin_git("*.plan", ".syncengine/")
    for tags in ([tag("FIRST-1")], [tag("FIRST-1"), tag("SECOND-1")], [tag("FIRST-1")]):
        project.commit(tags=tags)
    return project


THIRD = [tag("FIRST-1"), tag("THIRD-1")]


def in_another_clone(project: Project, revision: str, *arguments: str) -> Ended:
    """Run the program with the project's state in a clone whose history ends at a revision."""
    folder = project.folder.parent / "clone"
    shutil.rmtree(folder, ignore_errors=True)
    id = git(project.folder, "rev-parse", revision)
    git(project.folder.parent, "init", "-q", "-b", "main", str(folder))
    git(folder, "fetch", "-q", str(project.folder), f"{id}:refs/heads/fetched")
    git(folder, "checkout", "-q", "fetched")
    return sharing(project, folder).run(*arguments)


def sharing(project: Project, folder: Path) -> Project:
    """The clone in this folder, with the state of the project."""
    state = f"sqlite:///{Path(project.loaded().state).resolve()}"
    return Project(folder, project.url, {**project.environ, "SYNCENGINE_STATE": state})


def apply(project: Project, *words: str) -> Ended:
    done = project.apply_unapproved(*words)
    assert done.code == 0, done.out
    return done


def assert_older(project: Project, *revisions: str) -> None:
    """An apply of each of these revisions is refused in a clone without the newer ones."""
    for revision in revisions:
        refused = in_another_clone(project, revision, "apply", "-y", "--format", "json")
        assert (refused.code, refused.codes) == (5, ["older-commit"])


@pytest.mark.parametrize("applied_before", ["HEAD", "HEAD~2"])
def test_an_older_commit_is_refused_in_another_clone(merged: Project, service: Service, applied_before: str) -> None:
    """A waiting pipeline may have been cloned before the newer commit. An apply without changes counts as well."""
    git(merged.folder, "checkout", "-q", applied_before)
    apply(merged)
    git(merged.folder, "checkout", "-q", "main")
    apply(merged)
    asked = service.asked()
    older, newer = (git(merged.folder, "rev-parse", name)[:12] for name in ("main~1", "main"))
    planned = in_another_clone(merged, "main~1", "plan", "--format", "json")
    assert planned.codes == ["older-commit"]
    assert (older in planned.out, newer in planned.out) == (True, True)
    assert_older(merged, "main~1")
    assert service.asked() == asked
    assert in_another_clone(merged, "main~1", "apply", "-y", "--allow-older").code == 0
    assert in_another_clone(merged, "main", "apply", "-y").code == 0


def test_a_saved_plan_is_recorded_with_the_commit_that_merged_it(merged: Project, service: Service) -> None:
    """The run records the checked-out commit, not that of the branch, which a squash leaves out of the history. A saved
    plan that was killed is applied again."""
    git(merged.folder, "checkout", "-qb", "topic")
    merged.commit(tags=THIRD)
    succeeds(merged, SAVE)
    git(merged.folder, "checkout", "-q", "main")
    git(merged.folder, *MEANWHILE)
    git(merged.folder, "merge", "-q", "--squash", "topic")
    git(merged.folder, "commit", "-qm", "Squash")
    merged.kill_during(service, "upsertTags", "apply", "saved.plan")
    succeeds(merged, APPLY)
    (last, *_) = merged.runs()
    assert last["commit"] == git(merged.folder, "rev-parse", "HEAD")
    assert_older(merged, "main~1", "main~2")
    assert in_another_clone(merged, "main", "apply", "-y").code == 0


def test_a_saved_plan_of_a_branch_does_not_make_its_base_older(merged: Project) -> None:
    apply(merged)
    merged.commit(tags=THIRD)
    git(merged.folder, "checkout", "-qb", "topic")
    git(merged.folder, *MEANWHILE)
    succeeds(merged, SAVE)
    git(merged.folder, "checkout", "-q", "main")
    succeeds(merged, APPLY)
    assert apply(merged).codes == []


def test_a_long_branch_that_is_merged_hides_no_older_commit(merged: Project) -> None:
    """An older commit is refused even after a merge of 251 commits with later dates."""
    before = git(merged.folder, "rev-parse", "main")
    entry = "commit refs/heads/topic\ncommitter a <a@example.com> {date} +0000\ndata 0\n{parent}\n"
    parents = [f"from {before}\n", *([""] * 250)]
    lines = (entry.format(date=4_000_000_000 + number, parent=parent) for number, parent in enumerate(parents))
    words = ["git", "-C", str(merged.folder), "fast-import", "--quiet"]
    subprocess.run(words, input="".join(lines), text=True, check=True)
    git(merged.folder, "merge", "-q", "--no-ff", "-m", "Merge", "topic")
    apply(merged)
    assert_older(merged, before)


def test_a_shallow_clone_forgets_no_older_commit(merged: Project) -> None:
    apply(merged)
    for depth, words in ((1, ["--reassert"]), (2, [])):
        folder = merged.folder.parent / f"shallow-{depth}"
        git(merged.folder.parent, "clone", "-q", f"--depth={depth}", f"file://{merged.folder}", str(folder))
        apply(sharing(merged, folder), *words)
        merged.commit(tags=THIRD)
    assert_older(merged, "main~3")


def test_an_imported_state_refuses_older_commits(merged: Project, tmp_path: Path) -> None:
    """Importing an earlier export afterwards does not change this."""
    exports = [str(tmp_path / name) for name in ("before.jsonl", "export.jsonl")]
    for revision, export in zip(("main~1", "main"), exports, strict=True):
        git(merged.folder, "checkout", "-q", revision)
        assert merged.apply().code == 0
        assert merged.run("state", "export", "-o", export).code == 0
    merged.environ["SYNCENGINE_STATE"] = str(tmp_path / "elsewhere.db")
    for export in reversed(exports):
        assert merged.run("state", "import", "-y", export).code == 0
        assert_older(merged, "main~1")
    apply(merged)


@pytest.mark.parametrize("damage", ["[" * 100_000, "[1]", "{", '"text"'], ids=["deep", "number", "broken", "text"])
def test_damaged_ancestors_in_the_state_are_an_error(merged: Project, damage: str) -> None:
    apply(merged)
    with closing(sqlite3.connect(merged.loaded().state)) as state, state:
        state.execute("UPDATE state_facts SET ancestors = ?", (damage,))
    for command in (["plan"], ["apply", "-y"]):
        refused = merged.run(*command, "--format", "json")
        assert (refused.code, refused.codes) == (1, ["state-damaged"])


def test_an_unrelated_commit_is_applied_with_a_warning(merged: Project) -> None:
    """After a forced push neither state nor clone show which commit is older."""
    apply(merged)
    git(merged.folder, "checkout", "-q", "--orphan", "other")
    merged.commit(tags=THIRD)
    done = in_another_clone(merged, "other", "apply", "-y", "--format", "json")
    assert (done.code, done.codes) == (0, ["unknown-ancestry"])


def test_a_checkout_that_git_cannot_read_gives_a_warning(merged: Project, service: Service, tmp_path: Path) -> None:
    """Plan and apply go on with a warning, but a saved plan counts as not merged. A state in the checkout is refused:
    it may be committed, where the author of a change could edit it."""
    inside = sharing(merged, merged.folder)
    apply(merged)
    merged.environ["SYNCENGINE_STATE"] = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    apply(merged)
    merged.commit(tags=THIRD)
    succeeds(merged, SAVE)
    for setting in (("core.repositoryFormatVersion", "1"), ("extensions.ofTheFuture", "true")):
        git(merged.folder, "config", *setting)
    refused = inside.run("plan", "--format", "json")
    assert (refused.codes, "git rm" in refused.out) == (["state-in-git"], False)
    planned = merged.run("plan", "--format", "json")
    assert planned.codes == ["unknown-ancestry"]
    assert "extension" in planned.document["diagnostics"][0]["message"]
    assert_not_merged(merged, service)
    succeeds(merged, f"{APPLY} --allow-unmerged")
    merged.wants(tags=[tag("FIRST-1"), tag("THIRD-1", description="changed")])
    assert apply(merged).codes == ["unknown-ancestry"]


def as_owner(folder: Path, *words: str) -> str:
    """Run Git as if the clone belonged to the current user."""
    return git(folder, "-c", "safe.directory=*", *words)


@pytest.fixture
def foreign(merged: Project) -> Project:
    """A clone that another user owns, except for the `.syncengine` folder."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a clone to another user")
    apply(merged)
    own = merged.folder / ".syncengine"
    for path in (merged.folder, *merged.folder.rglob("*")):
        if not path.is_relative_to(own):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    told = subprocess.run(["git", "-C", str(merged.folder), "status"], capture_output=True, text=True, check=False)
    assert "dubious ownership" in told.stderr
    merged.wants(tags=THIRD)
    return merged


def test_a_clone_of_another_user_is_read_like_any_other(foreign: Project) -> None:
    """Plan, apply of a saved plan and refusal of an older commit work as usual."""
    head = as_owner(foreign.folder, "rev-parse", "HEAD")
    as_owner(foreign.folder, "commit", "-qam", "third")
    for words in (("plan", "--out", "saved.plan"), ("apply", "saved.plan")):
        done = foreign.run(*words, "--format", "json")
        assert (done.code, done.codes) == (0, [])
    as_owner(foreign.folder, "checkout", "-q", head)
    refused = foreign.run("apply", "-y", "--format", "json")
    assert (refused.code, refused.codes) == (5, ["older-commit"])


def test_programs_that_a_clone_of_another_user_names_are_not_run(foreign: Project, tmp_path: Path) -> None:
    """The owner's filters, monitors and hooks; a command that needs them is refused and names `safe.directory`."""
    trap = f"touch {tmp_path / 'run'}; cat"
    for name in ("filter.trap.clean", "filter.trap.smudge", "core.fsmonitor", "diff.external", "core.sshCommand"):
        as_owner(foreign.folder, "config", name, trap)
    (foreign.folder / ".gitattributes").write_text("* filter=trap\n")
    planned = foreign.run("plan", "--out", "saved.plan", "--format", "json")
    assert (planned.code, planned.codes) == (0, ["uncommitted-inputs"])
    refused = foreign.run("plan", "--base", "HEAD")
    assert (refused.code, "dubious ownership" in refused.err, "safe.directory" in refused.err) == (64, True, True)
    assert not (tmp_path / "run").exists()
