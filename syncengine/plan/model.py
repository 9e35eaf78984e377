"""A plan as a value: its basis, changes, stages of calls, gate, summary, and comparison with reviewed plans. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import UNSET, Struct, UnsetType, field, structs

from syncengine.content import ValueChange
from syncengine.effects import Effect
from syncengine.errors import Diagnostic, PolicyDenied, Undone
from syncengine.manifest.sources.records import UNKNOWN_EFFECT
from syncengine.plan.aim import Note, Rules
from syncengine.plan.calls import Call, Item, Stage, Sweep
from syncengine.plan.diff import Change, is_same
from syncengine.plan.gate import Gate, Owner
from syncengine.plan.request import Scope
from syncengine.project.model import Level, Limit, QuarantineEntry
from syncengine.project.references import canonical_url
from syncengine.resource import Key, Removed, Resource, Source
from syncengine.rules.model import NO_RULES, RuleSet
from syncengine.state.records import NO_REFUSALS, SWEEP, Loss, QuarantineRecord, Refusal

NO_STATE, OTHER_SERVICE, WRONG_TEAM, OLDER_COMMIT = "no-state", "other-service", "wrong-team", "older-commit"
ANCESTRY = "unknown-ancestry"
DOUBTS_OF_STATE = frozenset({NO_STATE, OTHER_SERVICE, WRONG_TEAM, OLDER_COMMIT, ANCESTRY})

POLICY_CHANGED, LIMIT_LOOSENED = "policy-changed", "limit-loosened"
BASE_INVALID, NO_BASE, MERGED = "base-invalid", "base-without-project", "merge-planned"
SAID_FIRST = (POLICY_CHANGED, LIMIT_LOOSENED, BASE_INVALID, NO_BASE, MERGED)
"""The codes of diagnostics to show before a plan, in this order."""


class Excess(Struct, frozen=True):
    """One thing that today's plan does beyond the reviewed plans.

    `address` is `None` when the excess concerns the plan as a whole. `cause` says who changed the resource last.
    """

    why: str
    address: str | None = None
    changes: tuple[ValueChange, ...] = ()
    cause: str | None = None

    @property
    def message(self) -> str:
        """The excess in a sentence, with the address, the values that differ and the cause."""
        parts = in_words(self.changes)
        subject = f"{self.address}: {self.why}" if self.address else self.why
        return "; ".join(part for part in (subject, parts and f"reviewed → today: {parts}", self.cause) if part)


class Since(Struct, frozen=True):
    """The differences of today's plan from reviewed plans, by address. `excess` is empty when it does no more."""

    plans: tuple[str, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    different: Mapping[str, tuple[ValueChange, ...]]
    same: int
    excess: tuple[Excess, ...]


def few(names: Iterable[str], most: int = 5) -> str:
    """Return the first few names, and the number of the others."""
    names = list(names)
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def in_words(changes: Iterable[ValueChange]) -> str:
    """Return the differing values as text, each with its path."""
    return "; ".join(f"{'.'.join(map(str, c.path))}: {_shown(c.before)} → {_shown(c.after)}" for c in changes)


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict) and value.keys() == {"before", "after"}:
        return f"{_shown(value['before'])} ⇒ {_shown(value['after'])}"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


class ChangeOrigin(StrEnum):
    """The origin of a change in `plan --base`: the pull request, or earlier changes that wait to be applied."""

    PULL_REQUEST = "pull-request"
    WAITING = "waiting"


class Summary(Struct, frozen=True, gc=False):
    """The counts of a plan. `keyword_adds` counts keywords added to existing tags; `requests` leaves out teamInfo."""

    create: int = 0
    update: int = 0
    delete: int = 0
    retire: int = 0
    forget: int = 0
    unchanged: int = 0
    keyword_adds: int = 0
    keyword_deletes: int = 0
    metadata_deletes: int = 0
    cascaded_tags: int = 0
    kept: int = 0
    requests: int = 0


class Tree(Struct, frozen=True, gc=False):
    """The id of the Git tree of the project's folder that was checked out.

    `uncommitted` maps the plan's inputs that differ from this tree to their SHA-256 digests. A deleted file's digest is
    empty. `None` means that the inputs were not compared.
    """

    id: str
    uncommitted: Mapping[str, str] | None = None


class Basis(Struct, frozen=True, gc=False):
    """The service, team and commit that a plan was made for. `lineage` is empty before the first apply.

    `environment` is empty without an environment, and `tree` is `None` outside Git. `settles` marks the manifests that
    are settled once the whole plan is applied (`planner`). `sources` has the number of rows of each data source at its
    last apply.
    """

    id: str
    created: str
    base_url: str
    team: str | None = None
    lineage: str = ""
    commit: str | None = None
    environment: str = ""
    tree: Tree | None = None
    swept_before: bool = False
    settles: str | None = None
    sources: Mapping[str, int] = field(default_factory=dict)

    @property
    def owner(self) -> Owner:
        """The team and state that approvals are valid for; before the first apply, the service and environment."""
        return Owner(self.team, self.lineage or f"{canonical_url(self.base_url)} {self.environment}")


class Wait(NamedTuple):
    """Why a change waits: the cause, which many changes may share, and a sentence that begins with it."""

    cause: str = ""
    reason: str = ""


class Base(Struct, frozen=True, gc=False):
    """The base of `plan --base`, which is the revision `ref`.

    `waiting` has the addresses of changes that a plan of the base makes too, and why they wait. `is_merged`
    means that HEAD does not contain the revision, so that the merge of both is planned. `is_in_git` means that no state
    was read, and that two revisions are compared.
    """

    ref: str
    commit: str
    waiting: Mapping[str, Wait] = field(default_factory=dict)
    is_merged: bool = False
    is_in_git: bool = False
    sweeps: bool = False

    def origin(self, key: Key) -> ChangeOrigin:
        """Return the origin of the change of a resource."""
        return ChangeOrigin.WAITING if str(key) in self.waiting else ChangeOrigin.PULL_REQUEST


class BasePlan(Struct, frozen=True, gc=False):
    """The part of the base's plan that the plan of a pull request is compared with."""

    changes: Mapping[Key, Change] = field(default_factory=dict)
    sweeps: bool = False
    sources: Mapping[str, int] = field(default_factory=dict)


class Quarantine(Struct, frozen=True, gc=False):
    """The inputs of a quarantine: entries of the project file (`file`), records and refusals of the state, the time."""

    now: float
    file: str = ""
    entries: tuple[QuarantineEntry, ...] = ()
    records: tuple[QuarantineRecord, ...] = ()
    refusals: Mapping[Key, Refusal] = NO_REFUSALS

    @property
    def all(self) -> tuple[QuarantineRecord | QuarantineEntry, ...]:
        return (*self.records, *self.entries)


class Options(Struct, frozen=True, gc=False):
    """The options of planning.

    `sweep` completes a sync session in any case, and `reassert` sends everything desired again. `other` is the plan of
    the base, whose changes are made without this pull request too. `rule_set` are the rules that judge every change.
    `quarantine` is `None` when nothing is set aside. `redo` allows changes of undone runs to be made again.
    """

    rules: Rules
    limits: Mapping[str, Limit]
    scope: Scope = field(default_factory=Scope)
    sweep: bool = False
    reassert: bool = False
    levels: Mapping[str, Level] = field(default_factory=dict)
    other: BasePlan | None = None
    rule_set: RuleSet = NO_RULES
    quarantine: Quarantine | None = None
    redo: bool = False


class PlanInputs(Struct, frozen=True, gc=False):
    """The inputs that decide a plan's changes, from which a saved plan is planned again (docs/planning.md 6).

    `desired` are the resources that the plan brings about or compares, as selected, and `removed` the lines about what
    leaves. `places` are new places of unchanged resources. Of `rules`, whether tags can be deleted is not kept: the
    service's endpoints of today decide that.
    """

    rules: Rules = Rules()
    desired: tuple[Resource, ...] = ()
    removed: tuple[Removed, ...] = ()
    places: tuple[tuple[Key, Source], ...] = ()


class Undo(Struct, frozen=True, gc=False):
    """The run that a plan undoes (docs/repair.md), and its commit.

    `revert` is the way to revert the commit in Git, or `None` when Git does not know the commit or the run applied more
    than that commit. `forced` also undoes changes of resources that other runs changed since. `left_out` are addresses
    of the run that the plan leaves alone. `targets` and `excludes` select the changes to undo.
    """

    run: str
    command: str
    started: str
    commit: str | None = None
    revert: str | None = None
    forced: bool = False
    left_out: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()


class Plan(Struct, frozen=True, gc=False):
    """A plan, with everything that an apply needs.

    `records` are rows to write without a request. `wholes` has the upsert of each desired tag that only single calls
    touch, in case such a call finds no tag. `prior` has digests of the rows that the plan is based on. `sources` maps
    the identity of each data source to its number of rows, and `is_whole` is true when all that they make is planned.
    `since` is the comparison with reviewed plans, and `compared` the base of `plan --base`. `refused` has the last
    refusals of resources that the plan sends again, by address. `set_aside` are the resources in quarantine, and the
    resources that wait with them.
    `undo` is the run that it undoes. `redoes` are the resources for which it repeats an undone change, and `undos` the
    runs that had undone others when it was made.
    """

    basis: Basis
    summary: Summary
    gate: Gate
    sweep: Sweep | None
    changes: tuple[Change, ...]
    notes: tuple[Note, ...]
    stages: tuple[Stage, ...]
    records: tuple[Effect, ...] = ()
    wholes: Mapping[Key, Item] = field(default_factory=dict)
    prior: Mapping[Key, str] = field(default_factory=dict)
    reasserts: bool = False
    inputs: PlanInputs = PlanInputs()
    compared: Base | UnsetType = UNSET
    diagnostics: tuple[Diagnostic, ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)
    is_whole: bool = False
    since: Since | UnsetType = UNSET
    refused: Mapping[str, Refusal] | UnsetType = UNSET
    set_aside: tuple[Key, ...] = ()
    undo: Undo | UnsetType = UNSET
    redoes: tuple[Key, ...] | UnsetType = UNSET
    undos: tuple[str, ...] | UnsetType = UNSET

    @property
    def id(self) -> str:
        return self.basis.id

    @property
    def base(self) -> Base | None:
        """The base that the plan is compared with, or `None`."""
        return self.compared if isinstance(self.compared, Base) else None

    def refusal(self, key: Key) -> Refusal | None:
        """Return the last refusal of a resource that the plan changes, or `None`."""
        return self.refused.get(str(key)) if self.refused else None

    @property
    def changes_something(self) -> bool:
        """Whether an apply does more than record facts."""
        return bool(self.changes or self.sweep)

    @property
    def is_denied(self) -> bool:
        """Whether a rule of the project denies the plan."""
        return any(diagnostic.code == PolicyDenied.code for diagnostic in self.diagnostics)

    @property
    def is_undone(self) -> bool:
        """Whether the manifests, or the pull request's own changes, still ask for changes of an undone run."""
        asks = any(diagnostic.code == Undone.code for diagnostic in self.diagnostics)
        return asks and (self.base is None or any(str(key) not in self.base.waiting for key in self.redoes or ()))

    @property
    def unknown_effects(self) -> int:
        """The number of files that the pull request changes with an effect that is unknown without their sources."""
        return sum(diagnostic.code == UNKNOWN_EFFECT for diagnostic in self.diagnostics)

    @property
    def changes_something_itself(self) -> bool:
        """Whether the pull request itself changes something, or may. Without a base, whether the plan does."""
        if self.base is None:
            return self.changes_something
        own = any(self.base.origin(change.key) is ChangeOrigin.PULL_REQUEST for change in self.changes)
        return own or (self.sweep is not None and not self.base.sweeps) or bool(self.unknown_effects)

    @property
    def sends_something(self) -> bool:
        return self.summary.requests > 0

    def calls(self) -> Iterator[Call]:
        """Yield every call: first those of the stages, then those of the sweep."""
        for stage in self.stages:
            yield from stage.calls
        if self.sweep is not None:
            yield from (*self.sweep.uploads, self.sweep.complete)

    def effects(self) -> Iterator[Effect]:
        """Yield all effects of the plan, which are true once every call is acknowledged."""
        yield from self.records
        for call in self.calls():
            for item in call.items:
                yield from item.effects


def side_of(other: BasePlan, changes: Iterable[Change]) -> Base:
    """Return the changes that the base's plan makes too, with their reasons still empty."""
    waiting = {str(change.key): Wait() for change in changes if is_same(change, other.changes.get(change.key))}
    return Base("", "", waiting, sweeps=other.sweeps)


def with_origins(gate: Gate, base: Base) -> Gate:
    """Return the gate with the units marked that are the pull request's: those with a loss that does not wait."""

    def is_own(loss: Loss) -> bool:
        return not base.sweeps if loss.of == SWEEP.of else str(loss.key) not in base.waiting

    units = (structs.replace(unit, is_own=any(map(is_own, unit.losses))) for unit in gate.units)
    return structs.replace(gate, units=tuple(units))
