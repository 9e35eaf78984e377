"""A click type for points in time."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import click


class Moment(click.ParamType[float]):
    """A point in time, as an age (30d, 2h) or a date and time. Its value is in seconds since the epoch."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from syncengine.document.setting_types import duration

        if isinstance(value, float):
            return value
        ago = duration(str(value))
        if ago is not None:
            return time.time() - ago
        try:
            return datetime.fromisoformat(str(value)).timestamp()
        except (ValueError, OverflowError):
            return self.fail(f"{value!r} is not a point in time: write 30d, 2h, or 2024-05-01T09:00:00Z", param, ctx)
