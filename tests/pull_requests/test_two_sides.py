"""`plan --base` tells changes of the pull request from those that are merged but not yet applied (docs/reviews.md)."""

import hashlib
import json
from pathlib import Path

import pytest

from .clones import PROJECT, Clone, Forge, codes, origins, tags

pytestmark = pytest.mark.slow

BLOCK = "generate:\n  - forEach: {csv: ../data/m.csv}\n    tags: [{name: '{{ row.n }}'}]\n"
FIRST = {"Abel": "one", "Brun": "one", "Cole": "one", "Dorn": "one", "Egan": "one"}


def waits(clone: Clone) -> dict[str, str]:
    """The reason of each waiting change, by its address."""
    return {change["address"]: change["waits"] for change in clone.plan()["changes"] if change["origin"] == "waiting"}


@pytest.fixture
def beside(clone: Clone) -> Clone:
    """A pull request that changes one tag, beside another change that is merged and not applied."""
    clone.merge_unapplied(tags=tags(**FIRST | {"Brun": "two"}))
    clone.commit(tags=tags(**FIRST | {"Brun": "two", "Cole": "two"}))
    return clone


def test_changes_name_their_origin(beside: Clone) -> None:
    """A waiting change has the last apply's run, commit and time as its reason. A saved plan keeps its sides."""
    applied = beside.git("rev-parse", "--short=12", "origin/main~1")
    plan = beside.plan("--out", "p.json")
    assert origins(plan) == {"tag/Brun": "waiting", "tag/Cole": "pull-request"}
    assert plan["base"] == {"ref": "origin/main", "commit": beside.git("rev-parse", "origin/main")}
    assert (plan["summary"]["pullRequest"], plan["summary"]["waiting"]) == (1, 1)
    reason = plan["changes"][0]["waits"]
    assert reason.startswith("merged but not yet applied: the last apply was run ")
    assert f"commit {applied}" in reason
    assert " UTC" in reason
    assert origins(json.loads(beside.run("show", "p.json", "--format", "json").out)) == origins(plan)
    beside.apply("p.json")
    assert beside.plan()["changes"] == []


def test_a_change_of_both_sides_is_the_pull_requests_and_the_exit_code_counts_these(beside: Clone) -> None:
    """It is 0 if all changes are waiting."""
    assert beside.code() == 2
    beside.commit(tags=tags(**FIRST | {"Brun": "three"}))
    assert origins(beside.plan()) == {"tag/Brun": "pull-request"}
    beside.commit(tags=tags(**FIRST | {"Brun": "two"}))
    assert beside.code() == 0


def test_waiting_changes_are_folded(beside: Clone) -> None:
    text = beside.run("plan", "--base", "origin/main").out
    assert "Plan: 1 to update" in text
    assert "Brun" not in text
    assert "1 change from outside this pull request: 1 merged but not yet applied; --verbose lists them." in text
    assert "Brun" in beside.run("plan", "--base", "origin/main", "--verbose").out
    for format in ("markdown", "html"):
        text = beside.run("plan", "--base", "origin/main", "--format", format).out
        summary = "1 change from outside this pull request: 1 merged but not yet applied"
        own, waiting = text.split(f"<summary>{summary}</summary>")
        assert "Cole" in own
        assert "Brun" not in own
        assert "Brun" in waiting.partition("</details>")[0]


def test_a_branch_behind_its_base_takes_nothing_back(clone: Clone, forge: Forge) -> None:
    """A branch behind its base is planned as merged into it, with uncommitted files, so that newer tags stay. No file
    in `.git` changes."""
    forge.merge_elsewhere(clone, more=tags(Fenn="one"))
    clone.git("checkout", "-q", "--detach", "origin/main")
    clone.apply()
    clone.git("checkout", "-q", "pr")
    clone.commit(tags=tags(**FIRST | {"Cole": "two"}))
    clone.write("manifests/new.yaml", tags(Gast="one"))

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in (clone.folder / ".git").rglob("*") if path.is_file()}

    before = files()
    plan = clone.plan()
    assert files() == before
    assert origins(plan) == {"tag/Cole": "pull-request", "tag/Gast": "pull-request"}
    assert "merge-planned" in codes(plan)
    assert clone.git("status", "--porcelain") == "?? manifests/new.yaml"


@pytest.mark.parametrize("is_sound", [True, False])
def test_notes_about_the_merge_come_before_errors(clone: Clone, forge: Forge, is_sound: bool) -> None:
    forge.merge_elsewhere(clone, more=tags(Fenn="one") if is_sound else "tags: [{name: Fenn, colour: red}]\n")
    clone.commit(new="tags: [{name: Gast, category: nowhere}]\n")
    done = clone.run("plan", "--base", "origin/main", "--format", "json")
    found = codes(json.loads(done.out))
    assert (done.code, found[0]) == (8, "merge-planned")
    assert ("base-invalid" in found) is not is_sound


def test_a_conflict_in_a_manifest_is_named(clone: Clone, forge: Forge) -> None:
    """It exits with 8, and still writes reports."""
    forge.merge_elsewhere(clone, tags=tags(**FIRST | {"Cole": "three"}))
    clone.commit(tags=tags(**FIRST | {"Cole": "two"}))
    done = clone.run("plan", "--base", "origin/main", "--format", "json", "--report", "markdown=report.txt")
    assert done.code == 8
    (found,) = json.loads(done.out)["diagnostics"]
    assert (found["code"], found["file"]) == ("merge-conflict", "manifests/tags.yaml")
    assert "manifests/tags.yaml" in (clone.project / "report.txt").read_text()


def test_a_conflict_elsewhere_is_a_warning(forge: Forge) -> None:
    """In a project that was never applied, which the reason of a waiting change says."""
    clone = forge.clone("subfolder", below="project")
    readme = clone.folder / "README"
    readme.write_text("one")
    clone.commit(settings=PROJECT, tags=tags(Abel="one", Brun="one"))
    clone.push()
    readme.write_text("three")
    clone.merge_unapplied()
    clone.git("reset", "-q", "--hard", "main~1")
    readme.write_text("two")
    clone.commit(tags=tags(Abel="two", Brun="one"))
    plan = clone.plan()
    assert "merge-conflict" in codes(plan)
    assert origins(plan) == {"tag/Abel": "pull-request", "tag/Brun": "waiting"}
    assert waits(clone)["tag/Brun"] == "merged but not yet applied: nothing has been applied yet"


def test_a_branch_continues_after_its_squash_merge(clone: Clone) -> None:
    clone.commit(tags=tags(**FIRST | {"Brun": "two"}))
    clone.commit(more=tags(Fenn="one"))
    clone.git("checkout", "-q", "main")
    clone.git("merge", "-q", "--squash", "pr")
    clone.commit()
    clone.push()
    clone.git("checkout", "-q", "pr")
    clone.commit(further=tags(Gast="one"))
    assert origins(clone.plan()) == {"tag/Brun": "waiting", "tag/Fenn": "waiting", "tag/Gast": "pull-request"}


def test_a_shallow_clone_is_a_usage_error(clone: Clone, forge: Forge) -> None:
    """Without the revision, or without the merge base of both tips; the message suggests `fetch-depth: 0`."""
    forge.merge_elsewhere(clone, more=tags(Fenn="one"))
    clone.commit(tags=tags(**FIRST | {"Cole": "two"}))
    clone.push("pr")
    for option, revisions in (
        ("--single-branch", ("origin/main", "no-such-branch", "--upload-pack=x")),
        ("--no-single-branch", ("origin/main",)),
    ):
        shallow = forge.clone(f"shallow{option}", "--depth", "1", "--branch", "pr", option)
        for revision in revisions:
            done = shallow.run("plan", f"--base={revision}")
            assert (done.code, "fetch-depth: 0" in done.err) == (64, True), (option, revision, done.err)


def test_outside_git_is_a_usage_error(tmp_path: Path) -> None:
    plain = Clone(tmp_path)
    plain.write("syncengine.yaml", PROJECT)
    done = plain.run("plan", "--base", "main")
    assert (done.code, "repository" in done.err) == (64, True), done.err


def test_moving_between_files_is_no_change(clone: Clone) -> None:
    clone.git("mv", "manifests/tags.yaml", "manifests/matters.yaml")
    first = {name: text for name, text in FIRST.items() if name != "Egan"}
    clone.commit(matters=tags(**first), others=tags(Egan="one"))
    assert origins(clone.plan()) == {}
    assert clone.code() == 0


@pytest.mark.parametrize("more", [(), ("--no-state",)])
def test_the_first_pull_request_of_a_project_is_all_its_own(forge: Forge, more: tuple[str, ...]) -> None:
    clone = forge.clone("clone")
    (clone.folder / "README").write_text("one")
    clone.commit()
    clone.push()
    clone.commit(settings=PROJECT + "  maxDeletes: {tags: 100%}\n", tags=tags(Abel="one"))
    plan = clone.plan(*more)
    assert origins(plan) == {"tag/Abel": "pull-request"}
    assert codes(plan)[0] == "base-without-project"


BROKEN = {
    "manifests/tags.yaml": {"tags": "tags: [{nam: x}]"},
    "syncengine.yaml": {"settings": "version: 2"},
    "policies/all.yaml": {"rules": "rules: [{name: x}]"},
}


@pytest.mark.parametrize("file", BROKEN)
def test_a_base_that_is_invalid_leaves_everything_to_the_pull_request(clone: Clone, file: str) -> None:
    clone.merge_unapplied(**BROKEN[file])
    clone.commit(settings=PROJECT, rules="rules: []\n", tags=tags(**FIRST | {"Cole": "two"}))
    plan = clone.plan()
    assert origins(plan) == {"tag/Cole": "pull-request"}
    (found,) = [found for found in plan["diagnostics"] if found["code"] == "base-invalid"]
    assert f"{file}:1: " in found["message"]


def test_each_side_has_its_own_variables(clone: Clone) -> None:
    block = BLOCK.replace("}}'", "}}', description: '{{ var.a }} {{ var.b }}'")
    clone.write("data/m.csv", "n\nFenn matters\n")
    clone.write("vars.yaml", "b: one\n")
    clone.merge_unapplied(settings=PROJECT + "variables: {a: one}\n", more=block)
    clone.apply("--var-file", "vars.yaml")
    assert origins(clone.plan("--var-file", "vars.yaml")) == {}
    clone.write("vars.yaml", "b: two\n")
    clone.commit()
    assert origins(clone.plan("--var-file", "vars.yaml")) == {"tag/Fenn matters": "pull-request"}
    clone.push()
    clone.git("fetch", "-q")
    assert origins(clone.plan("--var-file", "vars.yaml")) == {"tag/Fenn matters": "waiting"}


def test_a_waiting_change_says_why(clone: Clone) -> None:
    """The last apply left it out, a person edited the state, or an apply of just this commit was refused."""
    clone.merge_unapplied(tags=tags(**FIRST | {"Brun": "two", "Cole": "two"}))
    clone.apply("--target", "tag/Cole")
    (reason,) = waits(clone).values()
    assert reason.startswith("not completed by the last apply, or its data has changed since: the last apply was run ")
    assert clone.run("state", "forget", "tag/Dorn", "-y").code == 0
    assert waits(clone)["tag/Dorn"].startswith("edited by hand in the state: `state forget`")
    clone.merge_unapplied(tags=tags(Abel="one"), more=tags(New="one"))
    assert clone.run("apply", "-y").code == 4
    assert waits(clone)["tag/New"].startswith("refused before: run ")
    clone.merge_unapplied(further=tags(Later="one"))
    assert waits(clone)["tag/Later"].startswith("merged but not yet applied: the last apply was run ")


def test_a_refused_run_of_another_branch_explains_nothing(clone: Clone) -> None:
    clone.git("checkout", "-q", "-b", "stray")
    clone.commit(tags=tags(Abel="one"))
    assert clone.run("apply", "-y").code == 4
    clone.merge_unapplied(tags=tags(**FIRST | {"Brun": "two"}))
    assert waits(clone)["tag/Brun"].startswith("merged but not yet applied: the last apply was run ")


def test_planning_only_differing_files_makes_the_same_plan(clone: Clone) -> None:
    many = {f"part{n}": tags(**{f"Part{n}x{m}": "one" for m in range(400)}) for n in range(6)}
    clone.merge_unapplied(**many)
    clone.apply()
    moved = {f"Part3x{m}": "one" for m in range(1, 400)} | {"Part5x7": "one", "Part3x9": "two", "New": "one"}
    clone.commit(part3=tags(**moved), part5=tags(**{f"Part5x{m}": "one" for m in range(400) if m != 7}))
    expected = {"tag/Part3x0": "retire", "tag/Part3x9": "update", "tag/New": "create"}
    for more in ((), ("--no-state",)):
        plans = [clone.plan(*more, *selection) for selection in ((), (), ("--target", "*"))]
        assert [{c["address"]: c["action"] for c in plan["changes"]} for plan in plans] == [expected] * 3
        assert [set(origins(plan).values()) for plan in plans] == [{"pull-request"}] * 3
        assert len({json.dumps([plan["gate"], plan["summary"]]) for plan in plans}) == 1


def test_links_submodules_and_large_files_are_those_of_the_revision(clone: Clone) -> None:
    """In the base, links point to its own files, Git LFS content is resolved, and a missing submodule is named."""
    content = b"n\nHart matters\n"
    oid = hashlib.sha256(content).hexdigest()
    store = clone.folder / ".git" / "lfs" / "objects" / oid[:2] / oid[2:4]
    store.mkdir(parents=True)
    (store / oid).write_bytes(content)
    clone.write("data/m.csv", f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n")
    clone.write("shared/all.yaml", tags(Fenn="one"))
    (clone.project / "manifests" / "link.yaml").symlink_to("../shared/all.yaml")
    clone.git("checkout", "-q", "main")
    clone.commit(more=BLOCK)
    clone.git("update-index", "--add", "--cacheinfo", f"160000,{clone.git('rev-parse', 'HEAD')},vendor")
    clone.git("commit", "-q", "-m", "a submodule")
    clone.push()
    clone.git("checkout", "-q", "-B", "pr")
    (clone.project / "data/m.csv").write_bytes(content)
    clone.write("shared/all.yaml", tags(Fenn="two"))
    plan = clone.plan()
    assert origins(plan) == {"tag/Fenn": "pull-request", "tag/Hart matters": "waiting"}
    assert [found["file"] for found in plan["diagnostics"] if found["code"] == "base-incomplete"] == ["vendor"]


def test_ignored_files_are_the_same_on_both_sides(clone: Clone) -> None:
    clone.write(".gitignore", "data/\n")
    clone.merge_unapplied(more=BLOCK)
    clone.write("data/m.csv", "n\nFenn matters\n")
    assert origins(clone.plan()) == {"tag/Fenn matters": "waiting"}
