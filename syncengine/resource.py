"""The basic types: kinds, keys, bodies, desired resources, recorded rows. Pure values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from glob import escape
from typing import NamedTuple

from msgspec import Struct, field

from syncengine.errors import Diagnostic, Severity, with_row
from syncengine.errors import Row as Row

Value = str | bool | int | tuple[str, ...]
"""The value of a field: text, boolean, milliseconds since the epoch, or a list of texts."""


def is_blank(value: Value | None) -> bool:
    """Return whether a value says nothing: none at all, no item, or a text of spaces alone."""
    return value in (None, ()) or (isinstance(value, str) and not value.strip())


class Kind(StrEnum):
    """The kind of a resource, which is the first part of its address."""

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
        """Return the key of the address `kind/name`. Raise `ValueError` for an unknown kind or a missing name."""
        kind, slash, name = address.partition("/")
        if not slash or not name:
            raise ValueError(f"{address!r} is not an address: write KIND/NAME")
        if kind not in {each.value for each in Kind}:
            raise ValueError(f"{address!r} is not an address: its kind is none of {', '.join(Kind)}")
        return cls(Kind(kind), name)


def exactly(globs: Iterable[str], keys: Iterable[Key]) -> tuple[str, ...]:
    """Return globs of addresses, in which one that is the address of a resource in `keys` means only that resource."""
    globs = tuple(globs)
    addresses = set(map(str, keys)) if globs else ()
    return tuple(escape(each) if each in addresses else each for each in globs)


def selector(globs: Iterable[str], keys: Iterable[Key]) -> Callable[[Key], bool]:
    """Return a function that tells whether any of the globs, read as `exactly` reads them, selects a key."""
    names = tuple(globs)
    patterns = exactly(names, keys)
    return lambda key: str(key) in names or any(fnmatchcase(str(key), pattern) for pattern in patterns)


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
    """Return a diagnostic about a resource, at its place. The message names its data row, if it was generated."""
    file, line, data = source or (None, None, None)
    message = with_row(message, data)
    return Diagnostic(severity=severity, code=code, message=message, file=file, line=line, address=str(key), data=data)


class Body(Struct, frozen=True, gc=False):
    """The content of one resource. Only declared values are present.

    `fields` has the service's field names, except that a tag's `category` is the externalId of a category, and
    timestamps are milliseconds since the epoch. `keywords` are a tag's *effective* keywords (docs/planning.md 2.3): the
    declared keywords in order, without repeats, and the tag's name unless it is excluded. The keywords of a category
    are an ordinary field.
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


LET_GO = frozenset({Status.RELEASED, Status.RETIRED})
"""The statuses of what the service may keep for ever, but this project no longer manages."""


class Resource(Struct, frozen=True, gc=False, array_like=True):
    """A declared resource with defaults applied, its options for the planner, and its place.

    `column` is the column of its first key; plans and states keep only the line. When `sound` is false, only key,
    place, category and former names are known, and nothing is planned. `status` differs from active only in the undo of
    a run, which first restores the body, and then releases or retires the resource as before the run. A tag that is
    `outside` leaves any category that people may have put it in, before the plan deletes one (`plan/aim.py`).
    """

    key: Key
    body: Body
    source: Source
    protect: bool = False
    previously: tuple[str, ...] = ()
    column: int = 1
    sound: bool = True
    status: Status = Status.ACTIVE
    outside: bool = False


ALTERNATIVES: Mapping[str, str] = {"category": "tagCategoryId", "tagCategoryId": "category"}
"""The two alternative fields for a tag's category, each mapped to the other."""
ANY_CATEGORY = "*"
"""The reference of a tag whose category is unknown, since it was recorded without one and never sent with one."""


def category_references(fields: Mapping[str, Value]) -> tuple[str, ...]:
    """Return the references to a tag's category in its fields: `category/EXTERNAL_ID` or `id/SERVER_ID`."""
    name, by_id = fields.get("category"), fields.get("tagCategoryId")
    references = (f"category/{name}",) if name else ()
    return (*references, f"id/{by_id}") if by_id else references


class Removal(StrEnum):
    """The way in which a tag is removed."""

    FORGET = "forget"
    RETIRE = "retire"
    DELETE = "delete"


class Removed(Struct, frozen=True, gc=False, array_like=True):
    """An entry in the `removed` section of a manifest."""

    key: Key
    how: Removal
    source: Source
    reason: str | None = None
    column: int = 1


IMPORT = "import-"
"""The prefix of run ids of `state import`, whose rows are doubtful without any call being in doubt."""
REBUILD = "rebuild-"
"""The prefix of run ids of `state rebuild`, whose rows are doubtful like imported rows."""
RESTORE = "restore-"
"""The prefix of run ids of `state restore`, whose rows are doubtful like imported rows."""


class Recorded(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """A row of the cached prior state: the most that the service may hold of one of our resources.

    `doubtful` means that a call for the resource failed or has no known outcome. `confirmed` means that a call with the
    whole resource was acknowledged since it was last deleted. A DELETED and doubtful row may or may not be gone.
    `former_categories` are references to categories that a tag may still be in, because no call that moves it away was
    acknowledged yet, or `ANY_CATEGORY`. `run` and `plan` are the ids of the last writer.
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
        """Return references to all categories in which the service may hold this tag."""
        return (*category_references(self.body.fields), *self.former_categories)


def place_of(resource: Resource | None, row: Recorded | None) -> Source | None:
    """Return the place where a resource is declared, or was when it was recorded."""
    return resource.source if resource is not None else row.source if row is not None else None
