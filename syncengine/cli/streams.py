"""Write to stdout and stderr, escape text that a CI runner would read as a command, and trace requests."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, TextIO

import click

from syncengine.errors import Interrupted, SyncengineError, Usage, as_bug
from syncengine.project.runner import is_on
from syncengine.project.signals import is_interrupt
from syncengine.render.escape import harmless, visible

if TYPE_CHECKING:
    from syncengine.serve.log import QueuedStream
    from syncengine.service.client import Traced

GONE = "the current folder was deleted: change to another one, or name one with `-C DIR`"
ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}
AT_ONCE = 1 << 20
"""The number of letters that are encoded at once: a plan in JSON may have very many."""
RUNNERS = ("GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")
"""Environment variables of runners that read commands in the log of a job."""


def is_read_by_runner() -> bool:
    """Return whether a CI runner may search the output for commands."""
    return any(is_on(os.environ, name) for name in RUNNERS)


def safe(text: str) -> str:
    """Return the text escaped for a CI runner's log, or unchanged outside CI."""
    return harmless(text) if is_read_by_runner() else text


class OutputFailed(SyncengineError):
    """The error of data that stdout did not take."""

    code = "output"


class _Printing:
    """Flags for output on stdout, where a second document would make the first unparsable, and for lost messages."""

    has_begun = False
    has_lost = False


def put(text: str, *, commands: bool = False) -> None:
    """Write whole lines of data to stdout. With `commands`, they are workflow commands and not escaped.

    Raise `OutputFailed` if they cannot be written, or `BrokenPipeError` if their reader has gone away.
    """
    lines = text if commands else safe(text)
    if not lines:
        return
    _Printing.has_begun = True  # set before the write, in case a signal interrupts it
    try:
        for start in range(0, len(lines), AT_ONCE):
            sys.stdout.write(lines[start : start + AT_ONCE])
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard(sys.stdout)
        raise unwritten(error) from None


def unwritten(error: OSError) -> OutputFailed:
    """Return the error of data that could not be written to stdout."""
    why = "stdout is closed" if error.errno == errno.EBADF else error.strerror
    return OutputFailed(f"the output cannot be written: {why}")


def has_printed() -> bool:
    """Return whether stdout has a document already, or a part of one."""
    return _Printing.has_begun


def begin_printing() -> None:
    """Record that nothing was written to stdout yet."""
    _Printing.has_begun = _Printing.has_lost = False


def tell(text: str) -> None:
    """Write whole lines to stderr. Work never stops because nobody can be told of it: `has_lost` returns that later."""
    try:
        sys.stderr.write(safe(text))
        sys.stderr.flush()
    except OSError as error:
        _Printing.has_lost |= error.errno not in (errno.EBADF, errno.EPIPE)  # not if nobody wants to be told
        discard(sys.stderr)


def has_lost() -> bool:
    """Return whether messages were lost, as on a full disk. Who closes stderr or stops reading it wants none."""
    return _Printing.has_lost


def trouble_of(error: BaseException, interrupted: str) -> SyncengineError:
    """Return the error that ended a command in a form that can be shown, without data from unexpected errors.

    `interrupted` is the message of an interrupt.
    """
    if is_interrupt(error):
        error = KeyboardInterrupt()
    match error:
        case SyncengineError():
            return error
        case click.ClickException():  # some have several lines
            return Usage(re.sub(r"\s*\n\s*", " ", error.format_message()))
        case KeyboardInterrupt() | click.Abort():
            return Interrupted(interrupted)
        case MemoryError():
            return SyncengineError("there is not enough memory", code="memory")
        case FileNotFoundError(filename=None):  # of getcwd, before the options are read
            return Usage(GONE)
        case OSError() if error.filename:
            return SyncengineError(f"{error.filename}: {error.strerror}", code="file")
    return SyncengineError(as_bug(error) if isinstance(error, Exception) else type(error).__name__, code="internal")


def is_answered() -> bool:
    """Return whether a person at a terminal can answer questions. Stdin may be closed."""
    return sys.stdin is not None and sys.stdin.isatty()


def standard_input() -> bytes:
    """Return all of stdin. Raise a usage error when it is closed."""
    if sys.stdin is None:
        raise Usage("stdin is closed: name a file instead of -")
    return sys.stdin.buffer.read()


def agreed(question: str) -> bool:
    """Ask a person on stderr, repeatedly until the answer is valid, and return whether it is yes."""
    while True:
        answer = click.prompt(f"{question} [y/N]", default="", show_default=False, err=True)
        if (choice := ANSWERS.get(answer.strip().lower())) is not None:
            return choice
        tell("Please answer y (yes) or n (no).\n")


class Lines:
    """A stream of whole lines, escaped for CI runners."""

    def __init__(self, stream: QueuedStream) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(safe(text))

    def flush(self) -> None:
        self._stream.flush()


def discard(stream: TextIO) -> None:
    """Discard all further output, because its reader, such as `head`, has gone away, or the disk is full."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def trace_requests(take: Callable[[Traced], object]) -> None:
    """Have `take` called with each request of this process. Logs of libraries stay off, since they show headers."""
    import logging

    from syncengine.service.client import TRACE, Traced

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            assert isinstance(record.msg, Traced)
            take(record.msg)

    TRACE.handlers[:] = [Handler()]
    TRACE.setLevel(logging.DEBUG)
    TRACE.propagate = False


def tell_as_text(traced: Traced) -> None:
    tell(f"{visible(f'debug: {traced}')}\n")


def tell_as_json(traced: Traced) -> None:
    from syncengine.document.json_text import encode_json

    tell(encode_json({"level": "debug", "message": str(traced), **asdict(traced)}).decode() + "\n")
