"""The program within this process, with a folder, an environment and standard streams of its own.

As of a process that starts: the streams are files, the filters of warnings and the handlers of signals are the usual
ones, and what the program counts for its process begins anew.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from syncengine.cli import run as run_program
from syncengine.service.client import TRACE
from tests.support.memory import MEMORY

LONG_RUNNING = frozenset({"serve", "sandbox"})
STREAMS = (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY | os.O_CREAT), ("stderr", os.O_WRONLY | os.O_CREAT))
_turn = threading.Lock()


class Ended(NamedTuple):
    """The exit code of a process, negative for a signal, and all that it wrote."""

    code: int
    out: str
    err: str


def may_run(arguments: Sequence[str]) -> bool:
    """Whether nothing tells the difference: no other thread runs it, no loop is running, and it ends by itself."""
    is_free = threading.current_thread() is threading.main_thread() and not _turn.locked()
    return is_free and not _is_in_loop() and LONG_RUNNING.isdisjoint(arguments)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run(arguments: Sequence[str], folder: Path, environ: Mapping[str, str], text: str) -> Ended:
    """Run the program to its end, with `text` on its standard input."""
    with _turn, tempfile.TemporaryDirectory(dir=MEMORY, prefix="syncengine-test-") as files:
        paths = [Path(files, name) for name, _ in STREAMS]
        paths[0].write_text(text, encoding="utf-8")
        words = [str(word) for word in arguments]
        with _surroundings(folder, environ, words), _streams(paths):
            code = _code(words)
        return Ended(code, *(path.read_bytes().decode() for path in paths[1:]))


def _code(arguments: list[str]) -> int:
    try:
        return run_program(arguments)
    except SystemExit as leaving:  # completion of words, by Click
        return int(leaving.code or 0)


@contextmanager
def _streams(paths: Sequence[Path]) -> Iterator[None]:
    """The standard streams, from these files and into them, also for children."""
    with ExitStack() as stack:
        for number, (path, (name, flags)) in enumerate(zip(paths, STREAMS, strict=True)):
            kept, stream = os.dup(number), getattr(sys, name)
            opened = os.open(path, flags, 0o600)
            os.dup2(opened, number)
            os.close(opened)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, number)
            stack.callback(setattr, sys, name, stream)
            own = os.fdopen(number, "r" if number == 0 else "w", 1 if number == 2 else -1, "utf-8", closefd=False)
            if number == 2:
                own.reconfigure(errors="backslashreplace")
            stack.callback(own.close)
            setattr(sys, name, own)
        yield


@contextmanager
def _surroundings(folder: Path, environ: Mapping[str, str], arguments: Sequence[str]) -> Iterator[None]:
    before, cwd, argv = dict(os.environ), Path.cwd(), sys.argv
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    level, log_handlers, propagate = TRACE.level, list(TRACE.handlers), TRACE.propagate
    os.chdir(folder)
    _set_environment(environ)
    sys.argv = ["syncengine", *arguments]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with warnings.catch_warnings():
            warnings.resetwarnings()
            for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
                warnings.simplefilter("ignore", kind)
            yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        TRACE.setLevel(level)
        TRACE.handlers[:], TRACE.propagate = log_handlers, propagate
        sys.argv = argv
        _set_environment(before)
        os.chdir(cwd)


def _set_environment(environ: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
