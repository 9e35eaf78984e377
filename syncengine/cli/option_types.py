"""Types of options (durations, times that are all written alike, texts that must not be empty), and their completion.

No function that completes words in the shell raises an error.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import click
from click.shell_completion import CompletionItem

WRITE_TIME = "write a duration (7d, 36h), a date (2026-01-31) or an instant (2026-01-31T09:00:00Z)"

FREE_TEXT = "TEXT"
"""The metavar of values that may be empty, because only people read them."""


def refuse_empty(parameter: click.Parameter, value: object) -> None:
    """Raise a usage error if a value of the command line, or one of several, is blank."""
    if parameter.metavar == FREE_TEXT or all(
        not isinstance(each, str) or each.strip() for each in (value if isinstance(value, list | tuple) else [value])
    ):
        return
    is_option = isinstance(parameter, click.Option)
    name = max(parameter.opts, key=len) if is_option else parameter.human_readable_name
    shape = (parameter.metavar if is_option else None) or "a value"
    cure = WRITE_TIME if shape == "T" else f"give {shape}"
    raise click.UsageError(f"{name} is empty, perhaps because a variable is not set: {cure}")


def _word(value: object, parameter: click.Parameter | None) -> str:
    if parameter is not None:
        refuse_empty(parameter, value)  # which says more than that it is no time
    return str(value)


# The types import `instants` late: help pages import this module.


class Seconds(click.ParamType[float]):
    """A duration such as 90s or 5m, or a bare number of seconds. Its value is in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        from syncengine.instants import span

        text = _word(value, param)
        seconds = float(text) if text.isdigit() else span(text)
        if seconds is None:
            self.fail(f"{value!r} is not a duration: write 90s, 5m, 12h or 30d", param, ctx)
        return seconds


class WholeNumber(click.ParamType[int]):
    """A whole number of at least `least`, and at most `most` if that is given."""

    name = "number"

    def __init__(self, least: int, most: int | None = None) -> None:
        self._least = least
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        number = int(text) if (text := _word(value, param)).isdecimal() else None
        if number is None or number < self._least or (self._most is not None and number > self._most):
            bounds = f"of at least {self._least}" if self._most is None else f"from {self._least} to {self._most}"
            self.fail(f"{text!r} is not a whole number {bounds}", param, ctx)
        return number


class Age(Seconds):
    """A duration before now. Its unit is required, since a bare number would rarely mean seconds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if _word(value, param).isdigit():
            self.fail(f"{value!r} has no unit: write {value}d or {value}h", param, ctx)
        seconds = super().convert(value, param, ctx)
        if not seconds:
            self.fail(f"{value!r} must be longer than zero: write 90s, 5m, 12h or 30d", param, ctx)
        return seconds


class PastTime(click.ParamType[float]):
    """A time in the past, in seconds since the epoch: a duration before now, a date (its start) or an instant.

    Dates, and instants without an offset, are in UTC, so that a CI job and a desk mean the same.
    """

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        now, text = time.time(), _word(value, param)
        start, _ = self.bounds(text, now, -1, param, ctx)
        if start > now:
            self.fail(f"{text} is in the future", param, ctx)
        return max(start, 0.0)

    def bounds(
        self, text: str, now: float, sign: int, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Return the start and the end of a date or an instant; both are the same for a duration from `now`."""
        from syncengine.instants import bounds, span

        if seconds := span(text):
            return now + sign * seconds, now + sign * seconds
        if seconds == 0:
            self.fail(f"{text!r} must be longer than zero", param, ctx)
        for end in ("", "Z", ":00Z"):  # an instant may lack its offset and its seconds
            if found := bounds(text + end):
                return found
        return self.fail(f"{text!r} is not a time: {WRITE_TIME}", param, ctx)


class FutureTime(PastTime):
    """A time in the future, in seconds since the epoch: a duration from now, a date (its end) or an instant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        from syncengine.instants import LATEST

        now, text = time.time(), _word(value, param)
        _, end = self.bounds(text, now, 1, param, ctx)
        if end <= now:
            self.fail(f"{text} is in the past", param, ctx)
        if end * 1000 > LATEST:
            self.fail(f"{text} is after the year 9999", param, ctx)
        return end


# --- completion

MOST = 500  # more addresses than that help nobody who types one


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ask the shell to complete files."""
    return [CompletionItem(incomplete, type="file")]


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


def environments(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the environments of the project file that begin with `incomplete`."""
    from syncengine.cli.options import Globals
    from syncengine.project.environments import environment_names
    from syncengine.project.model import FILE_NAME

    with suppress(Exception):
        options = Globals.of(_values(ctx))
        path = options.folder / (options.config or FILE_NAME)
        return [_item(name) for name in environment_names(path) if name.startswith(incomplete)]
    return []


def addresses(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return recorded addresses that begin with `incomplete`, or the kinds as long as no kind is complete."""
    from syncengine.cli.options import Globals
    from syncengine.resource import Kind
    from syncengine.state.store import open_state

    if "/" not in incomplete:
        return [CompletionItem(f"{kind.value}/") for kind in Kind if kind.value.startswith(incomplete)]
    with suppress(Exception):
        project = Globals.of(_values(ctx)).project()
        # A database server is not asked at each keystroke, and manifests are not read.
        if "://" not in project.state:
            with open_state(project.state, write=False) as state:
                matches = list(state.addresses_like(incomplete, MOST))
            return [_item(address) for address in matches if address.isprintable()]
    return []


def _values(ctx: click.Context) -> Mapping[str, Any]:
    """Return the options of all contexts so far. Those of inner contexts take precedence."""
    outer = _values(ctx.parent) if ctx.parent is not None else {}
    return {**outer, **{name: value for name, value in ctx.params.items() if value not in (None, ())}}


def _item(value: str) -> CompletionItem:
    """Return a completion item, escaped for bash, which inserts it unchanged."""
    is_bash = os.environ.get("_SYNCENGINE_COMPLETE", "").startswith("bash")
    return CompletionItem(re.sub(r"([^\w@%+=:,./-])", r"\\\1", value) if is_bash else value)


# --- options of several commands

of_addresses = partial(click.option, metavar="ADDR", multiple=True, shell_complete=addresses)
approved = click.option("-y", "--auto-approve", is_flag=True, help="Proceed without asking.")
"""The option of commands that otherwise ask a person."""


def since(what: str, default: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option `--since T` of a command that looks back; `what` begins its help, up to the time."""
    words = f"{what} T: 7d or 36h ago, or a UTC date or time."
    is_shown = default is not None
    return click.option("--since", type=PastTime(), metavar="T", default=default, show_default=is_shown, help=words)
