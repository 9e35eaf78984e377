"""What Git left unfinished, merge conflicts and pointer files of LFS, is reported as such and never read as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Project

from .loading import block, loop, problems, write

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
