"""Build a plan (stages of calls, sweep, gate, summary) from desired resources and recorded rows. Pure.

Folding the effects of a plan's calls and records over the recorded rows gives the aim, so that a plan can be proven
without any IO.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import count
from operator import attrgetter

from msgspec import UNSET
from msgspec.structs import replace

from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.manifest.desired import Desired
from syncengine.plan.aim import Aim, aim, may_be_held
from syncengine.plan.calls import Step, is_type, stages_of, sweep_of, whole_tag
from syncengine.plan.checks import NOTHING_SELECTED, objections, suspicions
from syncengine.plan.diff import SENT_SINCE, Action, Change, Diff, SendCause, diff
from syncengine.plan.gate import NOTHING_ELSE, Gate, KnownApprovals, StateRecords, gate, lines_of
from syncengine.plan.judgement import judgement_of, units_of_judgement
from syncengine.plan.model import Basis, Options, Plan, PlanInputs, Summary, side_of, with_origins
from syncengine.plan.quarantine import SWEEP_LEFT_OUT, QuarantineVerdict, verdict_of, warnings
from syncengine.plan.request import Scope, is_below
from syncengine.project.load import levelled
from syncengine.project.model import Ownership
from syncengine.resource import Key, Kind, Recorded, Resource, Status
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
    may_sweep = options.scope.whole and target.keeps_types is None
    exact = may_sweep and options.rules.activity_types is Ownership.EXACT
    draft, delta = derived(
        target, rows, recorded, basis, reasserts=options.reassert, sweeps=may_sweep and options.sweep, exact=exact
    )
    judgement = judgement_of(options.rule_set, delta.differences, rows, draft.summary)
    known = records.approvals() if judgement.asks else KnownApprovals()
    judged = gate(
        delta.differences,
        recorded,
        options.limits,
        sweep=draft.sweep,
        owner=basis.owner,
        lines=lines_of(desired.removed),
        sources=desired.sources,
        had=basis.sources,
        rules=units_of_judgement(judgement, delta.differences, known, basis.owner),
        records=records,
    )
    base = side_of(options.other, draft.changes) if options.other else UNSET

    def decides(resource: Resource) -> bool:
        """Return whether the resource decides a row that the plan touches: its own, a former one, or all of a sweep.

        A former name that is gone needs the resource that took it over, even if that has no change of its own.
        """
        key, is_swept = resource.key, draft.sweep is not None and is_type(resource.key)
        return is_swept or key in draft.prior or any(Key(key.kind, name) in draft.prior for name in resource.previously)

    inputs = PlanInputs(
        options.rules,
        tuple(filter(decides, target.desired.values())),
        tuple(line for key, line in desired.removed.items() if key in draft.prior),
        tuple((each.key, each.source) for each in draft.records if each.source and each.key not in draft.prior),
    )
    return replace(
        draft,
        inputs=inputs,
        gate=with_origins(judged, base) if base else judged,
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
    *,
    reasserts: bool,
    sweeps: bool,
    exact: bool = False,
) -> tuple[Plan, Diff]:
    """Return the plan that follows from the aim, without gate and diagnostics, and its differences.

    `rows` are the `recorded` rows, with reasserted ones put in doubt. `exact`: any change of an activity type sweeps.
    """
    delta = diff(rows, target)
    sweeps = sweeps or (exact and any(is_type(each.change.key) for each in delta.differences))
    if reasserts:
        again = []
        for each in delta.differences:
            row = recorded.get(each.change.key)
            has_own_reason = row is None or row.doubtful or not may_be_held(row) or row.status is Status.RETIRED
            if not (has_own_reason or each.leaving):
                reason = SENT_SINCE[SendCause.REASSERTED]
                each = replace(each, change=replace(each.change, reason=reason, again=SendCause.REASSERTED))
            again.append(each)
        delta = replace(delta, differences=tuple(again))
    numbers = count(1)
    stages = stages_of(delta.differences, target, numbers)
    sweep = sweep_of(target, rows, numbers, anyway=sweeps, first=not basis.swept_before)
    changes = tuple(difference.change for difference in delta.differences)
    summary = Summary(
        **_counts(changes),
        unchanged=delta.unchanged,
        kept=sum(note.kind == "kept" for note in delta.notes),
        requests=sum(len(stage.calls) for stage in stages) + (sweep.requests if sweep else 0),
    )
    # A tag without a row has an upsert among the stages.
    tags = (d for d in delta.differences if d.change.key.kind is Kind.TAG)
    held = [d for d in tags if d.row is not None and d.resource is not None]
    upserted = {i.key for s in stages if s.step is Step.TAGS for c in s.calls for i in c.items} if held else set()
    # The rows that the plan touches, and every activity type if it sweeps (docs/planning.md 6).
    keys: dict[Key, None] = dict.fromkeys(map(attrgetter("key"), changes))
    keys |= {effect.key: None for effect in delta.records if effect.says_something(recorded.get(effect.key))}
    keys |= {former: None for change in changes for former in change.formers}
    if sweep is not None:
        keys |= {key: None for key, row in recorded.items() if is_type(key) and may_be_held(row)}
    result = Plan(
        basis=basis,
        summary=summary,
        gate=Gate(),
        sweep=sweep,
        changes=changes,
        notes=delta.notes,
        stages=stages,
        records=delta.records,
        wholes={d.change.key: whole_tag(d) for d in held if d.change.key not in upserted},
        prior=dict.fromkeys(keys, ABSENT) | {key: digest(recorded[key]) for key in keys if key in recorded},
        reasserts=reasserts,
    )
    return result, delta


def _selects_nothing(scope: Scope, desired: Desired, recorded: Mapping[Key, Recorded]) -> Iterator[Diagnostic]:
    """Yield warnings about paths that match nothing, and patterns that match only what is no longer managed here."""
    if not scope.selective:
        return
    places = {resource.source for resource in desired.resources.values()} | {row.source for row in recorded.values()}
    files = {place.file for place in places if place is not None}
    paths = (path for path in scope.paths if not any(is_below(file, path) for file in files))
    found = [f"`{path}` matches no resource" for path in paths]
    for name in scope.targets:
        keys = [key for key in {**desired.resources, **recorded} if fnmatchcase(str(key), name)]
        rows = [recorded[key] for key in keys if key in recorded]
        fates = dict.fromkeys(row.status for row in rows)
        is_managed = Status.ACTIVE in fates or any(row.doubtful for row in rows)
        if keys and not is_managed and not any(key in desired.resources or key in desired.removed for key in keys):
            what = f"is {rows[0].status.value}" if len(rows) == 1 else f"are {' or '.join(fates)}"
            subject = name if len(rows) == 1 else f"all {len(rows):,} resources that {name} selects"
            found.append(f"{subject} {what}: nothing is planned for what this project no longer manages")
    for message in found:
        yield Diagnostic(severity=Severity.WARNING, code=NOTHING_SELECTED, message=message)


def reasserted(recorded: Mapping[Key, Recorded], desired: Container[Key]) -> dict[Key, Recorded]:
    """Put every desired row in doubt, so that it is sent again. Removals are planned as usual (docs/planning.md 7)."""
    return {
        key: replace(row, doubtful=True) if key in desired and may_be_held(row) else row
        for key, row in recorded.items()
    }


def _counts(changes: Sequence[Change]) -> dict[str, int]:
    """Return the counts of a summary that follow from the changes, with functions in C: a plan may have very many."""
    actions = Counter(map(attrgetter("action"), changes))
    return {
        **{action.word: actions[action] for action in Action},
        "keyword_adds": sum(len(c.keywords_added) for c in changes if c.action is not Action.CREATE),
        "keyword_deletes": sum(map(len, map(attrgetter("keywords_deleted"), changes))),
        "metadata_deletes": sum(map(len, map(attrgetter("metadata_deleted"), changes))),
        "cascaded_tags": len(changes) - [*map(attrgetter("cascade"), changes)].count(None),
    }
