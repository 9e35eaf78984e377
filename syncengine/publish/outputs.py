"""Write outputs to the file from which CI passes them to later steps and jobs. A value is always one line."""

from __future__ import annotations

import re
from pathlib import Path

from syncengine.errors import SyncengineError
from syncengine.project.atomic_write import write_whole
from syncengine.publish.documents import Outputs

SAFE = re.compile(r"[0-9A-Za-z._-]*")


def write_dotenv(outputs: Outputs, path: Path) -> None:
    """Write a file of `name=value` lines, from which GitLab reads variables for later jobs."""
    try:
        write_whole(path, [_lines(outputs).encode()])
    except OSError as error:
        raise _unwritable(path, "the outputs", error) from None


def append_outputs(outputs: Outputs, path: Path) -> None:
    """Append the outputs to the file of a step's outputs, which other programs may write, too."""
    append(path, _lines(outputs), "the outputs")


def append(path: Path, text: str, purpose: str) -> None:
    """Append text to a file that CI reads. Raise `SyncengineError` when that fails."""
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise _unwritable(path, purpose, error) from None


def _lines(outputs: Outputs) -> str:
    assert all(SAFE.fullmatch(value) for value in outputs.values())
    return "".join(f"{name}={value}\n" for name, value in outputs.items())


def _unwritable(path: Path, purpose: str, error: OSError) -> SyncengineError:
    return SyncengineError(f"{path}: {purpose} cannot be written: {error.strerror}", code="report-file")
