"""Send the items of a call in batches or one by one, and settle what is answered (docs/planning.md 4.3 to 4.8).

A batch that the service rejects as a whole is halved until the offenders stand alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

from msgspec import structs

from syncengine.apply.answers import Accepted, ItemsRefused, RefusedCall, Unclear, Verdict, judge, unnamed
from syncengine.apply.report import CallError, ItemEnded, Outcome
from syncengine.apply.run import ApplyRun, category_of, sent_again
from syncengine.effects import Effect
from syncengine.plan.calls import Item
from syncengine.resource import Key, Kind, Recorded, Status
from syncengine.service.operations import (
    ADD_KEYWORDS,
    DELETE_KEYWORD,
    DELETE_TAG_METADATA,
    SINGLE_BODIES,
    UPSERT_TAG_CATEGORIES,
    UPSERT_TAGS,
    JsonObject,
    Operation,
    activity_type_body,
    category_body,
    tag_body,
)
from syncengine.state.journal import SETTLED

HALVED = frozenset({400, 413, 422})
"""Status codes of a rejected batch for which a single item may be the cause."""

MAX_OFFENDERS = 32  # one among 2,000 takes 11 requests, and so many are refused for one cause
"""How many rejected items to isolate, and batches to resend, per operation before failing all remaining items."""


def spell(run: ApplyRun, operation: Operation, items: Sequence[Item], *, with_ids: bool = True) -> JsonObject:
    """Return the JSON body of a batch. `with_ids`: whether to identify categories by their recorded ids."""
    if operation is UPSERT_TAG_CATEGORIES:
        entries = [category_body(item.effects[0], run.category_id(item) if with_ids else None) for item in items]
    elif operation is UPSERT_TAGS:
        ids = {item.key: run.category_ids.get(category_of(item.effects[0]) or "") for item in items}
        entries = [tag_body(item.effects[0], ids[item.key], spell_name=item.spell_name) for item in items]
    else:
        entries = [activity_type_body(item.effects[0]) for item in items]
    assert operation.items is not None
    return {operation.items: entries}


async def deliver_batch(run: ApplyRun, operation: Operation, call: str, items: Sequence[Item]) -> None:
    """Send intended items and record their outcomes; a batch that is rejected as a whole is sent again in parts."""
    if run.plan_limit is not None and operation is UPSERT_TAGS:
        if new := [item for item in items if item.new]:
            run.failed(call, new, CallError(run.plan_limit, operation.id, status=402))
        items = [item for item in items if not item.new]
    if not items:
        return
    if reason := run.halted:
        run.failed(call, items, CallError(reason, operation.id), Outcome.SKIPPED)
        return
    answer = await run.send(operation, call, spell(run, operation, items))
    await _conclude(run, operation, call, items, judge(operation, len(items), answer))


async def _conclude(run: ApplyRun, operation: Operation, call: str, items: Sequence[Item], verdict: Verdict) -> None:
    if operation is UPSERT_TAGS:
        _learn_ids(run, items, verdict)
    match verdict:
        case Accepted() if operation is UPSERT_TAG_CATEGORIES:
            _conclude_categories(run, call, items, verdict.data)
        case Accepted(errors):
            _fail_named(run, operation, call, items, errors, 200)
            run.acknowledge(call, unnamed(items, errors))
        case ItemsRefused(errors, status):
            _fail_named(run, operation, call, items, errors, status)
            rest = unnamed(items, errors)
            run.resends[operation.id] += 1
            if run.resends[operation.id] > MAX_OFFENDERS:
                run.failed(call, rest, CallError(next(iter(errors.values())), operation.id))
            else:
                await deliver_batch(run, operation, call, rest)
        case RefusedCall():
            await _conclude_refused(run, operation, call, items, verdict)
        case Unclear(message, status, reached):
            outcome = Outcome.UNKNOWN if reached else Outcome.SKIPPED
            run.failed(call, items, CallError(message, operation.id, status=status), outcome)


def _fail_named(
    run: ApplyRun, operation: Operation, call: str, items: Sequence[Item], errors: Mapping[int, str], status: int
) -> None:
    for index, words in errors.items():
        run.failed(call, [items[index]], CallError(words, operation.id, index, status))


async def _conclude_refused(
    run: ApplyRun, operation: Operation, call: str, items: Sequence[Item], refused: RefusedCall
) -> None:
    """Send the items of a batch that was rejected as a whole in parts, until each offender stands alone.

    After a 402, recorded tags are sent on their own: only new ones can be too many (docs/planning.md 4.6).
    """
    error = CallError(refused.message, operation.id, 0 if len(items) == 1 else None, refused.status)
    middle = len(items) // 2
    halves = (items[:middle], items[middle:])
    if await run.stops_for_key(refused.status, refused.message):
        run.failed(call, items, error)
    elif refused.status == 402 and operation is UPSERT_TAGS:
        new = [item for item in items if item.new]
        if len(new) > 1 or (new and len(new) < len(items)):
            for part in halves if len(new) == len(items) else ([item for item in items if not item.new], new):
                await deliver_batch(run, operation, call, part)
            return
        error = replace(error, message=f"plan limit: {error.message}")
        run.plan_limit = error.message if new else run.plan_limit
        run.failed(call, items, error)
    elif refused.status not in HALVED and operation is not UPSERT_TAG_CATEGORIES:
        run.failed(call, items, error)
    elif len(items) > 1:
        for part in halves:
            if run.offenders[operation.id] >= MAX_OFFENDERS:
                run.failed(call, part, error)
            else:
                await deliver_batch(run, operation, call, part)
    elif operation is UPSERT_TAG_CATEGORIES and run.category_id(items[0]) is not None:
        await _without_id(run, call, items[0])
    else:
        run.offenders[operation.id] += 1
        run.failed(call, items, error)


# --- categories (docs/planning.md 4.8)


class IdAnswer(Enum):
    """What an answer says of the id of a category."""

    NONE = "none"
    ANOTHERS = "another category's"
    FIRST = "first"
    RECORDED = "recorded"
    RENAMED = "recorded of the former name"
    CHANGED = "another than recorded"
    NEW_INSTEAD = "another than that of the former name"


class IdRule(NamedTuple):
    """What follows from an answer.

    With a `problem` the outcome is unknown, and its tags wait. `is_repeated`: the service has confirmed the id.
    `moves`: the members are sent again. `formers` is the status of the category's former names.
    """

    problem: str | None = None
    is_repeated: bool = False
    moves: bool = False
    formers: Status | None = None


ID_RULES: Mapping[IdAnswer, IdRule] = {
    IdAnswer.NONE: IdRule("the service did not return an id for this category"),
    IdAnswer.ANOTHERS: IdRule("the service returned another category's id ({id}) for it"),
    IdAnswer.FIRST: IdRule(),
    IdAnswer.RECORDED: IdRule(is_repeated=True),
    IdAnswer.RENAMED: IdRule(is_repeated=True, formers=Status.DELETED),  # also names of earlier, doubtful renames
    IdAnswer.CHANGED: IdRule(moves=True),
    # To delete the former category would also delete tags of other owners, which no plan announced.
    IdAnswer.NEW_INSTEAD: IdRule(moves=True, formers=Status.RELEASED),
}
"""The seven situations after an upsert. A category refused with its id is tried once without (`_without_id`)."""


def _conclude_categories(run: ApplyRun, call: str, items: Sequence[Item], data: Mapping[str, object]) -> None:
    """Match categories in the answer by `externalId`, and follow `ID_RULES` by what their ids say."""
    entries = data.get("tagCategories")
    rows = [row for row in entries if isinstance(row, dict)] if isinstance(entries, list) else []
    pairs = ((row.get("externalId"), row.get("id")) for row in rows)
    answered = {name: id for name, id in pairs if isinstance(name, str) and isinstance(id, str) and id.strip()}
    counts = Counter(answered.values())
    owners = {id: name for name, id in run.category_ids.items()}
    for item in items:
        name, own = item.key.name, item.effects[0]
        server_id, recorded_id = answered.get(name), run.category_id(item) or run.former_ids.get(name)
        if server_id is None:
            answer = IdAnswer.NONE
        elif server_id == recorded_id:
            answer = IdAnswer.RENAMED if own.former else IdAnswer.RECORDED
        elif counts[server_id] > 1 or owners.get(server_id, name) != name:  # it says of neither name whose it is
            answer = IdAnswer.ANOTHERS
        elif own.former:
            answer = IdAnswer.NEW_INSTEAD
        else:
            answer = IdAnswer.FIRST if recorded_id is None else IdAnswer.CHANGED
        rule = ID_RULES[answer]
        if rule.problem is not None:
            run.category_ids.pop(name, None)
            error = CallError(rule.problem.format(id=server_id), UPSERT_TAG_CATEGORIES.id, status=200)
            run.failed(call, [item], error, Outcome.UNKNOWN)
            if other := owners.get(server_id or ""):  # whose id is in doubt too
                run.ledger.doubt_ids([Key(Kind.CATEGORY, other)])
            continue
        assert server_id is not None, "no id is a problem"
        run.category_ids[name] = server_id
        if rule.is_repeated:
            run.repeated_ids.add(name)
        if rule.moves and recorded_id is not None:
            _send_members(run, item, server_id, recorded_id)
        others = [] if rule.formers is None else _doubted_names(run, item, recorded_id)
        ids, kept = {item.key: server_id}, item.effects
        if answer is IdAnswer.NEW_INSTEAD:
            kept = (own,)
            words = NOT_RENAMED.format(id=server_id, former=own.former)
            # Reported before it is recorded: if the run is killed in between, the next one reports it again.
            run.remark("category-not-renamed", words)
            # Together, since the next run would take the rename for done if only one of the two names were settled.
            with run.ledger.together():
                run.journal.settle(call, [Item(effects=kept)], ids)
                # In the history, the intended delete of the former name failed. The row stays in doubt: an id that was
                # refused may be one of a category that somebody deleted.
                run.journal.fail(call, [Item(effects=item.effects[1:])], words)
                run.journal.flush()
                names = [*(effect.key for effect in item.effects[1:]), *others]
                run.ledger.record([Effect(key=key, status=rule.formers) for key in names])
        else:
            ended = [Item(effects=(Effect(key=key, status=rule.formers),)) for key in others]
            run.journal.settle(call, [Item(effects=kept), *ended], ids)
        for effect in kept:
            run.tell(ItemEnded(effect.key, Outcome.APPLIED, source=effect.source))


NOT_RENAMED = (
    "the service created a new category ({id}) instead of renaming {former}: if that still exists, it stays, without"
    " the tags that this run sends again; delete it in the console once nobody needs it"
)


def _doubted_names(run: ApplyRun, item: Item, server_id: str | None) -> list[Key]:
    """Return other names that the category with this id had before renames of unknown outcome."""
    names = {Key(Kind.CATEGORY, name) for name, id in run.former_ids.items() if id == server_id}
    rows = run.ledger.get(names - {effect.key for effect in item.effects}).values()
    return sorted(row.key for row in rows if row.status is Status.DELETED)


REFUSED_IDS = frozenset({400, 404, 409, 422})
"""Status codes of a rejected tag for which its category's id may be the cause."""


def _learn_ids(run: ApplyRun, items: Sequence[Item], verdict: Verdict) -> None:
    """Note which category ids the service accepted with a tag, and which it rejected."""
    refused: Iterable[int] = ()
    match verdict:
        case Accepted(errors):
            accepted = (item for i, item in enumerate(items) if i not in errors)
            run.accepted_ids.update(name for item in accepted if (name := category_of(item.effects[0])))
            refused = errors
        case ItemsRefused(errors):
            refused = errors
        case RefusedCall(_, status) if status in REFUSED_IDS and (len(items) == 1 or status not in HALVED):
            refused = range(len(items))
    run.refused_ids.update(name for i in refused if (name := category_of(items[i].effects[0])))


def doubt_refused_ids(run: ApplyRun) -> None:
    """Mark category ids as doubtful if every tag sent with them was rejected, unless the service just confirmed them.

    The next apply asks the service for the marked ids again.
    """
    for name in sorted((run.refused_ids - run.accepted_ids - run.repeated_ids) & run.category_ids.keys()):
        key, id = Key(Kind.CATEGORY, name), run.category_ids[name]
        run.ledger.doubt_ids([key])
        message = f"the service rejected every tag sent with the id of {key} ({id}): the next apply requests it again"
        run.remark("category-id-doubted", message)


def _send_members(run: ApplyRun, item: Item, server_id: str, recorded_id: str) -> None:
    """Schedule the members of a category for sending, because the service returned another id than the recorded one.

    Until they are sent they may still be in the category that has the recorded id under another name, in a rename the
    former one, and members of other owners stay there.
    """
    category, former = item.key, item.effects[0].former
    others = (name for name, id in run.former_ids.items() if id == recorded_id and name != category.name)
    other_name = former.name if former else next(others, None)
    members = run.ledger.members([category.name])
    rows = [row for row in members if row.status is Status.ACTIVE]
    if other_name is not None:
        # A member that is sent again may be in either category.
        formers = ((row, None if row.status is Status.ACTIVE else category) for row in members)
        run.ledger.record([Effect(key=r.key, fields={"category": other_name}, former=was) for r, was in formers])
    # In doubt before they are sent: if the run is killed in between, the next one sends them.
    run.ledger.doubt([row.key for row in rows if not row.doubtful])
    sendable = [row for row in rows if row.key not in run.set_aside]
    strays = [row for row in sendable if not _may_be_open(run, row)]
    again = f"; its tags are sent again ({len(strays)})" if strays else ""
    if waiting := len(sendable) - len(strays):
        again += f"; PRIVATE tags of it that may be public wait for the next apply that selects them ({waiting})"
    run.remark("category-id-changed", f"the service gave {category} another id than recorded ({server_id}){again}")
    run.strays |= {row.key: sent_again(row) for row in strays}


def _may_be_open(run: ApplyRun, row: Recorded) -> bool:
    """Return whether a tag that is recorded as PRIVATE may be public: its row is not as a settled upsert left it.

    Sent as recorded it would be hidden, so it waits for the next plan that selects it.
    """
    if not row.doubtful or row.body.fields.get("visibility") != "PRIVATE":
        return False
    upserts = (entry for entry in reversed(run.ledger.history(row.key)) if entry.operation == UPSERT_TAGS.id)
    last = next(upserts, None)
    # An import, or the record of a rename, writes a row after its upsert.
    return last is None or last.outcome != SETTLED or last.run != row.run


async def _without_id(run: ApplyRun, call: str, item: Item) -> None:
    """Retry a category once without its id, after an update with the id was rejected."""
    body = spell(run, UPSERT_TAG_CATEGORIES, [item], with_ids=False)
    verdict = judge(UPSERT_TAG_CATEGORIES, 1, await run.send(UPSERT_TAG_CATEGORIES, call, body))
    if isinstance(verdict, RefusedCall):
        await run.stops_for_key(verdict.status, verdict.message)
        run.offenders[UPSERT_TAG_CATEGORIES.id] += 1
        run.failed(call, [item], CallError(verdict.message, UPSERT_TAG_CATEGORIES.id, 0, verdict.status))
    else:
        await _conclude(run, UPSERT_TAG_CATEGORIES, call, [item], verdict)


async def deliver_single(
    run: ApplyRun, operation: Operation, call: str, item: Item, wholes: Mapping[Key, Item]
) -> None:
    """Send one intended item. `wholes` are the upserts of desired tags, for tags that prove to be missing."""
    if reason := run.halted:
        run.failed(call, [item], CallError(reason, operation.id), Outcome.SKIPPED)
        return
    answer = await run.send(operation, call, SINGLE_BODIES[operation.id](item.effects[0]))
    match judge(operation, 1, answer):
        case RefusedCall(message, 404) if operation.id in run.unproven and operation is not ADD_KEYWORDS:
            run.missing.append((operation, call, item, message))
        case RefusedCall(message, 404):
            _conclude_missing(run, operation, call, item, wholes.get(item.key), message)
        case RefusedCall(message, status):
            await run.stops_for_key(status, message)
            run.failed(call, [item], CallError(message, operation.id, status=status))
        case Unclear(message, status, reached):
            outcome = Outcome.UNKNOWN if reached else Outcome.SKIPPED
            run.failed(call, [item], CallError(message, operation.id, status=status), outcome)
        case Accepted():
            if path := run.unproven.pop(operation.id, None):  # which this answer proves
                run.ledger.path_answered(operation.id, path)
            if item.key in run.blocked or item.key in run.repairs:  # an upsert of it failed, or is still to come
                item = structs.replace(item, effects=(structs.replace(item.effects[0], rest=None), *item.effects[1:]))
            run.acknowledge(call, [item])
        case verdict:
            raise AssertionError(f"{operation.id} has no item errors: {verdict}")


def conclude_missing(run: ApplyRun, wholes: Mapping[Key, Item]) -> None:
    """Accept the 404s of a path only once it has answered with a 2xx, because a mistyped path always answers 404."""
    missing, run.missing = run.missing, []
    for operation, call, item, message in missing:
        if path := run.unproven.get(operation.id):
            words = (
                f"not counted as deleted: {path} answered 404 and has never answered {operation.id} successfully;"
                f" correct `service.endpoints.{operation.id}.path`, or, if it is right, set `confirmed: true` beside it"
            )
            run.failed(call, [item], CallError(words, operation.id, status=404))
        else:
            _conclude_missing(run, operation, call, item, wholes.get(item.key), message)


def _conclude_missing(
    run: ApplyRun, operation: Operation, call: str, item: Item, whole: Item | None, message: str
) -> None:
    """Treat a missing tag as deleted; schedule a desired tag whose recorded state proved wrong to be sent whole."""
    if operation is ADD_KEYWORDS:
        error = CallError(message, operation.id, status=404)
        run.journal.fail(call, [item], message) if whole else run.failed(call, [item], error)
    else:
        run.acknowledge(call, [item])
    if operation in (ADD_KEYWORDS, DELETE_KEYWORD, DELETE_TAG_METADATA):
        run.journal.flush()
        run.ledger.doubt([item.key])
        if whole is not None:
            run.repairs[item.key] = whole
