"""What the suite promises whoever runs it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

INHERITS = "import signal; print(signal.getsignal(signal.SIGINT) is not signal.SIG_IGN)"


def test_a_child_can_be_interrupted() -> None:
    """However the suite was started: a shell has what it runs in the background ignore SIGINT."""
    assert subprocess.check_output([sys.executable, "-c", INHERITS], text=True) == "True\n"


def test_a_test_that_hangs_fails(request: pytest.FixtureRequest) -> None:
    """After ten minutes, wherever it hangs."""
    assert float(request.config.getini("timeout")) == 600
    assert signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
