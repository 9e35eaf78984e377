"""A new project works at once, and nothing that is there is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from syncengine.document.findings import Findings
from syncengine.layout.laying import laid_out


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-m", "syncengine", *arguments],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "Traceback" not in done.stderr
    return done


def test_a_new_project_validates_plans_and_applies(tmp_path: Path) -> None:
    """Against the sandbox, without a flag, and after that there is nothing left to do."""
    assert run(tmp_path, "init").returncode == 0
    valid = run(tmp_path, "validate", "--format", "json")
    assert (valid.returncode, json.loads(valid.stdout)["diagnostics"]) == (0, [])
    planned = json.loads(run(tmp_path, "plan", "--format", "json").stdout)
    assert planned["summary"]["create"] == 5
    assert run(tmp_path, "apply", "-y").returncode == 0
    assert run(tmp_path, "plan", "--detailed-exitcode").returncode == 0


def test_a_new_project_may_have_a_folder_of_its_own(tmp_path: Path) -> None:
    """DIR is made; JSON tells what was written."""
    done = run(tmp_path, "init", "a/b", "--format", "json")
    written = json.loads(done.stdout)["written"]
    assert "syncengine.yaml" in written
    assert sorted(written) == sorted(p.relative_to(tmp_path / "a/b").as_posix() for p in _files(tmp_path / "a/b"))


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    """Other files stay, .gitignore gets what it lacks, and a project is not begun twice."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/matters.yaml").write_text("tags: []\n")
    (tmp_path / ".gitignore").write_text("mine")
    assert "is kept" in run(tmp_path, "init").stderr
    assert (tmp_path / "manifests/matters.yaml").read_text() == "tags: []\n"
    assert (tmp_path / ".gitignore").read_text() == "mine\n.syncengine/\nplan.json\n"
    again = run(tmp_path, "init", "--format", "json")
    assert (again.returncode, json.loads(again.stdout)["diagnostics"][0]["code"]) == (1, "project-exists")


def test_what_is_written_is_as_we_ask_for(tmp_path: Path) -> None:
    """Manifests in their layout, valid by the schemas that their first lines name; CI files are YAML."""
    run(tmp_path, "init")
    for path in [*(tmp_path / "manifests").iterdir(), tmp_path / "syncengine.yaml"]:
        text = path.read_text(encoding="utf-8")
        schema = (path.parent / text.partition("\n")[0].partition("$schema=")[2]).resolve()
        jsonschema.Draft202012Validator(json.loads(schema.read_text())).validate(yaml.safe_load(text))
        assert path.name == "syncengine.yaml" or laid_out(text.encode(), Findings(path.name)) == text
    for path in (tmp_path / "ci").iterdir():
        assert yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """In words, not in a traceback."""
    (tmp_path / "shut").mkdir(mode=0o500)
    done = run(tmp_path, "init", "shut")
    assert (done.returncode, "cannot be written" in done.stderr) == (1, True)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
