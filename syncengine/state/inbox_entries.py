"""The entries of the inbox as values: groups, deliveries, events, and their making from rows; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import orjson
import sqlalchemy as sa

from syncengine.errors import SyncengineError
from syncengine.state.inbox_states import FINAL, FIRST, EventKind, GroupState, PostedTimeStatus

W = TypeVar("W", bound=StrEnum)

PART = "/"
"""What parts a sink's name from the tag in the key of a delivery for one of several tags; no sink's name has it."""


BETWEEN_TAGS = ", "
"""The separator between the names of a group's tags."""


def sink_of(key: str) -> str:
    """Return the name of the sink that a key belongs to; a key for one tag has a suffix after that name."""
    return key.partition(PART)[0]


class DeliveryStatus(StrEnum):
    """The status of a revision of a group at a sink. `again`: it took it, and somebody wants it given once more."""

    ATTEMPTING = "attempting"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    TROUBLE = "trouble"
    UNKNOWN = "unknown"
    AGAIN = "again"


TAKEN = frozenset({DeliveryStatus.ACCEPTED, DeliveryStatus.AGAIN})
"""The sink has it."""

DOUBTFUL = frozenset({DeliveryStatus.ATTEMPTING, DeliveryStatus.UNKNOWN})
"""The sink may have it: its answer was lost, or this process was."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A group as it was offered. `digest` tells contents apart; `user_keys` are all the ways to name who posted it.

    `body` None: it cannot be read.
    """

    group_id: str
    digest: str
    body: str | None
    mechanism: str
    user_name: str | None = None
    user_keys: tuple[str, ...] = ()
    tag: str | None = None

    def content(self) -> dict[str, Any]:
        """The columns of a group that an offer fills."""
        return {
            "digest": self.digest,
            "body": self.body,
            "mechanism": self.mechanism,
            "user_name": self.user_name,
            "user_keys": orjson.dumps(self.user_keys).decode(),
            "tag": self.tag,
        }


class DeliveryKey(NamedTuple):
    """One revision of a group, or of one of its tags, at one sink: see `Delivered`."""

    group_id: str
    revision: int
    sink: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """One revision of a group, or of one of its tags, at one sink, which is `sink` or begins it: see `sink_of`.

    Seconds since epoch; `memo` is the sink's own note for after a crash.
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
    """A group in the inbox. `body` is None once it was reduced to id and receipts."""

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

    @classmethod
    def first(cls, offer: Offer, at: float) -> InboxEntry:
        """Return the entry of a group that is offered for the first time."""
        columns = dict.fromkeys(cls.__slots__)
        stands = {"state": FIRST, "revision": 1, "received": at, "offered": at, "offers": 1, "waiting": False}
        content = {**offer.content(), "user_keys": offer.user_keys}
        return cls(**{**columns, "group_id": offer.group_id, **content, **stands, "deliveries": ()})

    def with_content(self, offer: Offer) -> InboxEntry:
        """The group with what was offered."""
        return replace(self, **{**offer.content(), "user_keys": offer.user_keys})

    @property
    def is_delivered(self) -> bool:
        """Whether every sink took the group, so that the verdict for the service is SUCCESS."""
        return self.outcome is PostedTimeStatus.SUCCESS

    @property
    def is_settled(self) -> bool:
        """Whether nothing waits and nothing failed: every sink has it, and the service knows."""
        return self.is_delivered and self.state in FINAL and not self.waiting and not self.has_trouble

    @property
    def has_trouble(self) -> bool:
        """Whether the last delivery to some sink was not accepted, such as a repeat that somebody asked for."""
        last = {found.sink: found.status for found in self.deliveries}
        return any(status is not DeliveryStatus.ACCEPTED for status in last.values())

    def delivered(self, sink: str) -> Delivered | None:
        """The last delivery of the group to the sink, in whichever revision."""
        return next((found for found in reversed(self.deliveries) if found.sink == sink), None)

    def raw(self) -> dict[str, Any]:
        """The group as the service sent it; empty once it was reduced."""
        found = orjson.loads(self.body) if self.body else {}
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class Event:
    """An event in the story of a group.

    `detail` of what was not accepted is how often, if more than once.
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

    `decided` in seconds since epoch: it tells verdicts with the same status apart; `offers`, how often the group had
    been offered, tells apart how often the same one is due.
    """

    group_id: str
    status: PostedTimeStatus
    message: str | None
    external_id: str | None
    decided: float | None = None
    offers: int | None = None


@dataclass(frozen=True, slots=True)
class SinkReceipt:
    """That a sink took a group, or its part for one tag. `at` in seconds since epoch; `external_id`: its reference."""

    group_id: str
    sink: str
    at: float
    external_id: str | None


def delivered_from(row: sa.Row[Any]) -> Delivered:
    found = {name: value for name, value in row._mapping.items() if name != "group_id"}
    return Delivered(**{**found, "status": _word(DeliveryStatus, found["status"])})


def entry_from(row: sa.Row[Any], deliveries: tuple[Delivered, ...]) -> InboxEntry:
    found = dict(row._mapping)
    found |= {
        "state": _word(GroupState, found["state"]),
        "outcome": _word(PostedTimeStatus, found["outcome"]) if found["outcome"] else None,
        "user_keys": tuple(orjson.loads(found["user_keys"] or "[]")),
        "waiting": bool(found["waiting"]),
    }
    return InboxEntry(**found, deliveries=deliveries)


def event_from(row: sa.Row[Any]) -> Event:
    found = {name: value for name, value in row._mapping.items() if name not in ("id", "group_id")}
    return Event(**{**found, "kind": _word(EventKind, row.kind)})


def acknowledgement_from(row: sa.Row[Any]) -> Acknowledgement:
    return Acknowledgement(**{**row._mapping, "status": _word(PostedTimeStatus, row.status)})


def _word(kind: type[W], text: str) -> W:
    """The word as one of its kind; SyncengineError for one that nobody wrote, as in a damaged file."""
    try:
        return kind(text)
    except ValueError:
        raise SyncengineError(
            f"the inbox is damaged: {text!r} is none of {', '.join(kind)}", code="state-damaged"
        ) from None
