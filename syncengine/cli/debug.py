"""Trace requests to the service (`--debug`), and write them as lines to stderr."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict

import orjson

from syncengine.cli.streams import tell
from syncengine.render.escape import visible
from syncengine.service.client import TRACE, Traced


class _Handler(logging.Handler):
    """A log handler that hands on each traced request attempt."""

    def __init__(self, take: Callable[[Traced], object]) -> None:
        super().__init__()
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        traced = record.msg
        assert isinstance(traced, Traced)
        self._take(traced)


def trace_requests(take: Callable[[Traced], object]) -> None:
    """Have `take` called with each request of this process. Logs of libraries stay off, since they show headers."""
    TRACE.handlers[:] = [_Handler(take)]
    TRACE.setLevel(logging.DEBUG)
    TRACE.propagate = False


def tell_as_text(traced: Traced) -> None:
    tell(f"{visible(f'debug: {traced}')}\n")


def tell_as_json(traced: Traced) -> None:
    tell(orjson.dumps({"level": "debug", "message": str(traced), **asdict(traced)}).decode() + "\n")
