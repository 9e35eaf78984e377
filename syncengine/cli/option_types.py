"""Click types of options: durations, times that are all written alike, and texts that must not be empty."""

from __future__ import annotations

import time
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


def refuse_empty(parameter: click.Parameter, value: object) -> None:
    """Raise a usage error if a value of the command line, or one of several, is blank."""
    if parameter.metavar == FREE_TEXT or all(
        not isinstance(each, str) or each.strip() for each in (value if isinstance(value, list | tuple) else [value])
    ):
        return
    if isinstance(parameter, click.Option):
        name, shape = max(parameter.opts, key=len), parameter.metavar or "a value"
    else:
        name, shape = parameter.human_readable_name, "a value"
    advice = ADVICE.get(name) or ADVICE.get(f"{name} {shape}") or ADVICE.get(shape) or f"give {shape}"
    raise click.UsageError(f"{name} is empty, perhaps because a variable is not set: {advice}")


def _word(value: object, parameter: click.Parameter | None) -> str:
    """Return a value as text. Raise a usage error if it is blank, which says more than that it is no time."""
    if parameter is not None:
        refuse_empty(parameter, value)
    return str(value)


class Seconds(click.ParamType[float]):
    """A duration such as 90s or 5m, or a bare number of seconds. Its value is in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        from syncengine.instants import span  # imported late: help pages import these types

        text = _word(value, param)
        seconds = float(text) if text.isdigit() else span(text)
        if seconds is None:
            self.fail(f"{value!r} is not a duration: write 90s, 5m, 12h or 30d", param, ctx)
        return seconds


class Age(Seconds):
    """A duration before now. Its unit is required, since a bare number would rarely mean seconds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if _word(value, param).isdigit():
            self.fail(f"{value!r} has no unit: write {value}d or {value}h", param, ctx)
        from syncengine.instants import span

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
        now, text = time.time(), _word(value, param)
        ago = self._duration(text, param, ctx)
        start, _ = (now - ago, now) if ago else self._bounds(text, param, ctx)
        if start > now:
            self.fail(f"{text} is in the future", param, ctx)
        return max(start, 0.0)

    def _duration(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        from syncengine.instants import span

        if (seconds := span(text)) == 0:
            self.fail(f"{text!r} must be longer than zero", param, ctx)
        return seconds

    def _bounds(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        """Return the start and the end of a date, or of an instant, whose seconds and offset may be missing."""
        from syncengine.instants import bounds

        for end in ("", "Z", ":00Z"):
            if found := bounds(text + end):
                return found
        return self.fail(f"{text!r} is not a time: {WRITE_TIME}", param, ctx)


class FutureTime(PastTime):
    """A time in the future, in seconds since the epoch: a duration from now, a date (its end) or an instant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        now, text = time.time(), _word(value, param)
        ahead = self._duration(text, param, ctx)
        _, end = (now, now + ahead) if ahead else self._bounds(text, param, ctx)
        if end <= now:
            self.fail(f"{text} is in the past", param, ctx)
        from syncengine.instants import LATEST

        if end * 1000 > LATEST:
            self.fail(f"{text} is after the year 9999", param, ctx)
        return end
