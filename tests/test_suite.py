"""How the test suite itself behaves."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

INHERITS = "import signal; print(signal.getsignal(signal.SIGINT) is not signal.SIG_IGN)"


def test_a_child_can_be_interrupted() -> None:
    """A child process handles SIGINT, although a shell makes background jobs ignore it."""
    assert subprocess.check_output([sys.executable, "-c", INHERITS], text=True) == "True\n"


def test_a_test_that_hangs_fails(request: pytest.FixtureRequest) -> None:
    """The time limit is ten minutes."""
    assert float(request.config.getini("timeout")) == 600
    assert signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
