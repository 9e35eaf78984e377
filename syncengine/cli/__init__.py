"""argv → engine → render → exit code. Commands are in `SECTIONS`; a module is imported when its command is called."""

from __future__ import annotations

import atexit
import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FrameType

import click

from syncengine import __version__
from syncengine.cli.help import FirstPage, Invocation
from syncengine.cli.options import group_with_globals
from syncengine.cli.streams import (
    OutputFailed,
    begin_printing,
    discard,
    has_lost,
    has_printed,
    put,
    tell,
    trouble_of,
    unwritten,
)
from syncengine.errors import ExitCode, Interrupted, SyncengineError, Usage
from syncengine.project.signals import not_ignored, raise_interrupts
from syncengine.render.escape import harmless, visible

SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Main": {
        "init": ("init.init", "Create a project that can plan and apply against the sandbox."),
        "validate": ("manifests.validate", "Load and check everything, offline."),
        "plan": ("plan.plan", "Show what would change."),
        "apply": ("apply.apply", "Execute a saved plan, or plan and apply."),
    },
    "Review": {
        "show": ("plan.show", "Show a saved or printed plan again."),
        "test": ("manifests.test", "Run the tests of rules and manifests, offline."),
        "publish": ("pull_requests.publish", "Post a plan or report as a comment on a pull request."),
        "reviewed": ("pull_requests.reviewed", "Fetch the reviewed plans of merged pull requests."),
    },
    "Posted time and connector": {
        "serve": ("service.serve", "Run the connector: reconcile, deliver posted time, report health."),
        "time": ("time.time", "Inspect and deliver posted time by hand."),
        "connector": ("service.connector", "Register this connector, or check its key."),
        "health": ("service.health", "Report or clear a health failure by hand."),
    },
    "State": {
        "state": ("state.state", "Inspect, lock and repair the state."),
        "adopt": ("state_writing.adopt", "Record resources that exist on the service; nothing is sent."),
        "drift": ("service.drift", "Compare the tags in posted time with the applied ones."),
    },
    "Tools": {
        "render": ("manifests.render", "Print the manifests with templates and defaults applied."),
        "fmt": ("manifests.fmt", "Format manifests."),
        "schema": ("init.schema", "Print or write the JSON Schemas of all formats."),
        "sandbox": ("service.sandbox", "Run the embedded service in the foreground."),
    },
}


class Program(FirstPage):
    """The program: the group of all commands in `SECTIONS`."""

    sections = SECTIONS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command. From here on, SIGHUP ends any but `serve`, which reads its project file after this."""
        if cmd_name == "serve":
            signal.signal(signal.SIGHUP, lambda number, frame: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGHUP,))
        return super().get_command(ctx, cmd_name)


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
    sys.exit(code)


def _set_signals(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    for number in not_ignored((signal.SIGINT, signal.SIGTERM)):
        signal.signal(number, handler)


def run(arguments: list[str] | None = None) -> int:
    """Run the program with `arguments` (by default `sys.argv`) and return its exit code (docs/commands.md)."""
    raise_interrupts()
    begin_printing()
    sys.stdout = sys.stdout or _Closed()
    sys.stderr = sys.stderr or _Closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a letter that it cannot encode is escaped
            stream.reconfigure(errors="backslashreplace")
    return _exit_code(arguments) or (ExitCode.ERROR if has_lost() else ExitCode.DONE)


def _exit_code(arguments: list[str] | None) -> int:
    invocation = Invocation()
    try:
        return int(program.main(args=arguments, prog_name="syncengine", standalone_mode=False, obj=invocation) or 0)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except BrokenPipeError:
        discard(sys.stdout)
        return ExitCode.ERROR
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EBADF):  # of click's own help
            _tell(invocation, unwritten(error))
            discard(sys.stdout)
            return ExitCode.ERROR
        trouble = trouble_of(error, "interrupted")
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            tell(f"{error.format_message()}\n")
            trouble = Usage("no command was given")
        elif isinstance(trouble, Interrupted):
            _tell(invocation, trouble, "\ninterrupted\n" if sys.stderr.isatty() else "interrupted\n")
        else:
            if trouble.code == "internal":
                if os.environ.get("SYNCENGINE_TRACEBACK"):
                    raise
                cure = "Please report it, with the traceback that SYNCENGINE_TRACEBACK=1 shows."
                trouble = SyncengineError(f"{trouble.message}. {cure}", code="internal")
            if isinstance(error, click.UsageError) and error.ctx is not None and invocation.log_format != "json":
                tell(f"{error.ctx.get_usage()}\nTry `{error.ctx.command_path} --help`.\n\n")
            _tell(invocation, trouble)
        _print_document(invocation, trouble)
        return trouble.exit_code


def _tell(invocation: Invocation, error: SyncengineError, text: str | None = None) -> None:
    """Write `text`, or else the error, to stderr; as a JSON line where the command line asks for that."""
    if invocation.log_format == "json":
        from syncengine.document.json_text import encode_json

        message = error.message.encode(errors="backslashreplace").decode()
        text = encode_json({"level": "error", "code": error.code, "message": message}).decode() + "\n"
    tell(text or f"error[{error.code}]: {harmless(visible(error.message))}\n")


MACHINE_FORMATS = ("json", "github", "gitlab", "sarif", "junit")


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


def _print_document(invocation: Invocation, error: SyncengineError) -> None:
    """Print an error on stdout when `--format` names a machine format (docs/commands.md).

    Print nothing when stdout already has a document: the error is on stderr, too.
    """
    if invocation.format not in MACHINE_FORMATS or has_printed():
        return
    from syncengine.cli.output import COMMANDS
    from syncengine.render import DIAGNOSTIC_FORMATS
    from syncengine.render.documents import report_document, report_json
    from syncengine.render.report import report_of
    from syncengine.render.style import PLAIN

    if invocation.command == "apply" and invocation.format == "json":
        text = report_json(report_document(report_of(error)))
    else:
        text = DIAGNOSTIC_FORMATS[invocation.format](error.diagnostics(), PLAIN)
    with suppress(OutputFailed, BrokenPipeError):  # the error is on stderr
        put(text, commands=invocation.format in COMMANDS)
