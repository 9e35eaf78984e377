"""A trace of requests to the service, for debugging: never a key, a header or a body."""

from __future__ import annotations

import logging
from dataclasses import dataclass

TRACE = logging.getLogger("syncengine.requests")
"""Hears every attempt of every call at the level DEBUG, with `Traced` as its argument."""


@dataclass(frozen=True, slots=True)
class Traced:
    """One attempt. `status` None: no answer came, and `trouble` says why. Sizes are in bytes, unpacked.

    `items` are those of a batch, sent, or those of a list, received; None where there is neither.
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
