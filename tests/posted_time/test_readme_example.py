"""The README's ten lines of posted time do what is printed below them."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.compile(r"^```(yaml|sh)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def _blocks() -> list[tuple[str, str]]:
    section = README.read_text(encoding="utf-8").partition("## Posted time\n")[2].partition("\n## ")[0]
    return BLOCKS.findall(section)


def _free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


CURL = """#!{python}
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[-1], data=sys.argv[-2].encode(), timeout=20).read().decode())
"""
"""For machines without one: it posts, as the README has it."""


def _tools(folder: Path) -> None:
    """What the README's commands need."""
    folder.mkdir()
    programs = {"syncengine": f'#!/bin/sh\nexec "{sys.executable}" -m syncengine "$@"\n'}
    if shutil.which("curl") is None:
        programs["curl"] = CURL.format(python=sys.executable)
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def test_the_ten_lines_deliver_what_is_printed(tmp_path: Path) -> None:
    """The commands as they stand, on a port that is free on this machine."""
    (_, settings), (_, commands), _ = _blocks()
    assert len(settings.splitlines()) == 10
    port = str(_free_port())
    (tmp_path / "syncengine.yaml").write_text(settings.replace("8765", port))
    _tools(tmp_path / "bin")
    script = commands.replace("syncengine sandbox", f"syncengine sandbox --port {port}").replace("8765", port)
    environ = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = re.search(r"cat \S+ +# (.*)", commands)
    assert printed is not None
    assert (tmp_path / "out/time.jsonl").read_text() == printed[1] + "\n"
    assert printed[1] in done.stdout
    assert "SUCCESS" in done.stdout


def test_the_ledger_of_the_readme_can_be_rehearsed(tmp_path: Path) -> None:
    """Its names, templates and sources agree."""
    _, _, (_, settings) = _blocks()
    (tmp_path / "syncengine.yaml").write_text(f"version: 1\n{settings}")
    command = [sys.executable, "-m", "syncengine", "-C", str(tmp_path), "time", "preview", "--sample"]
    done = subprocess.run(command, cwd=README.parent, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "params.matter = '<matter.id>'" in done.stdout) == (0, True), done.stderr
