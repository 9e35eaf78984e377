"""The nouns: kinds, keys, bodies, desired resources, recorded rows. Values only; pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field

from syncengine.errors import Diagnostic, Severity, with_row
from syncengine.errors import Row as Row

Value = str | bool | int | tuple[str, ...]
"""A field's value: text, flag, milliseconds since epoch, or a list of texts."""


class Kind(StrEnum):
    """The value is the first part of an address."""

    __hash__ = str.__hash__  # an enum's own is a Python function, and keys are hashed a dozen times a tag

    CATEGORY = "category"
    ACTIVITY_TYPE = "activity-type"
    TAG = "tag"


class Key(NamedTuple):
    """The identity of a resource: a tag's name, a category's externalId, an activity type's code."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return self.kind + "/" + self.name

    @classmethod
    def parse(cls, address: str) -> Key:
        """Read `kind/name`; ValueError when the kind is unknown or the name is missing."""
        kind, slash, name = address.partition("/")
        if not slash or not name:
            raise ValueError(f"{address!r} is not an address: KIND/NAME")
        return cls(Kind(kind), name)


class Source(NamedTuple):
    """The place where a resource is declared; `file` is relative to the project's folder, `line` counts from 1."""

    file: str
    line: int
    data: Row | None = None

    def __str__(self) -> str:
        return with_row(f"{self.file}:{self.line}", self.data)


def found_at(
    source: Source | None, key: Key, code: str, message: str, severity: Severity = Severity.ERROR
) -> Diagnostic:
    """A diagnostic about a resource, at its place; the message names the row that it was made of."""
    file, line, data = source or (None, None, None)
    message = with_row(message, data)
    return Diagnostic(severity=severity, code=code, message=message, file=file, line=line, address=str(key), data=data)


class Body(Struct, frozen=True, gc=False):
    """The desired content of one resource.

    `fields` uses the interface's names, except that a tag's `category` is the externalId of a category
    and timestamps are milliseconds since epoch. `keywords` are a tag's *effective* keywords (docs/planning.md 2.3):
    the declared ones, without repeats and in their order, and the tag's name unless it is excluded.
    A category's keywords are an ordinary field. Only what was declared is present.
    """

    fields: Mapping[str, Value] = field(default_factory=dict)
    keywords: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


class Status(StrEnum):
    """The status of a recorded resource, as last requested from the service."""

    ACTIVE = "active"
    RELEASED = "released"
    RETIRED = "retired"
    DELETED = "deleted"


class Resource(Struct, frozen=True, gc=False, array_like=True):
    """One resource as its file declares it, over its defaults, with its options for the planner and its place.

    `column` is that of its first key: a plan and a state keep the line alone. Of one that is not `sound` only key,
    place, category and former names are known; none of those is ever planned. `status` is another one than active only
    where a run is undone: it is brought to its body, and then let go or retired as it was before.
    """

    key: Key
    body: Body
    source: Source
    protect: bool = False
    previously: tuple[str, ...] = ()
    column: int = 1
    sound: bool = True
    status: Status = Status.ACTIVE


ALTERNATIVES: Mapping[str, str] = {"category": "tagCategoryId", "tagCategoryId": "category"}
"""Two ways to say in which category a tag is."""


def category_references(fields: Mapping[str, Value]) -> tuple[str, ...]:
    """References to a tag's category in its fields: `category/EXTERNAL_ID` or `id/SERVER_ID`."""
    name, by_id = fields.get("category"), fields.get("tagCategoryId")
    references = (f"category/{name}",) if name else ()
    return (*references, f"id/{by_id}") if by_id else references


class Removal(StrEnum):
    """How a tag leaves."""

    FORGET = "forget"
    RETIRE = "retire"
    DELETE = "delete"


class Removed(Struct, frozen=True, gc=False, array_like=True):
    """A line of a manifest's `removed` section."""

    key: Key
    how: Removal
    source: Source
    reason: str | None = None
    column: int = 1


IMPORT = "import-"
"""What the id of a run of `state import` begins with: what it wrote is doubtful, and no call of ours is why."""
REBUILD = "rebuild-"
"""The same of `state rebuild`."""
RESTORE = "restore-"
"""The same of `state restore`."""


class Recorded(Struct, frozen=True, gc=False):
    """One row of the cached prior state: the most that the service may hold of a resource of ours.

    `doubtful`: some call that touched it has no known outcome, or failed. `confirmed`: some call that carried all of it
    was acknowledged since it was last deleted. A row that is DELETED and doubtful may or may not be gone.
    `former_categories` are references to categories that a tag may still be in, since no call that moves it out was
    acknowledged yet. `run` and `plan` name the last writer.
    """

    key: Key
    body: Body = field(default_factory=Body)
    status: Status = Status.ACTIVE
    doubtful: bool = False
    confirmed: bool = False
    server_id: str | None = None
    source: Source | None = None
    protect: bool = False
    former_categories: tuple[str, ...] = ()
    run: str | None = None
    plan: str | None = None

    def category_references(self) -> tuple[str, ...]:
        """Every category that the service may hold this tag in, as references."""
        return (*category_references(self.body.fields), *self.former_categories)
