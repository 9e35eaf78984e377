"""Turn differences into calls: items, stages of batches, and the sync session of a sweep. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from syncengine.document.text import folded
from syncengine.effects import Effect
from syncengine.plan.aim import Aim, PlannedRemoval, RemovalKind, may_be_held
from syncengine.plan.diff import KEPT, OUTSIDE, Change, Difference, is_new, needs_upsert
from syncengine.resource import Body, Key, Kind, Recorded, Resource, Source, Status
from syncengine.service.operations import (
    ADD_KEYWORDS,
    COMPLETE_SYNC_SESSION,
    DELETE_KEYWORD,
    DELETE_TAG,
    DELETE_TAG_CATEGORY,
    DELETE_TAG_METADATA,
    UPLOAD_ACTIVITY_TYPES,
    UPSERT_TAG_CATEGORIES,
    UPSERT_TAGS,
    Operation,
)


class Item(Struct, frozen=True, gc=False, kw_only=True):
    """One resource's part of a call, described by its effects; `service/operations.py` encodes it for the service.

    `effects[0]` concerns the resource itself, and further effects the resources that the call removes with it. `new` is
    true when the service is not known to hold the resource. `spell_name` is true when the tag's name must be listed as
    a keyword, because an upsert of an existing tag may not add it by itself. `needs` are keys whose calls must be
    acknowledged first (docs/planning.md 4.2).
    """

    effects: tuple[Effect, ...]
    new: bool = False
    spell_name: bool = False
    needs: tuple[Key, ...] = ()

    @property
    def key(self) -> Key:
        return self.effects[0].key

    @property
    def source(self) -> Source | None:
        return self.effects[0].source


class Call(Struct, frozen=True, gc=False):
    """One planned request. `id` is unique within its plan, and `operation` is the id of an operation."""

    id: str
    operation: str
    items: tuple[Item, ...]


class Step(StrEnum):
    """The steps of a plan, in order (docs/planning.md 4.1).

    `KEYWORD_VARIANTS` deletes keywords that the service may confuse with a desired keyword (docs/planning.md 2.3),
    before an upsert adds the desired keyword again.
    """

    CATEGORIES = "categories"
    ACTIVITY_TYPES = "activity types"
    KEYWORD_VARIANTS = "keyword variants"
    TAGS = "tags"
    KEYWORD_ADDS = "keyword adds"
    KEYWORD_DELETES = "keyword deletes"
    METADATA_DELETES = "metadata deletes"
    TAG_DELETES = "tag deletes"
    CATEGORY_DELETES = "category deletes"


OPERATION_OF: Mapping[Step, Operation] = {
    Step.CATEGORIES: UPSERT_TAG_CATEGORIES,
    Step.ACTIVITY_TYPES: UPLOAD_ACTIVITY_TYPES,
    Step.KEYWORD_VARIANTS: DELETE_KEYWORD,
    Step.TAGS: UPSERT_TAGS,
    Step.KEYWORD_ADDS: ADD_KEYWORDS,
    Step.KEYWORD_DELETES: DELETE_KEYWORD,
    Step.METADATA_DELETES: DELETE_TAG_METADATA,
    Step.TAG_DELETES: DELETE_TAG,
    Step.CATEGORY_DELETES: DELETE_TAG_CATEGORY,
}

Needed = tuple[Step, Item]
"""An item, and the step that it belongs to."""

OTHERWISE: Mapping[RemovalKind, Status] = {
    RemovalKind.FORGET: Status.RELEASED,
    RemovalKind.RETIRE: Status.RETIRED,
}
"""The status to record for a category member that a cascade may have missed and that no call of its own deletes."""


def calls_for(difference: Difference, cascade: Iterable[PlannedRemoval], movers: Iterable[Key]) -> list[Needed]:
    """Return the request items that one difference needs.

    `cascade` are the members of a deleted category that are deleted with it, and `movers` those that move out first.
    A tag that is deleted with its category, or only forgotten, needs no item. Activity types are deleted by the sweep
    of the whole plan.
    """
    change, row, resource = difference.change, difference.row, difference.resource
    if difference.leaving is not None:
        return _departure(difference.leaving, change, cascade, movers)
    assert resource is not None, "only what leaves has no desired resource"
    if change.key.kind is Kind.ACTIVITY_TYPE:
        return [(Step.ACTIVITY_TYPES, Item(effects=(_whole(resource, row),), new=is_new(row)))]
    if change.key.kind is Kind.TAG:
        return _tag(difference, resource)
    effects = [_whole(resource, row)]
    if change.previously is not None:
        former = Key(Kind.CATEGORY, change.previously)
        effects = [_whole(resource, row, former), Effect(key=former, status=Status.DELETED)]
    return [(Step.CATEGORIES, Item(effects=tuple(effects), new=is_new(row)))]


def _whole(resource: Resource, row: Recorded | None, former: Key | None = None) -> Effect:
    """Return the effect of an upsert that sends the whole resource.

    It sends recorded fields that are gone as empty, and the category of a tag that leaves any.
    """
    kind, fields = resource.key.kind, resource.body.fields
    before = row.body.fields if row is not None else ()
    cleared = tuple(name for name in before if name not in fields and (kind, name) not in KEPT)
    return Effect(
        key=resource.key,
        fields=fields,
        cleared=(*cleared, OUTSIDE.name) if resource.outside else cleared,
        keywords=resource.body.keywords,
        metadata=resource.body.metadata,
        status=resource.status,
        whole=True,
        former=former,
        source=resource.source,
        protect=resource.protect,
    )


def _tag(difference: Difference, resource: Resource) -> list[Needed]:
    change = difference.change
    if difference.row is None:
        return [(Step.TAGS, whole_tag(difference))]
    variants = _spelling_variants(change.keywords_deleted, resource.body.keywords)
    items = _keyword_deletes(Step.KEYWORD_VARIANTS, change, variants)
    if variants or needs_upsert(change, difference.row):
        # Executed after the upsert, a delete of unknown outcome might take the new spelling along.
        needs = (change.key,) if variants else ()
        items.append((Step.TAGS, replace(whole_tag(difference), needs=needs)))
    elif change.keywords_added:
        external_id = resource.body.fields.get("externalId")
        effect = Effect(
            key=resource.key,
            fields={"externalId": external_id} if external_id else {},
            keywords=change.keywords_added,
            status=resource.status,
            source=resource.source,
        )
        items.append((Step.KEYWORD_ADDS, Item(effects=(effect,))))
    own = (change.key,) if items else ()
    dropped = [keyword for keyword in change.keywords_deleted if keyword not in variants]
    deletes = _keyword_deletes(Step.KEYWORD_DELETES, change, dropped, own)
    if change.metadata_deleted:
        effect = Effect(key=change.key, metadata_dropped=change.metadata_deleted, source=change.source)
        deletes.append((Step.METADATA_DELETES, Item(effects=(effect,), needs=own)))
    if own or change.metadata_deleted:  # the doubt may be older, or come from a 404 of this run
        rest = Body(keywords=resource.body.keywords, metadata=resource.body.metadata)
        deletes = [(step, replace(i, effects=(replace(i.effects[0], rest=rest),))) for step, i in deletes]
    return items + deletes


def whole_tag(difference: Difference) -> Item:
    """Return the item that upserts a tag with its whole desired content."""
    row, resource, name = difference.row, difference.resource, difference.change.key.name
    assert resource is not None, "only what leaves has no desired resource"
    effect = _whole(resource, row)
    if row is None:
        return Item(effects=(effect,), new=True)
    # A creation of unknown end may have left a tag without its name, which a second upsert need not add.
    is_unsure = may_be_held(row) and (row.doubtful or name not in row.body.keywords)
    spell_name = is_unsure or bool(_spelling_variants(difference.change.keywords_deleted, effect.keywords))
    return Item(effects=(effect,), new=is_new(row), spell_name=spell_name and name in effect.keywords)


def _keyword_deletes(
    step: Step, change: Change, keywords: Iterable[str], needs: tuple[Key, ...] = (), status: Status | None = None
) -> list[Needed]:
    """Return an item for each keyword, since the service deletes them one by one."""
    effects = (Effect(key=change.key, keywords_dropped=(k,), status=status, source=change.source) for k in keywords)
    return [(step, Item(effects=(effect,), needs=needs)) for effect in effects]


def _spelling_variants(old: Iterable[str], new: Iterable[str]) -> tuple[str, ...]:
    """Return the keywords of `old` that differ from a keyword of `new` only by case or Unicode form."""
    old = tuple(old)
    spellings = set(map(folded, new)) if old else set()
    return tuple(keyword for keyword in old if folded(keyword) in spellings)


def _departure(
    leaving: PlannedRemoval, change: Change, cascade: Iterable[PlannedRemoval], movers: Iterable[Key]
) -> list[Needed]:
    after = (leaving.taken_by,) if leaving.taken_by and leaving.way is not RemovalKind.CASCADE else ()
    if leaving.own_way is RemovalKind.RETIRE:
        return _keyword_deletes(Step.KEYWORD_DELETES, change, change.keywords_deleted, after, Status.RETIRED)
    if leaving.own_way is not RemovalKind.DELETE:
        return []
    if change.key.kind is not Kind.CATEGORY:
        return [(Step.TAG_DELETES, Item(effects=(Effect(key=change.key, status=Status.DELETED),), needs=after))]
    effects, needs = [Effect(key=change.key, status=Status.DELETED)], dict.fromkeys(movers)
    for member in cascade:
        effect = Effect(key=member.row.key, status=Status.DELETED)
        if member.may_stay and member.own_way is not RemovalKind.DELETE:  # the cascade may miss it
            unsure = OTHERWISE[member.otherwise] if member.otherwise else member.row.status
            effect = replace(effect, unsure=unsure)
        effects.append(effect)
        if member.own_way is not None:
            needs[member.row.key] = None
    return [(Step.CATEGORY_DELETES, Item(effects=tuple(effects), needs=tuple(needs)))]


RIDE_ALONG = 10  # fewer are added alone: an upsert says everything of a tag, and would undo what people edited
"""The number of tags that only gain keywords from which batch upserts replace one call per tag."""


class Stage(Struct, frozen=True, gc=False):
    """Calls that do not depend on each other."""

    step: Step
    calls: tuple[Call, ...]


def call(numbers: Iterator[int], operation: Operation, items: Sequence[Item]) -> Call:
    """Return the next call of a plan. `numbers` count through the plan, so that the same inputs give the same ids."""
    return Call(f"c{next(numbers)}", operation.id, tuple(items))


def batches(numbers: Iterator[int], operation: Operation, items: Sequence[Item]) -> tuple[Call, ...]:
    """Group the items into as few calls as possible."""
    starts = range(0, len(items), operation.limit)
    return tuple(call(numbers, operation, items[start : start + operation.limit]) for start in starts)


def stages_of(differences: Sequence[Difference], target: Aim, numbers: Iterator[int]) -> tuple[Stage, ...]:
    """Return the stages of all calls but those of the sweep, in order."""
    items: list[Needed] = []
    for each in differences:
        key = each.change.key
        items += calls_for(each, target.cascades.get(key, ()), target.movers.get(key, ()))
    adds = {item.key for step, item in items if step is Step.KEYWORD_ADDS}
    if len(adds) >= RIDE_ALONG:  # docs/planning.md 2.2
        upserts = {each.change.key: whole_tag(each) for each in differences if each.change.key in adds}
        items = [(Step.TAGS, upserts[i.key]) if step is Step.KEYWORD_ADDS else (step, i) for step, i in items]
    by_step: dict[Step, list[Item]] = {step: [] for step in Step}
    for step, item in items:
        by_step[step].append(item)
    return tuple(Stage(step, batches(numbers, OPERATION_OF[step], some)) for step, some in by_step.items() if some)


class Sweep(Struct, frozen=True, gc=False):
    """A sync session that deletes the `known` codes, and any unknown codes that the service holds.

    `uploads` send everything that stays. `complete` has the effects of the completion, if any known code is deleted.
    `needs` are tags that must have dropped a code first (docs/planning.md 3.4). `first` means that no sweep of this
    state was approved before.
    """

    known: tuple[str, ...]
    uploads: tuple[Call, ...]
    complete: Call
    needs: tuple[Key, ...] = ()
    first: bool = False

    @property
    def requests(self) -> int:
        """The number of requests: the start, the uploads and the completion."""
        return len(self.uploads) + 2


def sweep_of(
    target: Aim, recorded: Mapping[Key, Recorded], numbers: Iterator[int], *, anyway: bool, first: bool
) -> Sweep | None:
    """Plan the sync session that deletes activity types. Return `None` if none leaves and `anyway` is false."""
    going = [leaving.row.key for leaving in target.leaving.values() if leaving.way is RemovalKind.SWEEP]
    if not (going or anyway):
        return None
    codes = tuple(key.name for key in going)
    staying = []
    for key, resource in target.desired.items():
        if is_type(key):
            row = recorded.get(key)
            staying.append(Item(effects=(_whole(resource, row),), new=is_new(row)))
    for row in target.staying:
        effect = Effect(key=row.key, fields=row.body.fields, status=Status.RELEASED, whole=True)
        staying.append(Item(effects=(effect,)))
    uploads = batches(numbers, UPLOAD_ACTIVITY_TYPES, staying)
    effects = tuple(Effect(key=key, status=Status.DELETED) for key in going)
    complete = call(numbers, COMPLETE_SYNC_SESSION, [Item(effects=effects)] if effects else [])
    # Desired tags whose rows have, or may have, a code that is deleted, drop it first (docs/planning.md 3.4).
    tags = ((key, recorded[key]) for key in target.desired if key.kind is Kind.TAG and key in recorded)
    carrying = (key for key, row in tags if row.doubtful or row.body.fields.get("defaultActivityTypeCode") in codes)
    return Sweep(codes, uploads, complete, tuple(carrying) if codes else (), first)


def is_type(key: Key) -> bool:
    return key.kind is Kind.ACTIVITY_TYPE
