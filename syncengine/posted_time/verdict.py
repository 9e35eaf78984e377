"""The verdict on a group of posted time, and the trouble of a sink. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field

from syncengine.errors import TroubleKind
from syncengine.state.inbox_model import PostedTimeStatus

__all__ = ["PostedTimeStatus", "SinkTrouble", "Verdict"]


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
