"""Which files are manifests, and how files are reported that are unreadable or that Git left unfinished."""

import os
from pathlib import Path

import pytest

from syncengine.manifest.desired import load
from syncengine.manifest.files import find, where_to_go
from syncengine.project.load import load_project
from tests.cli.program import Project

from .loading import block, loop, problems, write


def names(root: Path, *paths: str) -> list[str]:
    return [file.name for file in find([root / path for path in paths], root).files]


def codes(root: Path) -> list[tuple[str, str | None]]:
    return [(problem.code, problem.file) for problem in find([root / "manifests"], root).problems]


def test_manifests_are_found_at_any_depth_and_in_order(tmp_path: Path) -> None:
    """YAML and JSON files, with suffixes of any case, are read; hidden files and folders and other kinds are not."""
    read = ["A.YAML", "a/b/c.JSON", "a/z.Yml", "b.yaml", "d.YAML.J2"]
    write(tmp_path, {f"m/{name}": "" for name in (*read, "a/.hidden.yaml", ".git/x.yaml", "README.md")})
    found = [f"m/{name}" for name in read]
    assert names(tmp_path, "m") == names(tmp_path, *found) == found


UNREAD = ("a.yaml.txt", "b.yaml.bak", "c.yml~", "d.json.old", "deep/e.ymal", "f.csv", "g.xlsx", "h.YAML.orig")


def test_a_file_that_looks_like_a_manifest_is_reported_as_unread(tmp_path: Path) -> None:
    """Files such as `a.yaml.bak` or an unused CSV are reported. Files that a manifest uses, and documents, are not."""
    others = ("README.md", ".x.yaml.swp", "part.j2", "more.jsonl", "LICENSE.txt")
    write(tmp_path, {f"manifests/{name}": "" for name in (*UNREAD, *others)})
    write(tmp_path, {"manifests/m.yaml": block("csv: used.csv"), "manifests/used.csv": "n\nA-0001\n"})
    desired = load(load_project(folder=tmp_path, environ={}))
    assert {d.code for d in desired.diagnostics} == {"unread-file"}
    assert [d.file for d in desired.diagnostics] == [f"manifests/{name}" for name in UNREAD]
    write(tmp_path, {"syncengine.yaml": "version: 1\npolicy: {diagnostics: {unread-file: error}}\n"})
    assert {d.code for d in problems(tmp_path, {})} == {"unread-file"}


def test_a_data_file_counts_as_used_only_by_its_full_path(tmp_path: Path) -> None:
    """A file of another folder or with a longer name does not count, but the path may be written in any form."""
    write(tmp_path, {f"manifests/{name}": "n\n" for name in ("matters.csv", "people.csv", "deep/used.csv", "own.csv")})
    others = {"data/clio-matters.csv": "n\n", "data/people.csv": "n\n"}
    paths = ("../data/clio-matters.csv", "../data/people.csv", "./deep/../deep/used.csv", "'{{ var.folder }}/own.csv'")
    write(tmp_path, {f"manifests/{n}.yaml": block(f"csv: {path}") for n, path in enumerate(paths)} | others)
    write(tmp_path, {"syncengine.yaml": "version: 1\nvariables: {folder: ../manifests}\n"})
    found = load(load_project(folder=tmp_path, environ={})).diagnostics
    assert [d.file for d in found if d.code == "unread-file"] == ["manifests/matters.csv", "manifests/people.csv"]


def test_a_file_that_is_reached_twice_is_read_once(tmp_path: Path) -> None:
    """It may be reached by two given paths, by a link, or by a link to a folder above."""
    write(tmp_path, {"manifests/a/x.yaml": ""})
    (tmp_path / "manifests/y.yaml").symlink_to(tmp_path / "manifests/a/x.yaml")
    (tmp_path / "manifests/again").symlink_to(tmp_path / "manifests")
    assert names(tmp_path, "manifests", "manifests/a") == ["manifests/a/x.yaml"]


def test_a_link_out_of_the_project_is_refused(tmp_path: Path) -> None:
    """A file or folder outside the project is not part of its review."""
    write(tmp_path, {"outside/x.yaml": "", "p/manifests/y.yaml": ""})
    (tmp_path / "p/manifests/f.yaml").symlink_to(tmp_path / "outside/x.yaml")
    (tmp_path / "p/manifests/g").symlink_to(tmp_path / "outside")
    refused = [("outside-project", f"manifests/{name}") for name in ("f.yaml", "g")]
    assert sorted(codes(tmp_path / "p"), key=str) == refused


def test_an_unreadable_file_is_a_diagnostic(tmp_path: Path) -> None:
    """Broken links and pipes are reported. A folder with the name of a manifest is searched."""
    write(tmp_path, {"manifests/d.yaml/x.yaml": ""})
    (tmp_path / "manifests/broken.yaml").symlink_to("nowhere.yaml")
    os.mkfifo(tmp_path / "manifests/pipe.yaml")
    assert codes(tmp_path) == [("unreadable-file", "manifests/broken.yaml"), ("unreadable-file", "manifests/pipe.yaml")]
    assert names(tmp_path, "manifests") == ["manifests/d.yaml/x.yaml"]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    """Without an error, an empty project would plan to remove everything.

    A project file given by `--config` may lie beside a project that has nothing to do with it and is not suggested.
    """
    write(tmp_path, {"firm/syncengine.yaml": "version: 1\n", "other.yaml": "version: 1\n"})
    project = load_project(folder=tmp_path, config=tmp_path / "other.yaml", environ={})
    (found,) = find(project.manifests, project.files).problems
    assert (found.code, found.file) == ("missing-manifests", "manifests")
    assert found.message == "the file or folder does not exist: create it, or correct the path"


def test_where_there_is_no_project_the_next_step_is_suggested(tmp_path: Path) -> None:
    """It is `init`, or `-C` with the subfolder that has a project."""
    assert where_to_go(tmp_path) == "; there is no project here: run `syncengine init` to create one"
    write(tmp_path, {"firm/syncengine.yaml": "version: 1\n", ".git/syncengine.yaml": "version: 1\n"})
    assert where_to_go(tmp_path).startswith("; for the project in firm, add `-C ")
    write(tmp_path, {"syncengine.yaml": "version: 1\n"})
    assert where_to_go(tmp_path) == ""


SINK = "postedTime:\n  narrative: {template: note.j2}\n  deliver:\n    - {name: out, jsonl: {path: out.jsonl}}\n"


def merged(ours: str, theirs: str) -> str:
    return f"<<<<<<< HEAD\n{ours}\n=======\n{theirs}\n>>>>>>> feature/x\n"


@pytest.fixture
def offline(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", "http://127.0.0.1:9")


CONFLICT = merged("tags: []", "{}")
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d7a2146' * 8}\nsize 12345\n"
SOURCES = {
    "csv": "csv: ../unfinished, columns: [n]",
    "json": "json: ../unfinished",
    "jsonl": "jsonl: ../unfinished",
    "yaml": "yaml: ../unfinished",
}
KINDS: dict[str, dict[str, str | None]] = {
    "a manifest": {"manifests/m.yaml": None},
    "a manifest of JSON": {"manifests/m.json": None},
    "a template": {"manifests/m.yaml.j2": None},
    "an included template": {"manifests/m.yaml.j2": "{% include 'p.j2' %}", "p.j2": None},
    "data of a template": {"manifests/m.yaml.j2": loop("'../p.csv'"), "p.csv": None},
    "the project file": {"syncengine.yaml": None},
    "rules": {"policies/p.yaml": None},
    **{kind: {"manifests/m.yaml": block(source), "unfinished": None} for kind, source in SOURCES.items()},
}
"""The files of a project, of which one is unfinished."""


@pytest.mark.parametrize("kind", KINDS)
def test_an_unfinished_file_is_refused(offline: Project, kind: str) -> None:
    """This holds for each kind of file that is read, with any line ends."""
    for text, words in ((CONFLICT, "merge conflict"), (POINTER, "git lfs pull")):
        for end in ("\n", "\r\n"):
            files = {name: given or text.replace("\n", end) for name, given in KINDS[kind].items()}
            write(offline.folder, {"manifests/a.yaml": "tags: [{name: A}]\n", **files})
            done = offline.run("validate")
            assert (done.code, words in done.err + done.out) == (8, True), done


def test_a_database_that_is_a_pointer_is_refused(tmp_path: Path) -> None:
    files = {"p.db": POINTER, "manifests/m.yaml": block("sql: {file: ../p.db, query: SELECT 1 AS n}")}
    (found,) = problems(tmp_path, files)
    assert "git lfs pull" in found.message


def test_conflicts_in_data_of_another_encoding_are_told_at_once(tmp_path: Path) -> None:
    text = ("name\n" + 2 * merged("Alpha", "Beta")).encode("utf-16")
    (found,) = problems(tmp_path, {"manifests/a.yaml": block("csv: ../m.csv, encoding: utf-16"), "m.csv": text})
    assert (found.code, "at line 7" in found.message) == ("merge-conflict", True)


MARKS = ("<<<<<<< HEAD", "||||||| 3af01bc", "||||||| ", "=======", ">>>>>>> feature/x", "=======\r", "<" * 16 + " HEAD")
TEXTS = ("======", "=======x", "<<<<<<<x", "a =======", "<=>=<=>", "|||")


@pytest.mark.parametrize("mark", [*MARKS, *TEXTS])
def test_a_single_conflict_mark_in_data_is_refused(tmp_path: Path, mark: str) -> None:
    """A half-resolved conflict leaves one mark. A shorter one, one before a letter or within a line is a value."""
    files = {"manifests/a.yaml": block("csv: ../m.csv"), "m.csv": f"n\nAlpha\n{mark}\nBeta\n"}
    found = [d.message for d in problems(tmp_path, files)]
    assert ["m.csv:3:" in each and "mark of a merge conflict" in each for each in found] == [True] * (mark in MARKS)


def test_an_adopted_list_and_a_narrative_template_with_a_conflict_are_refused(offline: Project) -> None:
    """Otherwise the marks would be recorded, or rendered and posted, as text."""
    offline.settings(*SINK.splitlines())
    write(offline.folder, {"m.csv": "name\nAlpha\n=======\nBeta\n", "note.j2": merged("{{ tag.name }}", "{{ x }}")})
    for words in (("adopt", "m.csv"), ("time", "preview", "--sample")):
        done = offline.run(*words, "--format", "json")
        assert (done.code, "merge conflict" in done.out) == (8, True), done


def test_indented_conflict_marks_and_the_words_of_a_pointer_are_text(tmp_path: Path) -> None:
    """A block scalar in a manifest may contain them."""
    text = "\n".join(f"      {line}" for line in [*merged("a", "b").splitlines(), "oid sha256:1"])
    manifest = f"tags:\n  - name: Alpha one\n    description: |\n{text}\n"
    assert problems(tmp_path, {"manifests/a.yaml": manifest}) == ()
