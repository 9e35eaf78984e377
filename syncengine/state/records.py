"""What a state records beside its rows, as values: facts, refusals, quarantine and undone changes. Pure.

What planning reads of a state is here too: commands that read no state do not import SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from syncengine.content import sha256_of
from syncengine.resource import Body, Key, Kind, Recorded, Status
from syncengine.state.codec import RemovalLine, to_json
from syncengine.state.losses import ApprovalRecord


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a state. `commit` is the last applied commit; `generation` changes with every write.

    `ancestors` are the stored commits before `commit`. `sources` is the number of rows of each data source, by its
    identity, when it was last applied. `limits` are the limits of the last complete apply, as written in the project
    file.
    """

    lineage: str
    base_url: str | None = None
    team: str | None = None
    owns_activity_types: bool = False
    commit: str | None = None
    generation: str | None = None
    ancestors: tuple[str, ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)


class StateReader(Protocol):
    """What planning reads of a state, as the methods of `State` do. A missing state is empty, with `exists` false."""

    exists: bool

    def facts(self) -> Facts: ...
    def rows(self, kind: Kind | None = None) -> Iterator[Recorded]: ...
    def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]: ...
    def removals(self, since: float) -> list[RemovalLine]: ...
    def approvals(self) -> list[ApprovalRecord]: ...
    def refusals(self) -> dict[Key, Refusal]: ...
    def quarantine(self) -> list[QuarantineRecord]: ...
    def undone(self) -> list[UndoneChange]: ...


REMOVAL = "removal/"
"""The prefix of a refused removal's content. The action follows it: retire, delete or sweep."""

LONGEST_WORDS = 500
"""The number of characters of the service's message that are stored."""


class Refusal(Struct, frozen=True, gc=False, kw_only=True):
    """The refusals of one resource since it was last applied.

    `times` is the number of refused runs; `since` and `at` are the times of the first and the last refusal, in seconds
    since the epoch. `message` is the service's message at the last refusal, `content` the digest of the refused content
    (`content_of`). `is_last`: no call for the resource has been sent since, so that its outcome is certain.
    """

    key: Key
    times: int
    since: float
    at: float
    message: str
    content: str
    is_last: bool = True


class QuarantineRecord(Struct, frozen=True, gc=False, kw_only=True):
    """A resource that `state quarantine` set aside at the time `at`.

    `until` is in seconds since the epoch, or `None` without an end. `content` is the digest of the refused content, the
    only one that is set aside.
    """

    key: Key
    reason: str
    until: float | None
    at: float
    content: str


def content_of(body: Body) -> str:
    """Return the digest of a resource's declared content, which does not depend on its place or order."""
    about = {"fields": body.fields, "keywords": sorted(body.keywords), "metadata": body.metadata}
    return sha256_of(to_json(about))[:32]


NO_REFUSALS: Mapping[Key, Refusal] = {}


GONE, DECLARED = "gone", "declared"
"""The single part of an undeclared resource, and a part that every declared resource has."""

PUBLIC = sha256_of(to_json(["field", "visibility", "PUBLIC"]))[:16]
"""The digest of a part that tells nothing: a row says that its tag is public where its manifest is silent."""


class UndoneChange(NamedTuple):
    """A change of a resource by `run`, which was undone by the run `undone_by`.

    `marks` are the digests of parts, separated by spaces, with `+` before added parts and `-` before removed ones.
    """

    key: Key
    marks: str
    run: str
    undone_by: str

    def is_made_by(self, body: Body | None, *, protect: bool | None = None) -> bool:
        """Return whether content (`None` if absent) agrees with every mark. A change without marks makes nothing."""
        parts, marks = parts_of(body, protect), [mark for mark in self.marks.split() if mark[1:] != PUBLIC]
        return marks != [] and all((mark[1:] in parts) is (mark[0] == "+") for mark in marks)

    def is_made_by_row(self, row: Recorded | None) -> bool:
        """Return whether a recorded row, or its absence, agrees with every mark of the change."""
        return self.is_made_by(_body(row), protect=row.protect if row else None)


@dataclass(frozen=True, slots=True)
class UndoneRecord:
    """The undone changes to write when a run begins: `lifted` ones are no longer undone, `changes` are newly undone."""

    lifted: Collection[UndoneChange] = ()
    changes: Sequence[UndoneChange] = ()


def made_of(before: Recorded | None, after: Recorded | None) -> str:
    """Return the marks of a change: digests of the parts that a run added to a row (`+`) or removed (`-`)."""
    old, new = (parts_of(_body(row), row.protect if row else None) for row in (before, after))
    return " ".join([*(f"+{part}" for part in sorted(new - old)), *(f"-{part}" for part in sorted(old - new))])


def _body(row: Recorded | None) -> Body | None:
    return row.body if row is not None and row.status is Status.ACTIVE else None


def parts_of(body: Body | None, protect: bool | None) -> frozenset[str]:
    """Return the digests of all parts of a resource. `protect` is left out if it is `None` (unknown)."""
    if body is None:
        return frozenset([GONE])
    return frozenset([DECLARED, *(sha256_of(part)[:16] for part in _parts(body, protect))])


def _parts(body: Body, protect: bool | None) -> Iterator[str]:
    values: Mapping[str, Mapping[str, Any]] = {
        "field": {name: value for name, value in body.fields.items() if value not in ("", ())},
        "metadata": body.metadata,
    }
    for of, by_name in values.items():
        for name, value in by_name.items():
            yield to_json([of, name, value])
    yield from (to_json(["keyword", keyword]) for keyword in body.keywords)
    if protect is not None:
        yield to_json(["protect", protect])
