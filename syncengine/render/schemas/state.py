"""The models of what the commands of `state` print. Fields may be added at any time."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, RootModel

from syncengine.render.formats import DiagnosticItem
from syncengine.render.schemas import Format, pydantic_model
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


# --- what changes a state by hand

Addresses = list[Annotated[str, Field(description="`tag/NAME`, `category/EXTERNAL_ID` or `activity-type/CODE`.")]]


class ForgetFormat(Format):
    """The document of `state forget --format json`."""

    model_config = ConfigDict(title="syncengine forget")
    format: Literal["syncengine.forget/v1"]
    forgotten: Addresses = Field(description="The resources that are recorded no more; the service keeps them.")


class PruneFormat(Format):
    """The document of `state prune --format json`."""

    model_config = ConfigDict(title="syncengine prune")
    format: Literal["syncengine.prune/v1"]
    before: str = Field(description="The time before which the history was, or with `--dry-run` would be, removed.")
    runs: int = Field(description="How many runs were removed.")
    entries: int = Field(description="How many changes of resources were removed.")
    in_doubt: int = Field(description="How many resources in doubt kept their history.")
    dry_run: bool
    compacted: bool = Field(description="Whether the database gave back the space, so that its files have no remains.")


class EraseFormat(Format):
    """The document of `state erase --format json`, without names, because it may end up in a log."""

    model_config = ConfigDict(title="syncengine erase")
    format: Literal["syncengine.erase/v1"]
    erased: int = Field(description="How many resources were erased.")
    entries: int = Field(description="How many changes of the history lost their names and contents.")
    runs: int = Field(description="How many runs can no longer be undone for the erased resources.")
    compacted: bool = Field(description="Whether the database gave back the space, so that its files have no remains.")


class VersionItem(Format):
    id: str = Field(description="The id that `state restore` takes; its first 12 characters are enough.")
    number: int
    when: str
    who: str
    command: str
    run: str | None = Field(description="The id of the run that wrote it; null if no run did.")
    rows: int


class StateVersionsFormat(Format):
    """The document of `state versions --format json`."""

    model_config = ConfigDict(title="syncengine state-versions")
    format: Literal["syncengine.state-versions/v1"]
    versions: list[VersionItem] = Field(description="The restorable versions, newest first.")


class RestoreFormat(Format):
    """The document of `state restore --format json`."""

    model_config = ConfigDict(title="syncengine restore")
    format: Literal["syncengine.restore/v1"]
    restored: str | None = Field(description="The version; null if a state that was set back was accepted as it is.")
    rows: int = Field(description="How many resources are recorded now, all in doubt.")


class RefusalItem(Format):
    times: int
    since: str
    message: str = Field(description="The last words of the service.")


class SetAsideItem(Format):
    """A resource that is set aside."""

    address: str
    reason: str
    until: str | None
    line: int | None = Field(description="The line of the project file; null if it was set aside with a command.")
    refused: RefusalItem


class QuarantineFormat(Format):
    """The document of `state quarantine --format json`: the list, the resource set aside, or with `--end` released."""

    model_config = ConfigDict(title="syncengine quarantine")
    format: Literal["syncengine.quarantine/v1"]
    quarantine: list[SetAsideItem] = Field([], description="The resources in quarantine; absent with an ADDRESS.")
    diagnostics: list[pydantic_model(DiagnosticItem)] = Field(  # type: ignore[valid-type] # made when the program runs
        [], description="Entries without effect; absent with an ADDRESS."
    )
    quarantined: str | None = Field(None, description="The resource that was set aside; absent otherwise.")
    reason: str | None = Field(None, description="Why it was set aside; absent otherwise.")
    until: str | None = Field(None, description="When its quarantine ends by itself; null or absent if it does not.")
    ended: str | None = Field(None, description="The resource whose quarantine was ended; absent otherwise.")


class ImportFormat(Format):
    """The document of `state import --format json`."""

    model_config = ConfigDict(title="syncengine import")
    format: Literal["syncengine.import/v1"]
    imported: int = Field(description="How many resources were recorded, all in doubt.")


class RebuildFormat(Format):
    """The document of `state rebuild --format json`."""

    model_config = ConfigDict(title="syncengine rebuild")
    format: Literal["syncengine.rebuild/v1"]
    commit: str = Field(description="The commit whose manifests are recorded.")
    rebuilt: int = Field(description="How many resources of it are recorded, all in doubt.")
    diagnostics: list[pydantic_model(DiagnosticItem)]  # type: ignore[valid-type] # made when the program runs


class RebindFormat(Format):
    """The document of `state rebind --format json`."""

    model_config = ConfigDict(title="syncengine rebind")
    format: Literal["syncengine.rebind/v1"]
    team: str = Field(description="The team to which the state belongs now.")
    before: str | None = Field(description="The team to which it belonged; null if it belonged to none.")


# --- the lines of an export


class ExportHead(Format):
    """The first line. Absent members have no value."""

    format: Literal["syncengine.state-export/v1"]
    resources: int = Field(ge=0, description="The number of lines that follow.")
    lineage: str | None = None
    base_url: str | None = None
    team: str | None = None
    commit: str | None = Field(None, description="The commit that was applied last.")
    ancestors: list[str] = Field([], description="Commits before it.")
    undone: list[Annotated[list[str], Field(min_length=4, max_length=4)]] = Field(
        [], description="Undone changes: address, what was changed, the run, and the run that undid it."
    )


class ExportedPlace(Format):
    file: str
    line: int
    data: tuple[str, int] | None = Field(None, description="The file of its data, and the row.")


class ExportedRefusal(Format):
    """Times are seconds since the epoch."""

    times: int
    since: float
    at: float
    message: str
    content: str
    last: bool = True


class ExportedQuarantine(Format):
    """Times are seconds since the epoch."""

    reason: str
    at: float
    content: str
    until: float | None = None


class ExportedResource(Format):
    """A line after the first: a recorded resource. Absent members have no value."""

    address: str
    status: Status = Status.ACTIVE
    doubtful: bool = False
    confirmed: bool = False
    fields: dict[str, FieldValue] = Field({})
    keywords: list[str] = Field([])
    metadata: dict[str, str] = Field({})
    server_id: str | None = None
    source: ExportedPlace | None = None
    protect: bool = False
    former_categories: list[str] = Field([])
    run: str | None = None
    plan: str | None = None
    refused: ExportedRefusal | None = None
    quarantine: ExportedQuarantine | None = None


class ExportLine(RootModel[ExportHead | ExportedResource]):
    """One line of what `state export` writes."""

    model_config = ConfigDict(title="syncengine state-export")
