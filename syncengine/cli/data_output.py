"""Give commands that print data a `--format` option, and print data and errors in that format."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from syncengine.cli.options import Globals, with_globals
from syncengine.cli.output import Output
from syncengine.errors import ExitCode, SyncengineError


def printing_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the global options and `--format` to a command, and print its errors in that format."""

    @click.option("--format", "format", type=click.Choice(["text", "json"]), default="text", show_default=True)
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
