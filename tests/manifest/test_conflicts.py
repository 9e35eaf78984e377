"""Unresolved merge conflicts of Git: they are reported as such in every kind of file, and never read as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Project

from .loading import block, problems, write

SINK = "postedTime:\n  narrative: {template: note.j2}\n  deliver:\n    - {name: out, jsonl: {path: out.jsonl}}\n"


def merged(ours: str, theirs: str) -> str:
    return f"<<<<<<< HEAD\n{ours}\n=======\n{theirs}\n>>>>>>> feature/x\n"


DATA = {
    "csv": ("name\n" + merged("Alpha", "Beta"), 2),
    "json": (merged('[{"name": "Alpha"}]', "[]"), 1),
    "jsonl": (merged('{"name": "Alpha"}', '{"name": "Beta"}'), 1),
    "yaml": ("# matters\n" + merged("- name: Alpha", "- name: Beta"), 2),
}


@pytest.mark.parametrize("kind", DATA)
def test_data_with_a_conflict_is_refused(tmp_path: Path, kind: str) -> None:
    """The message has the file and line, and no row of either side is read."""
    text, line = DATA[kind]
    files = {"manifests/a.yaml": block(f"{kind}: ../m.{kind}"), f"m.{kind}": text}
    (found,) = problems(tmp_path, files)
    assert (found.code, found.message.startswith(f"m.{kind}:{line}: ")) == ("merge-conflict", True)


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


@pytest.mark.parametrize("name", ["syncengine.yaml", "manifests/a.yaml.j2", "manifests/a.json", "policies/p.yaml"])
def test_other_files_with_a_conflict_are_refused(offline: Project, name: str) -> None:
    """The project file, text templates, JSON manifests and rules are checked as well."""
    write(offline.folder, {"manifests/fine.yaml": "", name: merged("version: 1", "version: 2")})
    done = offline.run("validate", "--format", "json")
    assert (done.code, done.codes) == (8, ["merge-conflict"])


@pytest.fixture
def offline(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", "http://127.0.0.1:9")


def test_an_adopted_list_and_a_narrative_template_with_a_conflict_are_refused(offline: Project) -> None:
    """Otherwise the marks would be recorded, or rendered and posted, as text."""
    offline.settings(*SINK.splitlines())
    write(offline.folder, {"m.csv": "name\nAlpha\n=======\nBeta\n", "note.j2": merged("{{ tag.name }}", "{{ x }}")})
    for words in (("adopt", "m.csv"), ("time", "preview", "--sample")):
        done = offline.run(*words, "--format", "json")
        assert (done.code, "merge conflict" in done.out) == (8, True), done


def test_indented_conflict_marks_are_text(tmp_path: Path) -> None:
    """A block scalar in a manifest may contain them."""
    text = "\n".join(f"      {line}" for line in merged("a", "b").splitlines())
    manifest = f"tags:\n  - name: Alpha one\n    description: |\n{text}\n"
    assert problems(tmp_path, {"manifests/a.yaml": manifest}) == ()
