"""Plan → annotations of changes at their lines, for hosts that show them beside the code; pure.

Removals and a closed gate are warnings, other changes are notices. Changes with the same action at the same line, such
as a template's, are one annotation. Only as many are written as a host shows; the last one counts the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from syncengine.errors import Diagnostic, Severity
from syncengine.plan.diff import Action, Change
from syncengine.plan.losses import losses_of
from syncengine.plan.model import Plan
from syncengine.render.escape import cut, quoted, visible
from syncengine.render.gate import to_approve
from syncengine.render.github import command
from syncengine.render.gitlab import fingerprints, issue
from syncengine.render.json import dumped
from syncengine.render.sarif import log_of
from syncengine.render.style import PLAIN, Look
from syncengine.render.values import BRIEF, value_spans
from syncengine.render.words import comma_list, count_of, number
from syncengine.resource import Source, Value

ERROR, WARNING, NOTICE = "error", "warning", "notice"
GITHUB_SHOWS = 10
"""The number of annotations of one level that GitHub shows for a step."""
GITLAB_SHOWS = 1_000
"""The number of annotations for GitLab, which documents no limit."""
SARIF_SHOWS = 5_000
"""The number of results that GitHub's code scanning shows; it accepts 25,000."""
SHOWN_VALUES = 3
_LONGEST = 300
LEAVING = frozenset({Action.DELETE, Action.RETIRE, Action.FORGET})
"""The actions by which a resource leaves the project."""


class Annotation(NamedTuple):
    """A diagnostic and its level, which is `error`, `warning` or `notice`."""

    level: str
    diagnostic: Diagnostic


def plan_github(plan: Plan, look: Look = PLAIN) -> str:
    by_level = {level: [a for a in annotations_of(plan) if a.level == level] for level in (ERROR, WARNING, NOTICE)}
    kept = (annotation for group in by_level.values() for annotation in at_most(GITHUB_SHOWS, group))
    return "".join(f"{command(each.diagnostic, look, each.level)}\n" for each in kept)


def plan_gitlab(plan: Plan, look: Look = PLAIN) -> str:
    kept = at_most(GITLAB_SHOWS, annotations_of(plan))
    marks = fingerprints([each.diagnostic for each in kept])
    return dumped([issue(each.diagnostic, mark, look, each.level) for each, mark in zip(kept, marks, strict=True)])


def plan_sarif(plan: Plan, look: Look = PLAIN) -> str:
    kept = at_most(SARIF_SHOWS, annotations_of(plan))
    return log_of([each.diagnostic for each in kept], look, [each.level for each in kept])


# --- the annotations of a plan


def at_most(count: int, every: Sequence[Annotation]) -> list[Annotation]:
    """Return at most `count` annotations; the last one counts those that are left out."""
    if len(every) <= count:
        return list(every)
    rest = every[count - 1 :]
    words = f"… and {number(len(rest))} more; `--format json` and the HTML page list all of them"
    more = Diagnostic(severity=Severity.WARNING, code="more", message=words)
    return [*every[: count - 1], Annotation(rest[0].level, more)]


def annotations_of(plan: Plan) -> list[Annotation]:
    """Return annotations for the gate, removals, diagnostics and all other changes, in this order."""
    groups = list(_groups(plan.changes))
    removing = [_annotation(WARNING, group) for group in groups if _removes(group[0])]
    others = [_annotation(NOTICE, group) for group in groups if not _removes(group[0])]
    findings = [Annotation(each.severity.value, each) for each in plan.diagnostics]
    return [*_gate(plan), *removing, *findings, *others]


def _gate(plan: Plan) -> Iterator[Annotation]:
    if plan.gate.is_closed:
        reasons, approvals = "; ".join(plan.gate.reasons), ", ".join(to_approve(plan.gate))
        words = f"Approval needed for this plan: {reasons}" + (f". Approve with {approvals}" if approvals else "")
        yield Annotation(WARNING, Diagnostic(severity=Severity.WARNING, code="gate", message=words))


def _groups(changes: Iterable[Change]) -> Iterator[list[Change]]:
    """Yield the changes grouped by line, action and whether they remove something, in order of first appearance."""
    groups: dict[object, list[Change]] = defaultdict(list)
    for change in changes:
        place = (change.source.file, change.source.line) if change.source else change.key
        groups[place, change.action, _removes(change)].append(change)
    yield from groups.values()


def _removes(change: Change) -> bool:
    """Return whether the change removes a resource or a part of it."""
    return change.action in LEAVING or any(losses_of(change))


def _annotation(level: str, group: Sequence[Change]) -> Annotation:
    """Return the annotation of a group of changes. A removed resource has a file but no line, which may be reused."""
    source: Source | None = group[0].source
    return Annotation(
        level,
        Diagnostic(
            severity=Severity.WARNING,
            code=group[0].action.word,
            message=_words(group),
            file=source.file if source else None,
            line=source.line if source and group[0].action not in LEAVING else None,
            address=str(group[0].key),
        ),
    )


def _words(group: Sequence[Change]) -> str:
    """Return `update tag/ACME-0042: description "old" → "new"; + keyword "x"`, or the names of several resources."""
    first = group[0]
    if len(group) > 1:
        names = comma_list([str(change.key) for change in group])
        return f"{first.action.word} {count_of(len(group), 'resource')}: {cut(visible(names), _LONGEST)}"
    details = list(_details(first))
    more = f"; and {number(len(details) - SHOWN_VALUES)} more" if len(details) > SHOWN_VALUES else ""
    shown = "; ".join(details[:SHOWN_VALUES]) + more
    return f"{first.action.word} {first.key}{f': {cut(shown, _LONGEST)}' if shown else ''}"


def _details(change: Change) -> Iterator[str]:
    """Yield the differences of a change, removals first."""
    if change.cascade:
        yield f"deleted with {change.cascade}"
    yield from (f"- keyword {quoted(keyword)}" for keyword in change.keywords_deleted)
    yield from (f"- metadata {quoted(name)}" for name in change.metadata_deleted)
    if change.action is not Action.UPDATE:
        return
    for field in change.fields:
        yield f"{field.name} {_values(field.name, field.before, field.after)}"
    yield from (f"+ keyword {quoted(keyword)}" for keyword in change.keywords_added)
    for name, value in change.metadata_set.items():
        yield f"metadata {quoted(name)} {_values('', change.metadata_before.get(name), value)}"


def _values(name: str, before: Value | None, after: Value | None) -> str:
    return "".join(span.text for span in value_spans(name, before, after, BRIEF))
