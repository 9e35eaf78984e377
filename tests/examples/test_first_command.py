"""The first command of the README, with the example manifests: one screen shows its changes and the next command."""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

MANIFESTS = Path(__file__).parents[2] / "manifests"
COMMAND = [sys.executable, "-m", "syncengine", "apply", "--sandbox", "-y"]
SCREEN = 40
"""The most lines that a new user should see at once."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    return tmp_path


def lines_in_a_pipe(folder: Path) -> list[str]:
    done = subprocess.run(
        COMMAND, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=120, check=True
    )
    return done.stdout.splitlines()


def lines_on_a_terminal(folder: Path, columns: int) -> list[str]:
    """The lines that remain on a terminal of that width, without progress, which is erased again."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environ = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"NO_COLOR": "1"}
    process = subprocess.Popen(COMMAND, cwd=folder, env=environ, stdout=slave, stderr=subprocess.PIPE, encoding="utf-8")
    os.close(slave)
    shown = b""
    try:
        while more := os.read(master, 65536):
            shown += more
    except OSError:  # Linux's answer once the other end is closed
        pass
    finally:
        os.close(master)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return [*shown.decode().splitlines(), *said.splitlines()]


def assert_first_sight(lines: list[str]) -> None:
    assert len(lines) <= SCREEN
    assert [line for line in lines if line.startswith("  + ") and line.count("manifests/") != 1] == []
    assert len([line for line in lines if line.startswith("  + ")]) == 25
    assert any("visibility: PRIVATE" in line for line in lines)
    assert "Applied 25 changes. 3 requests." in lines
    assert "Next: `syncengine sandbox` shows the result in a browser." in lines
    assert "After an edit: `syncengine plan --sandbox`. In a new folder: `syncengine init`." in lines


def test_the_first_apply_prints_one_screen_and_a_repeat_two_lines_and_where_it_is(folder: Path) -> None:
    """A second apply changes nothing and suggests no next command."""
    assert_first_sight(lines_in_a_pipe(folder))
    again = lines_in_a_pipe(folder)
    assert len(again) == 3
    assert "No changes. 25 resources match the recorded state." in again


@pytest.mark.parametrize("columns", [80, 200])
def test_it_does_so_on_a_terminal_of_any_usual_width(folder: Path, columns: int) -> None:
    lines = lines_on_a_terminal(folder, columns)
    assert_first_sight(lines)
    assert max(map(len, lines)) <= columns
