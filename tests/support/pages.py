"""Pages that are walked: their files are written, their commands run, and each output stands below its command.

A block of `yaml` whose first line is a comment with a path is that file. A block of `console` has commands behind `$ `.
`SYNCENGINE_DOCS=write` writes the outputs anew.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support import warm

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\S+\.(?:yaml|yml))\b.*\n")
WRITES = os.environ.get("SYNCENGINE_DOCS") == "write"


def blocks(path: Path, kind: str) -> list[str]:
    return [body for found, body in BLOCK.findall(path.read_text(encoding="utf-8")) if found == kind]


class Walk:
    """A reader who does what a page says, beginning in an empty folder."""

    def __init__(
        self, folder: Path, environ: Mapping[str, str] | None = None, ends: Mapping[str, int] | None = None
    ) -> None:
        """`environ` is what the reader has set; `ends` are the exit codes of commands that do not end with 0."""
        self._home = self._folder = folder
        self._environ, self._ends = environ or {}, ends or {}

    def walk(self, text: str) -> str:
        return BLOCK.sub(self._block, text)

    def _block(self, block: re.Match[str]) -> str:
        kind, body = block.groups()
        if kind == "yaml" and (named := FILE.match(body)):
            path = self._folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body, encoding="utf-8")
        if kind != "console":
            return block[0]
        commands = [line for line in body.splitlines() if line.startswith("$ ")]
        return (
            "```console\n" + "".join(f"{line}\n{self._output(line.removeprefix('$ '))}" for line in commands) + "```\n"
        )

    def _output(self, command: str) -> str:
        command, _, filter = command.partition(" | ")
        program, *arguments = shlex.split(command)
        if program == "cd":
            self._folder /= arguments[0]
            return ""
        assert program == "syncengine", f"a page can be walked with cd and syncengine, not with {program}"
        environ = {"PATH": os.environ["PATH"], "HOME": str(self._home), **self._environ}
        done = warm.run(arguments, folder=self._folder, environ=environ)
        assert done.code == self._ends.get(command, 0), f"{command}: {done.err}"
        return _filtered(done.out, filter) if filter else self.shown(done.out)

    def shown(self, output: str) -> str:
        return output


def _filtered(text: str, command: str) -> str:
    done = subprocess.run(shlex.split(command), input=text, capture_output=True, text=True, check=True)
    return done.stdout


def walked(path: Path, walk: Walk) -> tuple[str, str]:
    """A page as it is, and as its commands make it; with `SYNCENGINE_DOCS=write` it is written so."""
    text = path.read_text(encoding="utf-8")
    new = walk.walk(text)
    if WRITES:
        path.write_text(new, encoding="utf-8")
        return new, new
    return text, new
