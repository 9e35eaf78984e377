"""The formats of posted time for machines: the models of `time … --format json`. More fields may be added.

Inbox, group and audit are written by their models; the others are only described by theirs.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from syncengine.render.schemas.from_models import Format

State = Literal[
    "received", "delivering", "accepted", "refused", "troubled", "acknowledged", "given-up", "conflict"
]  # fmt: skip
SinkStatus = Literal["attempting", "accepted", "refused", "trouble", "unknown", "again"]
Answer = Literal["SUCCESS", "FAILURE", "RETRIABLE_FAILURE"]
EventKind = Literal[
    "offered", "revised", "attempt", "verdict", "conflict", "status", "unaccepted", "given-up", "asked", "settled"
]  # fmt: skip


class SinkItem(Format):
    """The delivery of one revision of a group, or of one of its tags, to a sink."""

    sink: str
    key: str = Field(
        description="In the receipt and `Idempotency-Key`: the sink's name, or the name and the digest of a tag."
    )
    tag: str | None = Field(description="The tag that was delivered, if there are several; null: the whole group.")
    revision: int = Field(ge=1)
    status: SinkStatus
    attempts: int = Field(ge=1)
    first: str
    last: str
    external_id: str | None = Field(description="The sink's reference.")
    message: str | None


class GroupItem(Format):
    """A group in the inbox."""

    group_id: str
    state: State
    revision: int = Field(ge=1)
    outcome: Answer | None = Field(description="The verdict; null before there is one.")
    message: str | None = Field(description="For who posted.")
    external_id: str | None
    note: str | None = Field(description="A note for the operator.")
    user: str | None
    tag: str | None
    mechanism: Literal["fetch", "webhook"]
    offers: int = Field(ge=1)
    received: str
    offered: str
    decided: str | None
    answered: str | None
    waiting: bool = Field(description="Whether the service has yet to accept the verdict.")
    asked: str | None
    sinks: list[SinkItem]


class InboxFormat(Format):
    """`time inbox --format json`, and the immediate deliveries of `time retry` and `time redeliver`."""

    model_config = ConfigDict(title="syncengine inbox")
    format: Literal["syncengine.inbox/v1"]
    groups: list[GroupItem]


class EventItem(Format):
    """Something that happened to a group."""

    at: str
    kind: EventKind
    revision: int
    sink: str | None
    tag: str | None
    outcome: str | None
    message: str | None
    external_id: str | None
    detail: str | None


class GroupFormat(GroupItem):
    """`time show --format json`."""

    model_config = ConfigDict(title="syncengine group")
    format: Literal["syncengine.group/v1"]
    group: dict[str, Any] | None = Field(description="As the service sent it; null once it was reduced, or unreadable.")
    story: list[EventItem] = Field(description="Oldest first.")


class PreviewedSink(Format):
    sink: str
    key: str
    tag: str | None = Field(description="The tag that would be delivered, if there are several; null: the whole group.")
    seconds: int
    content: dict[str, Any]


class PreviewedDuration(Format):
    seconds: int
    hours: float
    worked_seconds: int
    total_seconds: int
    is_edited: bool
    weighting_percent: float | None


class PreviewFormat(Format):
    """`time preview --format json`."""

    model_config = ConfigDict(title="syncengine preview")
    format: Literal["syncengine.preview/v1"]
    group_id: str | None
    outcome: Answer
    message: str | None
    narrative: str | None
    duration: PreviewedDuration | None
    start: str | None
    sinks: list[PreviewedSink]


class Completeness(Format):
    complete: bool = Field(description="Whether this is all that the service lists.")
    unreadable: int = Field(ge=0, description="Items of the list that are not a group with an id.")
    hidden: list[str] = Field(description="Instants with more groups than the service lists.")


class ListingFormat(Completeness):
    """`time list --format json`."""

    model_config = ConfigDict(title="syncengine posted time")
    format: Literal["syncengine.posted-time/v1"]
    groups: list[dict[str, Any]] = Field(description="As the service sent them, newest first.")


class LackingItem(Format):
    """Posted there, and the sink has no receipt."""

    group_id: str
    sink: str
    tag: str | None = Field(description="The tag that is lacking, if there are several; null: the whole group.")
    submitted: int | None = Field(description="Milliseconds since epoch.")


class UnpostedItem(Format):
    """Taken by a sink, and pending there, or not listed (status null)."""

    group_id: str
    sink: str
    tag: str | None
    taken: str
    status: str | None


class OtherItem(Format):
    """A group that is listed with another status than SUCCESS, with its state in the inbox."""

    group_id: str
    status: str | None
    submitted: int | None
    state: State | None = Field(description="Its state in the inbox; null: it is not there.")
    answer: Answer | None = Field(description="The last status that was or will be sent to the service.")
    sinks: list[str] = Field(description="Sinks that took it.")


class AuditFormat(Completeness):
    """`time audit --format json`."""

    model_config = ConfigDict(title="syncengine audit")
    format: Literal["syncengine.audit/v1"]
    unread: list[str] = Field(description="Sinks whose database could not be read, so that the inbox was used instead.")
    listed: int
    posted: int
    lacking: list[LackingItem]
    unposted: list[UnpostedItem]
    others: list[OtherItem]


class PulledItem(Format):
    """A group that was fetched and delivered as far as that went."""

    group_id: str
    status: Answer = Field(description="The verdict.")
    message: str | None = Field(description="For who posted.")
    external_id: str | None = Field(description="The sink's reference.")
    acknowledged: bool = Field(description="Whether the service accepted the verdict.")


class AcknowledgedItem(Format):
    """A status that the service accepted, also for groups that were fetched before."""

    group_id: str
    status: Answer


class PullFormat(Format):
    """`time pull --format json`."""

    model_config = ConfigDict(title="syncengine pull")
    format: Literal["syncengine.pull/v1"]
    fetched: bool = Field(description="Whether groups were fetched: none are while a sink is down.")
    groups: list[PulledItem]
    acknowledged: list[AcknowledgedItem]
    troubles: list[str] = Field(description="Messages about failures.")


class SelectionFormat(Format):
    """`time retry` and `time redeliver` of groups that they did not deliver at once."""

    model_config = ConfigDict(title="syncengine selection")
    format: Literal["syncengine.selection/v1"]
    act: Literal["settled", "rehearsed", "asked"] = Field(
        description="`settled`: by `--accept`. `rehearsed`: without `-y`."
        " `asked`: left to the process that holds the inbox."
    )
    groups: list[str] = Field(description="Their ids.")


class MechanismFormat(Format):
    """`time register --format json` and `time unregister --format json`."""

    model_config = ConfigDict(title="syncengine mechanism")
    format: Literal["syncengine.mechanism/v1"]
    registered: Literal["fetch", "webhook"] | None = Field(
        None, description="What is registered now; absent from `unregister`."
    )
    unregistered: Literal["fetch client", "webhook"] | None = Field(
        None, description="The registration that was ended; null if there was none, absent from `register`."
    )
    messages: list[str] = Field(description="Messages about what was done.")


def document(model: Format) -> dict[str, Any]:
    """Return a model as JSON has it, its format first."""
    names = model.model_dump(by_alias=True)
    return {"format": names.pop("format"), **names}
