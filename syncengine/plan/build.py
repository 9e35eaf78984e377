"""desired, recorded → a plan: stages of calls, sweep, gate, summary; pure. The stations of planning are called here.

Folding all that a plan's calls and records leave over the recorded rows gives the aim: a plan proves itself
without any IO.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import count

from msgspec.structs import replace

from syncengine.effects import Effect
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.manifest.desired import Desired
from syncengine.plan.aim import Aim, may_be_held
from syncengine.plan.calls import Item, Step, whole_tag
from syncengine.plan.checks import NOTHING_SELECTED, objections, suspicions
from syncengine.plan.diff import REOPENED, Action, Change, Diff, Difference, diff, itself
from syncengine.plan.gate import Earlier, Gate, Loss, gate
from syncengine.plan.model import Basis, Options, Plan, Summary
from syncengine.plan.policy import aim
from syncengine.plan.scope import Scope
from syncengine.plan.stages import Stage, stages_of
from syncengine.plan.sweep import Sweep, is_type, sweep_of
from syncengine.project.load import levelled
from syncengine.project.schema import Ownership
from syncengine.resource import Key, Kind, Recorded
from syncengine.state.codec import digest


def plan(
    desired: Desired,
    recorded: Mapping[Key, Recorded],
    options: Options,
    basis: Basis,
    totals: Callable[[], Mapping[str, int]] | None = None,
    recent: Callable[[], Mapping[Loss, Earlier]] = dict,
) -> Plan:
    """Plan what makes the service hold what is desired. Raises Problems when the manifests ask for the impossible.

    `totals` count what is recorded where `recorded` is a part of it (`gate.counted`). `recent`: as the gate takes it.
    """
    rows = reasserted(recorded, desired.resources) if options.reassert else recorded
    aimed = aim(rows, desired.resources, desired.removed, options.rules, options.scope)
    suspected = [*suspicions(aimed, rows, desired.removed), *_selects_nothing(options.scope, desired, recorded)]
    diagnostics = (*desired.diagnostics, *levelled(suspected, options.levels))
    problems = (*aimed.problems, *objections(aimed, rows), *diagnostics)
    if any(d.severity is Severity.ERROR for d in problems):
        raise Problems(problems)
    planned, found = derived(
        aimed,
        rows,
        recorded,
        basis,
        options.reassert,
        lambda found: options.scope.whole and _sweeps_anyway(found, options),
    )
    return replace(
        planned,
        gate=gate(
            found.differences,
            recorded,
            options.limits,
            desired.resources,
            sweep=planned.sweep,
            team=basis.team,
            lineage=basis.lineage,
            totals_of_all=totals,
            sources=desired.sources,
            had=basis.sources,
            recent=recent,
        ),
        diagnostics=diagnostics,
        sources=desired.rows_of_sources(),
        is_whole=options.scope.whole,
    )


def derived(
    aimed: Aim,
    rows: Mapping[Key, Recorded],
    recorded: Mapping[Key, Recorded],
    basis: Basis,
    reasserts: bool,
    sweeps_anyway: Callable[[Diff], bool],
    same: Callable[[Change], Change] = itself,
) -> tuple[Plan, Diff]:
    """All that follows from what is aimed at, and the differences that it follows from; no gate, no diagnostics.

    `rows` are the `recorded` ones, with what is reasserted in doubt; `same` is for `diff`.
    """
    found = diff(rows, aimed, same)
    found = _with_reasons(found, recorded) if reasserts else found
    numbers = count(1)
    stages = stages_of(found.differences, aimed, numbers)
    sweep = sweep_of(aimed, rows, numbers, anyway=sweeps_anyway(found), first=not basis.swept_before)
    changes = tuple(difference.change for difference in found.differences)
    planned = Plan(
        basis=basis,
        summary=_summary(changes, found, stages, sweep),
        gate=Gate(),
        sweep=sweep,
        changes=changes,
        notes=found.notes,
        stages=stages,
        records=found.records,
        wholes=_wholes(stages, found.differences),
        prior=_prior(recorded, changes, found.records, sweep),
        reasserts=reasserts,
    )
    return planned, found


def _selects_nothing(scope: Scope, desired: Desired, recorded: Mapping[Key, Recorded]) -> Iterator[Diagnostic]:
    if not scope.selective:
        return
    known = [(r.key, r.source) for r in desired.resources.values()] + [(r.key, r.source) for r in recorded.values()]
    for name in scope.matching_nothing(known):
        yield Diagnostic(severity=Severity.WARNING, code=NOTHING_SELECTED, message=f"{name} selects nothing")


# --- reasserting (docs/planning.md 7)


def reasserted(recorded: Mapping[Key, Recorded], desired: Container[Key]) -> dict[Key, Recorded]:
    """Whatever is desired is sent again; what leaves, or has left, leaves as always."""
    return {
        key: replace(row, doubtful=True) if key in desired and may_be_held(row) else row
        for key, row in recorded.items()
    }


def _with_reasons(found: Diff, recorded: Mapping[Key, Recorded]) -> Diff:
    return replace(found, differences=tuple(_sent_again(d, recorded.get(d.change.key)) for d in found.differences))


def _sent_again(difference: Difference, row: Recorded | None) -> Difference:
    reason = difference.change.reason
    if row is None or row.doubtful or reason in (None, REOPENED) or difference.leaving is not None:
        return difference
    return replace(difference, change=replace(difference.change, reason="sent again (--reassert)"))


# --- what else a plan holds


def _sweeps_anyway(found: Diff, options: Options) -> bool:
    touched = any(is_type(difference.change.key) for difference in found.differences)
    return options.sweep or (options.rules.activity_types is Ownership.EXACT and touched)


def _wholes(stages: Iterable[Stage], differences: Iterable[Difference]) -> dict[Key, Item]:
    upserted = {i.key for s in stages if s.step is Step.TAGS for c in s.calls for i in c.items}
    return {
        d.change.key: whole_tag(d)
        for d in differences
        if d.resource is not None and d.change.key.kind is Kind.TAG and d.change.key not in upserted
    }


def _summary(changes: Sequence[Change], found: Diff, stages: Iterable[Stage], sweep: Sweep | None) -> Summary:
    return Summary(
        **_counts(changes),
        unchanged=found.unchanged,
        kept=sum(note.kind == "kept" for note in found.notes),
        requests=sum(len(stage.calls) for stage in stages) + (sweep.requests if sweep else 0),
    )


def _counts(changes: Sequence[Change]) -> dict[str, int]:
    actions = Counter(change.action for change in changes)
    return {
        **{action.word: actions[action] for action in Action},
        "keyword_adds": sum(len(c.keywords_added) for c in changes if c.action is not Action.CREATE),
        "keyword_deletes": sum(len(change.keywords_deleted) for change in changes),
        "metadata_deletes": sum(len(change.metadata_deleted) for change in changes),
        "cascaded_tags": sum(change.cascade is not None for change in changes),
    }


def _prior(
    recorded: Mapping[Key, Recorded], changes: Iterable[Change], records: Iterable[Effect], sweep: Sweep | None
) -> dict[Key, str]:
    """Digests of the rows that are touched; of every activity type if the plan sweeps (docs/planning.md 6)."""
    touched = {change.key: None for change in changes}
    touched |= {leave.key: None for leave in records if leave.says_something(recorded.get(leave.key))}
    touched |= {Key(c.key.kind, c.previously): None for c in changes if c.previously is not None}
    if sweep is not None:
        touched |= {key: None for key, row in recorded.items() if is_type(key) and may_be_held(row)}
    return {key: digest(recorded.get(key)) for key in touched}


def narrowed(plan: Plan, keeps: Callable[[Change], bool]) -> Plan:
    """The part of a plan to look at: fewer changes, counted anew. What it sends is as it was."""
    changes = tuple(change for change in plan.changes if keeps(change))
    return replace(plan, changes=changes, summary=replace(plan.summary, **_counts(changes)))
