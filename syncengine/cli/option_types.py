"""Click types of options: durations, times that are all written alike, and texts that must not be empty."""

from __future__ import annotations

import time
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


class Seconds(click.ParamType[float]):
    """A duration such as 90s or 5m, or a bare number of seconds. Its value is in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        from syncengine.document.setting_types import span  # imported late: help pages import these types

        text = str(value)
        seconds = float(text) if text.isdigit() else span(text)
        if seconds is None:
            self.fail(f"{value!r} is not a duration: write 90s, 5m, 12h or 30d", param, ctx)
        return seconds


class Age(Seconds):
    """A duration before now. Its unit is required, since a bare number would rarely mean seconds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if str(value).isdigit():
            self.fail(f"{value!r} has no unit: write {value}d or {value}h", param, ctx)
        from syncengine.document.setting_types import span

        if span(str(value)) == 0:
            self.fail(f"{value!r} must be longer than zero: write 90s, 5m, 12h or 30d", param, ctx)
        return super().convert(value, param, ctx)


class PastTime(click.ParamType[float]):
    """A time in the past, in seconds since the epoch: a duration before now, a date (its start) or an instant.

    Dates, and instants without an offset, are in UTC, so that a CI job and a desk mean the same.
    """

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        now, text = time.time(), str(value)
        ago = self._duration(text, param, ctx)
        start, _ = (now - ago, now) if ago else self._bounds(text, param, ctx)
        if start > now:
            self.fail(f"{text} is in the future", param, ctx)
        return max(start, 0.0)

    def _duration(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        from syncengine.document.setting_types import span

        if (seconds := span(text)) == 0:
            self.fail(f"{text!r} must be longer than zero", param, ctx)
        return seconds

    def _bounds(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        """Return the start and the end of a date, or of an instant, whose seconds and offset may be missing."""
        from syncengine.document.scalar_readers import bounds

        for end in ("", "Z", ":00Z"):
            if found := bounds(text + end):
                return found
        return self.fail(f"{text!r} is not a time: {WRITE_TIME}", param, ctx)


class FutureTime(PastTime):
    """A time in the future, in seconds since the epoch: a duration from now, a date (its end) or an instant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        now, text = time.time(), str(value)
        ahead = self._duration(text, param, ctx)
        _, end = (now, now + ahead) if ahead else self._bounds(text, param, ctx)
        if end <= now:
            self.fail(f"{text} is in the past", param, ctx)
        from syncengine.document.scalar_readers import LATEST

        if end * 1000 > LATEST:
            self.fail(f"{text} is after the year 9999", param, ctx)
        return end
