"""Writing to the two streams: text that a CI runner would read as a command is escaped."""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO

import click

from syncengine.errors import Usage
from syncengine.render.escape import harmless

ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}
RUNNERS = ("GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")
"""Variables of runners that read commands in the log of a job."""


def is_read_by_runner() -> bool:
    """Whether a CI runner may search the output for commands."""
    return any(os.environ.get(name, "").lower() not in ("", "0", "false") for name in RUNNERS)


def safe(text: str) -> str:
    """The text as it may be printed here, or written to a file that a job prints later."""
    return harmless(text) if is_read_by_runner() else text


class _Printing:
    """Whether anything has gone to stdout, since a document that another one follows is no document."""

    has_begun = False


def put(text: str, stream: TextIO | None = None, *, commands: bool = False) -> None:
    """Write whole lines to `stream` (stdout). `commands`: they are workflow commands, whose values are safe."""
    lines = text if commands else safe(text)
    is_data, stream = stream is None, stream or sys.stdout
    if is_data and lines:
        _Printing.has_begun = True  # right before the call, so that no signal comes between the two
    stream.write(lines)
    stream.flush()


def has_printed() -> bool:
    """Whether stdout has a document already, or a part of one."""
    return _Printing.has_begun


def begin_printing() -> None:
    """Begin with a stdout to which nothing has gone."""
    _Printing.has_begun = False


def tell(text: str) -> None:
    """Write whole lines to stderr."""
    put(text, sys.stderr)


def usage_of(error: click.ClickException) -> Usage:
    """A misuse as an error of this program, in one line: choices are listed in several."""
    return Usage(re.sub(r"\s*\n\s*", " ", error.format_message()))


def agreed(question: str) -> bool:
    """Whether a person before a terminal says yes; asked until it is an answer. On stderr, since stdout is for data."""
    while True:
        answer = click.prompt(f"{question} [y/N]", default="", show_default=False, err=True)
        if (choice := ANSWERS.get(answer.strip().lower())) is not None:
            return choice
        tell("Please answer y (yes) or n (no).\n")


class Lines:
    """A stream of whole lines, for a log that is given one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(safe(text))

    def flush(self) -> None:
        self._stream.flush()


def discard_stdout() -> None:
    """Discard the rest of the output: its reader, such as `head`, has gone away."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
