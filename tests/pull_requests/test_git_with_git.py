"""`plan --base REV --no-state` compares two revisions in Git without any secret (docs/reviews.md).

It is independent of Git's settings: it reads the files, and the base as a checkout would write it.
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.posted_time.receiver import receiving
from tests.support.git import AUTHOR, commit_all
from tests.support.warm import Started

from .clones import PROJECT, Clone, Forge, codes, origins, tags

FROM_CSV = (
    "generate:\n  - forEach: {csv: ../data/m.csv%s}\n    tags: [{name: '{{ row.n }}', description: '{{ row.t }}'}]\n"
)
HIDING: dict[str, Sequence[Sequence[str]]] = {
    "nothing": (),
    "assume-unchanged": [("update-index", "--assume-unchanged", "manifests/tags.yaml")],
    "skip-worktree": [("update-index", "--skip-worktree", "manifests/tags.yaml")],
    "ignored times": [("config", "core.ignoreStat", "true"), ("reset", "-q", "--hard")],
    "a monitor": [
        ("config", "core.fsmonitor", "true #"),
        ("update-index", "--fsmonitor", "--fsmonitor-valid", "manifests/tags.yaml"),
    ],
}


@pytest.fixture
def two(forge: Forge) -> Clone:
    """A clone with the same project on `main` and on `pr`, which is checked out."""
    clone = forge.clone("two")
    clone.git("checkout", "-q", "-b", "main")
    clone.write(".gitignore", ".syncengine/\n*.plan\n")
    clone.commit(settings=PROJECT, tags=tags(Abel="one", Brun="one", Cole="one", Dorn="one"))
    clone.push()
    clone.git("checkout", "-q", "-b", "pr")
    return clone


def compared(clone: Clone, base: str = "main") -> dict[str, str]:
    return origins(clone.plan("--no-state", base=base))


@pytest.mark.parametrize("how", HIDING)
def test_a_change_that_the_index_hides_is_planned(two: Clone, how: str) -> None:
    for words in HIDING[how]:
        two.git(*words)
    path = two.project / "manifests" / "tags.yaml"
    before = path.stat()
    path.write_text(path.read_text().replace("Abel, description: one", "Abel, description: two"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert compared(two) == {"tag/Abel": "pull-request"}
    two.git("branch", "-q", "more", two.git("commit-tree", "-p", "main", "-m", "more", "main^{tree}"))
    assert compared(two, "more") == {"tag/Abel": "pull-request"}
    saved = two.run("plan", "--out", "saved.plan", "--format", "json")
    assert "uncommitted-inputs" in saved.out


SETTINGS = {
    "programs, paths, looks and aliases": """\
[status]\n showUntrackedFiles = no\n relativePaths = false
[diff]\n relative = true\n noprefix = true\n external = false\n orderFile = /none
[core]\n quotePath = true\n fsmonitor = false\n pager = false
[color]\n ui = always
[feature]\n manyFiles = true\n[index]\n version = 4\n sparse = true
[commit]\n gpgSign = true\n[log]\n showSignature = true\n follow = true\n[gpg]\n program = false
[trace2]\n normalTarget = 2\n perfTarget = 2
[alias]\n ls-tree = !false\n add = !false\n[merge]\n renames = false\n default = binary
""",
    "line ends must be safe": "[core]\n autocrlf = input\n safecrlf = true\n",
}


VARIABLES = {"GIT_TRACE": "1", "GIT_EXTERNAL_DIFF": "false", "GIT_INDEX_FILE": "/none", "GIT_DIR": "/none"}
VARIABLES |= {"GIT_ICASE_PATHSPECS": "1", "LC_ALL": "de_DE.UTF-8"}


@pytest.mark.parametrize("text", SETTINGS.values(), ids=SETTINGS)
def test_a_new_manifest_is_in_the_plan_of_a_merge_whatever_the_user_sets(two: Clone, tmp_path: Path, text: str) -> None:
    """An untracked manifest with CRLF lines and an accented name is part of a merge's plan under any settings and
    variables. A repository inside is no part of it."""
    two.git("checkout", "-q", "main")
    two.commit(more=tags(Egan="one"))
    two.git("checkout", "-q", "pr")
    two.git("init", "-q", "vendor")
    (two.project / "manifests" / "né w.yaml").write_bytes(tags(Fenn="one").replace("\n", "\r\n").encode())
    (tmp_path / "settings").write_text(text)
    two.environ |= VARIABLES | {"GIT_CONFIG_GLOBAL": str(tmp_path / "settings")}
    plan = two.plan("--no-state", base="main")
    assert origins(plan) == {"tag/Fenn": "pull-request"}
    assert codes(plan)[0] == "merge-planned"


CONVERSIONS = {
    "an encoding": ("data/*.csv text working-tree-encoding=cp1252", {}, ", encoding: cp1252", "cp1252"),
    "line ends": ("data/*.csv text eol=crlf", {}, "", "utf-8"),
    "the usual line ends": ("data/*.csv text=auto", {"core.autocrlf": "true"}, "", "utf-8"),
    "a filter": (
        "data/*.csv filter=turned",
        {"filter.turned.clean": "tr a-z n-za-m", "filter.turned.smudge": "tr a-z n-za-m"},
        "",
        "utf-8",
    ),
    "a macro": ("[attr]latin text working-tree-encoding=cp1252\ndata/*.csv latin", {}, ", encoding: cp1252", "cp1252"),
}


@pytest.mark.parametrize(("how", "below"), [*((how, "") for how in CONVERSIONS), ("a filter", "projects/one")])
def test_the_base_is_read_as_a_checkout_would_write_it(forge: Forge, how: str, below: str) -> None:
    """Encodings, line ends and filters are applied to the base, so that only the new line of a file is a change."""
    attributes, settings, form, encoding = CONVERSIONS[how]
    clone = forge.clone("converted")
    clone.below = below
    for name, value in settings.items():
        clone.git("config", name, value)
    (clone.folder / ".gitattributes").write_text(attributes.replace("data/", "**/data/") + "\n")
    clone.write("data/m.csv", "")
    clone.commit(settings=PROJECT, all=FROM_CSV % form)
    data = clone.project / "data" / "m.csv"
    data.write_bytes("n,t\nMüller,x\n".encode(encoding))
    clone.commit()
    data.unlink()
    clone.git("checkout", "-q", "--", ".")
    assert compared(clone, "HEAD") == {}
    data.write_bytes(data.read_bytes() + "Ärger,x\n".encode(encoding))
    assert compared(clone, "HEAD") == {"tag/Ärger": "pull-request"}
    clone.commit()
    assert compared(clone, "HEAD~1") == {"tag/Ärger": "pull-request"}
    clone.git("branch", "-q", "more", clone.git("commit-tree", "-p", "HEAD~1", "-m", "more", "HEAD~1^{tree}"))
    assert compared(clone, "more") == {"tag/Ärger": "pull-request"}


@pytest.mark.parametrize("name", ["manifests/more.yaml", "policies/own.yaml"])
def test_files_omitted_by_a_sparse_checkout_are_not_removed(two: Clone, name: str) -> None:
    """A file that a sparse checkout omits is an error, except in a planned merge; unread files may be missing."""
    two.write("policies/own.yaml", "rules: []\n")
    two.write("docs/long.yaml", "- x\n")
    two.commit(more=tags(Egan="one"))
    two.git("sparse-checkout", "set", "--no-cone", "/*", "!/docs", f"!/{name}")
    assert not (two.project / name).exists()
    for command in (("plan",), ("plan", "--base", "HEAD", "--no-state"), ("apply", "-y")):
        refused = two.run(*command)
        assert (refused.code, f"{name}: error[left-out]" in refused.err + refused.out) == (8, True), refused
    two.git("branch", "-q", "ahead", two.git("commit-tree", "-p", "HEAD", "-m", "more", "HEAD^{tree}"))
    assert compared(two, "ahead") == {}
    two.git("sparse-checkout", "set", "--no-cone", "/*", "!/docs")
    assert compared(two, "HEAD") == {}


@pytest.mark.parametrize(
    ("name", "format"), [("a:b", "sha1"), ('"q', "sha1"), ("back\\slash", "sha1"), ("other ids", "sha256")]
)
def test_names_and_ids_of_every_kind_are_compared(tmp_path: Path, name: str, format: str) -> None:
    """A folder with a sign that Git reads in lists of folders, and ids of another length."""
    clone = Clone(tmp_path / name)
    clone.folder.mkdir()
    clone.git("init", "-q", "-b", "main", f"--object-format={format}")
    clone.commit(settings=PROJECT, tags=tags(Abel="one"))
    clone.write("manifests/new.yaml", tags(Fenn="one"))
    assert compared(clone, "HEAD") == {"tag/Fenn": "pull-request"}
    assert "uncommitted-inputs" in clone.run("plan", "--out", "saved.plan", "--format", "json").out


def test_a_file_whose_filter_fails_is_named(two: Clone) -> None:
    two.git("config", "filter.broken.clean", "cat")
    two.git("config", "filter.broken.smudge", "false")
    two.git("config", "filter.broken.required", "true")
    two.write(".gitattributes", "data/m.csv filter=broken\ndata/other.csv text eol=crlf\n")
    two.write("data/m.csv", "n,t\nAbel 2,x\n")
    two.write("data/other.csv", "n\nx\n")
    two.commit(generated=FROM_CSV % "")
    plan = two.plan("--no-state", base="HEAD")
    assert origins(plan) == {}
    (said,) = [each for each in plan["diagnostics"] if each["code"] == "base-incomplete"]
    assert said["file"] == "data/m.csv"


BESIDE = {"beside": "../project-data", "a link to a folder of the repository": "../link", "outside": "../../outside"}


@pytest.mark.parametrize("place", BESIDE.values(), ids=BESIDE)
def test_files_beside_the_project_are_those_of_the_base(forge: Forge, place: str) -> None:
    """Manifests and data beside the project are read from the base, even via a link; what is outside the repository is
    not."""
    clone = forge.clone("beside", below="project")
    (clone.folder / "link").symlink_to("project-data")
    (forge.folder / "outside").mkdir()
    (clone.project / place).resolve().mkdir(exist_ok=True, parents=True)
    clone.write(f"{place}/m.csv", "n,t\nAbel,x\n")
    clone.write("../shared/all.yaml", tags(Dorn="one"))
    settings = f"{PROJECT}manifests: [manifests, ../shared]\ndataFolders: [{place}]\n"
    clone.commit(settings=settings, all=(FROM_CSV % "").replace("../data", f"../{place}"))
    clone.commit(more=tags(Fenn="one"))
    plan = clone.plan("--no-state", base="HEAD~1")
    assert (origins(plan), codes(plan)) == ({"tag/Fenn": "pull-request"}, [])
    clone.git("branch", "-q", "base", clone.git("commit-tree", "-p", "HEAD~1", "-m", "x", "HEAD~1^{tree}"))
    clone.write("../shared/all.yaml", tags(Dorn="two"))
    clone.write(f"{place}/m.csv", "n,t\nAbel,x\nBrun,x\n")
    plan = clone.plan("--no-state", base="base")
    assert set(origins(plan)) == {"tag/Fenn", "tag/Dorn", *(() if "outside" in place else ("tag/Brun",))}
    assert "base-invalid" not in codes(plan)


def test_files_of_a_submodule_are_read_at_the_commit_of_each_side(two: Clone, tmp_path: Path) -> None:
    rows = Clone(tmp_path / "rows")
    rows.write("m.csv", "n,t\nFenn,x\n")
    rows.git("init", "-q", "-b", "main")
    commit_all(rows.folder)
    two.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", str(rows.folder), "data")
    two.commit(generated=FROM_CSV % "")
    assert compared(two, "HEAD") == {}
    assert "uncommitted" not in two.run("plan", "--out", "saved.plan").out
    inner = Clone(two.folder / "data")
    inner.write("m.csv", "n,t\nFenn,x\nGoss,x\n")
    assert compared(two, "HEAD") == {"tag/Goss": "pull-request"}
    assert "uncommitted files: data/m.csv" in two.run("plan", "--out", "saved.plan").out
    inner.git("commit", "-q", "-a", "-m", "two")
    two.commit()
    assert compared(two, "HEAD~1") == {"tag/Goss": "pull-request"}


def test_an_id_keyword_that_a_checkout_expands_is_no_change(two: Clone) -> None:
    two.write(".gitattributes", "data/*.csv ident\n")
    two.write("data/m.csv", "n,t\nAbel 2,$Id$\n")
    two.commit(generated=FROM_CSV % "")
    (two.project / "data" / "m.csv").unlink()
    two.git("checkout", "-q", "data")
    assert "$Id: " in (two.project / "data" / "m.csv").read_text()
    assert compared(two, "HEAD") == {}


def lose_temporary_folder() -> None:
    tempfile.tempdir = "/none"


def test_a_missing_temporary_folder_is_an_error_that_names_tmpdir(two: Clone, tmp_path: Path) -> None:
    words, log = ["plan", "--base", "main", "--no-state"], tmp_path / "log"
    process = Started(words, folder=two.project, environ={**os.environ, **AUTHOR}, log=log, first=lose_temporary_folder)
    assert process.wait(60) == 1
    said = log.read_text()
    assert ("TMPDIR" in said, "internal" in said) == (True, False), said


SECRETS = """version: 1
service: {apiKey: {env: KEY_OF_SERVICE}}
state: {file: secrets/state}
sources:
  pms: {sql: {env: URL_OF_PMS}}
  crm: {http: {url: {env: URL_OF_CRM}, headers: {Authorization: {file: secrets/crm}}}}
policy: {tagRemoval: retire}
"""
FROM_SQL = """generate:
  - forEach: {sql: {source: pms, query: SELECT name FROM matters}}
    tagCategories: [{externalId: '{{ row.name }}', label: x}]
    tags: [{name: '{{ row.name }}'}]
"""
TEMPLATE = "tags:\n{% for row in data(source='crm', path='x') %}\n  - name: {{ row.name }}\n{% endfor %}\n"


@pytest.fixture
def fork(forge: Forge) -> Clone:
    """A project whose settings name secrets, in a clone where none of them exists."""
    clone = forge.clone("fork")
    clone.commit(settings=SECRETS, tags=tags(Abel="one", Brun="one", Cole="one"), live=FROM_SQL)
    clone.write("manifests/all.yaml.j2", TEMPLATE)
    clone.commit()
    clone.push()
    clone.git("checkout", "-q", "-b", "pr")
    return clone


def test_git_is_compared_with_git(fork: Clone) -> None:
    """No state, key or other secret is needed; blocks that read live sources are left out and named."""
    fork.commit(tags=tags(Abel="one", Brun="two", Dorn="one"))
    plan = fork.plan("--no-state")
    assert {c["address"]: (c["action"], c["origin"]) for c in plan["changes"]} == {
        "tag/Brun": ("update", "pull-request"),
        "tag/Cole": ("retire", "pull-request"),
        "tag/Dorn": ("create", "pull-request"),
    }
    left_out = {d["file"]: d["message"] for d in plan["diagnostics"] if d["code"] == "source-left-out"}
    assert "pms" in left_out["manifests/live.yaml"]
    assert "crm" in left_out["manifests/all.yaml.j2"]
    assert not (fork.project / "secrets").exists()
    assert not (fork.project / ".syncengine" / "state.db").exists()


def test_files_of_secrets_are_not_read(fork: Clone) -> None:
    """Secret files are pipes here, so that opening one would block the plan for ever."""
    (fork.project / "secrets").mkdir()
    for name in ("state", "crm"):
        os.mkfifo(fork.project / "secrets" / name)
    fork.environ |= {"KEY_OF_SERVICE": "k", "SYNCENGINE_STATE": "postgresql://nobody@127.0.0.1:1/none"}
    fork.commit(tags=tags(Abel="one", Brun="one", Cole="two"))
    assert compared(fork, "origin/main") == {"tag/Cole": "pull-request"}


def test_resources_that_a_new_live_source_may_make_are_not_removed(fork: Clone) -> None:
    """If a block reads a live source instead of a file, resources from the file count as possibly kept, not removed."""
    fork.write("data/m.csv", "n,t\nEgan matters,x\nFenn matters,x\n")
    fork.merge_unapplied(more=FROM_CSV % "")
    fork.commit(more=FROM_SQL, tags=tags(Abel="one", Brun="two"))
    plan = fork.plan("--no-state")
    assert origins(plan) == {"tag/Brun": "pull-request"}
    said = " ".join(d["message"] for d in plan["diagnostics"] if d["code"] == "source-left-out")
    assert "3 resources are no longer declared in Git" in said


LIVE_BLOCKS = {"gone": "tags: []\n", "rewritten": FROM_SQL.replace("name FROM", "code AS name FROM")}


@pytest.mark.parametrize("text", LIVE_BLOCKS.values(), ids=LIVE_BLOCKS)
def test_a_live_block_that_differs_has_an_unknown_effect(fork: Clone, text: str) -> None:
    """A changed block of a live source is a warning `unknown-effect` at its place, and exit code 2; the same block
    changes nothing."""
    fork.commit()
    assert "This pull request makes no changes." in fork.run("plan", "--base", "origin/main", "--no-state").out
    assert fork.code("--no-state") == 0
    fork.commit(live=text)
    plan = fork.plan("--no-state")
    (unknown,) = [d for d in plan["diagnostics"] if d["code"] == "unknown-effect"]
    assert (unknown["severity"], unknown["file"]) == ("warning", "manifests/live.yaml")
    assert unknown["line"] == (2 if "generate" in text else None)
    shown = fork.run("plan", "--base", "origin/main", "--no-state").out
    assert "makes no changes." not in shown
    assert "effect of 1 file" in shown
    assert fork.code("--no-state") == 2


def test_a_large_removal_needs_an_approval_without_the_state(fork: Clone) -> None:
    """The share of removals is measured against the tags that the base declares. No approvals are shown, since they
    would not match those of the real plan."""
    fork.commit(tags=tags(Abel="one"))
    found = fork.plan("--no-state")["gate"]
    assert (found["trippedBy"], found["approve"]) == (["pull-request"], None)
    assert [unit["approve"] for unit in found["units"]] == ["" for _ in found["units"]] != []
    assert fork.code("--no-state") == 4
    for form in ("text", "markdown", "html"):
        text = fork.run("plan", "--base", "origin/main", "--no-state", "--format", form).out
        assert "only a plan that reads the state shows how to approve" in " ".join(text.split())
        assert "approvals:" not in text
        assert "--approve-deletes" not in text


def test_a_plan_without_the_state_cannot_be_saved(fork: Clone) -> None:
    assert fork.run("plan", "--base", "origin/main", "--no-state", "--out", "p").code == 64
    assert fork.run("plan", "--no-state").code == 64


def test_renames_and_categories_are_compared_as_they_were_applied(fork: Clone) -> None:
    fork.merge_unapplied(
        live="tags: []\n",
        groups="tagCategories: [{externalId: g, label: G}]\ntags: [{name: In g, category: g}, {name: Old one}]\n",
    )
    fork.commit(groups="tags: [{name: New one, previously: [Old one]}]\n")
    found = {change["address"]: change["action"] for change in fork.plan("--no-state")["changes"]}
    assert found == {"category/g": "delete", "tag/In g": "delete", "tag/New one": "create", "tag/Old one": "retire"}


def test_an_equal_source_is_read_once_for_both_sides(clone: Clone) -> None:
    block = "generate:\n  - forEach: {http: {source: crm, path: matters}}\n    tags: [{name: '{{ row.name }}'}]\n"
    settings = PROJECT + "sources: {crm: {http: {url: {env: CRM}}}}\n"
    clone.merge_unapplied(settings=settings, live=block)
    with receiving() as crm:
        crm.answer = lambda got: (200, [{"name": "Egan matters"}])
        crm.headers["Content-Type"] = "application/json"
        clone.environ["CRM"] = crm.url
        clone.commit(live=f"# moved\n{block}", tags=tags(Abel="two"))
        plan = clone.plan()
        assert origins(plan)["tag/Egan matters"] == "waiting"
        assert [got.path for got in crm.got] == ["/matters"]
        clone.commit(live=block.replace("path: matters", "path: matters, query: {open: yes}"))
        crm.got.clear()
        clone.plan()
        assert sorted(got.path for got in crm.got) == ["/matters", "/matters?open=yes"]
