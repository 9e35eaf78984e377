"""Reject options and arguments with an empty value, the usual result of an unset variable in a CI job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

WRITE_TIME = "write a duration (7d, 36h), a date (2026-01-31) or an instant (2026-01-31T09:00:00Z)"
"""How times of `--since`, `--before` and `--until` are written."""

ADVICE = {
    "--since FILE": "give the file of a reviewed plan",
    "--reviewed": "give the file of a reviewed plan",
    "--target": "give an address, such as `tag/ACME-0042`",
    "--exclude": "give an address, such as `tag/ACME-0042`",
    "--base": "give a Git revision, and fetch its history first"
    " (`fetch-depth: 0` in actions/checkout, `GIT_DEPTH: 0` in GitLab)",
    "--undo": "give an id from `syncengine state history`, or `last`",
    "--approve-deletes": "give COUNT@HASH, as the plan prints it",
    "--install": "give a requirement, a path or a URL",
    "T": WRITE_TIME,
    "PATHS": "give a path in the project",
    "[PLAN | PATHS]": "give the file of a saved plan, or a path in the project",
}
"""The advice for an option or argument whose value is empty, by its name, its name and metavar, or its metavar."""
FREE_TEXT = "TEXT"
"""The metavar of values that may be empty, because only people read them."""


def has_empty_words(words: Iterable[str]) -> bool:
    """Return whether a word of a command line is blank or ends with `=`."""
    return any(not word.strip() or word.rstrip().endswith("=") for word in words)


def refuse_empty(values: Mapping[str, str | Sequence[str] | None], shape: str = "a value") -> None:
    """Raise a usage error for an empty option or argument in `values`. `shape` is the form of a valid value."""
    for name, value in values.items():
        if any(not each.strip() for each in ([value] if isinstance(value, str) else value or ())):
            advice = ADVICE.get(name) or ADVICE.get(f"{name} {shape}") or ADVICE.get(shape) or f"give {shape}"
            raise click.UsageError(f"{name} is empty, perhaps because a variable is not set: {advice}")


def refuse_empty_parameters(parameters: Iterable[click.Parameter], written: Mapping[str, Any]) -> None:
    """Raise a usage error for a parameter of a command whose value, `written` on the command line, is empty."""
    for parameter in parameters:
        if parameter.metavar == FREE_TEXT or isinstance(parameter.type, click.Choice):  # click lists the choices
            continue
        value = written.get(parameter.name or "")
        words = [each for each in (value if isinstance(value, list | tuple) else [value]) if isinstance(each, str)]
        if isinstance(parameter, click.Option):
            refuse_empty({max(parameter.opts, key=len): words}, parameter.metavar or "a value")
        else:
            refuse_empty({parameter.human_readable_name: words})
