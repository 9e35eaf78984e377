"""The values of the inbox: a group's states, offers, deliveries, events and verdicts (docs/posted-time.md 6). Pure.

A group may be offered again after any outcome, so that every write but two applies in every state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from syncengine.document.json_text import decode_json
from syncengine.errors import SyncengineError
from syncengine.project.delivery_schema import Mode

W = TypeVar("W", bound=StrEnum)

FETCH, WEBHOOK = MECHANISMS = (Mode.FETCH.value, Mode.WEBHOOK.value)
"""The names of the mechanisms by which posted time arrives, as stored in the inbox and the state."""

PART = "/"
"""The separator between a sink's name and a tag in the key of a delivery for one tag. No sink's name contains it."""

BETWEEN_TAGS = ", "
"""The separator between the names of a group's tags."""


class PostedTimeStatus(StrEnum):
    """A verdict in the form that is sent to the service."""

    SUCCESS = "SUCCESS"
    REFUSED = "FAILURE"
    TROUBLE = "RETRIABLE_FAILURE"


class GroupState(StrEnum):
    """The progress of a group. In `accepted` and `refused`, the status must still be sent to the service."""

    RECEIVED = "received"
    DELIVERING = "delivering"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    TROUBLED = "troubled"
    ACKNOWLEDGED = "acknowledged"
    GIVEN_UP = "given-up"
    CONFLICT = "conflict"


UNDECIDED = (GroupState.RECEIVED, GroupState.DELIVERING)
"""The states of a group whose delivery has not begun, or was interrupted and is resumed."""

WAITING: Mapping[PostedTimeStatus, GroupState] = {
    PostedTimeStatus.SUCCESS: GroupState.ACCEPTED,
    PostedTimeStatus.REFUSED: GroupState.REFUSED,
    PostedTimeStatus.TROUBLE: GroupState.TROUBLED,
}
"""The state of a group whose verdict the service has yet to accept."""

ANSWERED: Mapping[PostedTimeStatus, GroupState] = {
    PostedTimeStatus.SUCCESS: GroupState.ACKNOWLEDGED,
    PostedTimeStatus.REFUSED: GroupState.ACKNOWLEDGED,
    PostedTimeStatus.TROUBLE: GroupState.TROUBLED,  # until it is offered again
}
"""The state of a group whose verdict the service accepted, or got in the answer to its webhook call."""


class EventKind(StrEnum):
    """The kind of an event in the history of a group."""

    OFFERED = "offered"
    REVISED = "revised"
    ATTEMPT = "attempt"
    VERDICT = "verdict"
    CONFLICT = "conflict"
    STATUS = "status"
    UNACCEPTED = "unaccepted"
    GIVEN_UP = "given-up"
    ASKED = "asked"
    SETTLED = "settled"


class DeliveryStatus(StrEnum):
    """The status of a group's revision at a sink. `again`: the sink took it, and somebody asked to deliver it again."""

    ATTEMPTING = "attempting"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    TROUBLE = "trouble"
    UNKNOWN = "unknown"
    AGAIN = "again"


TAKEN = frozenset({DeliveryStatus.ACCEPTED, DeliveryStatus.AGAIN})
"""The statuses with which a sink has the group."""

DOUBTFUL = frozenset({DeliveryStatus.ATTEMPTING, DeliveryStatus.UNKNOWN})
"""The statuses with which a sink may have the group: its answer, or the process that waited for it, was lost."""


def sink_of(key: str) -> str:
    """Return the sink's name in a delivery key, without the suffix that a key for one tag has."""
    return key.partition(PART)[0]


def decided_without(sink: str, outcome: PostedTimeStatus | None, keys: Iterable[str]) -> bool:
    """Return whether a group with this verdict and these delivery keys is never delivered to the sink.

    That is so if the verdict SUCCESS was reached without the sink, which was added or renamed later, for example.
    """
    return outcome is PostedTimeStatus.SUCCESS and all(sink_of(key) != sink for key in keys)


@dataclass(frozen=True, slots=True)
class Offer:
    """A group as the service offered it.

    `digest` distinguishes contents. `user_keys` are all names and ids of the user who posted it. `body` is `None` when
    the offer cannot be read.
    """

    group_id: str
    digest: str
    body: str | None
    mechanism: str
    user_name: str | None = None
    user_keys: tuple[str, ...] = ()
    tag: str | None = None


class DeliveryKey(NamedTuple):
    """The key of a delivery: one revision of a group, or of its part for one tag, at one sink."""

    group_id: str
    revision: int
    sink: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """The delivery of one revision of a group, or of its part for one tag, to one sink.

    `sink` is the sink's name, followed by the tag for a part (see `sink_of`). Times are seconds since epoch. `memo` is
    the sink's own note for use after a crash.
    """

    sink: str
    revision: int
    status: DeliveryStatus
    attempts: int
    first: float
    last: float
    external_id: str | None
    message: str | None
    memo: str | None


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """A group in the inbox. `body` is `None` once the group has been reduced to its id and receipts."""

    group_id: str
    state: GroupState
    revision: int
    digest: str
    mechanism: str
    received: float
    offered: float
    offers: int
    user_name: str | None
    user_keys: tuple[str, ...]
    tag: str | None
    body: str | None
    outcome: PostedTimeStatus | None
    message: str | None
    external_id: str | None
    decided: float | None
    waiting: bool
    answered: float | None
    asked: float | None
    note: str | None
    deliveries: tuple[Delivered, ...]

    @property
    def is_delivered(self) -> bool:
        """Whether every sink has taken the group, so that the verdict for the service is SUCCESS."""
        return self.outcome is PostedTimeStatus.SUCCESS

    @property
    def is_settled(self) -> bool:
        """Whether every sink has the group and the service has accepted the verdict, with nothing left to do."""
        is_told = self.state is GroupState.ACKNOWLEDGED and not self.waiting
        return self.is_delivered and is_told and not self.has_trouble

    @property
    def has_trouble(self) -> bool:
        """Whether some sink's last delivery was not accepted, such as a requested repetition."""
        last = {found.sink: found.status for found in self.deliveries}
        return any(status is not DeliveryStatus.ACCEPTED for status in last.values())

    def was_decided_without(self, sink: str) -> bool:
        """Return whether the group is never delivered to the sink: see `decided_without`."""
        return decided_without(sink, self.outcome, (found.sink for found in self.deliveries))

    def delivered(self, sink: str) -> Delivered | None:
        """Return the last delivery of the group to the sink, of any revision, or `None` if there was none."""
        return next((found for found in reversed(self.deliveries) if found.sink == sink), None)

    def raw(self) -> dict[str, Any]:
        """Return the group as the service sent it, or an empty dict once the group has been reduced."""
        found = decode_json(self.body) if self.body else {}
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class Event:
    """An event in the history of a group.

    `detail` of an unaccepted status is the number of attempts, if there was more than one.
    """

    at: float
    kind: EventKind
    revision: int
    sink: str | None
    outcome: str | None
    message: str | None
    external_id: str | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A verdict that the service has not accepted yet.

    `decided` (seconds since epoch) distinguishes verdicts with the same status. `offers`, how often the group had been
    offered, distinguishes repetitions of one verdict.
    """

    group_id: str
    status: PostedTimeStatus
    message: str | None
    external_id: str | None
    decided: float | None = None
    offers: int | None = None


@dataclass(frozen=True, slots=True)
class SinkReceipt:
    """The record that a sink took a group, or the part under `key`, `at` seconds since epoch, with its reference."""

    group_id: str
    key: str
    at: float
    external_id: str | None = None


def word(kind: type[W], text: str) -> W:
    """Return the member of `kind` with this value. Raise `SyncengineError` for an unknown value in a damaged inbox."""
    try:
        return kind(text)
    except ValueError:
        raise SyncengineError(
            f"the inbox is damaged: found {text!r} instead of one of {', '.join(kind)}", code="state-damaged"
        ) from None
