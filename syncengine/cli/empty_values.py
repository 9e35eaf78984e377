"""Values that are empty, as a variable of a job is that is not set: no option and no argument takes one unseen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

REFERENTS = {
    "--since": ("plan", "give it the file of a plan that was reviewed"),
    "--reviewed": ("plan", "give it the file of a plan that was reviewed"),
    "--out": ("file", "give it the file to save the plan in"),
    "--target": ("address", "give it one, such as `tag/ACME-0042`"),
    "--exclude": ("address", "give it one, such as `tag/ACME-0042`"),
    "--base": (
        "revision",
        "name one, and fetch its history first (`fetch-depth: 0` of actions/checkout, `GIT_DEPTH: 0` of GitLab)",
    ),
    "--undo": ("run", "give it an id of `syncengine state history`, or `last`"),
    "--approve-deletes": ("removal", "give it COUNT@HASH, as a plan prints it"),
    "--install": ("package", "a requirement, a path or a URL is expected"),
    "PATHS": ("manifest", "give it a path of the project"),
    "[PLAN | PATHS]": ("plan and no manifest", "give it the file of a saved plan, or a path of the project"),
}
"""What options and arguments name, and the way on where they are empty."""
FREE_TEXT = "TEXT"
"""The placeholder of a value that may be empty: nobody but people reads it."""


def has_empty_words(words: Iterable[str]) -> bool:
    """Whether some of these words of a command line are empty, or end where a value begins."""
    return any(not word.strip() or word.rstrip().endswith("=") for word in words)


def refuse_empty(values: Mapping[str, str | Sequence[str] | None], shape: str = "a value") -> None:
    """Refuse options and arguments that are empty: they would mean another thing. `shape`: how a value is written."""
    for name, value in values.items():
        if any(not each.strip() for each in ([value] if isinstance(value, str) else value or ())):
            why = "as a variable is that is not set"
            if name in REFERENTS:
                what, cure = REFERENTS[name]
                raise click.UsageError(f"{name} names no {what}: it is empty, {why}; {cure}")
            raise click.UsageError(f"{name} is empty, {why}; give it {shape}")


def refuse_empty_parameters(parameters: Iterable[click.Parameter], written: Mapping[str, Any]) -> None:
    """The same for the parameters of a command, by what is `written` for them on the command line."""
    for parameter in parameters:
        if parameter.metavar == FREE_TEXT or isinstance(parameter.type, click.Choice):  # click lists the choices
            continue
        value = written.get(parameter.name or "")
        words = [each for each in (value if isinstance(value, list | tuple) else [value]) if isinstance(each, str)]
        if isinstance(parameter, click.Option):
            refuse_empty({max(parameter.opts, key=len): words}, parameter.metavar or "a value")
        else:
            refuse_empty({parameter.human_readable_name: words})
