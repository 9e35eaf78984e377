"""What machines read of us: the models of plans, reports and diagnostics as JSON (docs/formats.md §7). Data only.

They are the contract's shape, for schemas and their readers; more may always be added, so nothing is forbidden here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from syncengine.document.text import to_camel

Address = Annotated[str, Field(description="`tag/NAME`, `category/EXTERNAL_ID` or `activity-type/CODE`.")]


class Format(BaseModel):
    """Names are camelCase in JSON; readers must bear additions."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")


class DataRow(Format):
    """Where a generated resource's data came from."""

    file: str = Field(
        description="The file, relative to the project's folder, or the name of the source in the project file."
    )
    row: int = Field(
        description="The line of a CSV or JSON Lines file where the row begins; else the number of the record, from 1."
    )


class DiagnosticItem(Format):
    """One finding and its place."""

    severity: Literal["error", "warning"] = Field(
        description="An error keeps everything from being planned or applied, a warning nothing."
    )
    code: str = Field(description="What is found, as a word that stays: `duplicate-resource`, `same-keyword`, …")
    message: str = Field(description="What is found, in a sentence.")
    file: str | None = Field(description="Relative to the project's folder.")
    line: int | None = Field(ge=1, description="From 1; null where it is about no line.")
    column: int | None = Field(ge=1, description="From 1; null where it is about no part of a line.")
    address: Address | None = Field(description="The resource that it is about.")
    data: DataRow | None = Field(None, description="The row of data that it is about; absent where there is none.")


class Diagnostics(Format):
    """`validate --format json`."""

    model_config = ConfigDict(title="syncengine diagnostics")
    format: Literal["syncengine.diagnostics/v1"] = Field(description="What this document is, and its version.")
    diagnostics: list[DiagnosticItem] = Field(description="Errors and warnings, by file, line and column.")


class Place(Format):
    """Where a resource is declared, or last was."""

    file: str = Field(description="The manifest, relative to the project's folder.")
    line: int = Field(
        ge=1, description="The line where the resource begins, from 1; of what is generated, the line of its template."
    )
    data: DataRow | None = Field(
        None, description="The row of data that it was made of; absent where it was written out."
    )


class PlannedService(Format):
    base_url: str = Field(description="The URL that all requests go below.")
    team: str | None = Field(description="The team that the state belongs to; null before its first apply.")


class PlanSummary(Format):
    """Counts of what would happen."""

    create: int = Field(description="Resources that would be created.")
    update: int = Field(description="Resources that would be changed.")
    delete: int = Field(description="Resources that would be deleted, those that go with their category included.")
    retire: int = Field(description="Tags that would lose their keywords and stay.")
    forget: int = Field(description="Tags that would stay as they are, and be ours no more.")
    unchanged: int = Field(description="Resources that are as they should be.")
    keyword_adds: int = Field(description="Keywords that would be added to tags that exist.")
    keyword_deletes: int = Field(description="Keywords that would be deleted from tags.")
    metadata_deletes: int = Field(description="Metadata entries that would be deleted from tags.")
    cascaded_tags: int = Field(description="Tags that would be deleted with their category.")
    kept: int = Field(description="Resources that no manifest declares and that stay on the service, with a note.")
    requests: int = Field(
        description="Requests that an apply would send, the one that asks for the team and repeats aside."
    )


class GateApproval(Format):
    """Where an approval was found."""

    by: str = Field(description="`--approve-deletes`, `SYNCENGINE_APPROVE_DELETES`, or the name of the project file.")
    line: int | None = Field(ge=1, description="The line of the project file; null elsewhere.")


class GateState(Format):
    """Whether removals need an approval; `approve` is the argument of --approve-deletes."""

    tripped: bool = Field(description="Whether the removals need an approval that is not at hand.")
    reasons: list[str] = Field(description="Why, each with its numbers and its limit.")
    approve: str | None = Field(
        description="COUNT@HASH, the argument of --approve-deletes; null where no approval is needed."
    )
    approved: GateApproval | None = Field(
        None, description="What approves just these removals; null where nothing does."
    )


class SweepItem(Format):
    """Activity types that completing the sync session removes."""

    known: list[str] = Field(
        description="Codes of the activity types that this project knows and that would be deleted."
    )
    unknown: bool = Field(description="Whether activity types that this project does not know would be deleted too.")


class NoteItem(Format):
    """Said, not done."""

    address: Address = Field(description="The resource that it is about.")
    kind: str = Field(description="create-only, ignored, kept, released, …")
    message: str = Field(description="What is said, in a sentence.")
    source: Place | None = Field(description="Where the resource is declared, or last was.")


class FieldChange(Format):
    name: str = Field(description="The field's name.")
    before: Any = Field(description="What the service was last asked to hold; null where nothing.")
    after: Any = Field(description="What it would be asked to hold; null where nothing.")
    effect: Literal["applies", "create-only", "ignored"] = Field(
        description="Whether the service takes it, takes it of new resources only, or ignores it."
    )


class KeywordChange(Format):
    add: list[str] = Field(description="Keywords that would be added.")
    delete: list[str] = Field(description="Keywords that would be deleted.")


class MetadataChange(Format):
    set: dict[str, str] = Field(description="Entries that would be added or changed, with their new values.")
    delete: list[str] = Field(description="Names of the entries that would be deleted.")
    before: dict[str, str] = Field(
        {}, description="What the service was last asked to hold of the entries that would be changed or deleted."
    )


class ChangeItem(Format):
    """What differs for one resource."""

    address: Address = Field(description="The resource that changes.")
    kind: Literal["tag", "category", "activity-type"] = Field(description="What the resource is.")
    action: Literal["create", "update", "delete", "retire", "forget"] = Field(description="What would be done to it.")
    source: Place | None = Field(description="Where it is declared, or last was.")
    fields: list[FieldChange] = Field(description="The fields that differ.")
    keywords: KeywordChange = Field(description="A tag's keywords that differ.")
    metadata: MetadataChange = Field(description="A tag's metadata that differ.")
    reason: str | None = Field(description="Why, where that is not plain from what differs.")
    cascade: Address | None = Field(None, description="The deleted category that takes this tag along.")
    previously: str | None = Field(None, description="The former name of what is renamed; absent elsewhere.")


class PlanFormat(Format):
    """`plan --format json` and `show --format json`."""

    model_config = ConfigDict(title="syncengine plan")
    format: Literal["syncengine.plan/v1"] = Field(description="What this document is, and its version.")
    id: str = Field(description="The name of this plan, which reports refer to.")
    created: str = Field(description="When it was made: RFC 3339.")
    service: PlannedService = Field(description="What it is a plan for.")
    summary: PlanSummary = Field(description="Counts of what would happen.")
    gate: GateState = Field(description="Whether its removals need an approval.")
    sweep: SweepItem | None = Field(
        description="What completing the sync session would delete; null where none would be completed."
    )
    notes: list[NoteItem] = Field(description="What is said and not done.")
    commit: str | None = Field(description="The commit of the manifests; null where Git knows of none.")
    changes: list[ChangeItem] = Field(description="What would change, resource by resource.")
    diagnostics: list[DiagnosticItem] = Field(description="Warnings about the manifests and the plan.")


class ReportSummary(Format):
    applied: int = Field(description="Changes that the service acknowledged.")
    failed: int = Field(description="Changes that the service refused.")
    skipped: int = Field(description="Changes that were not sent.")
    unknown: int = Field(description="Changes that were sent and had no clear answer.")
    requests: int = Field(
        description="Requests that were sent, repeats included; the one that asks for the team aside."
    )
    retries: int = Field(description="How many of those were repeats.")


class SessionItem(Format):
    """The sync session of a run."""

    id: str | None = Field(description="The id that the service gave it; null where there is none.")
    outcome: Literal["completed", "cancelled", "none"] = Field(
        description="What became of it; `none` where it was not completed or never begun."
    )
    reason: str | None = Field(description="Why it was not completed.")


class ErrorItem(Format):
    """Why a change was not applied."""

    operation: str | None = Field(description="The operation of the service that was asked; null where none was.")
    message: str = Field(description="The service's words, or ours where it had none.")
    index: int | None = Field(
        description="The place of the change in its batch, from 0; null where the answer does not say."
    )
    status: int | None = Field(description="The HTTP status of the answer; null where there was none.")


class ResultItem(Format):
    """What became of one change."""

    address: Address = Field(description="The resource.")
    action: str = Field(description="What was to be done to it: `create`, `update`, `delete`, `retire` or `forget`.")
    outcome: Literal["applied", "failed", "skipped", "unknown"] = Field(description="What became of that.")
    source: Place | None = Field(description="Where it is declared, or last was.")
    error: ErrorItem | None = Field(None, description="Why it was not applied; null where it was.")


class ReportFormat(Format):
    """`apply --format json`."""

    model_config = ConfigDict(title="syncengine report")
    format: Literal["syncengine.report/v1"] = Field(description="What this document is, and its version.")
    plan: str | None = Field(description="The id of the plan that was applied; null where there was none.")
    status: Literal["complete", "incomplete", "failed", "refused"] = Field(
        description="What the run came to. `refused`: nothing was sent, by our own decision."
    )
    summary: ReportSummary = Field(description="Counts of what happened.")
    session: SessionItem = Field(description="The sync session of the run.")
    results: list[ResultItem] = Field(description="At least everything that was not applied.")
    diagnostics: list[DiagnosticItem] = Field(description="Errors and warnings of the run as a whole.")
