"""Runs many command lines in one process: a JSON list of folders and words on stdin → exit codes and outputs."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout

from syncengine.cli import run


def ended(folder: str, words: list[str]) -> tuple[int, str, str]:
    """Run one command line; `APPROVED` among its words stands for the approval that the plan asks for."""
    os.chdir(folder)
    if "APPROVED" in words:
        plan = json.loads(ended(folder, ["plan", "--format", "json"])[1])
        words = [plan["gate"]["approve"] if word == "APPROVED" else word for word in words]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = run(words)
    return code, *(_text(stream) for stream in (out, err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


if __name__ == "__main__":
    json.dump([ended(folder, words) for folder, words in json.load(sys.stdin)], sys.stdout)
