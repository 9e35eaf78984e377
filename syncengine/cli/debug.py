"""Write traced requests to the service as lines to stderr (`--debug`)."""

from __future__ import annotations

import logging
from dataclasses import asdict

import orjson

from syncengine.cli.streams import tell
from syncengine.render.escape import visible
from syncengine.service.trace import TRACE, Traced


class _Lines(logging.Handler):
    """A log handler that writes each traced request attempt as a line to stderr."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def emit(self, record: logging.LogRecord) -> None:
        traced = record.msg
        assert isinstance(traced, Traced)
        if self._as_json:
            line = orjson.dumps({"level": "debug", "message": str(traced), **asdict(traced)}).decode()
        else:
            line = visible(f"debug: {traced}")
        tell(line + "\n")


def trace_requests(*, as_json: bool) -> None:
    """Trace all requests of this process. Logs of libraries stay off, since they show headers."""
    TRACE.handlers[:] = [_Lines(as_json=as_json)]
    TRACE.setLevel(logging.DEBUG)
    TRACE.propagate = False
