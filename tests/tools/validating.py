"""A helper that runs `validate` in a folder."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support import warm


def validate(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run `validate` and return its exit code and output."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    done = warm.run(["validate", *arguments], folder=folder, environ=environ)
    assert "Traceback" not in done.err
    return done.code, done.out
