"""The verdict of a group of posted time, and the trouble of a sink. Values only; pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from syncengine.database.trouble import TroubleKind
from syncengine.state.inbox_states import PostedTimeStatus

__all__ = ["PostedTimeStatus", "SinkTrouble", "Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`message` is a sentence for the user who posted; `external_id` the sink's reference, sent with SUCCESS.

    `detail` is for whoever runs this. `is_final` false: nobody is told, and the group is tried again before any other
    is fetched.
    """

    outcome: PostedTimeStatus
    message: str | None = None
    external_id: str | None = None
    is_final: bool = True
    detail: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SinkTrouble:
    """A sink (or the source of a lookup) that is down. `message` is for all who post, `detail` for who runs this."""

    sink: str
    kind: TroubleKind
    message: str
    detail: str | None = field(default=None, compare=False)
