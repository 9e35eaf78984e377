"""Plan a project against its state. Reads manifests, cache and state, and needs no service (docs/planning.md 2.6).

Everything is planned, unless the inputs are those of the last plan without changes: then that is the answer
(docs/planning.md 2.8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from syncengine.document.diagnostics import suggestion
from syncengine.errors import Diagnostic, Severity, Usage
from syncengine.manifest.cache import ManifestCache, Settled, digest_of
from syncengine.manifest.desired import Desired, ManifestSet, digests_of, manifest_set
from syncengine.plan.aim import Rules
from syncengine.plan.build import plan
from syncengine.plan.checks import REMOVED_UNKNOWN, with_undone
from syncengine.plan.gate import Approval, Gate, StateRecords, approval_warnings, records_of
from syncengine.plan.inputs import Inputs, consistent, quarantine_in, state_warnings, with_inputs
from syncengine.plan.judgement import judgement_of
from syncengine.plan.losses import recent_losses, refuse_emptied
from syncengine.plan.model import (
    LIMIT_LOOSENED,
    BasePlan,
    Basis,
    Options,
    Plan,
    PlanInputs,
    Summary,
    Tree,
)
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.project import git
from syncengine.project.files import OWN_FOLDER
from syncengine.project.model import Level, Limit, Project
from syncengine.project.references import setting_problem
from syncengine.project.schema import PolicySection, limit
from syncengine.rules.read import rules_that_hold
from syncengine.service.operations import DELETE_TAG
from syncengine.state.folder_memory import memory_of
from syncengine.state.records import GATE_SECONDS, Facts, StateReader

OTHER_SIDE = "other-side"
"""The name under which the cache keeps the files of the revision that was compared last."""
WORTH_KEEPING = 100_000
"""The size of manifests in bytes from which a cache is faster than reading them."""
VALIDATED = "validated"
"""The name under which the cache keeps manifests that were found valid but not necessarily applied."""


@contextmanager
def _cache_of(project: Project, manifests: ManifestSet) -> Iterator[ManifestCache | None]:
    """Open the project's cache, or yield `None` where reading the manifests is quicker.

    A cache identifies files by name, so two files must not share a name.
    """
    size = sum(file.size() for file in manifests.files)
    is_worthwhile = size >= WORTH_KEEPING or any(file.generates() for file in manifests.files)
    if is_worthwhile and len({file.name for file in manifests.files}) == len(manifests.files):
        with ManifestCache(project.root / OWN_FOLDER, manifests.defaults) as cache:
            yield cache
    else:
        yield None


def check_manifests(project: Project, manifests: ManifestSet) -> ManifestSet:
    """Check the manifests of a project before a run begins. Raise `Problems` with all their errors.

    Resources are not read when the manifests are known to be valid.
    """
    with _cache_of(project, manifests) as cache:
        digests = digests_of(manifests.files, cache) if cache else None
        if _standing_in(cache, manifests, digests):
            return manifests
        return manifests._replace(wanted=manifests.read(cache, digests))


class Valid(NamedTuple):
    """The number of resources and files in valid manifests, and the warnings about them."""

    resources: int
    files: int
    diagnostics: tuple[Diagnostic, ...]


def validated(project: Project) -> Valid:
    """Validate the manifests of a project offline. Raise `Problems` with all their errors."""
    manifests = manifest_set(project)
    with _cache_of(project, manifests) as cache:
        digests = digests_of(manifests.files, cache) if cache else None
        if known := _standing_in(cache, manifests, digests):
            return Valid(known.desired, len(known.files), known.diagnostics)
        desired = manifests.read(cache, digests)
        if cache and not manifests.found:
            cache.remember(VALIDATED, _answer_of(desired, cache, manifests.levels))
        return Valid(len(desired.resources), len(desired.files), desired.diagnostics)


def _standing_in(cache: ManifestCache | None, manifests: ManifestSet, digests: Sequence[str] | None) -> Settled | None:
    """Return the cached result of validating these manifests, or `None` if no valid result is cached."""
    if cache is None or digests is None or manifests.found:
        return None
    return cache.find_basis(cache.entries(manifests.files, digests), manifests.levels)


def declared_by(project: Project, manifests: ManifestSet) -> Desired:
    """Return the desired resources of a project, through the cache if the manifests are large."""
    with _cache_of(project, manifests) as cache:
        return manifests.read(cache, digests_of(manifests.files, cache) if cache else None)


def make_plan(project: Project, request: PlanRequest, runtime: Runtime) -> Plan:
    """Plan a project from its manifests and its recorded state, which is only read.

    Plan again while the inputs change (docs/planning.md 2.8).
    """
    from syncengine.state.store import open_state  # with SQLAlchemy, which commands without a state do not need

    def made(today: Project) -> Plan:
        inputs = Inputs.of(today, manifest_set(today))

        def planned() -> Plan:
            with open_state(
                today.state, write=False, now=runtime.now, create=request.new_state, memory=memory_of(today)
            ) as state:
                draft = plan_in(state, inputs.manifests, today, request, runtime)
                draft = with_inputs(draft, today, inputs.manifests) if request.saves else draft
                return with_warnings(draft, state, today, request)

        return inputs.planned(planned)

    return consistent(project, made)


def plan_in(
    state: StateReader,
    manifests: ManifestSet,
    project: Project,
    request: PlanRequest,
    runtime: Runtime,
    other: BasePlan | None = None,
) -> Plan:
    """Plan in a state that is already open. `other` is the plan of the base to compare with."""
    if not project.manifests and next(iter(state.rows()), None) is not None:
        cure = "create the folder, or name other paths under `manifests:` in the project file"
        message = "there is no folder manifests/, and a plan without it would remove everything in the state"
        raise setting_problem("missing-manifests", f"{message}: {cure}")
    draft = _drafted(project, manifests, state, request, runtime, other)
    refusals = state.refusals() if draft.changes else {}
    refused = {str(each.key): refusals[each.key] for each in draft.changes if each.key in refusals}
    found = (*loosened(project, state.facts().limits), *draft.diagnostics)
    return replace(draft, diagnostics=found, refused=refused or UNSET)


def plan_of_other(
    state: StateReader, manifests: ManifestSet, project: Project, request: PlanRequest, runtime: Runtime
) -> BasePlan:
    """Plan another revision of the project, for comparison.

    The cache also keeps the files of that revision, until another revision is compared.
    """
    draft = _drafted(project, manifests, state, request, runtime, is_other=True)
    return BasePlan({change.key: change for change in draft.changes}, draft.sweep is not None, draft.sources)


def plan_from(state: StateReader, desired: Desired, project: Project, request: PlanRequest, runtime: Runtime) -> Plan:
    """Plan from the resources of a revision, which take the place of a state. Nothing is settled by the plan."""
    facts = state.facts()
    options = replace(options_of(project, request, facts), other=BasePlan())
    return _whole(desired, state, options, basis_of(project, facts, runtime))


def remember_applied(project: Project, plan: Plan, after: Facts) -> None:
    """Remember that nothing is to do, after a whole plan was applied and left no row in doubt.

    `after` are the state's facts then. A plan from a file read no manifests, and leaves this to the next plan.
    """
    if plan.basis.settles is None:
        return
    name, digest = plan.basis.settles.split("@")
    with _cache_of(project, manifest_set(project)) as cache:
        answer = cache.settled(name) if cache else None
        if cache and answer and digest_of(answer.files) == digest:  # no other plan was made meanwhile
            cache.remember(name, replace(answer, generation=after.generation))


def _drafted(
    project: Project,
    manifests: ManifestSet,
    state: StateReader,
    request: PlanRequest,
    runtime: Runtime,
    other: BasePlan | None = None,
    *,
    is_other: bool = False,
) -> Plan:
    """Return the plan of manifests, through a cache if that is worthwhile. `is_other`: it is not to be applied."""
    facts = state.facts()
    basis = basis_of(project, facts, runtime)
    options = replace(options_of(project, request, facts), other=other)
    quarantine = quarantine_in(state, project, datetime.fromisoformat(basis.created).timestamp())
    if quarantine.all:
        options = replace(options, quarantine=quarantine)
    with _cache_of(project, manifests) as cache:
        if cache is None:
            return _whole(manifests.read(), state, options, basis)
        digests = None if manifests.wanted else digests_of(manifests.files, cache)
        name = digest_of(cache.context, basis.base_url, options.rules, options.levels)
        has_options = request.sweep or request.reassert or not request.scope.whole  # they only concern this plan
        is_usual = not (has_options or manifests.found or options.quarantine)
        if is_usual and facts.generation and digests is not None and not state.undone():
            answer = cache.settled(name)
            entries = [*cache.entries(manifests.files, digests).items()]  # the order of files decides findings
            if answer is not None and (answer.generation, [*answer.files.items()]) == (facts.generation, entries):
                summary = Summary(unchanged=answer.desired)
                # Of a plan without changes, only rules for the plan as a whole can find fault.
                found = (*answer.diagnostics, *judgement_of(options.rule_set, (), {}, summary).diagnostics)
                empty = Plan(basis, summary, Gate(), None, (), (), (), diagnostics=found, sources=answer.sources)
                return _marked(replace(empty, inputs=PlanInputs(options.rules), is_whole=True), name, answer)
        desired = manifests.read(cache, digests)
        draft = _whole(desired, state, options, basis)
        answer = _answer_of(desired, cache, options.levels)
        if is_other:
            cache.remember(OTHER_SIDE, answer)
        # Once this plan is applied, the next one is answered from the cache: not if it would say what only planning
        # finds, and not if the state changed meanwhile.
        if not is_usual or draft.notes or state.facts().generation != facts.generation:
            return draft
        if any(each.code == REMOVED_UNKNOWN for each in draft.diagnostics) or any(e.unsure for e in draft.effects()):
            return draft
        is_empty = not (draft.changes_something or draft.records)
        if is_empty or not is_other:
            cache.remember(name, replace(answer, generation=facts.generation if is_empty else None))
        return _marked(draft, name, answer)


def _marked(draft: Plan, name: str, answer: Settled) -> Plan:
    """Return the plan with a mark of the answer that is right once it is applied (`remember_applied`)."""
    return replace(draft, basis=replace(draft.basis, settles=f"{name}@{digest_of(answer.files)}"))


def _answer_of(desired: Desired, cache: ManifestCache, levels: Mapping[str, Level]) -> Settled:
    return Settled(
        files={name: cache.digest(name, sha256) for name, sha256 in desired.files.items()},
        desired=len(desired.resources),
        diagnostics=desired.diagnostics,
        levels=levels,
        sources=desired.rows_of_sources(),
    )


def _whole(desired: Desired, state: StateReader, options: Options, basis: Basis) -> Plan:
    """Plan the whole project. Raise `Usage` for a pattern that matches no address, with the nearest one."""
    recorded = {row.key: row for row in state.rows()}
    everything = {**desired.resources, **recorded}
    names = (*options.scope.targets, *options.scope.excludes)
    addresses = dict.fromkeys(map(str, everything)) if names else {}
    for name in names:
        if name not in addresses and not any(fnmatchcase(address, name) for address in addresses):
            kind = "" if "/" in name else " (an address is KIND/NAME: tag/, category/ or activity-type/)"
            near = suggestion(name, addresses)
            if not near and (match := next((each for each in addresses if each.partition("/")[2] == name), None)):
                near = f"; did you mean `{match}`?"  # the name was written without its kind
            raise Usage(f"`{name}` matches no resource{kind}{near}")
    options = replace(options, scope=options.scope.of(everything))
    refuse_emptied(desired, recorded, basis.sources)
    records = records_in(state, datetime.fromisoformat(basis.created).timestamp())
    draft = plan(desired, recorded, options, basis, records)
    return with_undone(draft, desired, recorded, state.undone(), options)


def records_in(state: StateReader, now: float) -> StateRecords:
    """Return the state's records for the gate: approvals, and losses below the gate in the last 24 hours."""
    return StateRecords(
        recent=lambda: recent_losses(state.removals(now - GATE_SECONDS), state.approvals()),
        approvals=lambda: records_of(state.approvals()),
    )


def basis_of(project: Project, facts: Facts, runtime: Runtime) -> Basis:
    """Return the service, team, state and commit that a plan of the project is made for."""
    commit = git.head(project.root)
    return Basis(
        id=runtime.new_id(),
        created=datetime.fromtimestamp(runtime.now(), UTC).isoformat(timespec="seconds"),
        base_url=project.base_url(),
        team=facts.team,
        lineage=facts.lineage if facts.team else "",
        commit=commit.id if commit else None,
        environment=project.environment or "",
        tree=Tree(commit.tree or git.empty_tree(commit.id)) if commit else None,
        swept_before=facts.owns_activity_types,
        sources=facts.sources,
    )


def options_of(project: Project, request: PlanRequest, facts: Facts) -> Options:
    """Combine the policy of the project and the flags of the request into the options of a plan.

    Each limit is the stricter one of today's and that of the last complete apply, so that a looser limit counts only
    from the next apply on.
    """
    policy = project.policy
    return Options(
        rules_of(project),
        judged_since(policy, facts.limits),
        request.scope,
        sweep=request.sweep,
        reassert=request.reassert,
        levels=policy.diagnostics,
        rule_set=rules_that_hold(project),
        redo=request.redo,
    )


def rules_of(project: Project) -> Rules:
    """Return the project's rules for removals."""
    policy, deletes_tags = project.policy, DELETE_TAG.id in project.service.endpoints
    return Rules(tag_removal=policy.tag_removal, activity_types=policy.activity_types, deletes_tags=deletes_tags)


def with_approvals(draft: Plan, project: Project, request: PlanRequest) -> Plan:
    """Return the plan with its gate judged by every approval given (docs/planning.md 5). Saved plans are not judged."""
    return replace(draft, gate=draft.gate.with_approvals(_approvals_of(project, request)))


def with_warnings(draft: Plan, state: StateReader, project: Project, request: PlanRequest) -> Plan:
    """Return the plan with warnings about its state before all others, and about its approvals after them."""
    listed = warnings_of_approvals(draft, state, project, request)
    return replace(
        draft, diagnostics=(*state_warnings(project, state, draft.basis.commit), *draft.diagnostics, *listed)
    )


def warnings_of_approvals(
    draft: Plan, state: StateReader, project: Project, request: PlanRequest
) -> tuple[Diagnostic, ...]:
    """Return warnings about the approvals given, except for listed ones when only a selection is planned."""
    at_hand = [each for each in _approvals_of(project, request) if request.scope.whole or each.line is None]
    return tuple(approval_warnings(draft.gate, at_hand, records_of(state.approvals()))) if at_hand else ()


def _approvals_of(project: Project, request: PlanRequest) -> Iterator[Approval]:
    """Yield the approvals of the command line, the project file and the environment."""
    yield from (Approval(text, "--approve-deletes") for text in request.approvals)
    for text in project.approvals:
        line = project.lines.get(f"approvals.{text}")
        yield Approval(text, "SYNCENGINE_APPROVE_DELETES" if line is None else project.config_name, line)


def judged_since(policy: PolicySection, last: Mapping[str, str]) -> Mapping[str, Limit]:
    """Return the stricter limits of a policy and of the last complete apply, which the state records."""
    before = {name: read for name, text in last.items() if (read := limit(text))}
    return {name: own.and_also(before.get(name, own)) for name, own in policy.max_deletes.by_name().items()}


def loosened(project: Project, last: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a warning for each limit that was loosened since the last complete apply, and so does not count yet."""
    for name, judging in judged_since(project.policy, last).items():
        if judging != (own := project.policy.max_deletes.by_name()[name]):
            line = project.lines.get(f"policy.maxDeletes.{name}")
            message = (
                f"maxDeletes.{name} was {last[name]} at the last complete apply and is now {own}: "
                f"this plan is judged by {judging}, and {own} takes effect with the next apply"
            )
            yield Diagnostic(
                severity=Severity.WARNING, code=LIMIT_LOOSENED, message=message, file=project.config_name, line=line
            )
