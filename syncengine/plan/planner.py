"""Plan a project against its state: the changes since the last settled plan, or everything.

Planning reads manifests, cache and state, and needs no service (docs/planning.md 2.6). Both ways give the same plan
(docs/planning.md 2.8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from syncengine.document.diagnostics import suggestion
from syncengine.document.gc_pause import no_collection
from syncengine.errors import Diagnostic, Usage
from syncengine.manifest.cache import ManifestCache, Settled, digest_of, mark_of
from syncengine.manifest.desired import Desired, ManifestSet, manifest_set
from syncengine.manifest.load import digests_of
from syncengine.plan.aim import Rules
from syncengine.plan.approvals import Approval, records_of
from syncengine.plan.build import plan
from syncengine.plan.checks import REMOVED_UNKNOWN
from syncengine.plan.empty_sources import refuse_emptied
from syncengine.plan.gate import StateRecords
from syncengine.plan.incremental import plan_since
from syncengine.plan.inputs import Inputs, consistent
from syncengine.plan.losses import totals_of
from syncengine.plan.model import BasePlan, Basis, Options, Plan, Quarantine, Tree
from syncengine.plan.policy_changes import judged_since, loosened
from syncengine.plan.recent_losses import recent_losses
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.plan.scope import Scope
from syncengine.plan.state_checks import state_warnings
from syncengine.plan.tree import with_inputs
from syncengine.plan.undone import with_undone
from syncengine.plan.uses import approval_warnings
from syncengine.project import folder as own_folder
from syncengine.project import git
from syncengine.project.model import Project
from syncengine.project.references import setting_problem
from syncengine.project.schema import Level
from syncengine.resource import Key, Kind, Resource
from syncengine.rules.read import rules_that_hold
from syncengine.service.operations import DELETE_TAG
from syncengine.state.folder_memory import memory_of
from syncengine.state.info import Facts, StateReader
from syncengine.state.refusals import Refusal
from syncengine.state.sqlite_reader import recollection

CACHE_FOLDER = own_folder.NAME
OTHER_SIDE = "other-side"
"""The name under which the cache keeps the files of the revision that was compared last."""
WORTH_KEEPING = 100_000
"""The size of manifests in bytes from which a cache is faster than reading them."""
VALIDATED = "validated"
"""The name under which the cache keeps manifests that were found valid but not necessarily applied."""
SHARING = frozenset({"same-keyword", "similar-name", "keyword-contained", "private-in-shared-category"})
"""The codes of warnings that compare two tags."""


def check_manifests(project: Project, manifests: ManifestSet, request: PlanRequest, runtime: Runtime) -> ManifestSet:
    """Check the manifests of a project before a run begins. Raise `Problems` with all their errors.

    Resources are not read when the manifests are known to be valid.
    """
    if not _is_worth_keeping(manifests):
        return manifests._replace(wanted=manifests.read())
    with _cache_of(project, manifests) as cache:
        digests = digests_of(manifests.files, cache)
        if _standing_in(cache, manifests, digests):
            return manifests
        with recollection(project.state, runtime.now, create=request.new_state, memory=memory_of(project)) as state:
            facts = state.facts()
            how = _how(project, request, state, runtime)
            if _Remembering(manifests, state, cache, *how).short_way(facts, request, digests):
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
            cache.remember(VALIDATED, _settled_by(desired, cache, manifests.levels))
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
    with recollection(project.state, runtime.now, create=request.new_state, memory=memory_of(project)) as state:
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
    how = (replace(options, other=other), basis)
    draft = _drafted(project, manifests, state, how, lambda cached: cached.plan(facts, request))
    return replace(
        draft,
        diagnostics=(*loosened(project, facts.limits), *draft.diagnostics),
        refused=_refused(draft, state) or UNSET,
    )


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


def _refused(draft: Plan, state: StateReader) -> dict[str, Refusal]:
    """Return the last refusals of resources that a plan changes, by address."""
    refusals = state.refusals() if draft.changes else {}
    return {str(c.key): refusals[c.key] for c in draft.changes if c.key in refusals} if refusals else {}


def plan_of_other(
    state: StateReader, manifests: ManifestSet, project: Project, request: PlanRequest, runtime: Runtime
) -> BasePlan:
    """Plan another revision of the project, for comparison.

    The cache also keeps the files of that revision, until another revision is compared.
    """
    facts = state.facts()
    how = _how(project, request, state, runtime)
    draft = _drafted(project, manifests, state, how, lambda cached: cached.plan_other(facts, request))
    return BasePlan({change.key: change for change in draft.changes}, draft.sweep is not None, draft.sources)


def plan_from(state: StateReader, desired: Desired, project: Project, request: PlanRequest, runtime: Runtime) -> Plan:
    """Plan from the resources of a revision, which take the place of a state. Nothing is settled by the plan."""
    facts = state.facts()
    options = replace(options_of(project, request, facts), other=BasePlan())
    with no_collection():
        return _whole(desired, state, (options, basis_of(project, facts, runtime)))


def plan_from_known(
    manifests: ManifestSet,
    before: ManifestSet,
    project: Project,
    request: PlanRequest,
    runtime: Runtime,
    state_of: Callable[[Iterator[Resource]], StateReader],
) -> tuple[Plan, Sequence[Diagnostic], Set[str]] | None:
    """Plan from the resources of a revision, comparing only the files that differ.

    Return the plan, the revision's diagnostics and the names of these files, or `None` when everything must be
    compared. `state_of` makes a state of the revision's resources in these files.
    """
    is_kept = _is_worth_keeping(manifests) and _is_worth_keeping(before) and before.levels == manifests.levels
    if not is_kept or not is_plain(request, manifests) or before.found:
        return None
    with no_collection(), _cache_of(project, manifests) as cache:
        baseline = _known_good(before, cache)
        if (digests := digests_of(manifests.files, cache)) is None:
            return None
        entries = cache.entries(manifests.files, digests)
        differing = {name for name in {**baseline.files, **entries} if baseline.files.get(name) != entries.get(name)}
        reads = [cache.get(baseline.files[name]) for name in sorted(differing) if name in baseline.files]
        state = state_of(resource for read in reads if read for resource in read.reading.resources)
        facts = state.facts()
        how = (replace(options_of(project, request, facts), other=BasePlan()), basis_of(project, facts, runtime))

        def totals() -> Mapping[str, int]:
            return totals_of(state_of(iter(before.read(cache).resources.values())).rows())

        since = plan_since(baseline, manifests, digests, cache, state, how, StateRecords(totals))
        return since and (since[0], baseline.diagnostics, differing)


def _known_good(manifests: ManifestSet, cache: ManifestCache) -> Settled:
    """Return the result of validating a revision, cached if possible. Raise `Problems` when it is invalid."""
    digests = digests_of(manifests.files, cache)
    if (basis := _standing_in(cache, manifests, digests)) is not None:
        return basis
    result = _settled_by(manifests.read(cache, digests), cache, manifests.levels)
    cache.remember(OTHER_SIDE, result)
    return result


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
    parts = max((file.context.compares_parts for file in manifests.files if file.context is not None), default=0)
    return ManifestCache(project.root / CACHE_FOLDER, manifests.defaults, parts=parts)


def remember_saved(project: Project, saved: Plan, mark: str | None) -> None:
    """Remember the mark that a plan had before it was saved (`Basis.settles`), for its apply on this machine."""
    if mark is not None:
        with _cache_of(project, manifest_set(project)) as cache:
            cache.remember_saved(saved.id, mark)


def confirm_settled(project: Project, applied_plan: Plan, before: Facts, after: Facts) -> None:
    """Settle the manifests of a plan after the whole plan was applied and left no row in doubt.

    `before` and `after` are the state's facts around the apply. Nothing is settled unless the rows before the apply are
    those that the plan was made from: other plans may have been applied since a saved plan was made.
    """
    mark = applied_plan.basis.settles or mark_of(project.root / CACHE_FOLDER, applied_plan.id)
    if mark is None:
        return
    name, digest, stood_on = mark.split("@")
    if stood_on != _place_of(before):
        return
    with _cache_of(project, manifest_set(project)) as cache:
        for candidate in (cache.settled(name), cache.settled(_pending(name))):
            if candidate is not None and digest_of(candidate.files) == digest:
                cache.remember(name, replace(candidate, generation=after.generation))
                return


def _place_of(facts: Facts) -> str:
    """Return a text that identifies the rows of a state; it is empty for a state without rows."""
    return facts.generation or (facts.lineage if facts.team else "")


def _pending(name: str) -> str:
    return f"{name}+"


def is_plain(request: PlanRequest, manifests: ManifestSet) -> bool:
    """Return whether the whole project is planned as declared, without options that only concern this plan."""
    return request.scope.whole and not (request.sweep or request.reassert or manifests.found)


@dataclass(frozen=True, slots=True)
class _Remembering:
    """A planning run with a cache."""

    manifests: ManifestSet
    state: StateReader
    cache: ManifestCache
    options: Options
    basis: Basis

    def plan(self, facts: Facts, request: PlanRequest) -> Plan:
        digests = None if self.manifests.wanted else digests_of(self.manifests.files, self.cache)
        since = self.since_settled(facts, request, digests)
        return self._remembered(self._name, *since, facts) if self._is_plain(request) else since[0]

    def since_settled(self, facts: Facts, request: PlanRequest, digests: Sequence[str] | None) -> tuple[Plan, Settled]:
        """Return the plan, made in the shorter of two ways, and the manifests that it settles."""
        return self.short_way(facts, request, digests) or self._long_way(digests)

    def plan_other(self, facts: Facts, request: PlanRequest) -> Plan:
        """Plan a revision that is not to be applied.

        If that revision is already settled, the plan to apply needs only the differences from it.
        """
        draft, baseline = self.since_settled(facts, request, digests_of(self.manifests.files, self.cache))
        self.cache.remember(OTHER_SIDE, replace(baseline, generation=None))
        if facts.generation and self._is_plain(request) and not (draft.changes_something or draft.records):
            return self._remembered(self._name, draft, baseline, facts)
        return draft

    @property
    def _name(self) -> str:
        """The name under which manifests are settled, for one service and one policy."""
        return digest_of(self.cache.context, self.basis.base_url, self.options.rules, self.options.levels)

    def _is_plain(self, request: PlanRequest) -> bool:
        return self.options.quarantine is None and is_plain(request, self.manifests)

    def short_way(
        self, facts: Facts, request: PlanRequest, digests: Sequence[str] | None
    ) -> tuple[Plan, Settled] | None:
        """Plan the changes since the settled manifests, or return `None` when everything must be planned."""
        is_plain = facts.generation and self._is_plain(request) and not self.state.undone()
        baseline = self.cache.settled(self._name) if is_plain else None
        if baseline is None or digests is None or baseline.generation != facts.generation:
            return None
        return self._since(self._name, baseline, digests)

    def _long_way(self, digests: Sequence[str] | None) -> tuple[Plan, Settled]:
        desired = self.manifests.read(self.cache, digests)
        draft = _whole(desired, self.state, (self.options, self.basis))
        return draft, _settled_by(desired, self.cache, self.options.levels)

    def _since(self, name: str, baseline: Settled, digests: Sequence[str]) -> tuple[Plan, Settled] | None:
        def totals() -> Mapping[str, int]:
            if baseline.totals is not None:
                return baseline.totals
            counts = totals_of(self.state.rows())
            self.cache.remember(name, replace(baseline, totals=counts))
            return counts

        how = (self.options, self.basis)
        records = _records(self.state, self.basis, totals)
        return plan_since(baseline, self.manifests, digests, self.cache, self.state, how, records)

    def _remembered(self, name: str, draft: Plan, baseline: Settled, facts: Facts) -> Plan:
        """Store the manifests that are settled now, or will be by an apply, and return the plan with a mark of them."""
        if draft.notes or any(effect.unsure for effect in draft.effects()):
            return draft
        if any(d.code == REMOVED_UNKNOWN for d in draft.diagnostics):  # a plan of changes would not repeat it
            return draft
        if self.state.facts().generation != facts.generation:  # another process wrote during planning
            return draft
        if draft.changes_something or draft.records or facts.generation is None:
            self.cache.remember(_pending(name), baseline)
        elif baseline.generation is None:
            self.cache.remember(name, replace(baseline, generation=facts.generation))
        mark = f"{name}@{digest_of(baseline.files)}@{_place_of(facts)}"
        return replace(draft, basis=replace(draft.basis, settles=mark))


def _drafted(
    project: Project,
    manifests: ManifestSet,
    state: StateReader,
    how: tuple[Options, Basis],
    of_cached: Callable[[_Remembering], Plan],
) -> Plan:
    """Return the plan of manifests, made with `of_cached` if a cache is worthwhile."""
    with no_collection():
        if not _is_worth_keeping(manifests):
            return _whole(manifests.read(), state, how)
        with _cache_of(project, manifests) as cache:
            return of_cached(_Remembering(manifests, state, cache, *how))


def _whole(desired: Desired, state: StateReader, how: tuple[Options, Basis]) -> Plan:
    """Plan the whole project, without looking for a settled plan."""
    recorded = {row.key: row for row in state.rows()}
    everything = {**desired.resources, **recorded}
    _refuse_unmatched(how[0].scope, everything)
    how = (replace(how[0], scope=how[0].scope.of(everything)), how[1])
    refuse_emptied(desired, recorded, how[1].sources)
    draft = plan(desired, recorded, *how, _records(state, how[1]))
    return with_undone(draft, desired, recorded, state.undone(), how[0])


def _records(state: StateReader, basis: Basis, totals: Callable[[], Mapping[str, int]] | None = None) -> StateRecords:
    """Return the state's records for the gate: approvals, and losses below the gate in the last 24 hours."""
    recent = partial(recent_losses, state, datetime.fromisoformat(basis.created).timestamp())
    return StateRecords(totals, recent, lambda: records_of(state.approvals()))


def _settled_by(desired: Desired, cache: ManifestCache, levels: Mapping[str, Level]) -> Settled:
    return Settled(
        files={name: cache.digest(name, sha256) for name, sha256 in desired.files.items()},
        desired=len(desired.resources),
        categories=tuple(key.name for key in desired.resources if key.kind is Kind.CATEGORY),
        diagnostics=desired.diagnostics,
        levels=levels,
        sources=desired.rows_of_sources(),
        shares=any(d.code in SHARING for d in desired.diagnostics),
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
            near = suggestion(name, addresses) or _of_another_kind(name, addresses)
            raise Usage(f"{name} matches no resource{kind}{near}")


def _of_another_kind(name: str, addresses: Iterable[str]) -> str:
    """Return a suggestion of the address with this name, for a name that was written without its kind."""
    match = next((address for address in addresses if address.partition("/")[2] == name), None)
    return f"; did you mean `{match}`?" if match else ""
