"""The aim of planning as values: desired resources, planned removals and notes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from syncengine.effects import Effect
from syncengine.errors import Diagnostic
from syncengine.project.model import Ownership
from syncengine.resource import Body, Key, Kind, Recorded, Removal, Resource, Source, Status, Value


class Note(Struct, frozen=True, gc=False):
    """A remark in a plan that changes nothing. Its `kind` is a word such as create-only, ignored, kept or left-out."""

    key: Key
    kind: str
    message: str
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """The project's rules for removals. `deletes_tags` is true when an endpoint for deleteTag is configured."""

    tag_removal: Removal = Removal.FORGET
    activity_types: Ownership = Ownership.OWNED
    deletes_tags: bool = False


class RemovalKind(StrEnum):
    """The way in which a recorded resource is removed."""

    FORGET = "forget"
    RETIRE = "retire"
    DELETE = "delete"
    CASCADE = "cascade"
    SWEEP = "sweep"


class RemovalCause(StrEnum):
    """The cause of a removal, by which plans are compared; its sentence only explains it."""

    UNDECLARED = "undeclared"
    REMOVED_LINE = "removed-line"
    RENAMED = "renamed"
    CATEGORY_DELETED = "category-deleted"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class PlannedRemoval:
    """A recorded resource that a plan removes, and why. `reason` explains the `cause` in a sentence.

    `taken_by` is the category of a cascade, or the new name of a rename. `may_stay` is true when a cascade may miss the
    resource because it may have left the category; `otherwise` is the way in which it is removed then.
    """

    row: Recorded
    way: RemovalKind
    cause: RemovalCause = RemovalCause.UNDECLARED
    reason: str = "no manifest declares it"
    taken_by: Key | None = None
    may_stay: bool = False
    otherwise: RemovalKind | None = None

    @property
    def own_way(self) -> RemovalKind | None:
        """The way in which the resource is removed by itself, or `None` when only its category's cascade removes it."""
        if self.way is not RemovalKind.CASCADE:
            return self.way
        return self.otherwise if self.may_stay and self.otherwise is not RemovalKind.FORGET else None


@dataclass(slots=True)
class Aim:
    """The aim of planning.

    `desired` are the selected desired resources, with the bodies that this plan requests. `renames` maps a new key to
    the recorded keys that it replaces (a single key for a category). `staying` are recorded activity types that no
    manifest declares and that stay on the service. `swept_along` are those that are no reason for a sweep, but that a
    sweep for another reason deletes. `released` are rows to record as released without a request. `movers` maps each
    deleted category to the desired tags whose calls must be acknowledged first, and `cascades` to the members deleted
    with it. `aside` maps each resource that a quarantine leaves alone to the quarantined resource that it waits for.
    `keeps_types` is a quarantined resource that keeps all activity types from being deleted.
    """

    desired: dict[Key, Resource] = field(default_factory=dict)
    renames: dict[Key, tuple[Key, ...]] = field(default_factory=dict)
    leaving: dict[Key, PlannedRemoval] = field(default_factory=dict)
    staying: list[Recorded] = field(default_factory=list)
    swept_along: dict[Key, PlannedRemoval] = field(default_factory=dict)
    released: list[Recorded] = field(default_factory=list)
    movers: dict[Key, list[Key]] = field(default_factory=dict)
    cascades: dict[Key, list[PlannedRemoval]] = field(default_factory=dict)
    aside: dict[Key, Key] = field(default_factory=dict)
    keeps_types: Key | None = None
    notes: list[Note] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)


def may_be_held(row: Recorded) -> bool:
    """Return whether the service may hold `row`: a deletion whose outcome is unknown may not have happened."""
    return row.status is not Status.DELETED or row.doubtful


def is_without_category(row: Recorded) -> bool:
    """Return whether `row` is a tag at rest of whose category no manifest has said anything that still holds.

    People may have put it into any category since it was sent.
    """
    is_at_rest = row.status is Status.ACTIVE and row.confirmed and not row.doubtful
    return row.key.kind is Kind.TAG and is_at_rest and not row.category_references()


def is_private(row: Recorded) -> bool:
    """Return whether `row` counts as a private tag, which only authorized members can read.

    A tag of unknown visibility, such as an adopted one, may be private, so it counts as one.
    """
    return row.key.kind is Kind.TAG and may_be_held(row) and row.body.fields.get("visibility") != "PUBLIC"


CONTENT = ("description", "externalId", "url")


def shown(body: Body) -> Iterator[tuple[str, Value]]:
    """Yield the name and value of all that describes a tag apart from its keywords."""
    yield from ((name, value) for name in CONTENT if (value := body.fields.get(name)))
    yield from ((f"metadata {name}", value) for name, value in body.metadata.items())


def row_to_compare(
    key: Key, recorded: Mapping[Key, Recorded], renames: Mapping[Key, tuple[Key, ...]]
) -> Recorded | None:
    """Return the row to compare the desired resource `key` with. A renamed category takes over its former row."""
    row = recorded.get(key)
    own = row if row is not None and may_be_held(row) else None
    if key.kind is not Kind.CATEGORY or key not in renames:
        return own
    old = recorded[renames[key][0]]
    if own is None:
        return replace(old, key=key, status=Status.ACTIVE)
    return replace(own, server_id=old.server_id, body=Body(fields={**old.body.fields, **own.body.fields}))


def release(row: Recorded) -> Effect:
    """Return the effect that records `row` as released: it stays on the service and is no longer managed."""
    return Effect(key=row.key, status=Status.RELEASED)
