"""Events of the fetch loop, the webhook receiver and the acknowledgement loop; values only.

`serve` folds them into its log, its metrics and its readiness, `time pull` into text; nothing here prints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from syncengine.errors import SyncengineError, as_bug
from syncengine.posted_time.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Offered:
    """A fetch was answered with this number of groups."""

    groups: int


@dataclass(frozen=True, slots=True)
class Taken:
    """A group was stored and delivered as far as that went."""

    group_id: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Unusable:
    """The service sent something that is not a group and has no id to answer for."""

    why: str


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The service accepted the status of a group."""

    group_id: str
    status: str


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The service will never accept a status of this group."""

    group_id: str
    why: str


@dataclass(frozen=True, slots=True)
class RetryLater:
    """A step failed and is tried again in `seconds`."""

    what: str
    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Answered:
    """The webhook answered a call that was no posted time of ours: a wrong key, no JSON, too much of it."""

    status: int
    why: str


Event = Offered | Taken | Unusable | Acknowledged | GivenUp | RetryLater | Answered
Tell = Callable[[Event], None]


def message_of(error: Exception) -> str:
    """Return the message of one of our errors, or the class of any other, whose message may hold anything."""
    return error.message if isinstance(error, SyncengineError) else as_bug(error)
