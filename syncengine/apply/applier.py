"""Execute a plan stage by stage through the service, record each effect and report events (docs/planning.md 4.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from syncengine.apply import send, sweep_session
from syncengine.apply.report import ItemEnded, Outcome, StageStarted
from syncengine.apply.run import FLUSH_AT, ApplyRun, category_of, effects_of, sent_again
from syncengine.effects import Effect
from syncengine.plan.aim import is_without_category, may_be_held
from syncengine.plan.calls import Call, Item, Stage, Step
from syncengine.plan.diff import WRITES, Action
from syncengine.plan.model import Plan
from syncengine.resource import ALTERNATIVES, Key, Kind, Recorded, Status
from syncengine.service.operations import DELETE_TAG_CATEGORY, OPERATIONS, UPSERT_TAGS

Job = Callable[[], Awaitable[None]]


async def perform(run: ApplyRun, plan: Plan) -> None:
    """Execute the plan. Report and record every outcome, and never raise because of an answer from the service."""
    if plan.reasserts:
        run.ledger.doubt([change.key for change in plan.changes if change.action in WRITES])
    run.members_renamed = [record for record in plan.records if record.former is not None]
    run.ledger.record([record for record in plan.records if record.former is None])
    for change in plan.changes:
        if change.action is Action.FORGET or (change.action is Action.RETIRE and not change.keywords_deleted):
            run.tell(ItemEnded(change.key, Outcome.APPLIED, source=change.source))
    if plan.sends_something:
        await sweep_session.cancel_left_open(run)
        await _send_all(run, plan)
    run.journal.flush()
    send.doubt_refused_ids(run)


async def _send_all(run: ApplyRun, plan: Plan) -> None:
    rows = [row for row in run.ledger.rows(Kind.CATEGORY) if row.server_id]
    run.former_ids |= {r.key.name: r.server_id for r in rows if r.server_id and may_be_held(r)}
    confirmed = (row for row in rows if row.confirmed and row.status is not Status.DELETED)
    run.category_ids |= {row.key.name: row.server_id for row in confirmed if row.server_id}
    plan = _with_possible_members(run, plan)
    wholes = _wholes(plan)
    run.announce(plan)  # before the first call: a state in Git publishes once what a whole plan may do
    last = [stage for stage in plan.stages if stage.step is Step.CATEGORY_DELETES]
    for stage in plan.stages:
        if stage.step is not Step.CATEGORY_DELETES:
            await _send_stage(run, stage, wholes)
        if stage.step is Step.CATEGORIES and run.strays:  # of categories whose ids changed (docs/planning.md 4.8)
            strays, run.strays = run.strays, {}
            calls = (call for call in plan.calls() if call.operation == UPSERT_TAGS.id)
            planned = {effect.key for call in calls for effect in effects_of(call.items)}
            await _send_more(run, "members", [item for key, item in strays.items() if key not in planned])
    if plan.sweep is not None:
        run.journal.flush()
        run.tell(StageStarted("sweep", _reach(plan.sweep.uploads)))
        await sweep_session.perform(run, plan.sweep)
    # Categories go last: a deletion takes along every tag that is still in the category.
    if last:
        await _send_members_of_others(run, plan)
    for stage in last:
        await _send_stage(run, stage, wholes)
    await _send_possible_members(run, plan)


def _wholes(plan: Plan) -> Mapping[Key, Item]:
    """Return the upsert of every desired tag that a call of a single resource touches."""
    single = {
        item.key
        for stage in plan.stages
        if OPERATIONS[stage.calls[0].operation].items is None
        for call in stage.calls
        for item in call.items
    }
    if not single:
        return {}
    tags = (stage for stage in plan.stages if stage.step is Step.TAGS)
    upserts = {i.key: i for stage in tags for call in stage.calls for i in call.items if i.key in single}
    return {**plan.wholes, **upserts}


async def _send_stage(run: ApplyRun, stage: Stage, wholes: Mapping[Key, Item]) -> None:
    operation = OPERATIONS[stage.calls[0].operation]
    run.tell(StageStarted(stage.step.value, _reach(stage.calls)))
    is_batch = operation.items is not None
    jobs = _batch_jobs(run, stage.calls) if is_batch else _single_jobs(run, stage.calls, wholes)
    await concurrently(run.concurrency, jobs)
    send.conclude_missing(run, wholes)
    run.journal.flush()
    if not is_batch and stage.step is not Step.KEYWORD_VARIANTS:
        # Desired tags whose recorded state proved wrong are sent whole, in the same run (docs/planning.md 4.7).
        repairs, run.repairs = list(run.repairs.values()), {}
        await _send_more(run, f"repair {stage.step.value}", repairs)


def _reach(calls: Iterable[Call]) -> int:
    """Return the number of resources that the calls affect."""
    return sum(not effect.is_possible for call in calls for effect in effects_of(call.items))


def _with_possible_members(run: ApplyRun, plan: Plan) -> Plan:
    """Return the plan with the tags that its deletions of categories may delete unseen among their effects.

    People may have put a tag into a category when the manifests say of none, or when the tag is only protected.
    """
    if all(stage.step is not Step.CATEGORY_DELETES for stage in plan.stages):
        return plan
    certain, upserted = set[Key](), set[Key]()
    for effect in plan.effects():
        leaves = effect.status in (Status.DELETED, Status.RETIRED)
        if leaves or ALTERNATIVES.keys() & {*effect.fields, *effect.cleared}:
            certain.add(effect.key)
        elif effect.whole:
            upserted.add(effect.key)

    def is_possible(row: Recorded) -> bool:
        if row.key in upserted or row.plan == plan.id:  # sent first, or put in doubt by an interrupted run of this plan
            row = replace(row, doubtful=False)
        return is_without_category(row) or (row.status is Status.RELEASED and row.protect and row.key not in upserted)

    rows = (row for row in run.ledger.rows(Kind.TAG) if row.key not in certain)
    possible = tuple(Effect(key=row.key, unsure=row.status) for row in rows if is_possible(row))

    def extended(call: Call) -> Call:
        return replace(call, items=tuple(replace(item, effects=item.effects + possible) for item in call.items))

    stages = (
        replace(stage, calls=tuple(map(extended, stage.calls))) if stage.step is Step.CATEGORY_DELETES else stage
        for stage in plan.stages
    )
    return replace(plan, stages=tuple(stages)) if possible else plan


async def _send_members_of_others(run: ApplyRun, plan: Plan) -> None:
    """Send the tags of other categories before categories are deleted: people may have moved them there.

    Those that this plan sends anyway are out already. A run that ends early deletes nothing, and skips none of them.
    """
    if run.halted:
        return
    sent = {effect.key for effect in plan.effects() if effect.whole or effect.status is not None}
    rows = [row for row in run.ledger.rows(Kind.TAG) if row.status is Status.ACTIVE and not row.doubtful]
    at_rest = (r for r in rows if r.category_references() and r.key not in sent and r.key not in run.set_aside)
    await _send_more(run, "tags of other categories", [sent_again(row) for row in at_rest])


async def _send_possible_members(run: ApplyRun, plan: Plan) -> None:
    """Send the tags that deleted categories may have taken along unseen.

    After a run that ends early, or a deletion that may still be executed, they stay in doubt.
    """
    if run.halted:
        return
    stages = (stage for stage in plan.stages if stage.step is Step.CATEGORY_DELETES)
    deletions = [effect for stage in stages for call in stage.calls for effect in effects_of(call.items)]
    if blocked := {effect.key for effect in deletions if not effect.is_possible} & run.blocked.keys():
        run.journal.flush()
        late = (each.attempt for each in run.ledger.outstanding(run.window))
        # Once such a deletion is executed, no doubt would be left to send these tags again.
        if any(each.operation == DELETE_TAG_CATEGORY.id and each.effects[0].key in blocked for each in late):
            return
    keys = {effect.key: None for effect in deletions if effect.is_possible and effect.key not in run.set_aside}
    rows = [row for key, row in run.ledger.get(keys).items() if row.doubtful and key not in run.blocked]
    rows = [row for row in rows if row.status is Status.ACTIVE or row.protect]
    await _send_more(run, "tags without a category", [sent_again(row) for row in rows])


def _batch_jobs(run: ApplyRun, calls: Iterable[Call]) -> Iterator[Job]:
    async def send_batch(call: Call) -> None:
        if items := _ready(run, call):
            operation = OPERATIONS[call.operation]
            run.intend(operation, [(call.id, items)])
            await send.deliver_batch(run, operation, call.id, items)
            run.journal.end(call.id)

    return (partial(send_batch, call) for call in calls)


def _single_jobs(run: ApplyRun, calls: Sequence[Call], wholes: Mapping[Key, Item]) -> Iterator[Job]:
    """Yield jobs for calls of one resource each, whose intents are journaled together ahead of the jobs."""
    operation = OPERATIONS[calls[0].operation]

    async def send_single(call: str, item: Item) -> None:
        await send.deliver_single(run, operation, call, item, wholes)
        run.journal.end(call)

    for start in range(0, len(calls), FLUSH_AT):
        parts = [(call.id, _ready(run, call)) for call in calls[start : start + FLUSH_AT]]
        if ready := [(name, items) for name, items in parts if items]:
            run.intend(operation, ready)
        for name, items in ready:
            yield partial(send_single, name, items[0])


def _ready(run: ApplyRun, call: Call) -> list[Item]:
    """Return the items whose needs are met (docs/planning.md 4.2); skip all other items of the call."""
    if reason := run.halted:
        run.skipped(call.items, reason)
        return []
    ready: list[Item] = []
    for item in call.items:
        if unmet := next((key for key in item.needs if key in run.blocked), None):
            run.skipped([item], f"it depends on {unmet}, which was not applied")
            continue
        category = category_of(item.effects[0]) if item.effects[0].whole else None
        if category is not None and category not in run.category_ids:
            run.skipped([item], f"it needs the id of {Key(Kind.CATEGORY, category)}, which was not applied")
        else:
            ready.append(item)
    return ready


async def concurrently(count: int, jobs: Iterator[Job]) -> None:
    """Run jobs, `count` at a time; after a failure, start no more, await running jobs and raise the first exception."""
    failures: list[BaseException] = []

    async def work() -> None:
        for job in jobs:
            if failures:
                return
            try:
                await job()
            except Exception as error:
                failures.append(error)

    await asyncio.gather(*(work() for _ in range(count)))
    if failures:
        raise failures[0]


# --- tags that a run sends in addition to those planned


async def _send_more(run: ApplyRun, name: str, items: Sequence[Item]) -> None:
    if not items:
        return
    limit = UPSERT_TAGS.limit
    parts = [items[start : start + limit] for start in range(0, len(items), limit)]
    calls = [Call(f"{name} {number}", UPSERT_TAGS.id, tuple(part)) for number, part in enumerate(parts, 1)]
    run.tell(StageStarted(name, _reach(calls)))
    await concurrently(run.concurrency, _batch_jobs(run, calls))
    run.journal.flush()
