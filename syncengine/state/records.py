"""What a state records, as values: facts, calls, losses and approvals, refusals, quarantine, undone changes. Pure.

What planning reads of a state is here too: commands that read no state do not import SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from syncengine.content import sha256_of
from syncengine.effects import Effect
from syncengine.resource import ALTERNATIVES, Body, Key, Kind, Recorded, Status, is_blank
from syncengine.state.codec import KINDS, RemovalLine, to_json

GATE_SECONDS = 86_400.0
"""The seconds for which the gate counts losses that nobody approved (docs/planning.md 5)."""

LEAVES_AS: Mapping[Kind, str] = MappingProxyType(
    {Kind.CATEGORY: "categories", Kind.ACTIVITY_TYPE: "activityTypes", Kind.TAG: "tags"}
)
"""The kinds of loss that are whole resources, by the kind of the resource."""

STRENGTH: Mapping[str, int] = MappingProxyType({"forget": 0, "retire": 1, "delete": 2})
"""The actions by how much they remove: the approval of a deletion also covers a retirement of the same resource."""

GONE: Mapping[str, frozenset[Status]] = MappingProxyType(
    {
        "forget": frozenset({Status.RELEASED, Status.RETIRED, Status.DELETED}),
        "retire": frozenset({Status.RETIRED, Status.DELETED}),
        "delete": frozenset({Status.DELETED}),
    }
)


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that a plan removes. `of` is the total in which it is counted: tags, keywords, …"""

    of: str
    key: Key
    what: str = ""

    def covers(self, other: Loss) -> bool:
        """Return whether an approval of this loss also approves the `other` loss."""
        if (self.of, self.key) != (other.of, other.key):
            return False
        is_stronger = STRENGTH.get(other.what, 9) <= STRENGTH.get(self.what, -1)
        return self.what == other.what or is_stronger or (self, other) == (EMPTY_SWEEP, SWEEP)


RULED = "rules"
"""The `of` of a change for which a rule asks approval. Its `what` is the rule's name, then a digest or an action."""


def content_digest(body: Body) -> str:
    """Return the digest of a body, which does not depend on the order of its keywords.

    It leaves out that a tag is public, since a row says so where the manifest is silent.
    """
    fields = sorted((name, value) for name, value in body.fields.items() if (name, value) != ("visibility", "PUBLIC"))
    parts = (fields, sorted(body.keywords), sorted(body.metadata.items()))
    return sha256_of(repr(parts))[:20]


def _is_made(loss: Loss, row: Recorded | None) -> bool:
    """Return whether a change that needed approval by a rule was certainly made."""
    content = loss.what.rpartition(" ")[2]
    if content in GONE:
        return row is None or (not row.doubtful and row.status in GONE[content])
    is_there = row is not None and row.status is Status.ACTIVE and row.confirmed and not row.doubtful
    return row is not None and is_there and content_digest(row.body) == content


FORMER = "visibility of the former name "


def opened_as(former: str) -> str:
    """Return the `what` of the loss when a renamed tag becomes public that was private under its former name.

    It contains a digest of the former name, because `state erase` does not search for names here.
    """
    return f"{FORMER}{sha256_of(former)[:20]}"


SWEPT = "everything that this project does not know"
SWEEP = Loss("sweep", Key(Kind.ACTIVITY_TYPE, ""), SWEPT)
"""The loss of unrecorded activity types that completing the first sync session causes."""
EMPTY_SWEEP = Loss("sweep", Key(Kind.ACTIVITY_TYPE, ""), "every activity type, since nothing is uploaded")
"""The loss of unrecorded activity types that completing an empty sync session causes."""


def leaves(loss: Loss) -> bool:
    """Return whether the loss is a whole resource rather than a part of one."""
    return loss.of in LEAVES_AS.values()


def holds(row: Recorded, loss: Loss) -> bool:
    """Return whether a row still has the part that the loss removes."""
    body = row.body
    if loss.of == "fields":
        names = (loss.what, ALTERNATIVES.get(loss.what, loss.what))
        return any(not is_blank(body.fields.get(name)) for name in names)
    if loss.of == "opened":
        return body.fields.get("visibility") != "PUBLIC"
    return loss.what in body.keywords if loss.of == "keywords" else not is_blank(body.metadata.get(loss.what))


def is_settled(loss: Loss, row: Recorded | None, *, owns_activity_types: bool) -> bool:
    """Return whether the removal is complete: the lost thing is certainly gone."""
    if loss == SWEEP:
        return owns_activity_types
    if loss == EMPTY_SWEEP:
        return False  # no row tells; its approval ends with its run, or with the first whole plan without such a sweep
    if loss.of == RULED:
        return _is_made(loss, row)
    if loss.of == "opened" and loss.what.startswith(FORMER):
        is_there = row is not None and row.status is Status.ACTIVE and row.confirmed and not row.doubtful
        return row is not None and is_there and row.body.fields.get("visibility") == "PUBLIC"
    if row is None or row.doubtful:
        return row is None
    if leaves(loss):
        unfinished = row.status is Status.RETIRED and bool(row.body.keywords)
        return row.status in GONE.get(loss.what, ()) and not unfinished
    is_gone = row.status in GONE["forget"] and loss.of != "opened"  # opening a released tag takes it back
    return is_gone or not holds(row, loss)


class ApprovalRecord(NamedTuple):
    """An approval that an apply began with: the losses that it covers, and those that have not settled yet.

    `run` and `plan` are the first to have used it. `used` is the time at which it was used up; while it is `None`,
    the approval covers the remaining losses.
    """

    text: str
    run: str
    plan: str | None
    at: float
    covers: tuple[Loss, ...]
    remaining: tuple[Loss, ...]
    used: float | None = None


@dataclass(frozen=True, slots=True)
class Approved:
    """The removals of a plan when its apply begins, and the approvals of them.

    `uses` are the losses that each approval covers. `touched` are the keys of all changes of the plan. `is_whole`: the
    plan has no selection, so that nobody wants other resources removed, except those `set_aside`. `taken_back` is the
    run that the plan undoes as a whole, whose approvals end as well.
    """

    uses: Mapping[str, tuple[Loss, ...]]
    losses: frozenset[Loss] = frozenset()
    touched: frozenset[Key] = frozenset()
    is_whole: bool = False
    set_aside: frozenset[Key] = frozenset()
    taken_back: str | None = None

    def asks_for(self, loss: Loss) -> bool:
        return loss in self.losses or any(loss.covers(each) for each in self.losses if each.key == loss.key)

    def drops(self, loss: Loss, run: str) -> bool:
        """Return whether the plan no longer asks for a removal approved when `run` began, so that its approval ends."""
        is_whole = self.is_whole or run == self.taken_back
        is_left_alone = not is_whole or loss.key in self.set_aside
        return not self.asks_for(loss) and (loss.key in self.touched or not is_left_alone)


def to_list(losses: Iterable[Loss]) -> list[list[str]]:
    return [[loss.of, loss.key.kind.value, loss.key.name, loss.what] for loss in losses]


def from_lists(lists: Iterable[Sequence[str]]) -> Iterator[Loss]:
    """Yield the losses that `to_list` encoded. Raise `ValueError` or `LookupError` for damaged ones."""
    for of, kind, name, what in lists:
        yield Loss(of, Key(KINDS[kind], name), what)


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


LAST_SECOND = 253_402_300_799
"""The last second of the year 9999, in seconds since the epoch."""
Seconds = Annotated[float, msgspec.Meta(ge=0, le=LAST_SECOND)]


class Refusal(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The refusals of one resource since it was last applied.

    `times` is the number of refused runs; `since` and `at` are the times of the first and the last refusal, in seconds
    since the epoch. `message` is the service's message at the last refusal, `content` the digest of the refused content
    (`content_of`). `is_last`: no call for the resource has been sent since, so that its outcome is certain.
    """

    key: Key
    times: Annotated[int, msgspec.Meta(ge=1)]
    since: Seconds
    at: Seconds
    message: str
    content: str
    is_last: bool = msgspec.field(default=True, name="last")


class QuarantineRecord(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A resource that `state quarantine` set aside at the time `at`.

    `until` is in seconds since the epoch, or `None` without an end. `content` is the digest of the refused content, the
    only one that is set aside.
    """

    key: Key
    reason: str
    until: Seconds | None = None
    at: Seconds
    content: str


def content_of(body: Body) -> str:
    """Return the digest of a resource's declared content, which does not depend on its place or order."""
    about = {"fields": body.fields, "keywords": sorted(body.keywords), "metadata": body.metadata}
    return sha256_of(to_json(about))[:32]


NO_REFUSALS: Mapping[Key, Refusal] = {}


UNDECLARED, DECLARED = "gone", "declared"
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
        return frozenset([UNDECLARED])
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


LANDING_SECONDS = 60.0
"""The seconds that a call may take to land if the project file does not set a bound."""


class Attempt(Struct, frozen=True, gc=False):
    """A call as sent, with its effects. `ids` maps each category that the call names to the server's id.

    `survivors` are the codes uploaded in a sync session, if the call completes that session.
    """

    operation: str
    effects: tuple[Effect, ...] = msgspec.field(name="leaves")  # as it is called in states
    ids: Mapping[str, str] = msgspec.field(default_factory=dict)
    survivors: tuple[str, ...] = ()


class Outstanding(NamedTuple):
    """An attempt that may be executed for `remaining` more seconds."""

    run: str
    call: str
    attempt: Attempt
    remaining: float


@dataclass(frozen=True, slots=True)
class PublishedCalls:
    """The announced calls of a run, by name, and effects without calls that are recorded together with them."""

    attempts: Mapping[str, Attempt] = field(default_factory=dict)
    records: Sequence[Effect] = ()
    _by_key: Mapping[Key, list[Effect]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        by_key: dict[Key, list[Effect]] = {}
        for attempt in self.attempts.values():
            for effect in attempt.effects:
                by_key.setdefault(effect.key, []).append(effect)
        object.__setattr__(self, "_by_key", by_key)

    def covers(self, attempts: Iterable[Attempt]) -> bool:
        """Return whether the published calls include every effect of `attempts`."""
        effects = (effect for attempt in attempts for effect in attempt.effects)
        return all(
            any(effect is each or effect == each for each in self._by_key.get(effect.key, ())) for effect in effects
        )


@dataclass(frozen=True, slots=True)
class Settlement:
    """The effects of a call that a 2xx acknowledged, all or some of them, and the ids that the service assigned."""

    call: str
    effects: tuple[Effect, ...]
    server_ids: Mapping[Key, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallFailure:
    """The keys of a call that were refused, or whose outcome will never be known.

    `refused` maps the keys that the service itself refused to the refused content (`records.content_of`).
    """

    call: str
    keys: tuple[Key, ...]
    message: str
    refused: Mapping[Key, str] = field(default_factory=dict)
