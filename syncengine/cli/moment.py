"""Click types for durations and for the times of `--since`, `--before` and `--until`, which all are written alike."""

from __future__ import annotations

import time
from typing import Any

import click

from syncengine.cli.empty_values import WRITE_TIME
from syncengine.document.scalar_readers import LATEST, bounds
from syncengine.document.setting_types import span


class Seconds(click.ParamType[float]):
    """A duration such as 90s or 5m, or a bare number of seconds. Its value is in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
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
        if (seconds := span(text)) == 0:
            self.fail(f"{text!r} must be longer than zero", param, ctx)
        return seconds

    def _bounds(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        """Return the start and the end of a date, or of an instant, whose seconds and offset may be missing."""
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
        if end * 1000 > LATEST:
            self.fail(f"{text} is after the year 9999", param, ctx)
        return end
