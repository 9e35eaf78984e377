"""Give commands that print data a `--format` option, and print data and errors in that format."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from syncengine.cli.options import Globals, with_globals
from syncengine.cli.output import Output
from syncengine.errors import ExitCode, SyncengineError

F = TypeVar("F", bound=Callable[..., Any])


def output_format(*names: str) -> Callable[[F], F]:
    """Return the option `--format` with these formats, of which the first is the default."""
    kind, first = click.Choice(names), names[0]
    return click.option("--format", "format", type=kind, default=first, show_default=True, help="Format of the output.")


def printing_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the global options and `--format` to a command, and print its errors in that format."""

    @output_format("text", "json")
    @with_globals
    @wraps(command)
    def wrapped(options: Globals, format: str, **arguments: Any) -> Any:
        try:
            return command(options=options, format=format, **arguments)
        except SyncengineError as error:
            return Output(options, options.folder).refusal(error, format)

    return wrapped


def show(options: Globals, format: str, document: Any, text: str) -> int:
    """Write `document` as JSON, or `text`, to stdout, and return exit code 0."""
    from syncengine.render.json import dumped

    Output(options, options.folder).data(dumped(document) if format == "json" else text)
    return ExitCode.DONE
