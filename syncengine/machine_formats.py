"""What machines read of us: the models of plans, reports and diagnostics as JSON (product.md §7). Data only.

They are the contract's shape, for schemas and their readers; more may always be added, so nothing is forbidden here.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Address = str
"""`tag/NAME`, `category/EXTERNAL_ID` or `activity-type/CODE`."""


class Format(BaseModel):
    """Names are camelCase in JSON; readers must bear additions."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")


class DataRow(Format):
    """Where a generated resource's data came from."""

    file: str
    row: int


class DiagnosticItem(Format):
    """One finding and its place."""

    severity: Literal["error", "warning"]
    code: str
    message: str
    file: str | None = Field(description="Relative to the project's folder.")
    line: int | None = Field(ge=1)
    column: int | None = Field(ge=1)
    address: Address | None
    data: DataRow | None = Field(None, description="The row of data that it is about; absent where there is none.")


class Diagnostics(Format):
    """`validate --format json`."""

    model_config = ConfigDict(title="syncengine diagnostics")
    format: Literal["syncengine.diagnostics/v1"]
    diagnostics: list[DiagnosticItem]


class Place(Format):
    """Where a resource is declared, or last was."""

    file: str
    line: int = Field(ge=1)
    data: DataRow | None = None


class PlannedService(Format):
    base_url: str
    team: str | None


class PlanSummary(Format):
    """Counts of what would happen."""

    create: int
    update: int
    delete: int
    retire: int
    forget: int
    unchanged: int
    keyword_adds: int
    keyword_deletes: int
    metadata_deletes: int
    cascaded_tags: int
    kept: int
    requests: int


class GateState(Format):
    """Whether removals need an approval; `approve` is the argument of --approve-deletes."""

    tripped: bool
    reasons: list[str]
    approve: str | None


class SweepItem(Format):
    """Activity types that completing the sync session removes."""

    known: list[str]
    unknown: bool


class NoteItem(Format):
    """Said, not done."""

    address: Address
    kind: str = Field(description="create-only, ignored, kept, released, …")
    message: str
    source: Place | None


class FieldChange(Format):
    name: str
    before: Any
    after: Any
    effect: Literal["applies", "create-only", "ignored"]


class KeywordChange(Format):
    add: list[str]
    delete: list[str]


class MetadataChange(Format):
    set: dict[str, str]
    delete: list[str]


class ChangeItem(Format):
    """What differs for one resource."""

    address: Address
    kind: Literal["tag", "category", "activity-type"]
    action: Literal["create", "update", "delete", "retire", "forget"]
    source: Place | None
    fields: list[FieldChange]
    keywords: KeywordChange
    metadata: MetadataChange
    reason: str | None
    cascade: Address | None = Field(None, description="The deleted category that takes this tag along.")


class PlanFormat(Format):
    """`plan --format json` and `show --format json`."""

    model_config = ConfigDict(title="syncengine plan")
    format: Literal["syncengine.plan/v1"]
    id: str
    created: str = Field(description="RFC 3339.")
    service: PlannedService
    summary: PlanSummary
    gate: GateState
    sweep: SweepItem | None
    notes: list[NoteItem]
    commit: str | None
    changes: list[ChangeItem]
    diagnostics: list[DiagnosticItem]


class ReportSummary(Format):
    applied: int
    failed: int
    skipped: int
    unknown: int
    requests: int
    retries: int


class SessionItem(Format):
    """The sync session of a run."""

    id: str | None
    outcome: Literal["completed", "cancelled", "none"]
    reason: str | None


class ErrorItem(Format):
    """Why a change was not applied."""

    operation: str | None
    message: str
    index: int | None
    status: int | None


class ResultItem(Format):
    """What became of one change."""

    address: Address
    action: str
    outcome: Literal["applied", "failed", "skipped", "unknown"]
    source: Place | None
    error: ErrorItem | None = None


class ReportFormat(Format):
    """`apply --format json`."""

    model_config = ConfigDict(title="syncengine report")
    format: Literal["syncengine.report/v1"]
    plan: str | None
    status: Literal["complete", "incomplete", "failed", "refused"]
    summary: ReportSummary
    session: SessionItem
    results: list[ResultItem] = Field(description="At least everything that was not applied.")
    diagnostics: list[DiagnosticItem]
