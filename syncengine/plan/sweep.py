"""Plan the sync session that deletes activity types (docs/planning.md 3). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from syncengine.effects import Effect
from syncengine.plan.aim import Aim, RemovalKind
from syncengine.plan.calls import Call, Item
from syncengine.plan.diff import is_new
from syncengine.plan.stages import batches, call
from syncengine.resource import Key, Kind, Recorded, Resource, Status
from syncengine.service.operations import COMPLETE_SYNC_SESSION, UPLOAD_ACTIVITY_TYPES


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
    going = [leaving for leaving in target.leaving.values() if leaving.way is RemovalKind.SWEEP]
    if not (going or anyway):
        return None
    codes = tuple(leaving.row.key.name for leaving in going)
    staying = [_staying(resource, recorded.get(key)) for key, resource in target.desired.items() if is_type(key)]
    staying += [_release(row) for row in target.staying]
    uploads = batches(numbers, UPLOAD_ACTIVITY_TYPES, staying)
    effects = tuple(Effect(key=leaving.row.key, status=Status.DELETED) for leaving in going)
    complete = call(numbers, COMPLETE_SYNC_SESSION, [Item(effects=effects)] if effects else [])
    return Sweep(codes, uploads, complete, _still_carrying(codes, target, recorded), first)


def is_type(key: Key) -> bool:
    return key.kind is Kind.ACTIVITY_TYPE


def _staying(resource: Resource, row: Recorded | None) -> Item:
    effect = Effect(
        key=resource.key,
        fields=resource.body.fields,
        cleared=tuple(name for name in (row.body.fields if row else ()) if name not in resource.body.fields),
        status=Status.ACTIVE,
        whole=True,
        source=resource.source,
        protect=resource.protect,
    )
    return Item(effects=(effect,), new=is_new(row))


def _release(row: Recorded) -> Item:
    return Item(effects=(Effect(key=row.key, fields=row.body.fields, status=Status.RELEASED, whole=True),))


def _still_carrying(codes: Iterable[str], target: Aim, recorded: Mapping[Key, Recorded]) -> tuple[Key, ...]:
    """Return the desired tags whose rows have, or may have, a code that is deleted (docs/planning.md 3.4)."""
    going = set(codes)
    if not going:
        return ()
    rows = ((key, recorded[key]) for key in target.desired if key.kind is Kind.TAG and key in recorded)
    return tuple(key for key, row in rows if row.doubtful or row.body.fields.get("defaultActivityTypeCode") in going)
