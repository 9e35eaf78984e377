"""The hooks for pre-commit call commands as they are."""

from __future__ import annotations

import re
from pathlib import Path

import click
import yaml

from syncengine.cli.commands import program
from syncengine.manifest.lints import LINTS

REPOSITORY = Path(__file__).parents[2]
HOOKS = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))


def test_every_hook_calls_a_command() -> None:
    """And says what pre-commit must know of it."""
    for hook in HOOKS:
        assert hook.keys() >= {"id", "name", "entry", "language", "files"}
        name, command = hook["entry"].split()
        assert name == "syncengine"
        assert isinstance(program.get_command(click.Context(program), command), click.Command)


def test_hooks_look_at_manifests_only() -> None:
    """Wherever the project is in the repository."""
    validate, fmt = (re.compile(hook["files"]) for hook in HOOKS)
    assert all(validate.search(name) for name in ("syncengine.yaml", "a/manifests/b/c.yaml.j2", "manifests/x.json"))
    assert [bool(fmt.search(name)) for name in ("manifests/a.yml", "manifests/a.json", "ci/a.yml")] == [
        True,
        False,
        False,
    ]


def test_every_warning_stands_in_the_readme() -> None:
    """A code that nobody can find cannot be set."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert [code for code in LINTS if f"| `{code}` |" not in text] == []
