"""Check the aim against the recorded rows for impossible requests and likely mistakes. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from syncengine.document.diagnostics import SUGGESTIONS, suggestion
from syncengine.document.text import folded
from syncengine.errors import Diagnostic, Severity, Undone
from syncengine.manifest.desired import Desired
from syncengine.plan.aim import Aim, may_be_held
from syncengine.plan.model import few
from syncengine.resource import Body, Key, Kind, Recorded, Removed, Status, found_at, place_of
from syncengine.state.records import UNDECLARED, UndoneChange

if TYPE_CHECKING:
    from syncengine.plan.model import Options, Plan


Evidence = Callable[[Key, Body], object]


def _spelling(key: Key, body: Body) -> object:
    return re.sub(r"[\W_]+", "", folded(key.name))


def _description(key: Key, body: Body) -> object:
    description = body.fields.get("description")
    return description and (description, body.fields.get("category"))


def _keywords(key: Key, body: Body) -> object:
    words = frozenset(body.keywords) - {key.name}
    return words and (words, body.fields.get("category"))


EVIDENCE: Mapping[Kind, tuple[tuple[str, Evidence], ...]] = {
    Kind.TAG: (
        ("same externalId as", lambda _, body: body.fields.get("externalId")),
        ("same name except for case and punctuation as", _spelling),
        ("same description as", _description),
        ("same keywords as", _keywords),
    ),
    Kind.CATEGORY: (
        ("same externalId except for case and punctuation as", _spelling),
        ("same label as", lambda _, body: body.fields.get("label")),
        ("same description as", _description),
    ),
}
"""The evidence of a rename by kind, strongest first. A value counts when it is unique on each side and not empty."""


def likely_renames(going: Mapping[Key, Body], coming: Mapping[Key, Body]) -> Iterator[tuple[Key, Key, str]]:
    """Yield new and old keys of likely renames, each pair with its strongest evidence (`same description as`).

    Each resource occurs at most once.
    """
    for kind, tests in EVIDENCE.items():
        olds = {key: body for key, body in going.items() if key.kind is kind}
        news = {key: body for key, body in coming.items() if key.kind is kind}
        for likeness, evidence in tests:
            before, after = defaultdict[object, list[Key]](list), defaultdict[object, list[Key]](list)
            for resources, keys_by in ((olds, before), (news, after)):
                for key, body in resources.items():
                    if same := evidence(key, body):
                        keys_by[same].append(key)
            for same, keys in before.items():
                if len(keys) == 1 == len(after[same]):
                    old, new = keys[0], after[same][0]
                    del olds[old], news[new]
                    yield new, old, likeness


RENAME_SUSPECTED = "rename-suspected"
NOTHING_SELECTED = "nothing-selected"
REMOVED_UNKNOWN = "removed-unknown"
LINTS = frozenset({RENAME_SUSPECTED, NOTHING_SELECTED, REMOVED_UNKNOWN})
"""The lints of planning. The project file can turn each of them off or make it an error."""


def objections(aim: Aim, recorded: Mapping[Key, Recorded]) -> Iterator[Diagnostic]:
    """Yield an error for each change that the service cannot make, or only with side effects that nobody asked for.

    Nothing can be wrong where nothing is recorded.
    """
    going_ids = {
        leaving.row.server_id: key
        for key, leaving in aim.leaving.items()
        if key.kind is Kind.CATEGORY and leaving.row.server_id
    }
    for key, resource in aim.desired.items() if recorded else ():
        row, fields = recorded.get(key), resource.body.fields
        if key.kind is Kind.ACTIVITY_TYPE:
            if row is not None and row.status is Status.DELETED and fields.get("reenableIfArchived") is not True:
                fate = "may have been deleted by an interrupted run" if row.doubtful else "was deleted from the service"
                message = f"this activity type {fate}: set `reenableIfArchived: true` to bring it back"
                yield found_at(resource.source, key, "deleted-activity-type", message)
        elif key.kind is Kind.TAG:
            if "visibility" not in fields:
                rows = (*([row] if row is not None else ()), *(recorded[former] for former in aim.renames.get(key, ())))
                private = (r for r in rows if may_be_held(r) and r.body.fields.get("visibility") == "PRIVATE")
                if (former := next(private, None)) is not None:
                    name = "this tag" if former is row else f"{former.key}, its former name,"
                    cure = "add `visibility: PRIVATE` or `visibility: PUBLIC`"
                    message = f"{name} was PRIVATE, and the manifest no longer declares that: {cure}"
                    yield found_at(resource.source, key, "visibility-dropped", message)
            if (by_id := fields.get("tagCategoryId")) and (going := going_ids.get(str(by_id))) is not None:
                message = f"tagCategoryId {by_id} is {going}, which this plan would delete"
                yield found_at(resource.source, key, "category-removed", message)
            code = fields.get("defaultActivityTypeCode")
            if isinstance(code, str) and Key(Kind.ACTIVITY_TYPE, code) in aim.leaving:
                message = f"defaultActivityTypeCode {code} is an activity type that this plan would delete"
                yield found_at(resource.source, key, "activity-type-removed", message)


def suspicions(aim: Aim, recorded: Mapping[Key, Recorded], statements: Mapping[Key, Removed]) -> Iterator[Diagnostic]:
    """Yield warnings about likely renames, and about lines of `removed` whose tag the state does not know."""
    going = {key: leaving.row.body for key, leaving in aim.leaving.items() if leaving.taken_by is None}
    coming = {key: resource.body for key, resource in aim.desired.items() if key not in recorded} if going else {}
    for new, old, alike in likely_renames(going, coming):
        message = f"{alike} {old}, which is removed: add `previously: [{old.name}]` if this is a rename"
        yield found_at(aim.desired[new].source, new, RENAME_SUSPECTED, message, Severity.WARNING)
    unknown = [line for key, line in statements.items() if key not in recorded]
    names = tuple(key.name for key in recorded if key.kind is Kind.TAG) if unknown else ()
    for number, line in enumerate(unknown if names else ()):  # a state without tags knows none of them
        hint = suggestion(line.key.name, names) if number < SUGGESTIONS else ""
        message = f"{line.key} is in `removed`, but the state has no such tag{hint}"
        yield found_at(line.source, line.key, REMOVED_UNKNOWN, message, Severity.WARNING)


# --- changes of undone runs


def with_undone(
    plan: Plan,
    desired: Desired,
    recorded: Mapping[Key, Recorded],
    undone: Sequence[UndoneChange],
    options: Options,
) -> Plan:
    """Return the plan with the selected undone changes that the manifests still ask for."""
    if not undone:
        return plan
    repeats = []
    for each in undone:
        resource, row = desired.resources.get(each.key), recorded.get(each.key)
        source = place_of(resource, row)
        protect = resource.protect if resource is not None else None
        is_asked = each.is_made_by(resource.body if resource is not None else None, protect=protect)
        if is_asked and options.scope.selects((each.key, source)):
            repeats.append(each)
    diagnostics = () if options.redo else tuple(objections_to_redo(repeats))
    redoes = tuple(dict.fromkeys(each.key for each in repeats)) or UNSET
    undos = tuple(dict.fromkeys(each.undone_by for each in undone))
    return replace(plan, redoes=redoes, undos=undos, diagnostics=(*plan.diagnostics, *diagnostics))


def objections_to_redo(repeats: Iterable[UndoneChange]) -> Iterator[Diagnostic]:
    """Yield an error for each undone run whose changes the manifests still ask for."""
    by_run: dict[str, list[UndoneChange]] = {}
    for each in repeats:
        by_run.setdefault(each.run, []).append(each)
    for run, changes in by_run.items():
        removals: list[str] = []
        edits: list[str] = []
        for each in changes:
            (removals if f"+{UNDECLARED}" in each.marks.split() else edits).append(str(each.key))
        asks = [f"contain its changes to {few(edits)}"] if edits else []
        asks += [f"leave out {few(removals)}, which it removed"] if removals else []
        them = "it" if len(removals) == 1 else "them"
        cure = "revert these changes in the manifests" if edits else f"declare {them} again"
        again = "apply them" if edits else f"remove {them}"
        message = (
            f"run {run} was undone, but the manifests still {' and '.join(asks)}:"
            f" {cure} (merge the revert), or repeat with --redo to {again} again"
        )
        yield Diagnostic(severity=Severity.ERROR, code=Undone.code, message=message)
