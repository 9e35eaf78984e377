"""Unresolved merge conflicts of Git: they are reported as such in every kind of file, and never read as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Project

ROWS = "generate: [{forEach: {FORM}, as: row, tags: [{name: '{{ row.name }}'}]}]\n"
SINK = "postedTime:\n  narrative: {template: note.j2}\n  deliver:\n    - {name: out, jsonl: {path: out.jsonl}}\n"


def merged(ours: str, theirs: str) -> str:
    return f"<<<<<<< HEAD\n{ours}\n=======\n{theirs}\n>>>>>>> feature/x\n"


FILES = {
    "data/m.csv": ("csv: ../data/m.csv", "name\n" + merged("Alpha", "Beta"), 2),
    "data/m.json": ("json: ../data/m.json", merged('[{"name": "Alpha"}]', "[]"), 1),
    "data/m.jsonl": ("jsonl: ../data/m.jsonl", merged('{"name": "Alpha"}', '{"name": "Beta"}'), 1),
    "data/m.yaml": ("yaml: ../data/m.yaml", "# matters\n" + merged("- name: Alpha", "- name: Beta"), 2),
}


@pytest.fixture
def offline(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", "http://127.0.0.1:9")


def write(project: Project, name: str, text: str, encoding: str = "utf-8") -> None:
    path = project.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode(encoding))


@pytest.mark.parametrize("name", FILES)
def test_data_with_a_conflict_is_refused(offline: Project, name: str) -> None:
    """The message has the file and line, and no row of either side is read."""
    form, text, line = FILES[name]
    write(offline, "manifests/a.yaml", ROWS.replace("FORM", form))
    write(offline, name, text)
    done = offline.run("validate", "--format", "json")
    assert (done.code, done.codes) == (8, ["merge-conflict"])
    assert f"{name}:{line}: " in done.out


@pytest.mark.parametrize(
    "mark",
    ["<<<<<<< HEAD", "||||||| 3af01bc", "||||||| ", "=======", ">>>>>>> feature/x", "=======\r", "<" * 16 + " HEAD"],
)
def test_a_single_conflict_mark_in_data_is_refused(offline: Project, mark: str) -> None:
    """A half-resolved conflict leaves one mark. Both `validate` and `adopt` refuse it."""
    write(offline, "manifests/a.yaml", ROWS.replace("FORM", "csv: ../data/m.csv"))
    write(offline, "data/m.csv", f"name\nAlpha\n{mark}\nBeta\n")
    for command in (("validate",), ("adopt", "data/m.csv")):
        done = offline.run(*command)
        told = done.out + done.err
        assert (done.code != 0, "data/m.csv:3:" in told, "mark of a merge conflict" in told) == (True,) * 3, told


@pytest.mark.parametrize("name", ["======", "=======x", "<<<<<<<x", "a =======", "<=>=<=>", "|||"])
def test_a_text_that_resembles_a_conflict_mark_is_a_value(offline: Project, name: str) -> None:
    """A shorter mark, one followed by a letter, or one within a line is ordinary text."""
    write(offline, "manifests/a.yaml", ROWS.replace("FORM", "csv: ../data/m.csv"))
    write(offline, "data/m.csv", f"name\n{name}\n")
    assert offline.run("validate").code == 0


def test_a_conflict_in_data_of_another_encoding_is_refused(offline: Project) -> None:
    """It is found after decoding. One diagnostic names all conflicts of a file."""
    write(offline, "manifests/a.yaml", ROWS.replace("FORM", "csv: ../data/m.csv, encoding: utf-16"))
    write(offline, "data/m.csv", "name\n" + 2 * merged("Alpha", "Beta"), "utf-16")
    done = offline.run("validate", "--format", "json")
    assert (done.code, done.codes) == (8, ["merge-conflict"])
    assert "at line 7" in done.out


@pytest.mark.parametrize("name", ["syncengine.yaml", "manifests/a.yaml.j2", "manifests/a.json", "policies/p.yaml"])
def test_other_files_with_a_conflict_are_refused(offline: Project, name: str) -> None:
    """The project file, text templates, JSON manifests and rules are checked as well."""
    write(offline, "manifests/fine.yaml", "")
    write(offline, name, merged("version: 1", "version: 2"))
    done = offline.run("validate", "--format", "json")
    assert (done.code, done.codes) == (8, ["merge-conflict"])


def test_a_narrative_template_with_a_conflict_is_refused(offline: Project) -> None:
    """Otherwise the marks would be rendered and posted as text."""
    offline.settings(*SINK.splitlines())
    write(offline, "note.j2", merged("{{ tag.name }}", "{{ user.name }}"))
    done = offline.run("time", "preview", "--sample", "--format", "json")
    assert (done.code, done.codes) == (8, ["merge-conflict"])


def test_indented_conflict_marks_are_text(offline: Project) -> None:
    """A block scalar in a manifest may contain them."""
    text = "\n".join(f"      {line}" for line in merged("a", "b").splitlines())
    write(offline, "manifests/a.yaml", f"tags:\n  - name: Alpha one\n    description: |\n{text}\n")
    assert offline.run("validate").code == 0
