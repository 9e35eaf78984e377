"""Build a plan (stages of calls, sweep, gate, summary) from desired resources and recorded rows. Pure.

Folding the effects of a plan's calls and records over the recorded rows gives the aim, so that a plan can be proven
without any IO.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import count
from operator import attrgetter

from msgspec import UNSET
from msgspec.structs import replace

from syncengine.effects import Effect
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.manifest.desired import Desired
from syncengine.plan.aim import Aim, aim, may_be_held
from syncengine.plan.calls import Item, Stage, Step, Sweep, is_type, stages_of, sweep_of, whole_tag
from syncengine.plan.checks import NOTHING_SELECTED, objections, suspicions
from syncengine.plan.diff import Action, Change, Diff, Difference, diff
from syncengine.plan.gate import NOTHING_ELSE, Gate, StateRecords, gate, lines_of
from syncengine.plan.judgement import judgement_of, units_of_judgement
from syncengine.plan.model import Basis, Options, Plan, PlanInputs, Summary, side_of, with_origins
from syncengine.plan.quarantine import SWEEP_LEFT_OUT, QuarantineVerdict, verdict_of, warnings
from syncengine.plan.request import Scope
from syncengine.project.load import levelled
from syncengine.project.model import Ownership
from syncengine.resource import Key, Kind, Recorded, Removed, Resource, Status
from syncengine.state.codec import ABSENT, digest


def plan(
    desired: Desired,
    recorded: Mapping[Key, Recorded],
    options: Options,
    basis: Basis,
    records: StateRecords = NOTHING_ELSE,
) -> Plan:
    """Plan the calls that make the service match the desired resources. Raise `Problems` when that is impossible.

    `records` are the state's records for the gate.
    """
    rows = reasserted(recorded, desired.resources) if options.reassert else recorded
    quarantine = options.quarantine
    verdict = verdict_of(quarantine, desired, recorded, options.rules) if quarantine else QuarantineVerdict()
    target = aim(rows, desired.resources, desired.removed, options.rules, options.scope, verdict.entries, recorded)
    suspected = [*suspicions(target, rows, desired.removed), *_selects_nothing(options.scope, desired, recorded)]
    diagnostics = [*desired.diagnostics, *levelled(suspected, options.levels)]
    if quarantine is not None:
        diagnostics += warnings(verdict, quarantine, target, desired.resources, recorded)
        if options.sweep and target.keeps_types is not None:
            message = f"--sweep is ignored: no sweep can complete while {target.keeps_types} is in quarantine"
            diagnostics.append(Diagnostic(severity=Severity.WARNING, code=SWEEP_LEFT_OUT, message=message))
    result = plan_to(target, rows, recorded, desired, options, basis, diagnostics, records)
    return replace(result, set_aside=tuple(target.aside))


def plan_to(
    target: Aim,
    rows: Mapping[Key, Recorded],
    recorded: Mapping[Key, Recorded],
    desired: Desired,
    options: Options,
    basis: Basis,
    diagnostics: Sequence[Diagnostic] = (),
    records: StateRecords = NOTHING_ELSE,
) -> Plan:
    """Plan the calls that reach an aim, and judge the plan by gate and rules. Raise `Problems` when that is impossible.

    `rows` are the `recorded` rows to compare with, some of them put in doubt. The other parameters are those of `plan`.
    """
    problems = (*target.problems, *objections(target, rows), *diagnostics)
    if any(d.severity is Severity.ERROR for d in problems):
        raise Problems(problems)
    result, delta = derived(
        target,
        rows,
        recorded,
        basis,
        options.reassert,
        lambda delta: options.scope.whole and target.keeps_types is None and _sweeps_anyway(delta, options),
    )
    judgement = judgement_of(options.rule_set, delta.differences, rows, result.summary)
    rules = (
        units_of_judgement(judgement, delta.differences, records.approvals(), basis.owner)
        if judgement.asks
        else ((), ())
    )
    base = side_of(options.other, result.changes) if options.other else UNSET
    whole = gate(
        delta.differences,
        recorded,
        options.limits,
        sweep=result.sweep,
        owner=basis.owner,
        lines=lines_of(desired.removed),
        sources=desired.sources,
        had=basis.sources,
        rules=rules,
        records=records,
    )
    return replace(
        result,
        inputs=_inputs(target, desired.removed, options, result),
        gate=with_origins(whole, base) if base else whole,
        compared=base,
        diagnostics=(*diagnostics, *judgement.diagnostics),
        sources=desired.rows_of_sources(),
        is_whole=options.scope.whole,
    )


def derived(
    target: Aim,
    rows: Mapping[Key, Recorded],
    recorded: Mapping[Key, Recorded],
    basis: Basis,
    reasserts: bool,
    sweeps_anyway: Callable[[Diff], bool],
) -> tuple[Plan, Diff]:
    """Return the plan that follows from the aim, without gate and diagnostics, and its differences.

    `rows` are the `recorded` rows, with reasserted ones put in doubt.
    """
    delta = diff(rows, target)
    sweeps = sweeps_anyway(delta)
    if sweeps and target.swept_along:  # only the differences tell whether there is a sweep, and a sweep makes more
        target.leaving |= target.swept_along
        delta = diff(rows, target)
    if reasserts:
        again = (_sent_again(difference, recorded.get(difference.change.key)) for difference in delta.differences)
        delta = replace(delta, differences=tuple(again))
    numbers = count(1)
    stages = stages_of(delta.differences, target, numbers)
    sweep = sweep_of(target, rows, numbers, anyway=sweeps, first=not basis.swept_before)
    changes = tuple(difference.change for difference in delta.differences)
    result = Plan(
        basis=basis,
        summary=_summary(changes, delta, stages, sweep),
        gate=Gate(),
        sweep=sweep,
        changes=changes,
        notes=delta.notes,
        stages=stages,
        records=delta.records,
        wholes=_wholes(stages, delta.differences),
        prior=_prior(recorded, changes, delta.records, sweep),
        reasserts=reasserts,
    )
    return result, delta


def _selects_nothing(scope: Scope, desired: Desired, recorded: Mapping[Key, Recorded]) -> Iterator[Diagnostic]:
    if not scope.selective:
        return
    addresses = [(r.key, r.source) for r in desired.resources.values()] + [(r.key, r.source) for r in recorded.values()]
    for name in scope.matching_nothing(addresses):
        yield Diagnostic(severity=Severity.WARNING, code=NOTHING_SELECTED, message=f"{name} matches no resource")
    for name in scope.targets:
        found = [key for key, _ in addresses if fnmatchcase(str(key), name)]
        if found and not any(key in desired.resources or key in desired.removed for key in found):
            yield from _selects_what_left(name, [recorded[key] for key in found])


def _selects_what_left(name: str, rows: Sequence[Recorded]) -> Iterator[Diagnostic]:
    """Yield a warning if a target only selects resources that this project no longer manages."""
    fates = dict.fromkeys(row.status for row in rows)
    if Status.ACTIVE in fates or any(row.doubtful for row in rows):
        return
    what = f"is {rows[0].status.value}" if len(rows) == 1 else f"are {' or '.join(fates)}"
    subject = name if len(rows) == 1 else f"all {len(rows):,} resources that {name} selects"
    message = f"{subject} {what}: nothing is planned for what this project no longer manages"
    yield Diagnostic(severity=Severity.WARNING, code=NOTHING_SELECTED, message=message)


# --- reasserting (docs/planning.md 7)


def reasserted(recorded: Mapping[Key, Recorded], desired: Container[Key]) -> dict[Key, Recorded]:
    """Put every desired row in doubt, so that it is sent again. Removals are planned as usual."""
    return {
        key: replace(row, doubtful=True) if key in desired and may_be_held(row) else row
        for key, row in recorded.items()
    }


def _sent_again(difference: Difference, row: Recorded | None) -> Difference:
    if row is None or row.doubtful or not may_be_held(row) or row.status is Status.RETIRED or difference.leaving:
        return difference
    return replace(difference, change=replace(difference.change, reason="sent again (--reassert)"))


# --- the other parts of a plan


def _sweeps_anyway(delta: Diff, options: Options) -> bool:
    is_exact = options.rules.activity_types is Ownership.EXACT
    return options.sweep or (is_exact and any(is_type(difference.change.key) for difference in delta.differences))


def _wholes(stages: Iterable[Stage], differences: Iterable[Difference]) -> dict[Key, Item]:
    """Return the upserts of tags that have none in `stages`. A tag without a row has one."""
    others = [d for d in differences if d.row is not None and d.resource is not None and d.change.key.kind is Kind.TAG]
    upserted = {i.key for s in stages if s.step is Step.TAGS for c in s.calls for i in c.items} if others else set()
    return {d.change.key: whole_tag(d) for d in others if d.change.key not in upserted}


def _summary(changes: Sequence[Change], delta: Diff, stages: Iterable[Stage], sweep: Sweep | None) -> Summary:
    return Summary(
        **_counts(changes),
        unchanged=delta.unchanged,
        kept=sum(note.kind == "kept" for note in delta.notes),
        requests=sum(len(stage.calls) for stage in stages) + (sweep.requests if sweep else 0),
    )


def _counts(changes: Sequence[Change]) -> dict[str, int]:
    actions = Counter(map(_ACTION, changes))
    return {
        **{action.word: actions[action] for action in Action},
        "keyword_adds": sum(len(c.keywords_added) for c in changes if c.action is not Action.CREATE),
        "keyword_deletes": sum(map(len, map(_KEYWORDS_DELETED, changes))),
        "metadata_deletes": sum(map(len, map(_METADATA_DELETED, changes))),
        "cascaded_tags": len(changes) - [*map(_CASCADE, changes)].count(None),
    }


_ACTION, _CASCADE = attrgetter("action"), attrgetter("cascade")
_KEYWORDS_DELETED, _METADATA_DELETED = attrgetter("keywords_deleted"), attrgetter("metadata_deleted")


def _prior(
    recorded: Mapping[Key, Recorded], changes: Iterable[Change], records: Iterable[Effect], sweep: Sweep | None
) -> dict[Key, str]:
    """Return digests of the rows that a plan touches, and of every activity type if it sweeps (docs/planning.md 6)."""
    keys: dict[Key, None] = dict.fromkeys(map(_KEY, changes))
    keys |= {effect.key: None for effect in records if effect.says_something(recorded.get(effect.key))}
    keys |= {former: None for change in changes for former in change.formers}
    if sweep is not None:
        keys |= {key: None for key, row in recorded.items() if is_type(key) and may_be_held(row)}
    return dict.fromkeys(keys, ABSENT) | {key: digest(recorded[key]) for key in keys if key in recorded}


_KEY = attrgetter("key")


def _inputs(target: Aim, removed: Mapping[Key, Removed], options: Options, result: Plan) -> PlanInputs:
    """Return the inputs that decide the plan's changes: those about rows that it touches, and all types in a sweep.

    A former name that is gone needs the resource that took it over, even if that has no change of its own.
    """
    prior, sweeps = result.prior, result.sweep is not None

    def decides(resource: Resource) -> bool:
        key = resource.key
        is_swept = sweeps and is_type(key)
        return is_swept or key in prior or any(Key(key.kind, name) in prior for name in resource.previously)

    return PlanInputs(
        options.rules,
        tuple(filter(decides, target.desired.values())),
        tuple(line for key, line in removed.items() if key in prior),
        tuple((each.key, each.source) for each in result.records if each.source and each.key not in prior),
    )


def narrowed(plan: Plan, keeps: Callable[[Change], bool]) -> Plan:
    """Return the plan with only the changes that `keeps` accepts, counted again. Its calls are unchanged."""
    changes = tuple(change for change in plan.changes if keeps(change))
    return replace(plan, changes=changes, summary=replace(plan.summary, **_counts(changes)))
