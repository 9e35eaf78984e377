"""`schema`: all of them into a folder, or one to stdout."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from syncengine.render.schemas.published import schemas
from tests.support import warm

pytestmark = pytest.mark.slow


def schema(folder: Path, *arguments: str) -> warm.Ended:
    return warm.run(["schema", *arguments], folder=folder, environ=os.environ)


def written(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_all_are_written_where_it_says(tmp_path: Path) -> None:
    """Into the folder that is named, else into the current one, as the help tells."""
    assert (schema(tmp_path, "-o", "there").code, written(tmp_path / "there")) == (0, set(schemas()))
    assert schema(tmp_path).code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"there", *schemas()}
    assert "[default: the current folder]" in schema(tmp_path, "--help").out


def test_one_that_is_named_goes_to_stdout(tmp_path: Path) -> None:
    """By its name or by its file's, and nothing is written."""
    for name in ("manifest", "manifest.schema.json"):
        done = schema(tmp_path, name)
        assert (done.code, done.err) == (0, "")
        assert json.loads(done.out) == schemas()["manifest.schema.json"]
    assert written(tmp_path) == set()


def test_those_that_are_named_are_written(tmp_path: Path) -> None:
    """More than one is no document, so that they are files."""
    assert schema(tmp_path, "plan", "-o", "a").code == 0
    assert schema(tmp_path, "plan", "report").code == 0
    assert written(tmp_path / "a") == {"plan.schema.json"}
    assert {path.name for path in tmp_path.iterdir()} == {"a", "plan.schema.json", "report.schema.json"}


def test_an_unknown_name_is_refused_with_the_nearest(tmp_path: Path) -> None:
    """Exit 64, and nothing is written."""
    done = schema(tmp_path, "manifests")
    assert done.code == 64
    assert "did you mean `manifest`?" in done.err
    assert "choose from manifest, project, policies, plan" in schema(tmp_path, "xyz").err
    assert written(tmp_path) == set()
