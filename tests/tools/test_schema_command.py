"""`schema` writes all schemas into a folder, or one to stdout."""

from __future__ import annotations

import json
from pathlib import Path

from syncengine.render.schemas import schemas
from tests.support import warm


def schema(folder: Path, *arguments: str) -> warm.Ended:
    return warm.run(["schema", *arguments], folder=folder, environ={"HOME": str(folder)})


def written(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_schemas_are_written_into_a_folder(tmp_path: Path) -> None:
    """All, or those that are named: into the folder of -o, or by default into the current one."""
    assert (schema(tmp_path, "-o", "there").code, written(tmp_path / "there")) == (0, set(schemas()))
    assert schema(tmp_path, "plan", "-o", "a").code == 0
    assert schema(tmp_path, "plan", "report").code == 0
    assert written(tmp_path / "a") == {"plan.schema.json"}
    assert {path.name for path in tmp_path.iterdir()} == {"there", "a", "plan.schema.json", "report.schema.json"}
    assert schema(tmp_path).code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"there", "a", *schemas()}
    assert "[default: the current folder]" in schema(tmp_path, "--help").out


def test_a_single_schema_goes_to_stdout_and_an_unknown_one_is_refused_with_the_nearest(tmp_path: Path) -> None:
    for name in ("manifest", "manifest.schema.json"):
        done = schema(tmp_path, name)
        assert (done.code, done.err) == (0, "")
        assert json.loads(done.out) == schemas()["manifest.schema.json"]
    done = schema(tmp_path, "manifests")
    assert (done.code, "did you mean `manifest`?" in done.err) == (64, True)
    assert "choose from manifest, project, policies, " in schema(tmp_path, "xyz").err
    assert written(tmp_path) == set()
