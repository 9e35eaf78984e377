"""argv → engine → render → exit code. One module for each command, imported when the command is called."""

from __future__ import annotations

import atexit
import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType

import click

from syncengine.cli.command_table import program
from syncengine.cli.options import GONE
from syncengine.cli.rejected_words import read_words
from syncengine.cli.streams import (
    OutputFailed,
    begin_printing,
    discard,
    has_lost,
    has_printed,
    put,
    tell,
    unwritten,
    usage_of,
)
from syncengine.document.gc_pause import keep_all
from syncengine.errors import ExitCode, SyncengineError, Usage, as_bug
from syncengine.project.signals import is_interrupt, not_ignored
from syncengine.render.escape import harmless, visible


def main(arguments: list[str] | None = None) -> None:
    """Run the program and exit with its code. No traceback ever reaches a user."""
    code = int(ExitCode.INTERRUPTED)
    try:  # not `suppress`, since another interrupt may be raised when its function begins
        code = run(arguments)
        _set_signals(lambda *_: os._exit(code))  # all output is written; only memory is left to free
    except KeyboardInterrupt:  # another one, while the first is reported
        _set_signals(signal.SIG_IGN)
    atexit.register(_set_signals, signal.SIG_IGN)
    keep_all()  # or garbage collection would scan all imported modules at exit
    sys.exit(code)


def _set_signals(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    for number in not_ignored((signal.SIGINT, signal.SIGTERM)):
        signal.signal(number, handler)


def run(arguments: list[str] | None = None) -> int:
    """Run the program with `arguments` (by default `sys.argv`) and return its exit code (docs/commands.md)."""
    words = sys.argv[1:] if arguments is None else arguments
    for number in not_ignored((signal.SIGTERM,)):
        signal.signal(number, _as_interrupt)
    _prepare_streams()
    return _exit_code(arguments, words) or (ExitCode.ERROR if has_lost() else ExitCode.DONE)


def _exit_code(arguments: list[str] | None, words: Sequence[str]) -> int:
    try:
        return int(program.main(args=arguments, prog_name="syncengine", standalone_mode=False) or 0)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        return _in_machine_format(words, _usage(error, words), ExitCode.USAGE)
    except (KeyboardInterrupt, click.Abort):
        return _interrupted(words)
    except SyncengineError as error:
        _tell_error(words, error)
        return _in_machine_format(words, error, error.exit_code)
    except BrokenPipeError:
        discard(sys.stdout)
        return ExitCode.ERROR
    except MemoryError:
        trouble = SyncengineError("there is not enough memory", code="memory")
        _tell_error(words, trouble)
        return _in_machine_format(words, trouble, ExitCode.ERROR)
    except Exception as error:
        if is_interrupt(error):
            return _interrupted(words)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EBADF):  # of click's own help
            _tell_error(words, unwritten(error))
            discard(sys.stdout)
            return ExitCode.ERROR
        if isinstance(error, FileNotFoundError) and error.filename is None:  # of getcwd, before the options are read
            trouble = Usage(GONE)
            _tell_error(words, trouble)
            return _in_machine_format(words, trouble, ExitCode.USAGE)
        if isinstance(error, OSError) and error.filename:
            trouble = SyncengineError(f"{error.filename}: {error.strerror}", code="file")
            _tell_error(words, trouble)
            return _in_machine_format(words, trouble, ExitCode.ERROR)
        if os.environ.get("SYNCENGINE_TRACEBACK"):
            raise
        trouble = SyncengineError(_unexpected(error), code="internal")
        _tell_error(words, trouble)
        return _in_machine_format(words, trouble, ExitCode.ERROR)


def _interrupted(words: Sequence[str]) -> int:
    """Report an interrupt, and return its exit code."""
    interrupted = SyncengineError("interrupted", code="interrupted")
    text = "\ninterrupted\n" if sys.stderr.isatty() else "interrupted\n"
    _tell(words, interrupted.message, text, interrupted.code)
    return _in_machine_format(words, interrupted, ExitCode.INTERRUPTED)


def _usage(error: click.ClickException, words: Sequence[str]) -> SyncengineError:
    """Print the usage of the command and `error`, and return it as an error of this program."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        tell(f"{error.format_message()}\n")
        return Usage("no command was given")
    if isinstance(error, click.UsageError) and error.ctx is not None and not _logs_json(words):
        tell(f"{error.ctx.get_usage()}\nTry `{error.ctx.command_path} --help`.\n\n")
    usage = usage_of(error)
    _tell_error(words, usage)
    return usage


def _tell_error(words: Sequence[str], error: SyncengineError) -> None:
    _tell(words, error.message, f"error[{error.code}]: {harmless(visible(error.message))}\n", error.code)


def _tell(words: Sequence[str], message: str, text: str, code: str) -> None:
    """Write `text` to stderr, or `code` and `message` as a JSON line where the command line asks for that."""
    if _logs_json(words):
        import orjson

        message = message.encode(errors="backslashreplace").decode()
        text = orjson.dumps({"level": "error", "code": code, "message": message}).decode() + "\n"
    tell(text)


def _logs_json(words: Sequence[str]) -> bool:
    return read_words(program, words).last("--log-format") == "json"


MACHINE_FORMATS = ("json", "github", "gitlab", "sarif")


def _prepare_streams() -> None:
    """Replace closed streams, and make streams escape characters that they cannot encode."""
    begin_printing()
    sys.stdout = sys.stdout or _Closed()
    sys.stderr = sys.stderr or _Closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Closed(io.TextIOBase):
    """A stream in the place of a closed one: it takes no text.

    It occupies the descriptor, which a state or a report would get otherwise, by a folder: nothing can be written to it
    by the name /dev/stdout, either.
    """

    def __init__(self) -> None:
        self._descriptor = os.open("/", os.O_RDONLY)

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: str, /) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def _in_machine_format(words: Sequence[str], error: SyncengineError, exit_code: ExitCode) -> ExitCode:
    """Print an error on stdout when `--format` names a machine format, and return `exit_code` (docs/commands.md).

    Print nothing when stdout already has a document: the error is on stderr, too.
    """
    line = read_words(program, words)
    format = line.last("--format")
    if format in MACHINE_FORMATS and not has_printed():
        from syncengine.cli.output import COMMANDS
        from syncengine.render.json import report_json
        from syncengine.render.registry import DIAGNOSTIC_FORMATS
        from syncengine.render.report import report_of
        from syncengine.render.style import PLAIN

        is_report = line.others[:1] == ["apply"] and format == "json"
        text = report_json(report_of(error)) if is_report else DIAGNOSTIC_FORMATS[format](error.diagnostics(), PLAIN)
        with suppress(OutputFailed, BrokenPipeError):  # the error is on stderr
            put(text, commands=format in COMMANDS)
    return exit_code


def _unexpected(error: Exception) -> str:
    return f"{as_bug(error)}. Please report it, with the traceback that SYNCENGINE_TRACEBACK=1 shows."


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
