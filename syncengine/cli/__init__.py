"""argv → engine → render → exit code. Commands are in `SECTIONS`; a module is imported when its command is called."""

from __future__ import annotations

import atexit
import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType

import click

from syncengine import __version__
from syncengine.cli.help import FirstPage
from syncengine.cli.options import GONE, group_with_globals
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

SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Main": {
        "init": ("init.init", "Create a project that can plan and apply against the sandbox."),
        "validate": ("manifests.validate", "Load and check everything, offline."),
        "plan": ("plan.plan", "Show what would change."),
        "apply": ("apply.apply", "Execute a saved plan, or plan and apply."),
    },
    "Review": {
        "show": ("show.show", "Show a saved plan again."),
        "test": ("manifests.test", "Run the tests of rules and manifests, offline."),
        "publish": ("pull_requests.publish", "Post a plan or report as a comment on a pull request."),
        "reviewed": ("pull_requests.reviewed", "Fetch the reviewed plans of merged pull requests."),
    },
    "Posted time and connector": {
        "serve": ("serve.serve", "Run the connector: reconcile, deliver posted time, report health."),
        "time": ("time.time", "Inspect and deliver posted time by hand."),
        "connector": ("connector.connector", "Register this connector, or check its key."),
        "health": ("connector.health", "Report or clear a health failure by hand."),
    },
    "State": {
        "state": ("state.state", "Inspect, lock and repair the state."),
        "adopt": ("state_writing.adopt", "Record resources that exist on the service; nothing is sent."),
        "drift": ("drift.drift", "Compare the tags in posted time with the applied ones."),
    },
    "Tools": {
        "render": ("manifests.render", "Print the manifests with templates and defaults applied."),
        "fmt": ("manifests.fmt", "Format manifests."),
        "schema": ("init.schema", "Print or write the JSON Schemas of all formats."),
        "sandbox": ("serve.sandbox", "Run the embedded service in the foreground."),
    },
}


class Program(FirstPage):
    """The program: the group of all commands in `SECTIONS`."""

    sections = SECTIONS


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="syncengine plan\n# show what would change",
)
@click.version_option(__version__, prog_name="syncengine", message="%(prog)s %(version)s")
@group_with_globals
def program() -> None:
    """Keep a time-recording service in step with YAML files in Git.

    Manifests declare tags, categories and activity types; `plan` shows what would change,
    `apply` makes the changes.
    """


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
