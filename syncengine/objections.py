"""aim, recorded → what desired resources may not ask for, and what looks like a mistake; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from syncengine.aims import Aim, may_be_held
from syncengine.errors import Diagnostic, Severity, with_row
from syncengine.resource import Key, Kind, Recorded, Resource, Status

RENAME_SUSPECTED = "rename-suspected"
NOTHING_SELECTED = "nothing-selected"
LINTS = frozenset({RENAME_SUSPECTED, NOTHING_SELECTED})
"""The lints of planning; the project file may set each off, or make it an error."""


def objections(aim: Aim, recorded: Mapping[Key, Recorded]) -> Iterator[Diagnostic]:
    """Errors: the service cannot do it, or would do it at the cost of something that nobody asked for."""
    going_ids = {
        leaving.row.server_id: key
        for key, leaving in aim.leaving.items()
        if key.kind is Kind.CATEGORY and leaving.row.server_id
    }
    for key, resource in aim.wanted.items():
        row = recorded.get(key)
        if row is not None and key.kind is Kind.ACTIVITY_TYPE:
            yield from _not_revived(resource, row)
        elif key.kind is Kind.TAG:
            if row is not None:
                yield from _unsaid_visibility(resource, row)
            yield from _references_to_what_goes(aim, resource, going_ids)


def _not_revived(resource: Resource, row: Recorded) -> Iterator[Diagnostic]:
    if row.status is Status.DELETED and resource.body.fields.get("reenableIfArchived") is not True:
        gone = "may have been deleted by an interrupted run" if row.doubtful else "was deleted from the service"
        message = f"this activity type {gone}: `reenableIfArchived: true` brings it back"
        yield _found(resource, "deleted-activity-type", message)


def _unsaid_visibility(resource: Resource, row: Recorded) -> Iterator[Diagnostic]:
    was_private = may_be_held(row) and row.body.fields.get("visibility") == "PRIVATE"
    if was_private and "visibility" not in resource.body.fields:
        message = "this tag was PRIVATE and no longer says so: write `visibility: PRIVATE` or `visibility: PUBLIC`"
        yield _found(resource, "visibility-dropped", message)


def _references_to_what_goes(aim: Aim, resource: Resource, going_ids: Mapping[str, Key]) -> Iterator[Diagnostic]:
    fields = resource.body.fields
    if (going := going_ids.get(str(fields.get("tagCategoryId", "")))) is not None:
        message = f"tagCategoryId {fields['tagCategoryId']} is {going}, which this plan would delete"
        yield _found(resource, "category-removed", message)
    code = fields.get("defaultActivityTypeCode")
    if isinstance(code, str) and Key(Kind.ACTIVITY_TYPE, code) in aim.leaving:
        message = f"defaultActivityTypeCode {code} is an activity type that this plan would delete"
        yield _found(resource, "activity-type-removed", message)


def suspicions(aim: Aim, recorded: Mapping[Key, Recorded]) -> Iterator[Diagnostic]:
    """Warnings: a tag that goes and one that comes with the same externalId look like a rename (engine.md 2.9)."""
    going = {
        leaving.row.body.fields["externalId"]: key
        for key, leaving in aim.leaving.items()
        if key.kind is Kind.TAG and leaving.row.body.fields.get("externalId") and leaving.taken_by is None
    }
    if not going:
        return
    for key, resource in aim.wanted.items():
        old = going.get(resource.body.fields.get("externalId", "")) if key.kind is Kind.TAG else None
        if old is not None and key not in recorded:
            message = f"same externalId as {old}, which leaves: write `previously: [{old.name}]` if this is a rename"
            yield _found(resource, RENAME_SUSPECTED, message, Severity.WARNING)


def _found(resource: Resource, code: str, message: str, severity: Severity = Severity.ERROR) -> Diagnostic:
    source = resource.source
    return Diagnostic(
        severity=severity,
        code=code,
        message=with_row(message, source.data),
        file=source.file,
        line=source.line,
        address=str(resource.key),
        data=source.data,
    )
