"""Trace requests to the service for debugging, without keys, headers or bodies."""

from __future__ import annotations

import logging
from dataclasses import dataclass

TRACE = logging.getLogger("syncengine.requests")
"""The logger of every attempt of every call, at level DEBUG with a `Traced` as its argument."""


@dataclass(frozen=True, slots=True)
class Traced:
    """One attempt of a call. `trouble` is why `status` is `None`. Sizes are in bytes, unpacked.

    `items` is the number of items sent in a batch or received in a list, `None` for any other call.
    """

    operation: str
    method: str
    path: str
    status: int | None
    trouble: str | None
    seconds: float
    sent: int
    received: int
    items: int | None

    def __str__(self) -> str:
        outcome = self.status or self.trouble or "no answer"
        items = "" if self.items is None else f", {self.items} item{'' if self.items == 1 else 's'}"
        return (
            f"{self.method} {self.path} ({self.operation}): {outcome}, {self.seconds:.3f} s,"
            f" {self.sent} bytes sent, {self.received} received{items}"
        )
