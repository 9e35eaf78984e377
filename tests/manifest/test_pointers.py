"""Pointer files of Git LFS whose content was not fetched: an error that names `git lfs pull`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import warm

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d7a2146' * 8}\nsize 12345\n"
SOURCES = {
    "csv": "csv: ../pointer, columns: [n]",
    "json": "json: ../pointer",
    "jsonl": "jsonl: ../pointer",
    "yaml": "yaml: ../pointer",
    "a database": "sql: {file: ../pointer, query: SELECT 1 AS n}",
}
FILES = {
    "a manifest": {"manifests/m.yaml": POINTER},
    "a manifest of JSON": {"manifests/m.json": POINTER},
    "a template": {"manifests/m.yaml.j2": POINTER},
    "an included template": {"manifests/m.yaml.j2": "{% include 'pointer.j2' %}", "pointer.j2": POINTER},
    "data of a template": {"manifests/m.yaml.j2": "{% for r in data('../p.csv') %}{% endfor %}", "p.csv": POINTER},
    "the project file": {"syncengine.yaml": POINTER},
    "rules": {"policies/p.yaml": POINTER},
    **{
        name: {"manifests/m.yaml": f"generate: [{{forEach: {{{each}}}, tags: [{{name: '{{{{ row.n }}}}'}}]}}]\n"}
        for name, each in SOURCES.items()
    },
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", FILES)
def test_a_pointer_file_is_refused(tmp_path: Path, name: str, end: str) -> None:
    """This holds for each kind of file that is read, with any line ends."""
    files = {"pointer": POINTER, "manifests/a.yaml": "tags: [{name: A}]\n", **FILES[name]}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(text.replace("\n", end if text == POINTER else "\n").encode())
    done = warm.run(["plan", "--sandbox"], folder=tmp_path, environ={})
    assert (done.code, "git lfs pull" in done.err) == (8, True), done


def test_a_text_that_resembles_a_pointer_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "m.yaml").write_text("tags: [{name: A, description: 'oid sha256:1'}]\n")
    assert warm.run(["plan", "--sandbox"], folder=tmp_path, environ={}).code == 0
