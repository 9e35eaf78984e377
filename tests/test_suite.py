"""What the suite promises whoever runs it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.slow import SLOW

INHERITS = "import signal; print(signal.getsignal(signal.SIGINT) is not signal.SIG_IGN)"


def test_a_child_can_be_interrupted() -> None:
    """However the suite was started: a shell has what it runs in the background ignore SIGINT."""
    assert subprocess.check_output([sys.executable, "-c", INHERITS], text=True) == "True\n"


def test_a_test_that_hangs_fails(request: pytest.FixtureRequest) -> None:
    """After ten minutes, wherever it hangs."""
    assert float(request.config.getini("timeout")) == 600
    assert signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL


def test_slow_modules_are_there() -> None:
    """A module that was renamed would be quick by mistake."""
    folder = Path(__file__).parent
    modules = [folder / room / f"test_{name}.py" for room, names in SLOW.items() for name in names.split()]
    assert [str(module) for module in modules if not module.is_file()] == []
