"""The README's promises: its examples print what it says, and every command and exit code stands in it.

`SYNCENGINE_README=write` writes the outputs of the console blocks anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from syncengine.cli.command_table import COMMANDS
from syncengine.errors import ExitCode
from syncengine.render.registry import DIAGNOSTIC_FORMATS, PLAN_FORMATS, REPORT_FORMATS
from tests.support import warm

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"^```(yaml|console)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (manifests/\S+\.yaml)\n")


def test_the_five_commands_print_what_the_readme_shows(tmp_path: Path) -> None:
    """The manifests of the README, walked through in order, give the outputs that stand below the commands."""
    text = README.read_text(encoding="utf-8")
    walked = BLOCK.sub(lambda block: _walk(block, tmp_path), text)
    if os.environ.get("SYNCENGINE_README") == "write":
        README.write_text(walked, encoding="utf-8")
    assert walked == text


def _walk(block: re.Match[str], folder: Path) -> str:
    """Write a manifest, or run a command and put its output below it."""
    kind, body = block.groups()
    if kind == "yaml":
        if named := FILE.match(body):
            (folder / named[1]).parent.mkdir(exist_ok=True)
            (folder / named[1]).write_text(body, encoding="utf-8")
        return block[0]
    command = body.splitlines()[0]
    return f"```console\n{command}\n{_output(command.removeprefix('$ syncengine ').split(), folder)}```\n"


def _output(arguments: list[str], folder: Path) -> str:
    done = warm.run(arguments, folder=folder, environ={"PATH": os.environ["PATH"], "HOME": str(folder)})
    assert done.code == 0, done.err
    return done.out


def test_there_are_five_commands_with_output() -> None:
    """The README shows five commands with their real output."""
    blocks = [body for kind, body in BLOCK.findall(README.read_text(encoding="utf-8")) if kind == "console"]
    assert len(blocks) == 5
    assert all(len(block.splitlines()) > 1 for block in blocks)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_stands_in_the_readme(command: str) -> None:
    """No command is hidden."""
    assert f"| `syncengine {command}" in README.read_text(encoding="utf-8")


@pytest.mark.parametrize("code", ExitCode, ids=lambda code: code.name)
def test_every_exit_code_stands_in_the_readme(code: ExitCode) -> None:
    """No exit code is a surprise."""
    assert re.search(rf"^\| {code.value} \|", README.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", sorted({*PLAN_FORMATS, *REPORT_FORMATS, *DIAGNOSTIC_FORMATS}))
def test_every_format_stands_in_the_readme(name: str) -> None:
    """A format that nobody can find is of no use."""
    assert name in README.read_text(encoding="utf-8")
