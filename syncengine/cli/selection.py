"""Options that choose what a plan may hold, for `plan` and `apply`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from syncengine.cli.completion import addresses

of_addresses = partial(click.option, metavar="ADDR", multiple=True, shell_complete=addresses)

SELECTION = (
    of_addresses("--target", "targets", help="Only these addresses (globs)."),
    of_addresses("--exclude", "excludes", help="All but these addresses (globs)."),
    click.option("--reassert", is_flag=True, help="Send everything that the manifests declare again."),
    click.option("--sweep", is_flag=True, help="Complete a sync session even if it removes no activity type."),
    click.option("--no-delete", is_flag=True, help="Leave out everything that removes or clears."),
    click.option("--redo", is_flag=True, help="Apply changes of undone runs again."),
    click.option(
        "--approve-deletes", "approvals", metavar="COUNT@HASH", multiple=True, help="Approve exactly these removals."
    ),
)


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose what a plan may hold."""
    for option in reversed(SELECTION):
        command = option(command)
    return command
