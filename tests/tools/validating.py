"""`validate` as a process, in a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def validate(folder: Path, *arguments: str) -> tuple[int, str]:
    """Its exit code and what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "syncengine", "validate", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout
