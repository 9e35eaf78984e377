"""project, state → plan: of what changed since the last settled one, or of everything.

Reads manifests, cache and state, and needs no service (engine.md 2.6). Whether the short way is taken makes no
difference to the plan (engine.md 2.8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime

from msgspec.structs import replace

from syncengine import commits
from syncengine.collection import no_collection
from syncengine.desired import Desired, ManifestSet, desired, manifest_set
from syncengine.gate import counted
from syncengine.increment import Since, plan_since
from syncengine.manifest.bulk import read_all, sha256_of
from syncengine.manifest.cache import ManifestCache, Settled, digest_of
from syncengine.plan import Basis, Options, Plan, plan
from syncengine.policy import Rules
from syncengine.request import Request, Surroundings
from syncengine.resource import Kind
from syncengine.service.operations import DELETE_TAG
from syncengine.settings import Project
from syncengine.store.state import Facts, State, open_state

CACHE_FOLDER = ".syncengine"
WORTH_KEEPING = 100_000
"""Bytes of manifests from which on a cache is quicker than reading them."""
SHARING = frozenset({"same-keyword", "similar-name"})
"""Warnings that compare two tags."""


def make_plan(project: Project, request: Request, around: Surroundings) -> Plan:
    """Plan from the manifests and the recorded state, which is only read."""
    manifests = manifest_set(project)
    with open_state(project.state, write=False, now=around.now) as state:
        return plan_in(state, manifests, project, request, around)


def plan_in(state: State, manifests: ManifestSet, project: Project, request: Request, around: Surroundings) -> Plan:
    """Plan in a state that is open already."""
    options, facts = options_of(project, request), state.facts()
    basis = _basis(project, facts, around)
    with ExitStack() as kept, no_collection():
        if sum(file.size() for file in manifests.files) < WORTH_KEEPING:
            return _whole(manifests, state, (options, basis)).plan
        cache = kept.enter_context(ManifestCache(project.root / CACHE_FOLDER, manifests.defaults))
        return _Remembering(manifests, state, cache, options, basis).plan(facts, request)


def confirm_settled(project: Project, applied: Plan, state: State) -> None:
    """Once all of a plan was applied: what it stood on is settled, as long as nothing was doubted on the way."""
    if applied.basis.settles is None or state.doubted:
        return
    name, _, digest = applied.basis.settles.partition("@")
    with ManifestCache(project.root / CACHE_FOLDER, manifest_set(project).defaults) as cache:
        pending = cache.settled(_pending(name))
        if pending is not None and digest_of(pending.files) == digest:
            cache.remember(name, replace(pending, generation=state.facts().generation))


def _pending(name: str) -> str:
    return f"{name}+"


@dataclass(frozen=True, slots=True)
class _Remembering:
    """One planning with a cache."""

    manifests: ManifestSet
    state: State
    cache: ManifestCache
    options: Options
    basis: Basis

    def plan(self, facts: Facts, request: Request) -> Plan:
        name = digest_of(self.basis.base_url, self.options.rules, self.options.levels)
        plain = request.scope.whole and not (request.sweep or request.reassert or self.manifests.found)
        digests = [sha256_of(file)[0] for file in self.manifests.files]
        settled = self.cache.settled(name) if plain and facts.generation else None
        since = None
        if settled is not None and settled.generation == facts.generation:
            since = self._since(name, settled, digests)
        if since is None:
            since = _whole(self.manifests, self.state, (self.options, self.basis), self.cache, digests)
        return self._remembered(name, since, facts.generation) if plain else since.plan

    def _since(self, name: str, settled: Settled, digests: Sequence[str]) -> Since | None:
        def totals() -> Mapping[str, int]:
            if settled.totals is not None:
                return settled.totals
            found = counted(self.state.rows())
            self.cache.remember(name, replace(settled, totals=found))
            return found

        how = (self.options, self.basis)
        return plan_since(settled, self.manifests, digests, self.cache, self.state, how, totals)

    def _remembered(self, name: str, since: Since, generation: str | None) -> Plan:
        """Write down what is settled now, or will be once the plan is applied."""
        planned, settled = since
        if planned.notes or settled.generation is not None:
            return planned
        if not (planned.changes_something or planned.records) and generation is not None:
            self.cache.remember(name, replace(settled, generation=generation))
            return planned
        self.cache.remember(_pending(name), settled)
        return replace(planned, basis=replace(planned.basis, settles=f"{name}@{digest_of(settled.files)}"))


def _whole(
    manifests: ManifestSet,
    state: State,
    how: tuple[Options, Basis],
    cache: ManifestCache | None = None,
    digests: Sequence[str] | None = None,
) -> Since:
    """Plan everything."""
    options, basis = how
    wanted = desired(manifests, read_all(manifests.files, manifests.defaults, cache, digests))
    recorded = {row.key: row for row in state.rows()}
    planned = plan(wanted, recorded, options, basis)
    return Since(planned, _settled_by(wanted, cache) if cache is not None else Settled({}, 0, ()))


def _settled_by(wanted: Desired, cache: ManifestCache) -> Settled:
    return Settled(
        files={name: cache.digest(name, sha256) for name, sha256 in wanted.files.items()},
        desired=len(wanted.resources),
        categories=tuple(key.name for key in wanted.resources if key.kind is Kind.CATEGORY),
        diagnostics=wanted.diagnostics,
        shares=any(d.code in SHARING for d in wanted.diagnostics),
    )


def _basis(project: Project, facts: Facts, around: Surroundings) -> Basis:
    commit = commits.head(project.root)
    return Basis(
        id=around.new_id(),
        created=datetime.fromtimestamp(around.now(), UTC).isoformat(timespec="seconds"),
        base_url=project.base_url(),
        team=facts.team,
        lineage=facts.lineage if facts.team else "",
        commit=commit.id if commit else None,
        swept_before=facts.owns_activity_types,
    )


def options_of(project: Project, request: Request) -> Options:
    """How the project and the request want it planned."""
    policy = project.policy
    rules = Rules(
        tag_removal=policy.tag_removal,
        activity_types=policy.activity_types,
        deletes_tags=DELETE_TAG.id in project.service.endpoints,
    )
    return Options(
        rules,
        policy.max_deletes,
        request.scope,
        sweep=request.sweep,
        reassert=request.reassert,
        levels=policy.diagnostics,
    )


def approvals_of(project: Project, request: Request) -> tuple[str, ...]:
    """Every approval at hand: from the command line, the environment and the project file (engine.md §5)."""
    return (*request.approvals, *project.approvals)
