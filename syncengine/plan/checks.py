"""Check the aim against the recorded rows for impossible requests and likely mistakes. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from syncengine.document.diagnostics import SUGGESTIONS, suggestion
from syncengine.document.text import folded
from syncengine.errors import Diagnostic, Severity, Undone
from syncengine.manifest.desired import Desired
from syncengine.plan.aim import Aim, may_be_held
from syncengine.resource import Body, Key, Kind, Recorded, Removed, Resource, Status, found_at
from syncengine.state.records import UNDECLARED, UndoneChange

if TYPE_CHECKING:
    from syncengine.plan.model import Options, Plan


_BETWEEN = re.compile(r"[\W_]+")

Evidence = Callable[[Key, Body], object]


def likely_renames(going: Mapping[Key, Body], coming: Mapping[Key, Body]) -> Iterator[tuple[Key, Key, str]]:
    """Yield new and old keys of likely renames, each pair with its strongest evidence (`same description as`).

    Each resource occurs at most once.
    """
    for kind, tests in EVIDENCE.items():
        olds = {key: body for key, body in going.items() if key.kind is kind}
        news = {key: body for key, body in coming.items() if key.kind is kind}
        for likeness, evidence in tests:
            for new, old in _alone(olds, news, evidence):
                del olds[old], news[new]
                yield new, old, likeness


def _alone(olds: Mapping[Key, Body], news: Mapping[Key, Body], evidence: Evidence) -> list[tuple[Key, Key]]:
    """Return pairs of one removed and one added resource that alone have the same evidence, which is not empty."""
    before, after = _by(olds.items(), evidence), _by(news.items(), evidence)
    return [(after[same][0], old[0]) for same, old in before.items() if len(old) == 1 == len(after.get(same, ()))]


def _by(resources: Iterable[tuple[Key, Body]], evidence: Evidence) -> dict[object, list[Key]]:
    keys_by = defaultdict[object, list[Key]](list)
    for key, body in resources:
        if same := evidence(key, body):
            keys_by[same].append(key)
    return keys_by


def _spelling(key: Key, body: Body) -> str:
    return _BETWEEN.sub("", folded(key.name))


def _description(key: Key, body: Body) -> object:
    description = body.fields.get("description")
    return description and (description, body.fields.get("category"))


def _own_keywords(key: Key, body: Body) -> object:
    words = frozenset(body.keywords) - {key.name}
    return words and (words, body.fields.get("category"))


EVIDENCE: Mapping[Kind, tuple[tuple[str, Evidence], ...]] = {
    Kind.TAG: (
        ("same externalId as", lambda _, body: body.fields.get("externalId")),
        ("same name except for case and punctuation as", _spelling),
        ("same description as", _description),
        ("same keywords as", _own_keywords),
    ),
    Kind.CATEGORY: (
        ("same externalId except for case and punctuation as", _spelling),
        ("same label as", lambda _, body: body.fields.get("label")),
        ("same description as", _description),
    ),
}
"""The evidence of a rename by kind, strongest first. A value counts when it is unique on each side and not empty."""


RENAME_SUSPECTED = "rename-suspected"
NOTHING_SELECTED = "nothing-selected"
REMOVED_UNKNOWN = "removed-unknown"
LINTS = frozenset({RENAME_SUSPECTED, NOTHING_SELECTED, REMOVED_UNKNOWN})
"""The lints of planning. The project file can turn each of them off or make it an error."""

NO_LINES: Mapping[Key, Removed] = MappingProxyType({})


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
        row = recorded.get(key)
        if row is not None and key.kind is Kind.ACTIVITY_TYPE:
            yield from _not_revived(resource, row)
        elif key.kind is Kind.TAG:
            yield from _unsaid_visibility(resource, row, [recorded[former] for former in aim.renames.get(key, ())])
            yield from _references_to_what_goes(aim, resource, going_ids)


def _not_revived(resource: Resource, row: Recorded) -> Iterator[Diagnostic]:
    if row.status is Status.DELETED and resource.body.fields.get("reenableIfArchived") is not True:
        fate = "may have been deleted by an interrupted run" if row.doubtful else "was deleted from the service"
        message = f"this activity type {fate}: set `reenableIfArchived: true` to bring it back"
        yield found_at(resource.source, resource.key, "deleted-activity-type", message)


def _unsaid_visibility(resource: Resource, row: Recorded | None, formers: Iterable[Recorded]) -> Iterator[Diagnostic]:
    """Yield an error for a tag that was private, under this or a former name, and no longer declares its visibility."""
    if "visibility" in resource.body.fields:
        return
    rows = (*([row] if row is not None else ()), *formers)
    private = next((r for r in rows if may_be_held(r) and r.body.fields.get("visibility") == "PRIVATE"), None)
    if private is not None:
        name = "this tag" if private is row else f"{private.key}, its former name,"
        cure = "add `visibility: PRIVATE` or `visibility: PUBLIC`"
        message = f"{name} was PRIVATE, and the manifest no longer declares that: {cure}"
        yield found_at(resource.source, resource.key, "visibility-dropped", message)


def _references_to_what_goes(aim: Aim, resource: Resource, going_ids: Mapping[str, Key]) -> Iterator[Diagnostic]:
    fields = resource.body.fields
    if (going := going_ids.get(str(fields.get("tagCategoryId", "")))) is not None:
        message = f"tagCategoryId {fields['tagCategoryId']} is {going}, which this plan would delete"
        yield found_at(resource.source, resource.key, "category-removed", message)
    code = fields.get("defaultActivityTypeCode")
    if isinstance(code, str) and Key(Kind.ACTIVITY_TYPE, code) in aim.leaving:
        message = f"defaultActivityTypeCode {code} is an activity type that this plan would delete"
        yield found_at(resource.source, resource.key, "activity-type-removed", message)


def suspicions(
    aim: Aim, recorded: Mapping[Key, Recorded], statements: Mapping[Key, Removed] = NO_LINES
) -> Iterator[Diagnostic]:
    """Yield warnings about likely renames, and about lines of `removed` whose tag the state does not know."""
    going = {key: leaving.row.body for key, leaving in aim.leaving.items() if leaving.taken_by is None}
    if going:
        coming = {key: resource.body for key, resource in aim.desired.items() if key not in recorded}
        for new, old, alike in likely_renames(going, coming):
            message = f"{alike} {old}, which is removed: add `previously: [{old.name}]` if this is a rename"
            yield found_at(aim.desired[new].source, new, RENAME_SUSPECTED, message, Severity.WARNING)
    yield from _unknown_lines(statements, recorded)


def _unknown_lines(statements: Mapping[Key, Removed], recorded: Mapping[Key, Recorded]) -> Iterator[Diagnostic]:
    """Yield a warning for each line of `removed` whose tag the state does not know, unless the state has no tags."""
    unknown = [line for key, line in statements.items() if key not in recorded]
    names = tuple(key.name for key in recorded if key.kind is Kind.TAG) if unknown else ()
    for number, line in enumerate(unknown if names else ()):
        hint = suggestion(line.key.name, names) if number < SUGGESTIONS else ""
        message = f"{line.key} is in `removed`, but the state has no such tag{hint}"
        yield found_at(line.source, line.key, REMOVED_UNKNOWN, message, Severity.WARNING)


SHOWN = 5


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
        source = resource.source if resource is not None else row.source if row is not None else None
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
        asks = [f"contain its changes to {_few(edits)}"] if edits else []
        asks += [f"leave out {_few(removals)}, which it removed"] if removals else []
        them = "it" if len(removals) == 1 else "them"
        cure = "revert these changes in the manifests" if edits else f"declare {them} again"
        again = "apply them" if edits else f"remove {them}"
        message = (
            f"run {run} was undone, but the manifests still {' and '.join(asks)}:"
            f" {cure} (merge the revert), or repeat with --redo to {again} again"
        )
        yield Diagnostic(severity=Severity.ERROR, code=Undone.code, message=message)


def _few(addresses: Sequence[str]) -> str:
    more = f" and {len(addresses) - SHOWN:,} more" if len(addresses) > SHOWN else ""
    return f"{', '.join(addresses[:SHOWN])}{more}"
