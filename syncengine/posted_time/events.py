"""The events of the fetch loop, the webhook receiver and the acknowledgement loop. Values only.

`serve` turns them into log lines, metrics and readiness, and `time pull` into text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from syncengine.errors import SyncengineError, as_bug
from syncengine.posted_time.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Offered:
    """A fetch that was answered with a number of groups."""

    groups: int


@dataclass(frozen=True, slots=True)
class Taken:
    """A group that got a verdict."""

    group_id: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Unusable:
    """An item from the service without a group id, so that no status can be reported for it."""

    why: str


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A status of a group that the service accepted."""

    group_id: str
    status: str


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A group whose status the service will never accept."""

    group_id: str
    why: str


@dataclass(frozen=True, slots=True)
class RetryLater:
    """A failed step that is tried again in `seconds`."""

    what: str
    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Answered:
    """A webhook call that was rejected, for example because of a wrong key, invalid JSON or its size."""

    status: int
    why: str


Event = Offered | Taken | Unusable | Acknowledged | GivenUp | RetryLater | Answered
Tell = Callable[[Event], None]


def message_of(error: Exception) -> str:
    """Return the message of a `SyncengineError`, or the class of any other error, whose message may hold secrets."""
    return error.message if isinstance(error, SyncengineError) else as_bug(error)
