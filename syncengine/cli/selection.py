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
        "--approve-deletes",
        "approvals",
        metavar="COUNT@HASH",
        multiple=True,
        help="Approve exactly these removals and tags made public.",
    ),
)

SELECTING_FLAGS = ("reassert", "sweep", "no_delete", "redo")
ALLOWING = ("allow_unmerged", "allow_older", "new_state")
"""The flags of `apply` that allow what is usually refused."""


def selected(paths: Sequence[str], chosen: Mapping[str, Any], *, is_saved: bool) -> str:
    """Return the arguments of `apply` that belong to a plan, as words of a command line with a blank before each.

    A saved plan is applied whole, so that only the flags are left that allow an apply at all.
    """
    options = {} if is_saved else {"--target": "targets", "--exclude": "excludes", "--reviewed": "reviewed"}
    words = [word for flag, name in options.items() for value in chosen.get(name, ()) for word in (flag, value)]
    flags = ALLOWING if is_saved else (*SELECTING_FLAGS, *ALLOWING)
    words += [f"--{name.replace('_', '-')}" for name in flags if chosen.get(name)]
    return "".join(f" {shlex.quote(word)}" for word in (*(() if is_saved else paths), *words))


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options in `SELECTION` to a command."""
    for option in reversed(SELECTION):
        command = option(command)
    return command
