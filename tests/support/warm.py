"""The program without the cost of its start: within this process, or in one forked from one that has imported it.

To import the program costs half a second of processor time, and to fork costs more than many a run: each page that it
touches is copied. `run` stays in this process where nothing tells the difference, with a folder, an environment and
standard streams of its own, the usual filters of warnings and handlers of signals, and new counts for the process.
Where the start is the subject (imports, locales, terminals, signals, pipes), tests start the program themselves.
"""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from syncengine.cli import main
from syncengine.cli import run as run_program
from syncengine.service.client import TRACE
from tests.support.once import MEMORY

REPOSITORY = Path(__file__).parents[2]
READ_AT_START = ("LANG", "LC_", "PYTHON")
"""Variables that the interpreter reads as it starts."""
USUAL = {"LANG": "C.UTF-8", "PYTHONPATH": str(REPOSITORY)}
IMMATERIAL = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
"""Those of them that change nothing of what is read in the end."""

LONG_RUNNING = frozenset({"serve", "sandbox"})
STREAMS = (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY | os.O_CREAT), ("stderr", os.O_WRONLY | os.O_CREAT))
WRITES = os.O_WRONLY | os.O_CREAT | os.O_APPEND

_context = (
    multiprocessing.get_context("forkserver") if "forkserver" in multiprocessing.get_all_start_methods() else None
)
if _context:
    _context.set_forkserver_preload([__name__, "tests.support.imported"])

_turn = threading.Lock()


class Ended(NamedTuple):
    """The exit code of a process, negative for a signal, and all that it wrote."""

    code: int
    out: str
    err: str


def run(
    arguments: Sequence[str], *, folder: Path, environ: Mapping[str, str], text: str = "", seconds: float = 60.0
) -> Ended:
    """Run the program to its end, with `text` on its standard input; TimeoutError after so many `seconds`."""
    read = {name: value for name, value in environ.items() if name.startswith(READ_AT_START) and name not in IMMATERIAL}
    if _context is None or not read.items() <= USUAL.items():
        return _run_anew(arguments, folder, environ, text, seconds)
    if _may_run_here(arguments):
        return _run_here(arguments, folder, environ, text)
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="syncengine-test-") as streams:
        Path(streams, "in").write_text(text, encoding="utf-8")
        files = [Path(streams, name) for name in ("in", "out", "err")]
        process = _context.Process(target=_become, args=(list(arguments), folder, dict(environ), files))
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"syncengine {' '.join(arguments)} took more than {seconds:g} s")
        written = (Path(streams, name) for name in ("out", "err"))
        return Ended(process.exitcode, *(file.read_bytes().decode() if file.exists() else "" for file in written))


class Started:
    """The program as a process that goes on, with the verbs of `subprocess.Popen`."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        folder: Path,
        environ: Mapping[str, str],
        log: Path,
        errors: Path | None = None,
        first: Callable[[], None] | None = None,
    ) -> None:
        """Start it, after `first` in its process. Its streams go to the end of `log`, or errors to `errors`."""
        context: Any = _context or multiprocessing.get_context("spawn")
        self.log, self.errors = log, errors or log
        files = [Path(os.devnull), self.log, self.errors]
        self._process = context.Process(target=_become, args=(list(arguments), folder, dict(environ), files, first))
        self._process.start()

    @property
    def pid(self) -> int:
        pid: int = self._process.pid
        return pid

    def poll(self) -> int | None:
        code: int | None = self._process.exitcode
        return code

    def wait(self, seconds: float | None = None) -> int:
        """Return its exit code once it has ended; TimeoutError after so many `seconds`."""
        self._process.join(seconds)
        code = self.poll()
        if code is None:
            raise TimeoutError(f"the process has not ended within {seconds:g} s")
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Return what it wrote to its streams, once it has ended; TimeoutError after so many seconds."""
        self.wait(timeout)
        return self.log.read_text("utf-8"), self.errors.read_text("utf-8")

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


class Worker(NamedTuple):
    """A process that runs a function, and all that it writes to its standard output."""

    stdout: TextIO
    kill: Callable[[], None]
    """SIGKILL."""
    stop: Callable[[], None]
    """SIGTERM."""
    is_alive: Callable[[], bool]


@contextmanager
def working(function: Callable[..., None], *arguments: Any) -> Iterator[Worker]:
    """Run a function of a module in a process of its own; at the end, wait until it has ended."""
    context: Any = _context or multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(writer, function, arguments))
    process.start()
    writer.close()
    with reader, os.fdopen(reader.fileno(), encoding="utf-8", closefd=False) as stdout:
        yield Worker(stdout, process.kill, process.terminate, process.is_alive)
        process.join()


def _work(writer: Any, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    os.dup2(writer.fileno(), 1)
    writer.close()
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    function(*arguments)
    sys.stdout.flush()


def _run_anew(arguments: Sequence[str], folder: Path, environ: Mapping[str, str], text: str, seconds: float) -> Ended:
    command = [sys.executable, "-m", "syncengine", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environ, input=text.encode(), capture_output=True, timeout=seconds, check=False
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def _become(
    arguments: list[str],
    folder: Path,
    environ: dict[str, str],
    streams: list[Path],
    first: Callable[[], None] | None = None,
) -> None:
    """Be the program, as the interpreter starts it where its streams are these files."""
    for number, (file, flags) in enumerate(zip(streams, (os.O_RDONLY, WRITES, WRITES), strict=True)):
        handle = os.open(file, flags, 0o600)
        os.dup2(handle, number)
        os.close(handle)
    sys.stdin = os.fdopen(0, "r", encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    sys.argv = ["syncengine", *arguments]
    if first is not None:
        first()
    main(arguments)


# --- in this process


def _may_run_here(arguments: Sequence[str]) -> bool:
    """Whether nothing tells the difference: no other thread runs it, no loop is running, and it ends by itself."""
    is_free = threading.current_thread() is threading.main_thread() and not _turn.locked()
    return is_free and not _is_in_loop() and LONG_RUNNING.isdisjoint(arguments)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_here(arguments: Sequence[str], folder: Path, environ: Mapping[str, str], text: str) -> Ended:
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
