"""argv → engine → render → exit code. One small module a command, each imported when it is called."""

from __future__ import annotations

import atexit
import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import TextIO

import click

from syncengine.cli.command_table import program
from syncengine.cli.streams import begin_printing, discard_stdout, has_printed, put, tell, usage_of
from syncengine.document.gc_pause import keep_all
from syncengine.errors import ExitCode, SyncengineError, Usage, as_bug
from syncengine.render.escape import harmless, visible


def main(arguments: list[str] | None = None) -> None:
    """Run the program and leave the process with its exit code; no traceback ever reaches a user."""
    code = run(arguments)
    _set_signals(lambda *_: os._exit(code))  # all is said; what is left is to free the memory
    atexit.register(_set_signals, signal.SIG_IGN)
    keep_all()  # or the process would look through all that it has imported before it ends
    sys.exit(code)


def _set_signals(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def run(arguments: list[str] | None = None) -> int:
    """Run the program; its exit code (docs/commands.md)."""
    signal.signal(signal.SIGTERM, _as_interrupt)
    _prepare_streams()
    try:
        return int(program.main(args=arguments, prog_name="syncengine", standalone_mode=False) or 0)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        return _in_machine_format(arguments, _usage(error), ExitCode.USAGE)
    except (KeyboardInterrupt, click.Abort):
        tell("\ninterrupted\n" if sys.stderr.isatty() else "interrupted\n")
        return _in_machine_format(arguments, SyncengineError("interrupted", code="interrupted"), ExitCode.INTERRUPTED)
    except SyncengineError as error:
        tell(_line(error))
        return _in_machine_format(arguments, error, error.exit_code)
    except BrokenPipeError:
        discard_stdout()
        return ExitCode.ERROR
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO):
            tell(f"error[output]: the output cannot be written: {error.strerror}\n")
            discard_stdout()
            return ExitCode.ERROR
        if isinstance(error, OSError) and error.filename:
            trouble = SyncengineError(f"{error.filename}: {error.strerror}", code="file")
            tell(_line(trouble))
            return _in_machine_format(arguments, trouble, ExitCode.ERROR)
        if os.environ.get("SYNCENGINE_TRACEBACK"):
            raise
        trouble = SyncengineError(_unexpected(error), code="internal")
        tell(_line(trouble))
        return _in_machine_format(arguments, trouble, ExitCode.ERROR)


def _usage(error: click.ClickException) -> SyncengineError:
    """Print the usage of the command and the error, like every other error."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return Usage("no command was given")
    if isinstance(error, click.UsageError) and error.ctx is not None:
        tell(f"{error.ctx.get_usage()}\nTry `{error.ctx.command_path} --help`.\n\n")
    usage = usage_of(error)
    tell(_line(usage))
    return usage


def _line(error: SyncengineError) -> str:
    return f"error[{error.code}]: {harmless(visible(error.message))}\n"


MACHINE_FORMATS = ("json", "github", "gitlab", "sarif")


def _prepare_streams() -> None:
    """Replace closed streams, and escape characters that a stream cannot encode."""
    begin_printing()
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _in_machine_format(arguments: list[str] | None, error: SyncengineError, exit_code: ExitCode) -> ExitCode:
    """Print an error in the format that `--format` names, too, if a machine reads that (docs/commands.md).

    Not behind a document that is printed already: stderr has the text.
    """
    words = sys.argv[1:] if arguments is None else arguments
    formats = [after for before, after in pairwise(words) if before == "--format"]
    formats += [word.partition("=")[2] for word in words if word.startswith("--format=")]
    if formats and formats[-1] in MACHINE_FORMATS and not has_printed():
        from syncengine.cli.output import COMMANDS
        from syncengine.render.json import report_json
        from syncengine.render.outcomes import report_of
        from syncengine.render.registry import DIAGNOSTIC_FORMATS
        from syncengine.render.style import PLAIN

        is_report = "apply" in words and formats[-1] == "json"
        text = (
            report_json(report_of(error)) if is_report else DIAGNOSTIC_FORMATS[formats[-1]](error.diagnostics(), PLAIN)
        )
        put(text, commands=formats[-1] in COMMANDS)
    return exit_code


def _unexpected(error: Exception) -> str:
    return f"{as_bug(error)}. SYNCENGINE_TRACEBACK=1 shows where; please report it."


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
