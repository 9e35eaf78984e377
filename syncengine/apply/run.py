"""Hold the state of one apply: facts about the service, outcomes of resources, and the reason to halt."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

from syncengine.apply.report import CallError, Event, ItemEnded, Outcome
from syncengine.effects import Effect
from syncengine.errors import Diagnostic, Severity
from syncengine.instants import machine_seconds
from syncengine.plan.calls import Item
from syncengine.plan.diff import Action
from syncengine.plan.model import Plan
from syncengine.resource import Body, Key, Recorded, Status
from syncengine.service.answers import Answer
from syncengine.service.operations import (
    COMPLETE_SYNC_SESSION,
    DELETE_TAG_CATEGORY,
    OPERATIONS,
    TEAM_INFO,
    UPSERT_TAG_CATEGORIES,
    UPSERT_TAGS,
    Operation,
)
from syncengine.state.records import (
    LANDING_SECONDS,
    REMOVAL,
    Attempt,
    CallFailure,
    PublishedCalls,
    Settlement,
    content_of,
)
from syncengine.state.store import State

WAYS: Mapping[Status | None, str] = {Status.DELETED: "delete", Status.RETIRED: "retire"}


class PlannedContent:
    """The contents that one plan asks for, by which refusals are counted; looked up when the first item is rejected."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __call__(self, item: Item) -> str:
        effect = item.effects[0]
        whole = effect if effect.whole else self._upserts.get(effect.key)
        return _content(whole) if whole is not None else removal_by(effect)

    def of(self, key: Key, action: Action) -> str:
        """Return the content that a change asks for."""
        whole = self._upserts.get(key)
        return _content(whole) if whole is not None else REMOVAL + action.word

    @cached_property
    def _upserts(self) -> Mapping[Key, Effect]:
        """The upserts of all resources that are sent, also of tags of which single calls send a part."""
        upserts = {key: item.effects[0] for key, item in self._plan.wholes.items()}
        items = (item for stage in self._plan.stages for call in stage.calls for item in call.items)
        return upserts | {item.key: item.effects[0] for item in items if item.effects[0].whole}


def _content(effect: Effect) -> str:
    return content_of(Body(effect.fields, effect.keywords, effect.metadata))


def removal_by(effect: Effect) -> str:
    """Return the content that stands for a removal."""
    return REMOVAL + WAYS.get(effect.status, "")


class ServiceCaller(Protocol):
    """The part of the service client that applying needs: one call, one answer."""

    @property
    def down(self) -> bool: ...
    @property
    def why_down(self) -> str: ...
    async def call(self, operation: Operation, body: object = None) -> Answer: ...


NOTHING: Mapping[Key, str] = MappingProxyType({})

FLUSH_AT = 256  # a crash leaves at most so many calls in doubt that were answered
"""The number of settled or failed calls to write together."""


class Journal:
    """A buffer for journal entries, because many calls of one resource each must not cost a disk write each.

    If the process dies before a settlement is written, a doubt remains, nothing worse. Intents are written at once.
    """

    def __init__(self, ledger: State, seconds: Callable[[], float]) -> None:
        self._ledger = ledger
        self._seconds = seconds
        self._settled: list[Settlement] = []
        self._failed: list[CallFailure] = []
        self._given_up: dict[str, float] = {}
        self._ended: list[str] = []

    def intend(self, calls: Mapping[str, Attempt]) -> None:
        """Record the additions of calls, by name, before any of them is sent."""
        with self._ledger.together():
            self.flush()
            self._ledger.intend(calls)

    def settle(self, call: str, items: Sequence[Item], server_ids: dict[Key, str] | None = None) -> None:
        """Record the removals of a call, and clear its doubt."""
        self._settled.append(Settlement(call, effects_of(items), server_ids or {}))
        self._flush_when_full()

    def fail(self, call: str, items: Sequence[Item], message: str, refused: Mapping[Key, str] = NOTHING) -> None:
        """Record that a call has no known good end for the given items; `refused` is as in `CallFailure`."""
        self._failed.append(CallFailure(call, tuple(effect.key for effect in effects_of(items)), message, refused))
        self._flush_when_full()

    def give_up(self, call: str, at: float) -> None:
        """Keep on record a call that was given up at time `at` and may still be executed."""
        self._given_up[call] = at

    def end(self, call: str) -> None:
        """Record that the call is not sent again in this run."""
        self._ended.append(call)
        self._flush_when_full()

    def flush(self) -> None:
        """Write all buffered entries."""
        settlements, self._settled = self._settled, []
        failures, self._failed = self._failed, []
        ended, self._ended = self._ended, []
        if not (settlements or failures or ended):
            return
        now = self._seconds()
        lingering = {call: now - self._given_up.pop(call) for call in ended if call in self._given_up}
        with self._ledger.together():
            if settlements:
                self._ledger.settle(settlements)
            if failures:
                self._ledger.fail(failures)
            if ended:
                self._ledger.end_attempts([call for call in ended if call not in lingering], lingering)

    def _flush_when_full(self) -> None:
        if max(len(self._settled) + len(self._failed), len(self._ended)) >= FLUSH_AT:
            self.flush()


def effects_of(items: Iterable[Item]) -> tuple[Effect, ...]:
    return tuple(effect for item in items for effect in item.effects)


def _expected(items: Iterable[Item]) -> Iterator[Effect]:
    return (effect for effect in effects_of(items) if not effect.is_possible)


def sent_again(row: Recorded) -> Item:
    """Return the item that sends a tag as it is recorded.

    It leaves out that a tag is public: the service makes public what it creates, and people may have hidden it since.
    """
    effect = Effect(
        key=row.key,
        fields={name: value for name, value in row.body.fields.items() if (name, value) != ("visibility", "PUBLIC")},
        keywords=row.body.keywords,
        metadata=row.body.metadata,
        whole=True,
        source=row.source,
    )
    return Item(effects=(effect,), spell_name=row.key.name in row.body.keywords)


def category_of(effect: Effect) -> str | None:
    """Return the `externalId` of the category that a tag asks for, if any."""
    name = effect.fields.get("category")
    return name if isinstance(name, str) and name else None


@dataclass(slots=True)
class ApplyRun:
    """One running apply.

    `halt` is the reason why nothing more is sent, `unauthorized` whether the key is that reason. `category_ids` maps
    `externalId`s to the service's ids, `former_ids` also those of categories whose deletion or rename may not have
    happened. `blocked`: keys with a call that was not applied, with the reason. `plan_limit`: the service's message
    after it rejected a single new tag with 402. `offenders` and `resends` count, by operation, items that were rejected
    alone and batches that were resent without named items. `repairs`: tags to send whole after the stage
    (docs/planning.md 4.7). `strays`: members of a category whose id changed. `unproven`: paths of the project file, by
    operation, that never answered with a 2xx; `missing` are 404s of such a path, concluded once the stage is over.
    `refused_ids` and `accepted_ids`: categories whose ids were rejected or accepted with tags; `repeated_ids`: those
    whose recorded id the service returned again. `members_renamed`: records of the members of categories whose rename
    is not intended yet. `seconds` is this machine's own clock, and `window` the time in which a call of unknown end may
    land. `content` returns the content that the plan asks of an item's resource, and `set_aside` are resources of which
    nothing is sent.
    """

    service: ServiceCaller
    ledger: State
    tell: Callable[[Event], None]
    stop: asyncio.Event
    concurrency: int = 8
    max_errors: int | None = None
    seconds: Callable[[], float] = machine_seconds
    window: float = LANDING_SECONDS
    content: Callable[[Item], str] = lambda item: ""
    set_aside: Container[Key] = ()
    halt: str | None = None
    unauthorized: bool = False
    failures: int = 0
    plan_limit: str | None = None
    category_ids: dict[str, str] = field(default_factory=dict)
    former_ids: dict[str, str] = field(default_factory=dict)
    blocked: dict[Key, str] = field(default_factory=dict)
    offenders: Counter[str] = field(default_factory=Counter)
    resends: Counter[str] = field(default_factory=Counter)
    repairs: dict[Key, Item] = field(default_factory=dict)
    strays: dict[Key, Item] = field(default_factory=dict)
    members_renamed: list[Effect] = field(default_factory=list)
    unproven: dict[str, str] = field(default_factory=dict)
    missing: list[tuple[Operation, str, Item, str]] = field(default_factory=list)
    refused_ids: set[str] = field(default_factory=set)
    accepted_ids: set[str] = field(default_factory=set)
    repeated_ids: set[str] = field(default_factory=set)
    journal: Journal = field(init=False)

    def __post_init__(self) -> None:
        self.journal = Journal(self.ledger, self.seconds)

    def intend(
        self, operation: Operation, parts: Iterable[tuple[str, Sequence[Item]]], survivors: tuple[str, ...] = ()
    ) -> None:
        """Record the additions of calls before any of them is sent. `parts` are call ids with their items."""
        calls = {call: self._attempt(operation, items, survivors) for call, items in parts}
        with self.ledger.together():
            self.journal.intend(calls)
            # Not earlier: until the rename is intended, no row shows that both names are one category.
            if self.members_renamed:
                renamed = {effect.former for attempt in calls.values() for effect in attempt.effects}
                self.ledger.record([record for record in self.members_renamed if record.former in renamed])
                self.members_renamed = [each for each in self.members_renamed if each.former not in renamed]

    def announce(self, plan: Plan) -> None:
        """Announce all calls to the state before the first is sent, for a state that publishes its journal rarely."""

        def published() -> PublishedCalls:
            uploads = plan.sweep.uploads if plan.sweep else ()
            codes = tuple(item.key.name for call in uploads for item in call.items)
            attempts = {
                call.id: self._attempt(
                    OPERATIONS[call.operation], call.items, codes if call.operation == COMPLETE_SYNC_SESSION.id else ()
                )
                for call in plan.calls()
            }
            return PublishedCalls(attempts, tuple(self.members_renamed))

        self.ledger.announce(published)

    def _attempt(self, operation: Operation, items: Sequence[Item], survivors: tuple[str, ...]) -> Attempt:
        """Return a call for the journal, with the service's ids of the categories that it names."""
        ids: dict[str, str | None] = {}
        if operation is UPSERT_TAGS:
            ids = {name: self.category_ids.get(name) for item in items if (name := category_of(item.effects[0]))}
        elif operation in (UPSERT_TAG_CATEGORIES, DELETE_TAG_CATEGORY):
            ids = {item.key.name: self.category_id(item) or self.former_ids.get(item.key.name) for item in items}
        known = {name: server_id for name, server_id in ids.items() if server_id}
        return Attempt(operation.id, effects_of(items), known, survivors)

    def category_id(self, item: Item) -> str | None:
        """Return the id of an item's category: its own, or in a rename the id of the former category."""
        former = item.effects[0].former
        return self.category_ids.get(item.key.name) if former is None else self.former_ids.get(former.name)

    async def send(self, operation: Operation, call: str, body: object) -> Answer:
        """Send an intended call, or a part of it."""
        answer = await self.service.call(operation, body)
        if answer.given_up is not None:
            self.journal.give_up(call, answer.given_up)
        return answer

    @property
    def halted(self) -> str | None:
        """The reason why nothing more may be sent, or `None`."""
        if self.halt is None:
            if self.stop.is_set():
                self.halt = "interrupted"
            elif self.service.down:
                self.halt = self.service.why_down
            elif self.max_errors is not None and self.failures >= self.max_errors:
                self.halt = f"reached the limit of --max-errors ({self.failures} failed)"
        return self.halt

    # Outcomes of items. A failed item keeps its row and its doubt (docs/planning.md 1.2).

    def acknowledge(self, call: str, items: Sequence[Item], server_ids: dict[Key, str] | None = None) -> None:
        """Record and report that items of a call were applied."""
        self.journal.settle(call, items, server_ids)
        for effect in _expected(items):
            self.tell(ItemEnded(effect.key, Outcome.APPLIED, source=effect.source))

    def failed(self, call: str, items: Sequence[Item], error: CallError, outcome: Outcome = Outcome.FAILED) -> None:
        """Record and report items that failed or were not sent; a rejected key does not count against any item."""
        is_refused = outcome is Outcome.FAILED and not self.unauthorized
        refused = {item.key: self.content(item) for item in items} if is_refused else NOTHING
        self.journal.fail(call, items, error.message, refused)
        self.failures += len(items) if outcome is Outcome.FAILED else 0
        self.blocked_items(items, outcome, error)

    def skipped(self, items: Sequence[Item], reason: str) -> None:
        """Report items that were neither intended nor sent."""
        self.blocked_items(items, Outcome.SKIPPED, CallError(reason))

    def blocked_items(self, items: Sequence[Item], outcome: Outcome, error: CallError) -> None:
        """Report items that were not applied, and block items that need them. The journal contains them already."""
        for effect in _expected(items):
            self.blocked.setdefault(effect.key, error.message)
            self.tell(ItemEnded(effect.key, outcome, error, effect.source))

    async def stops_for_key(self, status: int | None, message: str) -> bool:
        """Return whether a rejection is about the key, and if so end the run (docs/planning.md 4.6).

        A 403 is about the key if `teamInfo` is rejected too.
        """
        is_about_key = status == 401 or (status == 403 and (await self.service.call(TEAM_INFO)).status in (401, 403))
        if is_about_key:
            self.unauthorized = True
            self.halt = f"authentication failed: {message}"
        return is_about_key

    def remark(self, code: str, message: str) -> None:
        self.tell(Diagnostic(severity=Severity.WARNING, code=code, message=message))
