"""The hooks for pre-commit match the program's commands."""

from __future__ import annotations

import re
from pathlib import Path

import click
import yaml

from syncengine.cli import program

REPOSITORY = Path(__file__).parents[2]
HOOKS = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))


def test_every_hook_calls_a_command() -> None:
    for hook in HOOKS:
        assert hook.keys() >= {"id", "name", "entry", "language"}
        name, command = hook["entry"].split()
        assert name == "syncengine"
        assert isinstance(program.get_command(click.Context(program), command), click.Command)


def test_the_check_runs_whatever_is_committed() -> None:
    """`validate` runs at every commit, since a deleted manifest or changed data can make other manifests invalid."""
    (validate,) = (hook for hook in HOOKS if hook["id"] == "syncengine-validate")
    assert (validate["always_run"], validate["pass_filenames"], "files" in validate) == (True, False, False)


def test_the_fmt_hook_matches_manifests() -> None:
    (fmt,) = (re.compile(hook["files"]) for hook in HOOKS if hook["id"] == "syncengine-fmt")
    names = ("manifests/a.yml", "firm/manifests/b/c.yaml", "manifests/a.json", "ci/a.yml")
    assert [bool(fmt.search(name)) for name in names] == [True, True, False, False]
