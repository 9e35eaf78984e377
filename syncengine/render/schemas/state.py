"""The models of what `state list`, `show`, `history`, `lock` and `unlock` print. Fields may be added at any time."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from syncengine.render.schemas.from_models import Format
from syncengine.resource import Kind, Status

FieldValue = str | int | bool | list[str] | None


class RecordedPlace(Format):
    file: str = Field(description="The manifest, relative to the project's folder.")
    line: int = Field(ge=1)


class RecordedItem(Format):
    """A resource as it is recorded in the state."""

    address: str = Field(description="`tag/NAME`, `category/EXTERNAL_ID` or `activity-type/CODE`.")
    kind: Kind
    status: Status
    doubtful: bool = Field(description="Whether the service may hold something else, so that it is sent again.")
    fields: dict[str, FieldValue] = Field(description="The recorded fields by name.")
    keywords: list[str] = Field(description="The keywords that take effect, including the name if it is one.")
    metadata: dict[str, str]
    server_id: str | None = Field(description="The id that the service gave a category; null for other kinds.")
    protect: bool = Field(description="Whether the resource is protected from removal.")
    source: RecordedPlace | None = Field(description="The place where the resource was last declared.")


class StateFormat(Format):
    """The document of `state list --format json`."""

    model_config = ConfigDict(title="syncengine state")
    format: Literal["syncengine.state/v1"]
    resources: list[RecordedItem]


class ResourceFormat(RecordedItem):
    """The document of `state show ADDRESS --format json`."""

    model_config = ConfigDict(title="syncengine resource")
    format: Literal["syncengine.resource/v1"]


class StatusChange(Format):
    before: Status | None
    after: Status


class EntryField(Format):
    name: str
    before: FieldValue
    after: FieldValue


class EntryKeywords(Format):
    add: list[str]
    delete: list[str]


class EntryMetadata(Format):
    set: dict[str, str]
    delete: list[str]


class HistoryItem(Format):
    """A change of a resource, or an attempt at one."""

    at: str
    outcome: str = Field(description="`settled`, or what kept the change from being made.")
    run: str | None = Field(description="The id of the run; null if the history of the run was removed.")
    command: str | None
    commit: str | None
    user: str | None
    host: str | None
    job_url: str | None
    operation: str | None = Field(description="The operation that was called; null if nothing was sent.")
    source: RecordedPlace | None
    fields: list[EntryField]
    keywords: EntryKeywords
    metadata: EntryMetadata
    status: StatusChange | None
    message: str | None


class RunItem(Format):
    """A run of a command that writes."""

    id: str
    started: str
    ended: str | None = Field(description="The time when the run ended; null while it runs, or if it was killed.")
    command: str
    outcome: str | None
    plan: str | None
    user: str
    host: str
    job_url: str | None
    commit: str | None
    clean: bool | None = Field(description="Whether the commit had no uncommitted changes; null outside of Git.")
    counts: dict[str, int]
    actor: str | None = Field(description="The person who started the CI job; null outside of CI.")
    approvals: list[str]
    exit_code: int | None
    reason: str | None
    undoes: str | None = Field(None, description="The id of the run that this one undid; absent otherwise.")


class HistoryFormat(Format):
    """The document of `state history --format json`: `entries` of one address, otherwise `runs`."""

    model_config = ConfigDict(title="syncengine history")
    format: Literal["syncengine.history/v1"]
    entries: list[HistoryItem] = Field([], description="The changes of one resource, oldest first; absent of runs.")
    runs: list[RunItem] = Field([], description="The runs, newest first; absent of one resource.")


class HolderItem(Format):
    host: str
    user: str
    pid: int
    command: str


class LockItem(Format):
    """The lock of the state and its holder."""

    id: str = Field(description="The id that `state unlock` takes.")
    holder: HolderItem
    job_url: str | None
    reason: str | None
    since: str
    expires: str | None = Field(description="The time when the lock ends by itself; null if it does not.")


class LockFormat(Format):
    """The document of `state lock --format json` and `state unlock --format json`."""

    model_config = ConfigDict(title="syncengine lock")
    format: Literal["syncengine.lock/v1"]
    lock: LockItem | None = Field(description="The lock that holds now; null after `unlock`.")
    unlocked: str | None = Field(None, description="The id of the lock that was ended; absent from `lock`.")
