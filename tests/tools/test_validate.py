"""`validate` reports diagnostics of the given PATHS, with paths from the root of the repository."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.manifest.loading import write
from tests.support import warm

BROAD = "tags:\n  - {name: Alpha, keywords: [ab]}\n"
WRONG = "tags:\n  - {nam: Beta}\n"


def validate(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run `validate` and return its exit code and output."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    done = warm.run(["validate", *arguments], folder=folder, environ=environ)
    assert "Traceback" not in done.err
    return done.code, done.out


def found(folder: Path, *arguments: str) -> tuple[int, list[tuple[str, str]]]:
    code, out = validate(folder, "--format", "json", *arguments)
    return code, [(d["file"], d["code"]) for d in json.loads(out)["diagnostics"]]


def test_paths_narrow_errors_as_they_narrow_warnings(tmp_path: Path) -> None:
    """If all errors are outside of PATHS, they are reported, to explain exit code 8."""
    write(tmp_path, {f"manifests/{name}": WRONG for name in ("a.yaml", "b.yaml")})
    write(tmp_path, {f"manifests/{name}": BROAD.replace("Alpha", name) for name in ("c.yaml", "d.yaml")})
    for paths, files in (((), "abcd"), (("manifests/a.yaml",), "a"), (("manifests/c.yaml",), "abc")):
        code, told = found(tmp_path, *paths)
        assert (code, {file for file, _ in told}) == (8, {f"manifests/{name}.yaml" for name in files})


def test_a_path_without_a_manifest_is_a_warning(tmp_path: Path) -> None:
    """A path without a manifest is the warning `nothing-selected`, except the project file, which is always checked."""
    write(tmp_path, {"syncengine.yaml": "version: 1\n", "manifests/c.yaml": BROAD, "data/m.csv": "n\n"})
    assert found(tmp_path, "data/m.csv") == (0, [("data/m.csv", "nothing-selected")])
    assert found(tmp_path, "data") == (0, [("data", "nothing-selected")])
    assert found(tmp_path, "syncengine.yaml") == (0, [])
    assert found(tmp_path, ".") == found(tmp_path, "manifests") == (0, [("manifests/c.yaml", "keyword-too-broad")])
    strict = "version: 1\npolicy: {diagnostics: {nothing-selected: error}}\n"
    write(tmp_path, {"syncengine.yaml": strict})
    assert found(tmp_path, "data") == (8, [("data", "nothing-selected")])


@pytest.mark.parametrize("git", [".git/HEAD", ".git"])
def test_paths_begin_at_the_root_of_the_repository(tmp_path: Path, git: str) -> None:
    """Annotations have paths from the root of the repository, which is a folder with a folder or file `.git`."""
    project = tmp_path / "time" / "project"
    write(project, {"manifests/c.yaml": BROAD})
    write(tmp_path, {git: "gitdir: elsewhere\n"})
    assert "file=time/project/manifests/c.yaml," in validate(project, "--format", "github")[1]
    (issue,) = json.loads(validate(project, "--format", "gitlab")[1])
    assert issue["location"]["path"] == "time/project/manifests/c.yaml"
    assert '"time/project/manifests/c.yaml"' in validate(project, "--format", "sarif")[1]
    assert "time/project" not in validate(project, "--format", "text")[1]
    (project / ".git").mkdir()
    assert "file=manifests/c.yaml," in validate(project, "--format", "github")[1]
