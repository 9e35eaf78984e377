"""The aim of planning: desired resources, planned removals, notes. Values; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from syncengine.effects import Effect
from syncengine.errors import Diagnostic
from syncengine.project.schema import Ownership
from syncengine.resource import Body, Key, Kind, Recorded, Removal, Resource, Source, Status, Value


class Note(Struct, frozen=True, gc=False):
    """A remark of a plan that changes nothing. `kind`: create-only, ignored, kept, released, not-enabled, left-out."""

    key: Key
    kind: str
    message: str
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """The project's rules for removals. `deletes_tags`: the endpoint of deleteTag is configured."""

    tag_removal: Removal = Removal.FORGET
    activity_types: Ownership = Ownership.OWNED
    deletes_tags: bool = False


class RemovalKind(StrEnum):
    """How a recorded resource leaves."""

    FORGET = "forget"
    RETIRE = "retire"
    DELETE = "delete"
    CASCADE = "cascade"
    SWEEP = "sweep"


@dataclass(frozen=True, slots=True)
class PlannedRemoval:
    """A recorded resource that goes, and why. `taken_by`: the category of a cascade, the new name of a rename.

    `may_stay`: a cascade may not reach it, since it may have left the category; `otherwise` is how it leaves then.
    """

    row: Recorded
    way: RemovalKind
    reason: str | None = None
    taken_by: Key | None = None
    may_stay: bool = False
    otherwise: RemovalKind | None = None

    @property
    def own_way(self) -> RemovalKind | None:
        """Return how its own calls remove it; None if only the cascade of its category does."""
        if self.way is not RemovalKind.CASCADE:
            return self.way
        return self.otherwise if self.may_stay and self.otherwise is not RemovalKind.FORGET else None


@dataclass(slots=True)
class Aim:
    """The aim of planning.

    `desired`: the selected desired resources, their bodies rewritten to the requests of this plan; `renames` maps a new
    key to the recorded ones it replaces (one for a category); `staying` are recorded activity types that no manifest
    wants and that stay. `released`: rows to record as released without a request. `movers`: for each deleted category,
    the wanted tags whose calls must be true before; `cascades`: the members that it takes along. `aside`: resources
    that a quarantine leaves alone, each with the one that it waits for; `keeps_types` is one that keeps any activity
    type from being deleted.
    """

    desired: dict[Key, Resource] = field(default_factory=dict)
    renames: dict[Key, tuple[Key, ...]] = field(default_factory=dict)
    leaving: dict[Key, PlannedRemoval] = field(default_factory=dict)
    staying: list[Recorded] = field(default_factory=list)
    released: list[Recorded] = field(default_factory=list)
    movers: dict[Key, list[Key]] = field(default_factory=dict)
    cascades: dict[Key, list[PlannedRemoval]] = field(default_factory=dict)
    aside: dict[Key, Key] = field(default_factory=dict)
    keeps_types: Key | None = None
    notes: list[Note] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)


def may_be_held(row: Recorded) -> bool:
    """Whether the service may hold it: a deletion without a known outcome may not have happened."""
    return row.status is not Status.DELETED or row.doubtful


def is_private(row: Recorded) -> bool:
    """Whether only authorized members may read the tag."""
    return row.body.fields.get("visibility") == "PRIVATE"


CONTENT = ("description", "externalId", "url")


def shown(body: Body) -> Iterator[tuple[str, Value]]:
    """All that tells what a tag is about, besides its keywords."""
    yield from ((name, value) for name in CONTENT if (value := body.fields.get(name)))
    yield from ((f"metadata {name}", value) for name, value in body.metadata.items())


def row_to_compare(
    key: Key, recorded: Mapping[Key, Recorded], renames: Mapping[Key, tuple[Key, ...]]
) -> Recorded | None:
    """The row that a desired resource is compared with: its own, or in a category's rename the one it takes over."""
    row = recorded.get(key)
    own = row if row is not None and may_be_held(row) else None
    if key.kind is not Kind.CATEGORY or key not in renames:
        return own
    old = recorded[renames[key][0]]
    if own is None:
        return replace(old, key=key, status=Status.ACTIVE)
    return replace(own, server_id=old.server_id, body=Body(fields={**old.body.fields, **own.body.fields}))


def release(row: Recorded) -> Effect:
    """The record of a row that stays on the service and is no longer ours to change."""
    return Effect(key=row.key, status=Status.RELEASED)
