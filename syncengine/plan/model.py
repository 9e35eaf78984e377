"""A plan as a value: its basis, changes, stages of calls, gate and summary. Values only; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType, field

from syncengine.document.setting_types import canonical_url
from syncengine.effects import Effect
from syncengine.errors import Diagnostic, PolicyDenied, Undone
from syncengine.manifest.sources.records import UNKNOWN_EFFECT
from syncengine.plan.aim import Note, Rules
from syncengine.plan.approvals import Owner
from syncengine.plan.calls import Call, Item
from syncengine.plan.diff import Change
from syncengine.plan.gate import Gate
from syncengine.plan.scope import Scope
from syncengine.plan.since import Since
from syncengine.plan.stages import Stage
from syncengine.plan.sweep import Sweep
from syncengine.project.quarantine import QuarantineEntry
from syncengine.project.schema import Level, Limit
from syncengine.resource import Key
from syncengine.rules.model import NO_RULES, RuleSet
from syncengine.state.refusals import NO_REFUSALS, QuarantineRecord, Refusal


class ChangeOrigin(StrEnum):
    """Whose a change is, with `plan --base`."""

    PULL_REQUEST = "pull-request"
    WAITING = "waiting"


class Summary(Struct, frozen=True, gc=False):
    """Counts of a plan. `keyword_adds` are those on tags that exist; `requests` leaves teamInfo aside."""

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
    """The project's folder in Git, as it was checked out: the id of its tree.

    `uncommitted`: the inputs of the plan that this tree does not hold as they were, with the SHA-256 of each, empty for
    one that was deleted; None where nobody looked.
    """

    id: str
    uncommitted: Mapping[str, str] | None = None


class Basis(Struct, frozen=True, gc=False):
    """The service, team and commit that a plan was made for. `lineage` is empty before the first apply.

    `environment`: its name, empty without one. `tree`: None outside Git. Plans of earlier versions have neither.

    `settles`: the mark of manifests that are settled once all of it is applied (`planner`). `sources`: the rows
    that each source of data had when it was applied last.
    """

    id: str
    created: str
    base_url: str
    team: str | None = None
    lineage: str = ""
    commit: str | None = None
    environment: str | UnsetType = UNSET
    tree: Tree | UnsetType | None = UNSET
    swept_before: bool = False
    settles: str | None = None
    sources: Mapping[str, int] = field(default_factory=dict)

    @property
    def owner(self) -> Owner:
        """The team and the state that approvals are for; before the first apply, the service and the environment."""
        environment = "" if self.environment is UNSET else self.environment
        return Owner(self.team, self.lineage or f"{canonical_url(self.base_url)} {environment}")


class Base(Struct, frozen=True, gc=False):
    """The other side of `plan --base`: the revision `ref`. The plan of that side makes the `waiting` changes too.

    `waiting` maps their addresses to why they wait. `is_merged`: HEAD does not contain the revision, and the merge of
    both is planned. `is_in_git`: no state was read, and Git is compared with Git. `own` and `theirs` are the
    gates of the pull request's removals alone, and of those that wait.
    """

    ref: str
    commit: str
    waiting: Mapping[str, str] = field(default_factory=dict)
    is_merged: bool = False
    is_in_git: bool = False
    own: Gate = Gate()
    theirs: Gate = Gate()
    sweeps: bool = False

    def origin(self, key: Key) -> ChangeOrigin:
        """Whether the change of a resource is the pull request's own."""
        return ChangeOrigin.WAITING if str(key) in self.waiting else ChangeOrigin.PULL_REQUEST


class BasePlan(Struct, frozen=True, gc=False):
    """The plan of the other side, as far as this one is compared with it."""

    changes: Mapping[Key, Change] = field(default_factory=dict)
    sweeps: bool = False
    sources: Mapping[str, int] = field(default_factory=dict)


class Quarantine(Struct, frozen=True, gc=False):
    """Inputs for setting resources aside: entries of the project `file`, records of the state, the time."""

    now: float
    file: str = ""
    entries: tuple[QuarantineEntry, ...] = ()
    records: tuple[QuarantineRecord, ...] = ()
    refusals: Mapping[Key, Refusal] = NO_REFUSALS

    @property
    def is_empty(self) -> bool:
        return not (self.entries or self.records)


class QuarantineUse(Struct, frozen=True, gc=False):
    """The resources of which a plan sends nothing, and the entries that its apply begins or ends."""

    set_aside: tuple[Key, ...] = ()
    begun: tuple[QuarantineRecord, ...] = ()
    over: tuple[QuarantineRecord, ...] = ()


class Options(Struct, frozen=True, gc=False):
    """How to plan. `sweep`: complete a sync session in any case; `reassert`: send all that is desired again.

    `other`: the plan that tells which changes are made without this pull request too.
    `rule_set`: the rules that every change is judged by. `quarantine`: None where nothing is set aside. `redo`: changes
    of undone runs may be made again.
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


class Undo(Struct, frozen=True, gc=False):
    """The run that a plan takes back (docs/undo.md), and its commit.

    `revert`: how to take the commit back in Git; None where Git does not know it, or the run was of no commit alone.
    `forced`: also what other runs changed since. `left_out`: addresses of the run that the plan leaves alone.
    `targets` and `excludes` select what is taken back.
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
    """Everything an apply needs.

    `records` are rows to write without a request. `wholes`: the upsert of each desired tag that only single calls
    touch, in case one of them finds no tag. `prior` digests the rows that the plan is based on. `sources`: the number
    of rows that each data source has, by its identity; `is_whole`: all of what they make is planned. `since`: its
    comparison with plans that were reviewed; `compared`: the other side, where there is one. `refused`: the last
    refusals of resources that it sends again, by address. `quarantine`: the part that it leaves alone. `undo`: the run
    that it takes back. `redoes`: the resources for which it redoes an undone change; `undos`: the runs that had taken
    others back when it was made.
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
    compared: Base | UnsetType = UNSET
    diagnostics: tuple[Diagnostic, ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)
    is_whole: bool = False
    since: Since | UnsetType = UNSET
    refused: Mapping[str, Refusal] | UnsetType = UNSET
    quarantine: QuarantineUse | UnsetType = UNSET
    undo: Undo | UnsetType = UNSET
    redoes: tuple[Key, ...] | UnsetType = UNSET
    undos: tuple[str, ...] | UnsetType = UNSET

    @property
    def id(self) -> str:
        return self.basis.id

    @property
    def base(self) -> Base | None:
        """The other side of a plan of two."""
        return self.compared if isinstance(self.compared, Base) else None

    @property
    def set_aside(self) -> tuple[Key, ...]:
        """The resources in quarantine, with those that wait with them."""
        return self.quarantine.set_aside if self.quarantine else ()

    def refusal(self, key: Key) -> Refusal | None:
        """The last refusal of a resource that it changes."""
        return self.refused.get(str(key)) if self.refused else None

    @property
    def changes_something(self) -> bool:
        """Whether an apply does more than record facts."""
        return bool(self.changes or self.sweep)

    @property
    def is_denied(self) -> bool:
        """Whether a rule of the project denies it."""
        return any(diagnostic.code == PolicyDenied.code for diagnostic in self.diagnostics)

    @property
    def is_undone(self) -> bool:
        """Whether the manifests still ask for changes of an undone run; with two sides, the pull request."""
        asks = any(diagnostic.code == Undone.code for diagnostic in self.diagnostics)
        return asks and (self.base is None or any(str(key) not in self.base.waiting for key in self.redoes or ()))

    @property
    def unknown_effects(self) -> int:
        """The number of files that the pull request changes with an effect that nobody knows without their sources."""
        return sum(diagnostic.code == UNKNOWN_EFFECT for diagnostic in self.diagnostics)

    @property
    def changes_something_itself(self) -> bool:
        """Whether the pull request does, or may, where the plan tells its own changes from those that wait."""
        if self.base is None:
            return self.changes_something
        own = any(self.base.origin(change.key) is ChangeOrigin.PULL_REQUEST for change in self.changes)
        return own or (self.sweep is not None and not self.base.sweeps) or bool(self.unknown_effects)

    @property
    def sends_something(self) -> bool:
        return self.summary.requests > 0

    def calls(self) -> Iterator[Call]:
        """Every call, the sweep's behind the stages."""
        for stage in self.stages:
            yield from stage.calls
        if self.sweep is not None:
            yield from (*self.sweep.uploads, self.sweep.complete)

    def effects(self) -> Iterator[Effect]:
        """All that will be true once everything is acknowledged."""
        yield from self.records
        for call in self.calls():
            for item in call.items:
                yield from item.effects
