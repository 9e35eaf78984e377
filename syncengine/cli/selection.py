"""The options of `plan` and `apply` that select or approve changes."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import click

from syncengine.cli.completion import addresses

of_addresses = partial(click.option, metavar="ADDR", multiple=True, shell_complete=addresses)

SELECTION = (
    of_addresses("--target", "targets", help="Select only these addresses (globs)."),
    of_addresses("--exclude", "excludes", help="Select all but these addresses (globs)."),
    click.option("--reassert", is_flag=True, help="Send all declared resources again."),
    click.option("--sweep", is_flag=True, help="Complete a sync session even if it removes no activity type."),
    click.option("--no-delete", is_flag=True, help="Leave out removals and cleared values."),
    click.option("--redo", is_flag=True, help="Include changes of undone runs again."),
    click.option(
        "--approve-deletes", "approvals", metavar="COUNT@HASH", multiple=True, help="Approve exactly these removals."
    ),
)


def selected(paths: Sequence[str], chosen: Mapping[str, Any]) -> str:
    """Return the arguments that select changes, as words of a command line with a blank before each."""
    values = {"--target": chosen["targets"], "--exclude": chosen["excludes"]}
    flags = ("reassert", "sweep", "no_delete", "redo")
    words = [word for flag, addresses in values.items() for address in addresses for word in (flag, address)]
    words += [f"--{name.replace('_', '-')}" for name in flags if chosen[name]]
    return "".join(f" {shlex.quote(word)}" for word in (*paths, *words))


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options in `SELECTION` to a command."""
    for option in reversed(SELECTION):
        command = option(command)
    return command
