"""Plan a project against its state. Reads manifests, cache and state, and needs no service (docs/planning.md 2.6).

Everything is planned, unless the inputs are those of the last plan without changes: then that is the answer
(docs/planning.md 2.8).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from syncengine.plan.inputs import Inputs, consistent, state_warnings, with_inputs
from syncengine.plan.judgement import judgement_of
from syncengine.plan.losses import WINDOW, recent_losses, refuse_emptied
from syncengine.plan.model import (
    LIMIT_LOOSENED,
    BasePlan,
    Basis,
    Options,
    Plan,
    PlanInputs,
    Quarantine,
    Summary,
    Tree,
)
from syncengine.plan.request import PlanRequest, Runtime, Scope
from syncengine.project import git
from syncengine.project.files import OWN_FOLDER
from syncengine.project.model import Level, Limit, Project
from syncengine.project.references import setting_problem
from syncengine.project.schema import PolicySection, limit
from syncengine.resource import Key
from syncengine.rules.read import rules_that_hold
from syncengine.service.operations import DELETE_TAG
from syncengine.state.folder_memory import memory_of
from syncengine.state.records import Facts, StateReader

CACHE_FOLDER = OWN_FOLDER
OTHER_SIDE = "other-side"
"""The name under which the cache keeps the files of the revision that was compared last."""
WORTH_KEEPING = 100_000
"""The size of manifests in bytes from which a cache is faster than reading them."""
VALIDATED = "validated"
"""The name under which the cache keeps manifests that were found valid but not necessarily applied."""


def check_manifests(project: Project, manifests: ManifestSet) -> ManifestSet:
    """Check the manifests of a project before a run begins. Raise `Problems` with all their errors.

    Resources are not read when the manifests are known to be valid.
    """
    if not _is_worth_keeping(manifests):
        return manifests._replace(wanted=manifests.read())
    with _cache_of(project, manifests) as cache:
        digests = digests_of(manifests.files, cache)
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
    if not _is_worth_keeping(manifests):
        return _valid(manifests.read())
    with _cache_of(project, manifests) as cache:
        digests = digests_of(manifests.files, cache)
        if baseline := _standing_in(cache, manifests, digests):
            return Valid(baseline.desired, len(baseline.files), baseline.diagnostics)
        desired = manifests.read(cache, digests)
        if not manifests.found:
            cache.remember(VALIDATED, _answer_of(desired, cache, manifests.levels))
        return _valid(desired)


def _standing_in(cache: ManifestCache, manifests: ManifestSet, digests: Sequence[str] | None) -> Settled | None:
    """Return the cached result of validating these manifests, or `None` if no valid result is cached."""
    if digests is None or manifests.found:
        return None
    return cache.find_basis(cache.entries(manifests.files, digests), manifests.levels)


def _valid(desired: Desired) -> Valid:
    return Valid(len(desired.resources), len(desired.files), desired.diagnostics)


def make_plan(project: Project, request: PlanRequest, runtime: Runtime, manifests: ManifestSet | None = None) -> Plan:
    """Plan a project from its `manifests`, searched for if not given, and its recorded state, which is only read.

    Plan again while the inputs change (docs/planning.md 2.8).
    """
    firsts = iter([manifests] if manifests else [])

    def made(today: Project) -> Plan:
        first = next(firsts, None) if today is project else None
        inputs = Inputs.of(today, first or manifest_set(today))
        return inputs.planned(lambda: _made(inputs, request, runtime))

    return consistent(project, made)


def _made(inputs: Inputs, request: PlanRequest, runtime: Runtime) -> Plan:
    project = inputs.project
    from syncengine.state.store import open_state  # with SQLAlchemy, which commands without a state do not need

    memory = memory_of(project)
    with open_state(project.state, write=False, now=runtime.now, create=request.new_state, memory=memory) as state:
        draft = plan_in(state, inputs.manifests, project, request, runtime)
        warnings = state_warnings(project, state, draft.basis.commit)
        listed = warnings_of_approvals(draft, state, project, request)
        if request.saves:
            draft = with_inputs(draft, project, inputs.manifests)
        return replace(draft, diagnostics=(*warnings, *draft.diagnostics, *listed))


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
    facts = state.facts()
    options, basis = _how(project, request, state, runtime)
    draft = _drafted(project, manifests, state, (replace(options, other=other), basis), request)
    refusals = state.refusals() if draft.changes else {}
    refused = {str(c.key): refusals[c.key] for c in draft.changes if c.key in refusals} if refusals else {}
    found = (*loosened(project, facts.limits), *draft.diagnostics)
    return replace(draft, diagnostics=found, refused=refused or UNSET)


def _how(project: Project, request: PlanRequest, state: StateReader, runtime: Runtime) -> tuple[Options, Basis]:
    """Return the options and the basis of a project's plan in a state."""
    facts = state.facts()
    options, basis = options_of(project, request, facts), basis_of(project, facts, runtime)
    records = tuple(state.quarantine())
    if not (project.quarantine or records):
        return options, basis
    now = datetime.fromisoformat(basis.created).timestamp()
    quarantine = Quarantine(now, project.config_name, project.quarantine, records, state.refusals())
    return replace(options, quarantine=quarantine), basis


def plan_of_other(
    state: StateReader, manifests: ManifestSet, project: Project, request: PlanRequest, runtime: Runtime
) -> BasePlan:
    """Plan another revision of the project, for comparison.

    The cache also keeps the files of that revision, until another revision is compared.
    """
    how = _how(project, request, state, runtime)
    draft = _drafted(project, manifests, state, how, request, is_other=True)
    return BasePlan({change.key: change for change in draft.changes}, draft.sweep is not None, draft.sources)


def plan_from(state: StateReader, desired: Desired, project: Project, request: PlanRequest, runtime: Runtime) -> Plan:
    """Plan from the resources of a revision, which take the place of a state. Nothing is settled by the plan."""
    facts = state.facts()
    options = replace(options_of(project, request, facts), other=BasePlan())
    return _whole(desired, state, (options, basis_of(project, facts, runtime)))


def declared_by(project: Project, manifests: ManifestSet) -> Desired:
    """Return the desired resources of a project, through the cache if the manifests are large."""
    if not _is_worth_keeping(manifests):
        return manifests.read()
    with _cache_of(project, manifests) as cache:
        return manifests.read(cache, digests_of(manifests.files, cache))


def _is_worth_keeping(manifests: ManifestSet) -> bool:
    """Return whether a cache is worthwhile. A cache identifies files by name, so two files must not share a name."""
    size = sum(file.size() for file in manifests.files)
    worth = size >= WORTH_KEEPING or any(file.generates() for file in manifests.files)
    return worth and len({file.name for file in manifests.files}) == len(manifests.files)


def _cache_of(project: Project, manifests: ManifestSet) -> ManifestCache:
    return ManifestCache(project.root / CACHE_FOLDER, manifests.defaults)


def remember_applied(project: Project, plan: Plan, after: Facts) -> None:
    """Remember that nothing is to do, after a whole plan was applied and left no row in doubt.

    `after` are the state's facts then. A plan from a file read no manifests, and leaves this to the next plan.
    """
    if plan.basis.settles is None:
        return
    name, digest = plan.basis.settles.split("@")
    with _cache_of(project, manifest_set(project)) as cache:
        answer = cache.settled(name)
        if answer is not None and digest_of(answer.files) == digest:  # no other plan was made meanwhile
            cache.remember(name, replace(answer, generation=after.generation))


def is_plain(request: PlanRequest, manifests: ManifestSet) -> bool:
    """Return whether the whole project is planned as declared, without options that only concern this plan."""
    return request.scope.whole and not (request.sweep or request.reassert or manifests.found)


def _drafted(
    project: Project,
    manifests: ManifestSet,
    state: StateReader,
    how: tuple[Options, Basis],
    request: PlanRequest,
    *,
    is_other: bool = False,
) -> Plan:
    """Return the plan of manifests, through a cache if that is worthwhile. `is_other`: it is not to be applied."""
    if not _is_worth_keeping(manifests):
        return _whole(manifests.read(), state, how)
    with _cache_of(project, manifests) as cache:
        digests = None if manifests.wanted else digests_of(manifests.files, cache)
        options, basis = how
        name = digest_of(cache.context, basis.base_url, options.rules, options.levels)
        is_usual = options.quarantine is None and is_plain(request, manifests)
        generation = state.facts().generation
        if is_usual and generation and digests is not None and not state.undone():
            answer = cache.settled(name)
            entries = [*cache.entries(manifests.files, digests).items()]  # the order of files decides findings
            if answer is not None and (answer.generation, [*answer.files.items()]) == (generation, entries):
                return _marked(_nothing(answer, *how), name, answer)
        desired = manifests.read(cache, digests)
        draft = _whole(desired, state, how)
        if is_other:
            cache.remember(OTHER_SIDE, _answer_of(desired, cache, options.levels))
        if not is_usual or not _is_told_by_answer(draft) or state.facts().generation != generation:
            return draft
        answer = _answer_of(desired, cache, options.levels)
        is_empty = not (draft.changes_something or draft.records)
        if is_empty or not is_other:
            cache.remember(name, replace(answer, generation=generation if is_empty else None))
        return _marked(draft, name, answer)


def _marked(draft: Plan, name: str, answer: Settled) -> Plan:
    """Return the plan with a mark of the answer that is right once it is applied (`remember_applied`)."""
    return replace(draft, basis=replace(draft.basis, settles=f"{name}@{digest_of(answer.files)}"))


def _is_told_by_answer(draft: Plan) -> bool:
    """Return whether a plan without changes, once this one is applied, says nothing that only planning finds."""
    if draft.notes or any(effect.unsure for effect in draft.effects()):
        return False
    return all(diagnostic.code != REMOVED_UNKNOWN for diagnostic in draft.diagnostics)


def _nothing(answer: Settled, options: Options, basis: Basis) -> Plan:
    """Return the plan when nothing changed. Only rules for the plan as a whole can find fault with it."""
    summary = Summary(unchanged=answer.desired)
    found = (*answer.diagnostics, *judgement_of(options.rule_set, (), {}, summary).diagnostics)
    inputs, had = PlanInputs(options.rules), answer.sources
    return Plan(basis, summary, Gate(), None, (), (), (), inputs=inputs, diagnostics=found, sources=had, is_whole=True)


def _whole(desired: Desired, state: StateReader, how: tuple[Options, Basis]) -> Plan:
    """Plan the whole project."""
    recorded = {row.key: row for row in state.rows()}
    everything = {**desired.resources, **recorded}
    _refuse_unmatched(how[0].scope, everything)
    how = (replace(how[0], scope=how[0].scope.of(everything)), how[1])
    refuse_emptied(desired, recorded, how[1].sources)
    draft = plan(desired, recorded, *how, records_in(state, datetime.fromisoformat(how[1].created).timestamp()))
    return with_undone(draft, desired, recorded, state.undone(), how[0])


def records_in(state: StateReader, now: float) -> StateRecords:
    """Return the state's records for the gate: approvals, and losses below the gate in the last 24 hours."""
    return StateRecords(
        lambda: recent_losses(state.removals(now - WINDOW), state.approvals()), lambda: records_of(state.approvals())
    )


def _answer_of(desired: Desired, cache: ManifestCache, levels: Mapping[str, Level]) -> Settled:
    return Settled(
        files={name: cache.digest(name, sha256) for name, sha256 in desired.files.items()},
        desired=len(desired.resources),
        diagnostics=desired.diagnostics,
        levels=levels,
        sources=desired.rows_of_sources(),
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
    return replace(draft, gate=draft.gate.with_approvals(approvals_of(project, request)))


def warnings_of_approvals(
    draft: Plan, state: StateReader, project: Project, request: PlanRequest
) -> tuple[Diagnostic, ...]:
    """Return warnings about the approvals given, except for listed ones when only a selection is planned."""
    at_hand = [each for each in approvals_of(project, request) if request.scope.whole or each.line is None]
    return tuple(approval_warnings(draft.gate, at_hand, records_of(state.approvals()))) if at_hand else ()


def approvals_of(project: Project, request: PlanRequest) -> Iterator[Approval]:
    """Yield the approvals of the command line, the project file and the environment."""
    yield from (Approval(text, "--approve-deletes") for text in request.approvals)
    for text in project.approvals:
        line = project.approval_lines.get(text)
        yield Approval(text, "SYNCENGINE_APPROVE_DELETES" if line is None else project.config_name, line)


def _refuse_unmatched(scope: Scope, keys: Iterable[Key]) -> None:
    """Raise `Usage` for a pattern that matches no address, and suggest the nearest address."""
    names = (*scope.targets, *scope.excludes)
    addresses = dict.fromkeys(map(str, keys)) if names else {}
    for name in names:
        if name not in addresses and not any(fnmatchcase(address, name) for address in addresses):
            kind = "" if "/" in name else " (an address is KIND/NAME: tag/, category/ or activity-type/)"
            near = suggestion(name, addresses)
            if not near and (match := next((each for each in addresses if each.partition("/")[2] == name), None)):
                near = f"; did you mean `{match}`?"  # the name was written without its kind
            raise Usage(f"{name} matches no resource{kind}{near}")


# --- the limits of the last apply


def judged_since(policy: PolicySection, last: Mapping[str, str]) -> Mapping[str, Limit]:
    """Return the stricter limits of a policy and of the last complete apply, which the state records."""
    before = {name: read for name, text in last.items() if (read := limit(text))}
    return {name: own.and_also(before.get(name, own)) for name, own in policy.max_deletes.by_name().items()}


def loosened(project: Project, last: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a warning for each limit that was loosened since the last complete apply, and so does not count yet."""
    for name, judging in judged_since(project.policy, last).items():
        if judging != (own := project.policy.max_deletes.by_name()[name]):
            line = project.policy_lines.get(f"maxDeletes.{name}")
            message = (
                f"maxDeletes.{name} was {last[name]} at the last complete apply and is now {own}: "
                f"this plan is judged by {judging}, and {own} takes effect with the next apply"
            )
            yield Diagnostic(
                severity=Severity.WARNING, code=LIMIT_LOOSENED, message=message, file=project.config_name, line=line
            )
