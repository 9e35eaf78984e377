"""Formats that machines read: plans, reports and diagnostics (docs/formats.md). Data only.

Documents are made of these models, and so are their JSON Schemas. Annotations of text are descriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from syncengine.apply.report import Outcome, RunStatus
from syncengine.document.model import JsonSchema, Model
from syncengine.errors import Severity
from syncengine.plan.diff import Action, FieldEffect
from syncengine.plan.model import ChangeOrigin
from syncengine.resource import Kind


def one_of(*words: str) -> JsonSchema:
    return JsonSchema({"enum": [str(word) for word in words], "type": "string"})


Address = Annotated[str, "`tag/NAME`, `category/EXTERNAL_ID` or `activity-type/CODE`."]
Line = Annotated[int, Meta(ge=1)]


class OpenModel(Model, frozen=True, gc=False):
    """A document or a part of one. More may always be added, so its readers must bear additions."""


class DataRow(OpenModel, frozen=True):
    """Where a generated resource's data came from."""

    file: Annotated[str, "The file, relative to the project's folder, or the name of the source in the project file."]
    row: Annotated[
        int, "The line of a CSV or JSON Lines file where the row begins; else the number of the record, from 1."
    ]


class DiagnosticItem(OpenModel, frozen=True, omit_defaults=True):
    """One finding and its place."""

    severity: Annotated[str, one_of(*Severity), "An error prevents planning and applying, a warning does not."]
    code: Annotated[str, "The code, which stays the same: `duplicate-resource`, `same-keyword`, …"]
    message: Annotated[str, "The message."]
    file: Annotated[str | None, "Relative to the project's folder."]
    line: Annotated[Line | None, "From 1; null if the message refers to no line."]
    column: Annotated[Line | None, "From 1; null if the message refers to no part of a line."]
    address: Annotated[Address | None, "The resource that it is about."]
    data: Annotated[DataRow | None, "The row of data that it is about; absent where there is none."] = None
    rule: Annotated[str | None, "The project's rule that finds it; absent where none does."] = None


class Diagnostics(OpenModel, frozen=True, tag_field="format", tag="syncengine.diagnostics/v1"):
    """`validate --format json`."""

    diagnostics: Annotated[list[DiagnosticItem], "Errors and warnings, by file, line and column."]


class Place(OpenModel, frozen=True, omit_defaults=True):
    """Where a resource is declared, or last was."""

    file: Annotated[str, "The manifest, relative to the project's folder."]
    line: Annotated[Line, "The line where the resource begins, from 1; of what is generated, the line of its template."]
    data: Annotated[DataRow | None, "The row of data that it was generated from; absent if it was not generated."] = (
        None
    )


class PlannedService(OpenModel, frozen=True):
    base_url: Annotated[str, "The base URL of all requests."]
    team: Annotated[str | None, "The team that the state belongs to; null before its first apply."]


class PlanSummary(OpenModel, frozen=True, omit_defaults=True):
    """Counts of the planned changes."""

    create: Annotated[int, "Resources that would be created."]
    update: Annotated[int, "Resources that would be changed."]
    delete: Annotated[int, "Resources that would be deleted, those that go with their category included."]
    retire: Annotated[int, "Tags that would lose their keywords and stay."]
    forget: Annotated[int, "Tags that would stay as they are and no longer be managed here."]
    unchanged: Annotated[int, "Resources without a change."]
    keyword_adds: Annotated[int, "Keywords that would be added to tags that exist."]
    keyword_deletes: Annotated[int, "Keywords that would be deleted from tags."]
    metadata_deletes: Annotated[int, "Metadata entries that would be deleted from tags."]
    cascaded_tags: Annotated[int, "Tags that would be deleted with their category."]
    kept: Annotated[int, "Resources that no manifest declares and that stay on the service, with a note."]
    requests: Annotated[int, "Requests that an apply would send, without retries and the one that asks for the team."]
    pull_request: Annotated[int | None, "Changes of the pull request itself; with `plan --base` only."] = None
    waiting: Annotated[int | None, "Changes that the plan of the base makes too; with `plan --base` only."] = None


class GateApproval(OpenModel, frozen=True):
    """Where an approval was found."""

    by: Annotated[
        str, "`--approve-deletes`, `SYNCENGINE_APPROVE_DELETES`, the name of the project file, or the run that goes on."
    ]
    line: Annotated[Line | None, "The line of the project file; null elsewhere."]


class ApprovalItem(GateApproval, frozen=True):
    """An approval, and where it was found."""

    approve: Annotated[str, "COUNT@HASH."]


class GateUnit(OpenModel, frozen=True):
    """Removals that one approval is for."""

    unit: Annotated[
        str,
        "A category, a source of data, a manifest, `activity-types`, `removed`, `rule/NAME` (which has `by`), …",
    ]
    count: Annotated[int, "How many removals it has."]
    approve: Annotated[str, "COUNT@HASH, the approval of just these."]
    approved: Annotated[GateApproval | None, "The approval at hand; null while it needs one."]
    kind: Annotated[str, "Its kind: `category`, `source`, `manifest`, `activity-types`, `opened`, …"] = ""
    lost: Annotated[Mapping[str, int], "How many tags, keywords, … it removes, by kind."] = {}
    missing: Annotated[int, "Of a source: how many of its rows or resources are gone."] = 0
    total: Annotated[int, "Of a source: how many there were; 0 elsewhere."] = 0


class RuleUnit(GateUnit, frozen=True):
    """Changes that a rule asks about."""

    by: Annotated[tuple[str, ...], "Who is asked."] = ()


Side = Annotated[str, one_of(*ChangeOrigin)]


class GateState(OpenModel, frozen=True, omit_defaults=True):
    """Whether removals need an approval; `approve` is the argument of --approve-deletes."""

    tripped: Annotated[bool, "Whether the removals need an approval that is not at hand."]
    reasons: Annotated[tuple[str, ...], "Why, each with its numbers and its limit."]
    approve: Annotated[str | None, "COUNT@HASH that approves all units; null where no approval is needed."]
    units: Annotated[list[GateUnit], "The units that need an approval or have one."]
    approved: Annotated[GateApproval | None, "What approves just these removals; null where nothing does."]
    tripped_by: Annotated[
        tuple[Side, ...], "Whose removals trip it; both where they do only together. With `plan --base` only."
    ] = ()


class SweepItem(OpenModel, frozen=True):
    """Activity types that completing the sync session removes."""

    known: Annotated[tuple[str, ...], "Codes of the activity types that this project knows and that would be deleted."]
    unknown: Annotated[bool, "Whether activity types that this project does not know would be deleted too."]


class NoteItem(OpenModel, frozen=True):
    """A remark of the plan that changes nothing."""

    address: Annotated[Address, "The resource that it is about."]
    kind: Annotated[str, "create-only, ignored, kept, released, …"]
    message: Annotated[str, "The message."]
    source: Annotated[Place | None, "Where the resource is declared, or last was."]


class FieldChangeItem(OpenModel, frozen=True):
    schema_name = "FieldChange"
    name: Annotated[str, "The field's name."]
    before: Annotated[Any, "The recorded value; null if there is none."]
    after: Annotated[Any, "The desired value; null if there is none."]
    effect: Annotated[
        str, one_of(*FieldEffect), "Whether the service accepts it, accepts it for new resources only, or ignores it."
    ]


class KeywordChange(OpenModel, frozen=True):
    add: Annotated[tuple[str, ...], "Keywords that would be added."]
    delete: Annotated[tuple[str, ...], "Keywords that would be deleted."]


class MetadataChange(OpenModel, frozen=True):
    set: Annotated[Mapping[str, str], "Entries that would be added or changed, with their new values."]
    delete: Annotated[tuple[str, ...], "Names of the entries that would be deleted."]
    before: Annotated[Mapping[str, str], "Recorded values of the entries that would be changed or deleted."] = {}


class RefusedItem(OpenModel, frozen=True):
    """The refusals of a resource that was not applied since."""

    times: Annotated[int, "The number of runs in which it was refused."]
    since: Annotated[str, "The first of them, RFC 3339 in UTC."]
    message: Annotated[str, "The service's words, of the last."]


class ChangeItem(OpenModel, frozen=True, omit_defaults=True):
    """The changes of one resource."""

    address: Annotated[Address, "The resource that changes."]
    kind: Annotated[str, one_of(Kind.TAG, Kind.CATEGORY, Kind.ACTIVITY_TYPE), "The kind of the resource."]
    action: Annotated[str, one_of(*(action.word for action in Action)), "The planned action."]
    source: Annotated[Place | None, "Where it is declared, or last was."]
    fields: Annotated[list[FieldChangeItem], "The fields that differ."]
    keywords: Annotated[KeywordChange, "A tag's keywords that differ."]
    metadata: Annotated[MetadataChange, "A tag's metadata that differ."]
    reason: Annotated[str | None, "The reason, if the differences do not show it."]
    cascade: Annotated[Address | None, "The deleted category that takes this tag along."] = None
    previously: Annotated[str | None, "The former name of what is renamed; absent elsewhere."] = None
    opens: Annotated[
        tuple[str, ...],
        "PRIVATE tags that a rename makes public: former names, and its own where that was one too; absent elsewhere.",
    ] = ()
    merges: Annotated[
        tuple[str, ...], "All former names of what is renamed, where they are several; absent elsewhere."
    ] = ()
    origin: Annotated[
        Side | None,
        "Whether the plan of the base makes this change too (`waiting`); with `plan --base` only.",
    ] = None
    waits: Annotated[str | None, "Why it waits, which `reason` ends with; with `plan --base` only."] = None
    refused: Annotated[RefusedItem | None, "Its last refusal; absent where it was not refused, or applied since."] = (
        None
    )


class PlanBasis(OpenModel, frozen=True):
    """The environment and state that the plan is for, and its inputs in Git."""

    environment: Annotated[str | None, "The environment of the project file; null without one."]
    lineage: Annotated[str | None, "The state; null before its first apply."]
    tree: Annotated[str | None, "The Git tree of the project's folder in its commit; null outside Git."]
    uncommitted: Annotated[
        tuple[str, ...] | None,
        "Files that it was made from and that this tree does not hold as they were; null where the plan was not saved.",
    ]


class ValueChangeItem(OpenModel, frozen=True):
    """A part of a change in which two plans differ."""

    path: Annotated[tuple[str | int, ...], "Where it is in the change: `[fields, description, after]`."]
    before: Annotated[Any, "The value in the reviewed plan; null if there is none."]
    after: Annotated[Any, "The value in today's plan; null if there is none."]


class DifferentChange(OpenModel, frozen=True):
    """A change that both plans have, in two meanings."""

    address: Annotated[Address, "The resource that changes."]
    changes: Annotated[list[ValueChangeItem], "In what it differs."]


class ExcessItem(OpenModel, frozen=True):
    """One way in which today's plan is more than the reviewed one."""

    address: Annotated[Address | None, "The resource; null where it is about the plan as a whole."]
    message: Annotated[str, "In what way."]


class SinceItem(OpenModel, frozen=True):
    """Today's plan compared with the reviewed one (`plan --since`)."""

    plan: Annotated[str, "The id of the reviewed plan."]
    new: Annotated[tuple[str, ...], "Addresses that only today's plan changes."]
    gone: Annotated[tuple[str, ...], "Addresses that only the reviewed plan changes."]
    different: Annotated[list[DifferentChange], "Changes that mean something else today."]
    same: Annotated[int, "Changes that are as they were reviewed, or begun."]
    more: Annotated[list[ExcessItem], "What was not reviewed: `apply --reviewed` refuses the plan where there is any."]


class BaseItem(OpenModel, frozen=True):
    """The revision that `plan --base` compares with."""

    schema_name = "Base"
    ref: Annotated[str, "The revision, as it was named."]
    commit: Annotated[str, "Its commit."]


class UndoItem(OpenModel, frozen=True):
    """The run that a plan takes back."""

    run: Annotated[str, "Its id in the history."]
    command: Annotated[str, "The command that it was: apply or serve."]
    started: Annotated[str, "When it began: RFC 3339."]
    commit: Annotated[str | None, "The commit whose manifests it applied; null where none is known."]
    revert: Annotated[str | None, "How to take that commit back in Git; null where it is not known."]
    forced: Annotated[bool, "Whether changes of other runs since are taken back too."]
    left_out: Annotated[tuple[Address, ...], "Resources of the run that are left alone; notes say why."]
    targets: Annotated[tuple[str, ...], "What is taken back, as globs on addresses; empty: all of it."]
    excludes: Annotated[tuple[str, ...], "What is not taken back, as globs on addresses."]


class PlanFormat(OpenModel, frozen=True, omit_defaults=True, tag_field="format", tag="syncengine.plan/v1"):
    """`plan --format json` and `show --format json`."""

    id: Annotated[str, "The name of this plan, which reports refer to."]
    created: Annotated[str, "When it was made: RFC 3339."]
    service: Annotated[PlannedService, "The service and the team."]
    summary: Annotated[PlanSummary, "Counts of the planned changes."]
    gate: Annotated[GateState, "Whether its removals need an approval."]
    sweep: Annotated[
        SweepItem | None, "What completing the sync session would delete; null where none would be completed."
    ]
    notes: Annotated[list[NoteItem], "Notes: what the plan leaves undone, or the service ignores."]
    commit: Annotated[str | None, "The commit of the manifests; null where Git knows of none."]
    changes: Annotated[list[ChangeItem], "What would change, resource by resource."]
    diagnostics: Annotated[list[DiagnosticItem], "Warnings about the manifests and the plan."]
    basis: Annotated[PlanBasis | None, "What it was made for, and from; absent from plans of earlier versions."] = None
    since: Annotated[SinceItem | None, "Its comparison with a reviewed plan; absent without `--since`."] = None
    base: Annotated[BaseItem | None, "The revision that it is compared with; absent without `plan --base`."] = None
    undo: Annotated[UndoItem | None, "The run that it takes back; absent without `plan --undo`."] = None


class TestSummary(OpenModel, frozen=True):
    passed: Annotated[int, "Tests whose plan is as expected."]
    failed: Annotated[int, "Tests whose plan is not."]


class TestDifference(OpenModel, frozen=True):
    """A value that is not as expected."""

    path: Annotated[tuple[str | int, ...], "The keys under `expect`, and positions in lists, from 0."]
    expected: Annotated[Any, "The expected value; null if none is."]
    actual: Annotated[Any, "The value of the plan; null if there is none."]


class TestItem(OpenModel, frozen=True):
    """The result of one test."""

    name: Annotated[str, "The name of the test."]
    file: Annotated[str, "The file that it stands in, relative to the project's folder."]
    line: Annotated[Line, "Its line, from 1."]
    outcome: Annotated[str, one_of("passed", "failed"), "Whether the plan is as expected."]
    differences: Annotated[list[TestDifference], "How the plan differs."]
    diagnostics: Annotated[list[DiagnosticItem], "Errors that kept the plan from being made."]


class TestFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.test/v1"):
    """`test --format json`."""

    summary: Annotated[TestSummary, "Counts of the results."]
    tests: Annotated[list[TestItem], "The result of each test, in the order of the files."]


class ReportSummary(OpenModel, frozen=True):
    applied: Annotated[int, "Changes that the service acknowledged."]
    failed: Annotated[int, "Changes that the service refused."]
    skipped: Annotated[int, "Changes that were not sent."]
    unknown: Annotated[int, "Changes that were sent and had no clear answer."]
    requests: Annotated[int, "Requests that were sent, with retries, without the one that asks for the team."]
    retries: Annotated[int, "How many of those were retries."]


class SessionItem(OpenModel, frozen=True):
    """The sync session of a run."""

    id: Annotated[str | None, "The id that the service gave it; null where there is none."]
    outcome: Annotated[
        str,
        one_of("completed", "cancelled", "none"),
        "The outcome of the session; `none` where it was neither completed nor cancelled.",
    ]
    reason: Annotated[str | None, "Why it was not completed."]


class ErrorItem(OpenModel, frozen=True):
    """Why a change was not applied."""

    operation: Annotated[str | None, "The operation that was called; null if none was."]
    message: Annotated[str, "The service's message, or ours if it sent none."]
    index: Annotated[int | None, "The index of the change in its batch, from 0; null where the answer does not say."]
    status: Annotated[int | None, "The HTTP status of the answer; null where there was none."]


class ResultItem(OpenModel, frozen=True):
    """The outcome of one change."""

    address: Annotated[Address, "The resource."]
    action: Annotated[str, "The planned action: `create`, `update`, `delete`, `retire` or `forget`."]
    outcome: Annotated[str, one_of(*Outcome), "The outcome."]
    source: Annotated[Place | None, "Where it is declared, or last was."]
    error: Annotated[ErrorItem | None, "Why it was not applied; null where it was."] = None


class ReportFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.report/v1"):
    """`apply --format json`."""

    plan: Annotated[str | None, "The id of the plan that was applied; null where there was none."]
    status: Annotated[
        str, one_of(*RunStatus), "The outcome of the run. `refused`: nothing was sent, by decision of the program."
    ]
    summary: Annotated[ReportSummary, "Counts of the results."]
    session: Annotated[SessionItem, "The sync session of the run."]
    results: Annotated[list[ResultItem], "The results of resources: at least of those that were not applied."]
    diagnostics: Annotated[list[DiagnosticItem], "Errors and warnings of the run as a whole."]
    started: Annotated[str | None, "When the run began: RFC 3339; null where there was no project."] = None
    ended: Annotated[str | None, "When the run ended: RFC 3339; null where there was no project."] = None
    team: Annotated[str | None, "The team; null where it is not known yet."] = None
    environment: Annotated[str | None, "The environment of the project file; null without one."] = None
    commit: Annotated[str | None, "The commit of the manifests; null where Git knows of none."] = None
    tree: Annotated[
        str | None, "The Git tree of the project's folder at that commit; null where Git knows of none."
    ] = None
    actor: Annotated[str | None, "Who had the CI job run; null outside CI."] = None
    job: Annotated[str | None, "The page of the CI job; null outside CI."] = None
    approvals: Annotated[tuple[ApprovalItem, ...], "The approvals that were used."] = ()
