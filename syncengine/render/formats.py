"""The models of JSON plans, reports and diagnostics, and of what small commands print (docs/formats.md). Data only.

The documents, their JSON Schemas and all views of a plan are made from these models. A text in an annotation is a
description.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from syncengine.apply.report import Outcome, RunStatus
from syncengine.errors import Severity, Undone, with_row
from syncengine.plan.aim import RemovalCause
from syncengine.plan.diff import OPENED, Action, FieldEffect, SendCause
from syncengine.plan.model import ChangeOrigin
from syncengine.resource import Kind, Row, Value, is_blank


@dataclass(frozen=True, slots=True, eq=False)
class JsonSchema:
    """An annotation with a field's JSON Schema, for fields whose type does not determine it."""

    schema: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return dict(self.schema)


def one_of(*words: str) -> JsonSchema:
    return JsonSchema({"enum": [str(word) for word in words], "type": "string"})


Address = Annotated[str, "`tag/NAME`, `category/EXTERNAL_ID` or `activity-type/CODE`."]
PlannedAddress = Annotated[Address, Meta(pattern=f"^({'|'.join(Kind)})/(?s:.)")]
Line = Annotated[int, Meta(ge=1)]


class OpenModel(Struct, frozen=True, rename="camel", gc=False):
    """A document or a part of one. Fields may be added at any time, so readers must ignore unknown fields."""


class DataRow(OpenModel, frozen=True):
    """The row of data that a resource was generated from."""

    file: Annotated[str, "The file, relative to the project's folder, or the name of the source in the project file."]
    row: Annotated[
        int, "The line where the row begins in a CSV or JSON Lines file; otherwise the number of the record, from 1."
    ]


class DiagnosticItem(OpenModel, frozen=True, omit_defaults=True):
    """An error or a warning, with its place."""

    severity: Annotated[Severity, one_of(*Severity), "An error prevents planning and applying, a warning does not."]
    code: Annotated[str, "A stable code: `duplicate-resource`, `same-keyword`, …"]
    message: Annotated[str, "The message."]
    file: Annotated[str | None, "The file, relative to the project's folder; null if the message refers to no file."]
    line: Annotated[Line | None, "The line, from 1; null if the message refers to no line."]
    column: Annotated[Line | None, "The column, from 1; null if the message refers to no part of a line."]
    address: Annotated[Address | None, "The resource that the message is about; null if there is none."]
    data: Annotated[DataRow | None, "The row of data that the message is about; absent if there is none."] = None
    rule: Annotated[str | None, "The project's rule that raised it; absent if no rule did."] = None


class Diagnostics(OpenModel, frozen=True, tag_field="format", tag="syncengine.diagnostics/v1"):
    """The document of `validate --format json`."""

    diagnostics: Annotated[list[DiagnosticItem], "Errors and warnings, sorted by file, line and column."]


class Place(OpenModel, frozen=True, omit_defaults=True):
    """The place where a resource is declared or was last declared."""

    file: Annotated[str, "The manifest, relative to the project's folder."]
    line: Annotated[Line, "The line where the resource begins, from 1; the line of the template if it was generated."]
    data: Annotated[DataRow | None, "The row of data that the resource was generated from; absent if it was not."] = (
        None
    )

    def __str__(self) -> str:
        return with_row(f"{self.file}:{self.line}", Row(self.data.file, self.data.row) if self.data else None)


class PlannedService(OpenModel, frozen=True):
    base_url: Annotated[str, "The base URL of all requests."]
    team: Annotated[str | None, "The team that the state belongs to; null before its first apply."]


class PlanSummary(OpenModel, frozen=True, omit_defaults=True):
    """Counts of the planned changes."""

    create: Annotated[int, "Resources that would be created."]
    update: Annotated[int, "Resources that would be changed."]
    delete: Annotated[int, "Resources that would be deleted, including tags deleted with their category."]
    retire: Annotated[int, "Tags that would lose their keywords but stay on the service."]
    forget: Annotated[int, "Tags that would stay unchanged on the service and no longer be managed by this project."]
    unchanged: Annotated[int, "Resources without a change."]
    keyword_adds: Annotated[int, "Keywords that would be added to existing tags."]
    keyword_deletes: Annotated[int, "Keywords that would be deleted from tags."]
    metadata_deletes: Annotated[int, "Metadata entries that would be deleted from tags."]
    cascaded_tags: Annotated[int, "Tags that would be deleted with their category."]
    kept: Annotated[int, "Resources that no manifest declares but that stay on the service; a note gives the reason."]
    requests: Annotated[int, "Requests that an apply would send, not counting retries and the request for the team."]
    pull_request: Annotated[int | None, "Changes of the pull request itself; only with `plan --base`."] = None
    waiting: Annotated[int | None, "Changes that the plan of the base also makes; only with `plan --base`."] = None


class GateApproval(OpenModel, frozen=True):
    """The place where an approval was found."""

    by: Annotated[
        str, "`--approve-deletes`, `SYNCENGINE_APPROVE_DELETES`, the name of the project file, or the continued run."
    ]
    line: Annotated[Line | None, "The line of the project file; null for other places."]

    def __str__(self) -> str:
        return self.by if self.line is None else f"{self.by}:{self.line}"


class ApprovalItem(GateApproval, frozen=True):
    """An approval and the place where it was found."""

    approve: Annotated[str, "The approval, COUNT@HASH."]


Side = Annotated[ChangeOrigin, one_of(*ChangeOrigin)]


class GateUnit(OpenModel, frozen=True):
    """A unit of removals or other changes, which one approval covers."""

    unit: Annotated[
        str,
        "The unit: a category, a source of data, a manifest, `activity-types`, `removed`, `rule/NAME` (with `by`), …",
    ]
    count: Annotated[int, "The number of its removals or other changes."]
    approve: Annotated[str, "The approval of exactly this unit, COUNT@HASH."]
    approved: Annotated[GateApproval | None, "The place of the approval that was given; null while one is needed."]
    kind: Annotated[str, "The kind of the unit: `category`, `source`, `manifest`, `activity-types`, `opened`, …"] = ""
    lost: Annotated[Mapping[str, int], "The number of removed tags, keywords, …, by kind."] = {}
    missing: Annotated[int, "For a source: the number of its missing rows or resources; otherwise 0."] = 0
    total: Annotated[int, "For a source: the number of its previous rows or resources; otherwise 0."] = 0
    by: Annotated[tuple[str, ...] | UnsetType, "Only for a rule: the people whom it asks for the approval."] = UNSET
    origin: Annotated[Side | UnsetType, "With `--base`: whose unit it is."] = UNSET


class GateState(OpenModel, frozen=True, omit_defaults=True):
    """The gate: whether removals need an approval. `approve` is the argument of `--approve-deletes`."""

    tripped: Annotated[bool, "Whether an approval is needed that has not been given."]
    reasons: Annotated[tuple[str, ...], "The reasons, each with its numbers and its limit."]
    approve: Annotated[
        str | None, "The approval of all removals and all tags made public, COUNT@HASH; null if no approval is needed."
    ]
    units: Annotated[list[GateUnit], "The units that need an approval or have one."]
    approved: Annotated[GateApproval | None, "The place of the approval of these very removals; null if none."]
    tripped_by: Annotated[
        tuple[Side, ...], "Whose removals trip the gate; both if they do so only together. Only with `plan --base`."
    ] = ()


class SweepItem(OpenModel, frozen=True, omit_defaults=True):
    """Activity types that completing the sync session would delete."""

    known: Annotated[tuple[str, ...], "Codes of the activity types known to this project that would be deleted."]
    unknown: Annotated[bool, "Whether activity types unknown to this project would also be deleted."]
    origin: Annotated[Side | None, "`waiting` if the plan of the base also sweeps; only with `plan --base`."] = None


class NoteItem(OpenModel, frozen=True):
    """A note of the plan, for which nothing is sent to the service."""

    address: Annotated[PlannedAddress, "The resource that the note is about."]
    kind: Annotated[str, "The kind of the note: `create-only`, `ignored`, `kept`, `released`, …"]
    message: Annotated[str, "The message."]
    source: Annotated[Place | None, "The place where the resource is declared or was last declared."]


AnyValue = Annotated[Value | None, JsonSchema({})]


class FieldChangeItem(OpenModel, frozen=True, omit_defaults=True):
    schema_name = "FieldChange"
    name: Annotated[str, "The name of the field."]
    before: Annotated[AnyValue, "The recorded value; null if there is none."]
    after: Annotated[AnyValue, "The desired value; null if there is none."]
    effect: Annotated[
        FieldEffect,
        one_of(*FieldEffect),
        "Whether the service accepts the change, only for new resources, or ignores it.",
    ]
    replaced: Annotated[bool, "Whether another field has the same information now; absent if not."] = False

    @property
    def clears(self) -> bool:
        """Whether the change clears a value that the service holds."""
        empties = self.effect is FieldEffect.APPLIES and not is_blank(self.before) and is_blank(self.after)
        return empties and not self.replaced


class KeywordChange(OpenModel, frozen=True):
    add: Annotated[tuple[str, ...], "Keywords that would be added."]
    delete: Annotated[tuple[str, ...], "Keywords that would be deleted."]


class MetadataChange(OpenModel, frozen=True):
    set: Annotated[Mapping[str, str], "Entries that would be added or changed, with their new values."]
    delete: Annotated[tuple[str, ...], "Names of the entries that would be deleted."]
    before: Annotated[Mapping[str, str], "Recorded values of the entries that would be changed or deleted."] = {}


class RefusedItem(OpenModel, frozen=True):
    """The rejections of a resource by the service since it was last applied."""

    times: Annotated[int, "The number of runs in which the resource was rejected."]
    since: Annotated[str, "The time of the first rejection, RFC 3339 in UTC."]
    message: Annotated[str, "The service's message at the last rejection."]


ACTIONS = tuple(action.word for action in Action)
_OPENED = FieldChangeItem(*structs.astuple(OPENED))


class ChangeItem(OpenModel, frozen=True, omit_defaults=True):
    """The changes of one resource."""

    address: Annotated[PlannedAddress, "The resource that changes."]
    kind: Annotated[Kind, one_of(Kind.TAG, Kind.CATEGORY, Kind.ACTIVITY_TYPE), "The kind of the resource."]
    action: Annotated[str, Meta(pattern=f"^({'|'.join(ACTIONS)})$"), one_of(*ACTIONS), "The planned action."]
    source: Annotated[Place | None, "The place where it is declared or was last declared."]
    fields: Annotated[list[FieldChangeItem], "The fields that differ."]
    keywords: Annotated[KeywordChange, "A tag's keywords that differ."]
    metadata: Annotated[MetadataChange, "A tag's metadata that differ."]
    reason: Annotated[str | None, "The reason for the change, if its differences do not show it."]
    cascade: Annotated[Address | None, "The deleted category with which this tag is deleted; absent otherwise."] = None
    previously: Annotated[str | None, "The former name of a renamed resource; absent otherwise."] = None
    opens: Annotated[
        tuple[str, ...],
        "Names of the tags of PRIVATE or unknown visibility that a rename makes public, possibly including its own "
        "name; the own name of a tag of unknown visibility that becomes public; absent otherwise.",
    ] = ()
    merges: Annotated[
        tuple[str, ...], "All former names of a renamed resource, if there are several; absent otherwise."
    ] = ()
    before: Annotated[
        Mapping[str, Annotated[Value | Mapping[str, str] | None, JsonSchema({})]] | None,
        "The recorded content of a removed resource: its fields, and a tag's keywords and metadata. "
        "The service cannot give it back. Absent for other changes.",
    ] = None
    cause: Annotated[RemovalCause | None, "The cause of a removal, which `reason` explains; absent otherwise."] = None
    origin: Annotated[
        Side | None,
        "`waiting` if the plan of the base also makes this change; only with `plan --base`.",
    ] = None
    waits: Annotated[str | None, "Why the change waits; only with `plan --base`."] = None
    wait_cause: Annotated[str | None, "The beginning of `waits`, which changes may share; absent otherwise."] = None
    again: Annotated[
        SendCause | None, "Why a recorded resource is sent, apart from what differs; absent if nothing else is why."
    ] = None
    refused: Annotated[RefusedItem | None, "Rejections by the service; absent if none since its last apply."] = None

    @property
    def name(self) -> str:
        """The name in the address."""
        return self.address.partition("/")[2]

    @property
    def opening(self) -> FieldChangeItem | None:
        """The change of visibility by which tags become public, or `None`. Before it, `None` means unknown."""
        is_opening = self.opens or _OPENED in self.fields
        return next((each for each in self.fields if each.name == OPENED.name), None) if is_opening else None


class PlanBasis(OpenModel, frozen=True):
    """The environment and the state of the plan, and its inputs in Git."""

    environment: Annotated[str | None, "The environment of the project file; null without one."]
    lineage: Annotated[str | None, "The lineage of the state; null before its first apply."]
    tree: Annotated[str | None, "The Git tree of the project's folder in its commit; null outside of Git."]
    uncommitted: Annotated[
        tuple[str, ...] | None,
        "Input files that differed from this tree or were missing in it; null if the plan was not saved.",
    ]


class ValueChangeItem(OpenModel, frozen=True):
    """A part of a change in which two plans differ."""

    path: Annotated[tuple[str | int, ...], "The path to the value within the change: `[fields, description, after]`."]
    before: Annotated[Any, "The value in the reviewed plan; null if there is none."]
    after: Annotated[Any, "The value in today's plan; null if there is none."]


class DifferentChange(OpenModel, frozen=True):
    """A change that both plans make to the same resource, but differently."""

    address: Annotated[Address, "The resource that changes."]
    changes: Annotated[list[ValueChangeItem], "The values that differ."]


class ExcessItem(OpenModel, frozen=True):
    """One change that today's plan makes beyond the reviewed plan."""

    address: Annotated[Address | None, "The resource; null if the message is about the plan as a whole."]
    message: Annotated[str, "The change in a sentence."]


class SinceItem(OpenModel, frozen=True):
    """Today's plan compared with the reviewed one (`plan --since`)."""

    plan: Annotated[str, "The id of the reviewed plan."]
    new: Annotated[tuple[str, ...], "Addresses that only today's plan changes."]
    gone: Annotated[tuple[str, ...], "Addresses that only the reviewed plan changes."]
    different: Annotated[list[DifferentChange], "Changes that differ between the plans."]
    same: Annotated[int, "The number of changes that are as reviewed, or already begun."]
    more: Annotated[list[ExcessItem], "Changes beyond the reviewed plan, for which `apply --reviewed` rejects it."]


class BaseItem(OpenModel, frozen=True):
    """The revision that `plan --base` compares with."""

    schema_name = "Base"
    ref: Annotated[str, "The revision as given on the command line."]
    commit: Annotated[str, "The commit of the revision."]


class UndoItem(OpenModel, frozen=True):
    """The run that a plan undoes."""

    run: Annotated[str, "The id of the run in the history."]
    command: Annotated[str, "The command of the run: `apply` or `serve`."]
    started: Annotated[str, "The time when the run began, RFC 3339."]
    commit: Annotated[str | None, "The commit whose manifests the run applied; null if it is unknown."]
    revert: Annotated[str | None, "A command that reverts this commit in Git; null if it is unknown."]
    forced: Annotated[bool, "Whether later changes by other runs are undone as well."]
    left_out: Annotated[tuple[Address, ...], "Resources of the run that are not undone; notes give the reasons."]
    targets: Annotated[tuple[str, ...], "The resources to undo, as globs on addresses; empty for all of the run."]
    excludes: Annotated[tuple[str, ...], "The resources not to undo, as globs on addresses."]


class PlanFormat(OpenModel, frozen=True, omit_defaults=True, tag_field="format", tag="syncengine.plan/v1"):
    """The document of `plan --format json` and `show --format json`."""

    id: Annotated[str, "The id of this plan, to which reports refer."]
    created: Annotated[str, "The time when the plan was made, RFC 3339."]
    service: Annotated[PlannedService, "The service and the team."]
    summary: Annotated[PlanSummary, "Counts of the planned changes."]
    gate: Annotated[GateState, "The gate: whether the plan needs an approval."]
    sweep: Annotated[SweepItem | None, "The deletions by completing the sync session; null if none would be completed."]
    notes: Annotated[list[NoteItem], "Notes on changes that are not made or that the service ignores."]
    commit: Annotated[str | None, "The commit of the manifests; null if there is none."]
    changes: Annotated[list[ChangeItem], "The planned changes, one for each resource."]
    diagnostics: Annotated[list[DiagnosticItem], "Warnings about the manifests and the plan."]
    basis: Annotated[PlanBasis, "Its environment, state and inputs."]
    since: Annotated[SinceItem | None, "The comparison with a reviewed plan; absent without `--since`."] = None
    base: Annotated[BaseItem | None, "The revision that it is compared with; absent without `plan --base`."] = None
    undo: Annotated[UndoItem | None, "The run that the plan undoes; absent without `plan --undo`."] = None
    redoes: Annotated[
        tuple[Address, ...], "Resources for which the manifests ask again for what an undone run did; absent if none."
    ] = ()

    @property
    def is_undone(self) -> bool:
        """Whether the manifests, or the pull request's own changes, still ask for changes of an undone run."""
        asks = any(diagnostic.code == Undone.code for diagnostic in self.diagnostics)
        waiting = {change.address for change in self.changes if change.origin is ChangeOrigin.WAITING}
        return asks and (self.base is None or any(address not in waiting for address in self.redoes))


class TestSummary(OpenModel, frozen=True):
    passed: Annotated[int, "The number of tests whose plan is as expected."]
    failed: Annotated[int, "The number of tests whose plan is not as expected."]


class TestDifference(OpenModel, frozen=True):
    """A difference between the expected and the actual plan."""

    path: Annotated[tuple[str | int, ...], "The path under `expect`: keys, and positions in lists, from 0."]
    expected: Annotated[Any, "The expected value; null if no value is expected."]
    actual: Annotated[Any, "The value in the plan; null if there is none."]


class TestItem(OpenModel, frozen=True):
    """The result of one test."""

    name: Annotated[str, "The name of the test."]
    file: Annotated[str, "The file of the test, relative to the project's folder."]
    line: Annotated[Line, "The line of the test, from 1."]
    outcome: Annotated[str, one_of("passed", "failed"), "The outcome: `passed` if the plan is as expected."]
    differences: Annotated[list[TestDifference], "The differences between the expected and the actual plan."]
    diagnostics: Annotated[list[DiagnosticItem], "Errors that prevented the plan."]


class TestFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.test/v1"):
    """The document of `test --format json`."""

    summary: Annotated[TestSummary, "Counts of the results."]
    tests: Annotated[list[TestItem], "The result of each test, in the order of the files."]


class ReportSummary(OpenModel, frozen=True):
    applied: Annotated[int, "Changes that the service acknowledged."]
    failed: Annotated[int, "Changes that the service rejected."]
    skipped: Annotated[int, "Changes that were not sent."]
    unknown: Annotated[int, "Changes that were sent but got no clear answer."]
    requests: Annotated[int, "Requests that were sent, counting retries but not the request for the team."]
    retries: Annotated[int, "The number of retries among the requests."]


class SessionItem(OpenModel, frozen=True):
    """The sync session of a run."""

    id: Annotated[str | None, "The id that the service gave the session; null if there is none."]
    outcome: Annotated[
        str,
        one_of("completed", "cancelled", "none"),
        "The outcome of the session; `none` if it was neither completed nor cancelled.",
    ]
    reason: Annotated[str | None, "The reason why the session was not completed; null if it was."]


class ErrorItem(OpenModel, frozen=True):
    """The reason why a change was not applied."""

    operation: Annotated[str | None, "The operation that was called; null if none was."]
    message: Annotated[str, "The service's message, or ours if it sent none."]
    index: Annotated[int | None, "The index of the change in its batch, from 0; null if the answer does not tell."]
    status: Annotated[int | None, "The HTTP status of the answer; null if there was none."]


class ResultItem(OpenModel, frozen=True):
    """The outcome of one change."""

    address: Annotated[PlannedAddress, "The resource."]
    action: Annotated[str, Meta(pattern=f"^({'|'.join(ACTIONS)})$"), one_of(*ACTIONS), "The planned action."]
    outcome: Annotated[Outcome, one_of(*Outcome), "The outcome of the change."]
    source: Annotated[Place | None, "The place where it is declared or was last declared."]
    error: Annotated[ErrorItem | None, "The reason why the change was not applied; null if it was."] = None


class ReportFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.report/v1"):
    """The document of `apply --format json`."""

    plan: Annotated[str | None, "The id of the applied plan; null if there was none."]
    status: Annotated[
        RunStatus, one_of(*RunStatus), "The outcome of the run. `refused`: syncengine itself declined to send anything."
    ]
    summary: Annotated[ReportSummary, "Counts of the results."]
    session: Annotated[SessionItem, "The sync session of the run."]
    results: Annotated[list[ResultItem], "The results of resources, at least of those that were not applied."]
    diagnostics: Annotated[list[DiagnosticItem], "Errors and warnings of the run as a whole."]
    started: Annotated[str | None, "The time when the run began, RFC 3339; null if there was no project."] = None
    ended: Annotated[str | None, "The time when the run ended, RFC 3339; null if there was no project."] = None
    team: Annotated[str | None, "The team; null if it is not yet known."] = None
    environment: Annotated[str | None, "The environment of the project file; null without one."] = None
    commit: Annotated[str | None, "The commit of the manifests; null if there is none."] = None
    tree: Annotated[str | None, "The Git tree of the project's folder at that commit; null if there is none."] = None
    actor: Annotated[str | None, "The person who started the CI job; null outside of CI."] = None
    job: Annotated[str | None, "The URL of the CI job; null outside of CI."] = None
    approvals: Annotated[tuple[ApprovalItem, ...], "The approvals that were used."] = ()

    @property
    def began(self) -> bool:
        """Whether anything may have been applied."""
        return self.status not in (RunStatus.FAILED, RunStatus.REFUSED)


# --- what other commands print


class ConnectorFormat(OpenModel, frozen=True, omit_defaults=True, tag_field="format", tag="syncengine.connector/v1"):
    """The document of `connector check --format json`, which has `team`, and of `connector register`, without it."""

    team: Annotated[str | UnsetType, "The team of the key; absent from `register`."] = UNSET
    service_id: Annotated[str | UnsetType | None, "The id that the service gave the connector."] = UNSET
    service_id_expiry: Annotated[str | UnsetType | None, "When the registration ends, as the service sent it."] = UNSET
    group_name: str | UnsetType | None = UNSET
    region_name: str | UnsetType | None = UNSET
    connector_configuration: Annotated[Mapping[str, Any] | UnsetType, "The settings from the service."] = UNSET


class ReportedHealth(OpenModel, frozen=True):
    error_type: Annotated[
        str,
        one_of(
            "UNKNOWN",
            "TARGET_UNREACHABLE",
            "TARGET_AUTH_FAILURE",
            "TARGET_PERMISSIONS_FAILURE",
            "TARGET_SUBSCRIPTION_FAILURE",
        ),
    ]
    user_error_message: Annotated[str | None, "The message for users; null for the type's default."]


class HealthFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.health/v1"):
    """The document of `health report --format json` and `health clear --format json`."""

    reported: Annotated[ReportedHealth | None, "The failure that everybody sees; null once it is cleared."]


class LaidFile(OpenModel, frozen=True, omit_defaults=True):
    file: Annotated[str, "The manifest, relative to the project's folder, or to the current one with PATHS."]
    diff: Annotated[str | UnsetType, "The unified diff; absent without `--diff`."] = UNSET


class FmtFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.fmt/v1"):
    """The document of `fmt --format json`."""

    files: Annotated[list[LaidFile], "The files that were, or with `--check` or `--diff` would be, formatted."]
    diagnostics: Annotated[list[DiagnosticItem], "What kept other files from it."]


class InitFormat(OpenModel, frozen=True, omit_defaults=True, tag_field="format", tag="syncengine.init/v1"):
    """The document of `init --format json`. Files are relative to the new project's folder."""

    written: Annotated[Sequence[str], "The files that were written."]
    kept: Annotated[Sequence[str], "The files that existed and were left as they are."]
    left_out: Annotated[
        Sequence[str] | UnsetType,
        "Columns that may hold persons or addresses, and are left out; absent without `--from-csv`.",
    ] = UNSET


class AdoptFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.adopt/v1"):
    """The document of `adopt --format json`."""

    adopted: Annotated[list[Address], "The resources that are recorded now."]
    known: Annotated[list[Address], "The resources that were recorded already and left unchanged."]


class PublishFormat(
    OpenModel, frozen=True, omit_defaults=True, kw_only=True, tag_field="format", tag="syncengine.publish/v1"
):
    """The document of `publish --format json`."""

    outcome: Annotated[str, one_of("created", "updated", "unchanged", "older", "summary", "dry-run")]
    text: Annotated[str | UnsetType, "The comment; absent unless the outcome is `dry-run`."] = UNSET
    url: Annotated[str | UnsetType, "The URL of the comment, empty if there is none; absent of `dry-run`."] = UNSET
    reason: Annotated[str | UnsetType, "Why there is no comment, empty if there is one; absent of `dry-run`."] = UNSET
    outputs: Annotated[Mapping[str, str], "The outputs for later steps of the job, by name."]


class ReviewedFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.reviewed/v1"):
    """The document of `reviewed --format json`."""

    written: Annotated[Sequence[str], "The files with the plans that were reviewed."]
