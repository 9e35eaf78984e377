"""What stands in a user's repository beside manifests: hooks for pre-commit, schemas, and a folder that Git ignores."""

import json
import re
from pathlib import Path

import click
import yaml

from syncengine.cli import program
from syncengine.project.files import make_folder
from syncengine.render.schemas import schemas
from tests.support import warm
from tests.support.git import git

FILE = Path(__file__).parents[2] / ".pre-commit-hooks.yaml"
HOOKS = {hook["id"]: hook for hook in yaml.safe_load(FILE.read_text(encoding="utf-8"))}


def test_every_hook_calls_a_command() -> None:
    """`validate` runs at every commit, since a deleted manifest or changed data can make other manifests invalid."""
    for hook in HOOKS.values():
        assert hook.keys() >= {"name", "language"}
        name, command = hook["entry"].split()
        assert name == "syncengine"
        assert isinstance(program.get_command(click.Context(program), command), click.Command)
    validate = HOOKS["syncengine-validate"]
    assert (validate["always_run"], validate["pass_filenames"], "files" in validate) == (True, False, False)
    names = ("manifests/a.yml", "firm/manifests/b/c.yaml", "manifests/a.json", "ci/a.yml")
    files = HOOKS["syncengine-fmt"]["files"]
    assert [bool(re.search(files, name)) for name in names] == [True, True, False, False]


def test_git_ignores_a_new_folder_and_an_existing_one_is_left_unchanged(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for name in ("new", "old"):
        folder = tmp_path / name / ".syncengine"
        (folder if name == "old" else folder.parent).mkdir(parents=True)
        make_folder(folder / "sandbox")
        (folder / "sandbox" / "service.db").write_bytes(b"x")
    make_folder(tmp_path / "states" / "team")
    assert git(tmp_path, "status", "--porcelain", "--untracked-files=all") == "?? old/.syncengine/sandbox/service.db"


def schema(folder: Path, *arguments: str) -> warm.Ended:
    return warm.run(["schema", *arguments], folder=folder, environ={"HOME": str(folder)})


def written(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_schemas_are_written_into_a_folder(tmp_path: Path) -> None:
    """All, or those that are named: into the folder of -o, or by default into the current one."""
    assert (schema(tmp_path, "-o", "there").code, written(tmp_path / "there")) == (0, set(schemas()))
    assert schema(tmp_path, "plan", "-o", "a").code == 0
    assert schema(tmp_path, "plan", "report").code == 0
    named = {"a/plan.schema.json", "plan.schema.json", "report.schema.json"}
    assert written(tmp_path) == named | {f"there/{each}" for each in schemas()}
    assert schema(tmp_path).code == 0
    assert written(tmp_path) >= set(schemas())
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
