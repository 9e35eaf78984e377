"""Verdicts on groups, troubles of sinks, and the events of the loops and of the webhook receiver.

Values only. `serve` turns events into log lines, metrics and readiness, and `time pull` into text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from syncengine.errors import SyncengineError, TroubleKind, as_bug
from syncengine.state.inbox_model import PostedTimeStatus


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a group. `message` is for the user, `detail` for the operator.

    `external_id` is the sink's reference, which is sent with SUCCESS. A verdict with `is_final` false is not reported:
    the group is tried again before any other is fetched.
    """

    outcome: PostedTimeStatus
    message: str | None = None
    external_id: str | None = None
    is_final: bool = True
    detail: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SinkTrouble:
    """A sink (or the database of a lookup) that is down. `message` is for users, `detail` for the operator."""

    sink: str
    kind: TroubleKind
    message: str
    detail: str | None = field(default=None, compare=False)


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
