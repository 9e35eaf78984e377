"""The crash model: a service in memory, a process that can die at any instant, and the checks of both.

A `House` is one team on the service and the project's state. It goes through a history of applies with trouble at
numbered instants and acts of other people. A call whose sender died, or got no certain answer, may be executed at any
later instant until its deadline, even after newer calls. Time passes only while a run waits.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace as replaced

from syncengine.apply import applier, guards, landing, report
from syncengine.apply.guards import RecordedPast, refuse_changed, refuse_elsewhere
from syncengine.apply.landing import Patience
from syncengine.apply.report import Chronicle, Event
from syncengine.apply.run import ApplyRun, PlannedContent
from syncengine.errors import Diagnostic, Problems, StalePlan
from syncengine.manifest.desired import Desired
from syncengine.plan.aim import Rules
from syncengine.plan.build import plan
from syncengine.plan.checks import with_undone
from syncengine.plan.diff import SendCause
from syncengine.plan.gate import REMOVED, Approval, StateRecords, approved_of, loss_of, records_of
from syncengine.plan.losses import losses_of
from syncengine.plan.model import Basis, Excess, Options, Plan, Quarantine, Undo
from syncengine.plan.quarantine import set_aside_now
from syncengine.plan.request import Scope
from syncengine.plan.review import ReviewedPlan, since_review
from syncengine.plan.undo import KEPT, plan_back, record_of, record_of_undo
from syncengine.project.model import DAY, Limit
from syncengine.resource import Body, Key, Kind, Recorded, Removal, Removed, Resource, Source, Status
from syncengine.sandbox.bodies import ApiError, RuleAnswer, RuleRequest
from syncengine.sandbox.rules import RULES, expire
from syncengine.sandbox.store import Store
from syncengine.service.answers import Answer
from syncengine.service.operations import COMPLETE_SYNC_SESSION, DELETE_TAG_CATEGORY, UPLOAD_ACTIVITY_TYPES, Operation
from syncengine.state.history import Run
from syncengine.state.records import Loss, QuarantineRecord
from syncengine.state.store import State
from tests.support.world import World, copy, world

LIMITS = {name: Limit(percent=25.0) for name in ("tags", "activityTypes", "keywords", "metadata", "fields")}
URL = "http://memory"
EVERYTHING = Scope()
THEIR_KEYWORD = "theirs"
THEIR_TYPE = "Z9"
BOUND = 60.0
NOT_RENAMED = re.compile("instead of renaming category/(?P<name>[^ :]+): if that still exists, it stays,")


class Died(BaseException):
    """The process is dead: it sends and writes nothing more."""


class Trouble(NamedTuple):
    """What happens at one instant, which is a call to the service or a write to the state.

    Of what can only happen to a call (OF_CALLS), the instant is the number of the call.
    """

    instant: int
    what: str


DEATHS = ("dies before", "dies after", "dies and lands late")
ANSWERS = ("unavailable", "answer lost", "gateway page", "refused", "item refused", "items refused", "session gone")
LATE = ("unavailable and lands late", "answered twice")
OF_CALLS = frozenset({"dies and lands late", *ANSWERS, *LATE})
IDENTITIES = [(Kind.TAG, "name"), (Kind.TAG, "tagName"), (Kind.CATEGORY, "externalId"), (Kind.ACTIVITY_TYPE, "code")]
LANDS = "lands"
"""At this instant the oldest call in flight is executed."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that is declared at one time, with the project's policies."""

    resources: Mapping[Key, Resource] = field(default_factory=dict)
    rules: Rules = field(default_factory=lambda: Rules(deletes_tags=True))
    removed: Mapping[Key, Removed] = field(default_factory=dict)

    def of(self, kind: Kind) -> Iterator[Resource]:
        return (resource for key, resource in self.resources.items() if key.kind is kind)


PLACE = Source("manifests/all.yaml", 1)


def tag(name: str, *keywords: str, was: str = "", metadata: dict[str, str] | None = None, **fields: Any) -> Resource:
    body = Body({"excludeTagNameKeyword": False, **fields}, (*keywords, name), metadata or {})
    return Resource(Key(Kind.TAG, name), body, PLACE, previously=(was,) if was else ())


def category(name: str, was: str = "", **fields: Any) -> Resource:
    body = Body({"label": "L", **fields})
    return Resource(Key(Kind.CATEGORY, name), body, PLACE, previously=(was,) if was else ())


def activity_type(code: str, **fields: Any) -> Resource:
    body = Body({"label": "L", "enableIfNew": True, "reenableIfArchived": True, **fields})
    return Resource(Key(Kind.ACTIVITY_TYPE, code), body, PLACE)


def declaring(*resources: Resource, policy: Removal = Removal.FORGET, **removed: Removal) -> Manifest:
    leaving = (Removed(Key(Kind.TAG, name), how, PLACE) for name, how in removed.items())
    return Manifest(
        {resource.key: resource for resource in resources},
        Rules(policy, deletes_tags=True),
        {statement.key: statement for statement in leaving},
    )


@dataclass(slots=True)
class Others:
    """What other people and connectors have put on the service."""

    tags: set[str] = field(default_factory=set)
    keywords: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    types: set[str] = field(default_factory=set)


class Clockwork:
    """Counts instants and returns the trouble at each; after the process died, every instant raises `Died`."""

    def __init__(self, troubles: Sequence[Trouble] = (), land: Callable[[], None] = lambda: None) -> None:
        self._land = land
        self._due = {(trouble.instant, trouble.what in OF_CALLS): trouble.what for trouble in troubles}
        self._instants, self._calls = count(), count()
        self.dead = False
        self.met: list[str] = []
        self.kept = 0
        """The number of calls and writes so far that a death does not undo."""

    def strike(self, *, is_call: bool = False) -> str | None:
        if self.dead:
            raise Died
        due = [
            self._due.get((next(self._instants), False)),
            self._due.get((next(self._calls), True)) if is_call else None,
        ]
        met = [what for what in due if what is not None]
        self.met += met
        if LANDS in met:
            self._land()
            met.remove(LANDS)
        return met[0] if met else None

    def die(self) -> None:
        self.dead = True
        raise Died


WRITES = frozenset(
    {
        *("intend", "settle", "fail", "record", "doubt", "session_opened", "session_closed", "set_facts"),
        *("end_attempts", "doubt_ids", "path_answered"),
    }
)


class MortalLedger:
    """The state of a process that may die before or after any write."""

    def __init__(self, state: State, clockwork: Clockwork) -> None:
        self._state, self._clockwork = state, clockwork
        self._depth = 0

    @contextmanager
    def together(self) -> Iterator[None]:
        self._depth += 1
        try:
            with self._state.together():
                yield
        finally:
            self._depth -= 1
        self._count_kept()

    def _count_kept(self) -> None:
        """Count a write, unless it is undone should the process die within the block that it is in."""
        self._clockwork.kept += not self._depth

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._state, name)
        return self._dangerous(verb) if name in WRITES else verb

    def _dangerous(self, verb: Any) -> Any:
        def write(*arguments: Any, **named: Any) -> Any:
            what = self._clockwork.strike()
            if what == "dies before":
                self._clockwork.die()
            written = verb(*arguments, **named)
            self._count_kept()
            if what in DEATHS:
                self._clockwork.die()
            return written

        return write


class ServiceInMemory:
    """The sandbox's rules without HTTP, with trouble at numbered instants. Implements apply.run.ServiceCaller."""

    down = False

    def __init__(self, house: "House", clockwork: Clockwork) -> None:
        self._house, self._clockwork = house, clockwork

    async def call(self, operation: Operation, body: Any = None) -> Answer:
        what = self._clockwork.strike(is_call=True)
        await asyncio.sleep(0)
        if self._clockwork.dead or what == "dies before":
            self._clockwork.die()
        sent = msgspec.json.decode(msgspec.json.encode(body or {}))
        self._house.watch_sending(operation, sent)
        if what == "dies and lands late":
            self._house.send_off(operation, sent)
            self._clockwork.kept += 1
            self._clockwork.die()
        answer = self._answer(operation, sent, what)
        self._clockwork.kept += 1
        if answer.may_land or what == "answered twice":
            answer = replace(answer, given_up=self._house.at)
        await asyncio.sleep(0)
        if what in DEATHS:
            self._clockwork.die()
        return answer

    def _answer(self, operation: Operation, body: Any, what: str | None) -> Answer:
        items = len(body.get(operation.items, ())) if operation.items else 0
        if what is None and (refusal := self._house.refusal(operation, body)) is not None:
            return refusal
        match what:
            case "unavailable":
                return Answer(503, text="unavailable")
            case "unavailable and lands late":
                self._house.send_off(operation, body)
                return Answer(503, text="unavailable")
            case "answered twice":  # the first attempt got a 502, and its repeat was acknowledged
                self._house.send_off(operation, body)
            case "answer lost":
                self._house.process(operation, body)
                return Answer(None, text="no answer")
            case "gateway page":
                self._house.process(operation, body)
                return Answer(200, text="<html>", understood=False)
            case "refused" if operation.items:
                return Answer(400, data={"message": "refused"}, text="refused")
            case "item refused" if items and operation.id != "upsertTagCategories":
                return self._house.process(operation, body, {items - 1: "refused"})
            case "items refused" if items and operation.id != "upsertTagCategories":
                return Answer(400, data={"errors": [{"index": 0, "errorDescription": "refused"}]})
            case "session gone" if "syncSessionId" in body:
                self._house.expire_sessions()
        return self._house.process(operation, body)


@dataclass(frozen=True, slots=True)
class Ending:
    """How an apply ended. `plan` is None when the manifests have errors; `asked`: no approval was given.

    Two processes that died with the same number of calls and writes `kept` leave the same.
    """

    plan: Plan | None
    status: report.RunStatus | None = None
    died: bool = False
    troubles: tuple[str, ...] = ()
    asked: bool = False
    excess: tuple[Excess, ...] = ()
    kept: int = 0


def _named(operation: Operation, body: Any) -> list[list[Key]]:
    """Return the resources that each item of a call names."""
    items = body.get(operation.items, ()) if operation.items else (body,)
    return [[Key(kind, each[name]) for kind, name in IDENTITIES if each.get(name)] for each in items]


class Approvals:
    """All approvals that were given so far, none of which is ever deleted from the list.

    `over` has, for each approval, the removals that it no longer covers, since they are done or a
    later run did not want them: to remove these again, another approval is needed.
    """

    def __init__(self) -> None:
        self.given: dict[str, tuple[Loss, ...]] = {}
        self.over: dict[str, set[Loss]] = defaultdict(set)

    def at_hand(self) -> list[Approval]:
        return [Approval(text, "list") for text in self.given]

    def give(self, plan: Plan) -> Plan:
        self.given |= {unit.approve: unit.losses for unit in plan.gate.units if unit.is_open}
        self.given |= {text: losses for text, losses in approved_of(plan).uses.items() if text.startswith(REMOVED)}
        return replaced(plan, gate=plan.gate.with_approvals(self.at_hand()))

    def misused(self, plan: Plan) -> Iterator[str]:
        """Yield the removals that an approval covers a second time."""
        for unit in (*plan.gate.units, *plan.gate.begun):
            if unit.approved is not None:
                again = self.over[unit.approved.text].intersection(unit.losses)
                yield from (f"{unit.approved.text} is used again for {loss}" for loss in again)
        for text, losses in approved_of(plan).uses.items():
            yield from (f"{text} is used again for {loss}" for loss in self.over[text].intersection(losses))

    def begin(self, plan: Plan, state: State) -> None:
        """End all earlier approvals for removals that this run does not want, except of what is in quarantine.

        An undo ends only the approvals with which the undone run began.
        """
        waits = approved_of(plan).set_aside
        wanted = {loss for change in plan.changes for loss in losses_of(change)}
        wanted |= {loss for loss in [loss_of(plan.sweep)] if loss is not None}
        undo = plan.undo or None
        taken_back = [each.text for each in state.approvals() if undo and (each.run, undo.targets) == (undo.run, ())]
        for text, covers in self.given.items():
            if undo and text not in taken_back:
                continue
            rest = {loss for loss in covers if loss.key not in waits}
            self.over[text] |= {loss for loss in rest if not any(loss.covers(each) for each in wanted)}


class Sent(NamedTuple):
    """A call, the plan that sent it, and until when it may be executed."""

    operation: Operation
    body: Any
    plan: Plan | None
    manifest: Manifest
    until: float


class Time:
    """A time that passes only while a run waits."""

    def __init__(self, at: float = 1000.0) -> None:
        self.at = at

    def seconds(self) -> float:
        return self.at


class House:
    """One team on the service, and the state of the project that manages it."""

    def __init__(self, state: State, time: Time, numbers: int = 1) -> None:
        self.store = Store()
        self._seen: tuple[int, World] | None = None
        self.state = state
        self.others = Others()
        self.violations: list[str] = []
        self.approvals = Approvals()
        self.let_go: set[Key] = set()
        """Categories that a run reported as kept on the service, and that no later run manages again."""
        self.in_flight: list[Sent] = []
        self.refused: frozenset[str] = frozenset()
        """Names that the service refuses for now."""
        self.waits = 0
        self._time = time
        self._numbers = numbers
        self._times, self._ids, self._runs = count(numbers), count(numbers), count(numbers)
        self._plan: Plan | None = None
        self._manifest = Manifest()

    def twin(self, state: State, time: Time) -> "House":
        twin = House(state, time, self._numbers + 10_000)
        copy(self.store, into=twin.store)
        twin.others = deepcopy(self.others)
        twin.violations, twin.in_flight, twin.let_go = [*self.violations], [*self.in_flight], {*self.let_go}
        twin._plan, twin._manifest, twin.approvals = self._plan, self._manifest, deepcopy(self.approvals)
        return twin

    @property
    def at(self) -> float:
        return self._time.at

    # The service.

    def process(self, operation: Operation, body: Any, failing: Mapping[int, str] | None = None) -> Answer:
        return self._process(self._sent(operation, body), failing)

    def _sent(self, operation: Operation, body: Any) -> Sent:
        return Sent(operation, body, self._plan, self._manifest, self.at + BOUND)

    def _process(self, sent: Sent, failing: Mapping[int, str] | None = None) -> Answer:
        before = self.world
        answer = self._decided(sent.operation.id, sent.body, failing)
        if answer.status == 200 and sent.operation in (DELETE_TAG_CATEGORY, COMPLETE_SYNC_SESSION):
            self._watch(sent, before)
        return Answer(answer.status, data=answer.body, text=str(answer.body))

    def _decided(self, operation: str, body: Any, failing: Mapping[int, str] | None = None) -> RuleAnswer:
        asked = RuleRequest(body, next(self._times), lambda: f"id-{next(self._ids)}", failing or {})
        try:
            with self.store.draft():
                return RULES[operation](self.store, asked)
        except ApiError as error:
            return RuleAnswer(error.status, error.body)

    @property
    def world(self) -> World:
        if self._seen is None or self._seen[0] != self.store.changes:
            self._seen = self.store.changes, world(self.store)
        return self._seen[1]

    def send_off(self, operation: Operation, body: Any) -> None:
        """Have a call executed later, even if its sender is dead by then."""
        self.in_flight.append(self._sent(operation, body))

    def land(self) -> None:
        if self.in_flight:
            self._process(self.in_flight.pop(0))

    def land_all(self) -> None:
        while self.in_flight:
            self.land()

    async def pause(self, stop: asyncio.Event, seconds: float) -> None:
        """Let time pass, and execute the calls in flight whose deadline is reached."""
        self.waits += 1
        self._time.at += seconds
        while any(late.until <= self.at for late in self.in_flight):
            self.land()

    def refusal(self, operation: Operation, body: Any) -> Answer | None:
        """Return the error answer to a call with a name that the service refuses, or None."""
        refused = [i for i, keys in enumerate(_named(operation, body)) if any(key.name in self.refused for key in keys)]
        if not refused:
            return None
        if not operation.items:
            return Answer(400, data={"message": "refused"}, text="refused")
        return Answer(400, data={"errors": [{"index": index, "errorDescription": "refused"} for index in refused]})

    def watch_sending(self, operation: Operation, body: Any) -> None:
        """Record a violation if a resource in quarantine is sent."""
        named = {key for keys in _named(operation, body) for key in keys}
        waits = named.intersection(self._plan.set_aside if self._plan is not None else ())
        self.violations += [f"{operation.id} was sent for {key}, which is set aside" for key in waits]

    def expire_sessions(self) -> None:
        with self.store.draft():
            expire(self.store, RuleRequest({}, next(self._times), str))

    def _watch(self, sent: Sent, before: World) -> None:
        """Record a violation if a delete or sweep takes something that its plan did not announce."""
        operation, plan, manifest = sent.operation, sent.plan, sent.manifest
        assert plan is not None
        if operation is DELETE_TAG_CATEGORY:
            kind, gone = Kind.TAG, before.tags.keys() - self.world.tags.keys()
            lost = gone - (self.others.tags - {key.name for key in manifest.resources})
            self.others.tags -= gone
        else:
            kind = Kind.ACTIVITY_TYPE
            gone = {code for code, known in before.activity_types.items() if not known.deleted}
            gone -= {code for code, known in self.world.activity_types.items() if not known.deleted}
            lost = gone - self.others.types
            self.others.types -= gone
        waits = {key.name for key in plan.set_aside if key.kind is kind}
        self.violations += [f"{operation.id} took {kind} {name}, which is set aside" for name in lost & waits]
        announced = {c.key.name for c in plan.changes if c.key.kind is kind and c.action.word == "delete"}
        wanted = {key.name for key in manifest.resources if key.kind is kind}
        self.violations += [f"{operation.id} took {kind} {name}, which is desired" for name in lost & wanted]
        self.violations += [f"{operation.id} took {kind} {name}, which no plan announced" for name in lost - announced]

    # What other people do.

    def others_act(self, act: str, name: str) -> None:
        """Add a keyword to a tag, or create a tag in a category, the category itself, or an activity type."""
        if act == "keyword" and name in self.world.tags and name not in self.others.tags:
            self.others.keywords[name].add(THEIR_KEYWORD)
            self._decided("addKeywords", {"tagName": name, "additionalKeywords": [THEIR_KEYWORD]})
        elif act == "tag":
            self.others.tags.add(f"X-{name}")
            self._decided("upsertTag", {"name": f"X-{name}", "tagCategoryId": self.world.category_ids.get(name, "")})
        elif act == "category":
            self._decided("upsertTagCategories", {"tagCategories": [{"externalId": name, "label": "Theirs"}]})
        elif act == "type":
            self.others.types.add(THEIR_TYPE)
            theirs = {"code": THEIR_TYPE, "label": "Theirs", "reenableIfArchived": True}
            self._decided(UPLOAD_ACTIVITY_TYPES.id, {"activityTypes": [theirs]})

    # The project.

    def planned(self, manifest: Manifest, *, reassert: bool = False, scope: Scope = EVERYTHING) -> Plan:
        basis = self._basis()
        recorded = self.rows
        desired = Desired(manifest.resources, manifest.removed)
        options = Options(manifest.rules, LIMITS, scope, reassert=reassert, quarantine=self._quarantine(), redo=True)
        planned = plan(
            desired, recorded, options, basis, StateRecords(approvals=lambda: records_of(self.state.approvals()))
        )
        return with_undone(planned, desired, recorded, self.state.undone(), options)

    def _basis(self) -> Basis:
        swept = self.state.facts().owns_activity_types
        return Basis(f"plan-{next(self._runs)}", "now", URL, environment="", swept_before=swept)

    @property
    def rows(self) -> Mapping[Key, Recorded]:
        return {row.key: row for row in self.state.rows()}

    def rests(self, manifest: Manifest) -> bool:
        planned = self.planned(manifest)
        return (planned.changes, planned.stages, planned.sweep) == ((), (), None)

    def _quarantine(self) -> Quarantine | None:
        records = tuple(self.state.quarantine())
        return Quarantine(0.0, "", (), records, self.state.refusals()) if records else None

    def set_aside(self, chosen: int) -> None:
        """Put resources whose last call was refused into quarantine: those whose bits are set in `chosen`."""
        refusals = [each for each in self.state.refusals().values() if each.is_last]
        self.state.set_aside(
            [
                QuarantineRecord(key=each.key, reason="r", until=DAY, at=0.0, content=each.content)
                for bit, each in enumerate(refusals)
                if chosen >> bit & 1
            ]
        )

    def lift(self) -> None:
        self.state.end_quarantine([record.key for record in self.state.quarantine()])

    def apply(
        self,
        manifest: Manifest,
        troubles: Sequence[Trouble] = (),
        *,
        reassert: bool = False,
        approves: bool = True,
        plans_again: bool = False,
        scope: Scope = EVERYTHING,
    ) -> Ending:
        """Plan and apply with all earlier approvals, and if it `approves`, with those that the gate asks for.

        `plans_again`: a plan that was not tampered with passes its own checks.
        """
        try:
            planned = self.planned(manifest, reassert=reassert, scope=scope)
        except Problems:
            return Ending(None)
        if plans_again:
            self._again(planned, manifest.rules)
        planned = replaced(planned, gate=planned.gate.with_approvals(self.approvals.at_hand()))
        if planned.gate.is_closed and not approves:
            return Ending(planned, asked=True)
        planned = self.approvals.give(planned)
        assert not planned.gate.is_closed, "approving what is open opens the gate"
        self.violations += self.approvals.misused(planned)
        self._manifest = manifest
        return self._perform(planned, Clockwork(troubles, self.land))

    def apply_reviewed(
        self, manifest: Manifest, reviewed: Sequence[ReviewedPlan], troubles: Sequence[Trouble] = ()
    ) -> Ending:
        """Plan and apply, unless the plan is more than was reviewed; then the ending has the excess."""
        try:
            planned = self.planned(manifest)
        except Problems:
            return Ending(None)
        since = since_review(planned, reviewed, RecordedPast(self.state), lambda name: False)
        if since.excess:
            return Ending(planned, excess=since.excess)
        self._manifest = manifest
        return self._perform(planned, Clockwork(troubles, self.land), tuple(each.plan for each in reviewed))

    def undo(
        self, run: str, troubles: Sequence[Trouble] = (), *, forced: bool = False, targets: tuple[str, ...] = ()
    ) -> Ending:
        """Undo a run or a part of it, approving whatever the gate asks about."""
        planned = self.planned_undo(run, forced=forced, targets=targets)
        planned = self.approvals.give(planned)
        self._manifest = Manifest()
        let_go = [note.key for note in planned.notes if note.kind == KEPT]
        let_go += [change.key for change in planned.changes if change.again is SendCause.RELEASED]
        self.let_go |= {key for key in let_go if key.kind is Kind.CATEGORY}
        return self._perform(planned, Clockwork(troubles, self.land))

    def planned_undo(
        self, run: str, *, forced: bool = False, targets: tuple[str, ...] = (), saved: Plan | None = None
    ) -> Plan:
        basis = self._basis()
        undo = Undo(run, "apply", "then", forced=forced, targets=targets)
        quarantine = self._quarantine()
        aside = {held.key: "it waits" for held in set_aside_now(quarantine)} if quarantine else {}
        return plan_back(undo, self.state, Options(Rules(deletes_tags=True), LIMITS), basis, lambda: 0.0, aside, saved)

    @property
    def last_run(self) -> str:
        """Return the id of the last run that changed something."""
        run = self.state.writing_run()
        assert run is not None
        return run.id

    def resume(self, ending: Ending) -> Ending | None:
        """Apply the plan of a dead run again, as a saved plan; return None if it is stale."""
        assert ending.plan is not None
        try:
            refuse_elsewhere(ending.plan, self.state, URL)
            refuse_changed(ending.plan, self.state)
        except StalePlan:
            return None
        undo = ending.plan.undo or None
        if undo:
            again = self.planned_undo(undo.run, forced=undo.forced, targets=undo.targets, saved=ending.plan)
            resumed = guards.undone_again(ending.plan, again, self.state)
        else:
            resumed = self._again(ending.plan, Rules(deletes_tags=True))
        guards.refuse_more_than_rest(ending.plan, resumed, self.state)
        assert not resumed.gate.is_closed, "a killed run goes on without a new approval"
        return self._perform(resumed, Clockwork())

    def _again(self, saved: Plan, rules: Rules) -> Plan:
        again = guards.planned_again(saved, self.state, deletes_tags=rules.deletes_tags)
        return guards.with_gate_of_today(saved, again, self.state, Options(rules, LIMITS), 0.0)

    def _perform(self, planned: Plan, clockwork: Clockwork, reviewed: tuple[str, ...] = ()) -> Ending:
        self._plan = planned
        if planned.sends_something:
            patience = Patience(BOUND, seconds=self._time.seconds, pause=self.pause)
            asyncio.run(landing.wait(planned.effects, self.state, patience, asyncio.Event(), lambda event: None))
        number = next(self._runs)
        undo = planned.undo or None
        run = Run(f"run-{number}", float(number), "apply", planned.id, "h", "u", None, None, None, reviewed=reviewed)
        run = replace(run, undoes=undo.run if undo else None)
        lifted = record_of(planned, self.state.undone(), planned.redoes or ())
        undone = record_of_undo(undo, self.state, run.id) if undo else lifted
        self.approvals.begin(planned, self.state)
        self.state.begin_run(run, approved=approved_of(planned), undone=undone)
        chronicle = Chronicle(lambda event: None)
        chronicle.plan, chronicle.began = planned, True
        ledger: Any = MortalLedger(self.state, clockwork)
        applying = ApplyRun(
            ServiceInMemory(self, clockwork),
            ledger,
            partial(self._hear, chronicle),
            asyncio.Event(),
            concurrency=3,
            seconds=self._time.seconds,
            content=PlannedContent(planned),
            set_aside=frozenset(planned.set_aside),
        )
        try:
            asyncio.run(applier.perform(applying, planned))
        except Died:
            return Ending(planned, died=True, troubles=tuple(clockwork.met), kept=clockwork.kept)
        finally:
            self.let_go &= {row.key for row in self.state.rows() if row.status is Status.RELEASED}
        self.state.end_run(chronicle.status.value, {})
        return Ending(planned, chronicle.status, troubles=tuple(clockwork.met))

    def _hear(self, chronicle: Chronicle, event: Event) -> None:
        match event:
            case Diagnostic(code="category-not-renamed", message=message):
                named = NOT_RENAMED.search(message)
                assert named is not None, message
                self.let_go.add(Key(Kind.CATEGORY, named["name"]))
        chronicle.hear(event)
