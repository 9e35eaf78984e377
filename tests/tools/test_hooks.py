"""The hooks for pre-commit call commands as they are."""

from __future__ import annotations

import re
from pathlib import Path

import click
import yaml

from syncengine.cli import program
from syncengine.manifest.lints import LINTS

REPOSITORY = Path(__file__).parents[2]
HOOKS = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))


def test_every_hook_calls_a_command() -> None:
    """And says what pre-commit must know of it."""
    for hook in HOOKS:
        assert hook.keys() >= {"id", "name", "entry", "language"}
        name, command = hook["entry"].split()
        assert name == "syncengine"
        assert isinstance(program.get_command(click.Context(program), command), click.Command)


def test_the_check_runs_whatever_is_committed() -> None:
    """A manifest that goes, or data that changes, can make the others wrong; pre-commit counts neither."""
    (validate,) = (hook for hook in HOOKS if hook["id"] == "syncengine-validate")
    assert (validate["always_run"], validate["pass_filenames"], "files" in validate) == (True, False, False)


def test_the_layout_is_a_matter_of_manifests() -> None:
    """Wherever the project is in the repository."""
    (fmt,) = (re.compile(hook["files"]) for hook in HOOKS if hook["id"] == "syncengine-fmt")
    names = ("manifests/a.yml", "firm/manifests/b/c.yaml", "manifests/a.json", "ci/a.yml")
    assert [bool(fmt.search(name)) for name in names] == [True, True, False, False]


def test_every_warning_is_described() -> None:
    """A code that nobody can find cannot be set."""
    text = (REPOSITORY / "docs/commands.md").read_text(encoding="utf-8")
    assert [code for code in LINTS if f"| `{code}` |" not in text] == []
