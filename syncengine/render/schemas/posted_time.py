"""The models of `time … --format json`. Fields may be added at any time.

The documents of inbox, group and audit are made from their models; other models only describe their documents.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from syncengine.render.schemas import Format

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
        description="The key in the receipt and in `Idempotency-Key`: the sink's name, or the name and a tag's digest."
    )
    tag: str | None = Field(description="The delivered tag of a group with several; null for the whole group.")
    revision: int = Field(ge=1)
    status: SinkStatus
    attempts: int = Field(ge=1)
    first: str
    last: str
    external_id: str | None = Field(description="The sink's reference; null if there is none.")
    message: str | None


class GroupItem(Format):
    """A group in the inbox."""

    group_id: str
    state: State
    revision: int = Field(ge=1)
    outcome: Answer | None = Field(description="The verdict; null if there is none yet.")
    message: str | None = Field(description="The message for the user who posted the time; null if there is none.")
    external_id: str | None
    note: str | None = Field(description="A note for the operator; null if there is none.")
    user: str | None
    tag: str | None
    mechanism: Literal["fetch", "webhook"]
    offers: int = Field(ge=1)
    received: str
    offered: str
    decided: str | None
    answered: str | None
    waiting: bool = Field(description="Whether the service has not yet accepted the verdict.")
    asked: str | None
    sinks: list[SinkItem]


class InboxFormat(Format):
    """The document of `time inbox`, and of immediate deliveries by `time retry`."""

    model_config = ConfigDict(title="syncengine inbox")
    format: Literal["syncengine.inbox/v1"]
    groups: list[GroupItem]


class ContentChangeItem(Format):
    """A difference between the content of a group that was delivered or offered before, and what was offered then."""

    field: str = Field(description="The path of the value within the group.")
    before: Any = Field(description="The value before; null if there was none.")
    after: Any = Field(description="The value that was offered; null if there is none.")


class EventItem(Format):
    """An event in the story of a group."""

    at: str
    kind: EventKind
    revision: int
    sink: str | None
    tag: str | None
    outcome: str | None
    message: str | None
    external_id: str | None
    detail: str | None


class ChangedEventItem(EventItem):
    """An offer with other content than before."""

    changes: list[ContentChangeItem] = Field(description="What it changed.")


class GroupFormat(GroupItem):
    """The document of `time show --format json`."""

    model_config = ConfigDict(title="syncengine group")
    format: Literal["syncengine.group/v1"]
    group: dict[str, Any] | None = Field(
        description="The group as the service sent it; null if unreadable or reduced to receipts."
    )
    story: list[ChangedEventItem | EventItem] = Field(description="The events of the group, oldest first.")


class PreviewedSink(Format):
    sink: str
    key: str
    tag: str | None = Field(description="The tag to deliver of a group with several; null for the whole group.")
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
    """The document of `time preview --format json`."""

    model_config = ConfigDict(title="syncengine preview")
    format: Literal["syncengine.preview/v1"]
    group_id: str | None
    outcome: Answer | None = Field(description="The verdict; null if it depends on the row of a lookup.")
    message: str | None
    narrative: str | None
    duration: PreviewedDuration | None
    start: str | None
    sinks: list[PreviewedSink]


class Completeness(Format):
    complete: bool = Field(description="Whether all groups of the service's list were read.")
    unreadable: int = Field(ge=0, description="The number of items of the list that are not a group with an id.")
    hidden: list[str] = Field(
        description="Instants that fill a whole page of the list, so that further groups may be missing."
    )


class ListingFormat(Completeness):
    """The document of `time list --format json`."""

    model_config = ConfigDict(title="syncengine posted time")
    format: Literal["syncengine.posted-time/v1"]
    groups: list[dict[str, Any]] = Field(description="The groups as the service sent them, newest first.")


class LackingItem(Format):
    """A group that the service lists as posted, but for which a sink has no receipt."""

    group_id: str
    sink: str
    tag: str | None = Field(description="The missing tag of a group with several; null for the whole group.")
    submitted: int | None = Field(description="The time of submission, in milliseconds since the epoch.")


class UnpostedItem(Format):
    """A group that a sink took, but that the service lists as pending or does not list (status null)."""

    group_id: str
    sink: str
    tag: str | None
    taken: str
    status: str | None


class OtherItem(Format):
    """A group that the service lists with another status than SUCCESS, and its state in the inbox."""

    group_id: str
    status: str | None
    submitted: int | None
    state: State | None = Field(description="The state of the group in the inbox; null if it is not in the inbox.")
    answer: Answer | None = Field(description="The last status that was or will be sent to the service; null if none.")
    sinks: list[str] = Field(description="The sinks that took the group.")


class AuditFormat(Completeness):
    """The document of `time audit --format json`."""

    model_config = ConfigDict(title="syncengine audit")
    format: Literal["syncengine.audit/v1"]
    unread: list[str] = Field(description="Sinks whose database could not be read, so the inbox was used instead.")
    listed: int
    posted: int
    lacking: list[LackingItem]
    unposted: list[UnpostedItem]
    others: list[OtherItem]


class ExportedItem(Format):
    """A group, or its part for one tag, that a sink took."""

    delivered: str
    group_id: str
    sink: str
    key: str
    revision: int = Field(ge=1)
    external_id: str | None = Field(description="The sink's reference; null if there is none.")
    outcome: Answer | None = Field(description="The verdict on the group; null if there is none yet.")
    tag: str | None = Field(description="The delivered tag, or the tags of a whole group, separated by `, `.")
    user: str | None
    email: str | None
    activity_type: str | None = Field(description="The code of the activity type.")
    date: str | None = Field(description="The local day of the start.")
    start: str | None = Field(description="The local time of the first row.")
    seconds: int | None = Field(description="The duration, or the share of the tag, by the settings of today.")
    hours: float | None = Field(description="The same duration in hours.")
    posted_seconds: int | float | None = Field(description="The total of the whole group, as posted.")
    description: str | None
    group: dict[str, Any] | None = Field(
        description="The group as the service sent it; null if it is reduced to its receipts."
    )


class TimeExportFormat(Format):
    """The document of `time export --format json`."""

    model_config = ConfigDict(title="syncengine time export")
    format: Literal["syncengine.time-export/v1"]
    deliveries: list[ExportedItem] = Field(description="What the sinks took, oldest first.")


class PulledItem(Format):
    """A fetched group and the outcome of its delivery."""

    group_id: str
    status: Answer = Field(description="The verdict on the group.")
    message: str | None = Field(description="The message for the user who posted the time; null if there is none.")
    external_id: str | None = Field(description="The sink's reference; null if there is none.")
    acknowledged: bool = Field(description="Whether the service accepted the verdict.")


class AcknowledgedItem(Format):
    """A status that the service accepted, possibly of a group that was fetched earlier."""

    group_id: str
    status: Answer


class PullFormat(Format):
    """The document of `time pull --format json`."""

    model_config = ConfigDict(title="syncengine pull")
    format: Literal["syncengine.pull/v1"]
    fetched: bool = Field(description="Whether groups were fetched; none are fetched while a sink is down.")
    groups: list[PulledItem]
    acknowledged: list[AcknowledgedItem]
    troubles: list[str] = Field(description="Messages about failures.")


class SelectionFormat(Format):
    """The document of `time retry` for groups that it did not deliver at once."""

    model_config = ConfigDict(title="syncengine selection")
    format: Literal["syncengine.selection/v1"]
    act: Literal["settled", "rehearsed", "asked"] = Field(
        description="`settled`: by `--accept`. `rehearsed`: nothing was done without `-y`."
        " `asked`: left to the process that uses the inbox."
    )
    groups: list[str] = Field(description="The ids of the selected groups.")
    changes: dict[str, list[ContentChangeItem]] = Field(
        {}, description="By group, what the settled content changed; absent if nothing did."
    )


class MechanismFormat(Format):
    """The document of `time register --format json` and `time unregister --format json`."""

    model_config = ConfigDict(title="syncengine mechanism")
    format: Literal["syncengine.mechanism/v1"]
    registered: Literal["fetch", "webhook"] | None = Field(
        None, description="The mechanism that is registered now; absent from `unregister`."
    )
    unregistered: Literal["fetch client", "webhook"] | None = Field(
        None, description="The registration that was ended; null if there was none; absent from `register`."
    )
    messages: list[str] = Field(description="Messages about the actions that were taken.")
