"""Losses and the approvals of them, as a state keeps them. Values only; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from syncengine.document.digest import sha256_of
from syncengine.resource import ALTERNATIVES, Body, Key, Kind, Recorded, Status
from syncengine.state.codec import KINDS

LEAVES_AS: Mapping[Kind, str] = MappingProxyType(
    {Kind.CATEGORY: "categories", Kind.ACTIVITY_TYPE: "activityTypes", Kind.TAG: "tags"}
)
"""The kinds of loss that are whole resources."""

STRENGTH: Mapping[str, int] = MappingProxyType({"forget": 0, "retire": 1, "delete": 2})
"""How much an action takes: who approved a deletion approved a retirement of the same thing as well."""

GONE: Mapping[str, frozenset[Status]] = MappingProxyType(
    {
        "forget": frozenset({Status.RELEASED, Status.RETIRED, Status.DELETED}),
        "retire": frozenset({Status.RETIRED, Status.DELETED}),
        "delete": frozenset({Status.DELETED}),
    }
)


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that a plan takes away. `of` is the total that it counts in: tags, keywords, …"""

    of: str
    key: Key
    what: str = ""

    def covers(self, other: Loss) -> bool:
        """Whether an approval of this one is good for the other."""
        if (self.of, self.key) != (other.of, other.key):
            return False
        return self.what == other.what or STRENGTH.get(other.what, 9) <= STRENGTH.get(self.what, -1)


RULED = "rules"
"""A change that a rule asks an approval for: what it makes, or the action that takes it away, behind the rule's name.
"""


def content_digest(body: Body) -> str:
    """The digest of a body, in whatever order its keywords stand."""
    parts = (sorted(body.fields.items()), sorted(body.keywords), sorted(body.metadata.items()))
    return sha256_of(repr(parts))[:20]


def _is_made(loss: Loss, row: Recorded | None) -> bool:
    """Whether a change that a rule asked about was made, without a doubt."""
    content = loss.what.rpartition(" ")[2]
    if content in GONE:
        return row is None or (not row.doubtful and row.status in GONE[content])
    is_there = row is not None and row.status is Status.ACTIVE and row.confirmed and not row.doubtful
    return row is not None and is_there and content_digest(row.body) == content


FORMER = "visibility of the former name "


def opened_as(former: str) -> str:
    """The part of a new name that is lost where it opens a tag that was private under a former one.

    A digest, since `state erase` of the former name looks for no names here.
    """
    return f"{FORMER}{sha256_of(former)[:20]}"


SWEPT = "everything that this project does not know"
SWEEP = Loss("sweep", Key(Kind.ACTIVITY_TYPE, ""), SWEPT)
"""The loss of activity types that nobody recorded, by completing a sync session."""


def leaves(loss: Loss) -> bool:
    """Whether it is a whole resource, not a part of one that stays."""
    return loss.of in LEAVES_AS.values()


def holds(row: Recorded, loss: Loss) -> bool:
    """Whether a row still has the part of it that was to go."""
    body = row.body
    if loss.of == "fields":
        names = (loss.what, ALTERNATIVES.get(loss.what, loss.what))
        return any(body.fields.get(name) not in (None, "", ()) for name in names)
    if loss.of == "opened":
        return body.fields.get(loss.what) == "PRIVATE"
    return loss.what in (body.keywords if loss.of == "keywords" else body.metadata)


def is_settled(loss: Loss, row: Recorded | None, *, owns_activity_types: bool) -> bool:
    """Whether nothing of a removal is under way any more: the thing is gone, without a doubt."""
    if loss == SWEEP:
        return owns_activity_types
    if loss.of == RULED:
        return _is_made(loss, row)
    if loss.of == "opened" and loss.what.startswith(FORMER):
        is_there = row is not None and row.status is Status.ACTIVE and row.confirmed and not row.doubtful
        return row is not None and is_there and row.body.fields.get("visibility") != "PRIVATE"
    if row is None or row.doubtful:
        return row is None
    if leaves(loss):
        unfinished = row.status is Status.RETIRED and bool(row.body.keywords)
        return row.status in GONE.get(loss.what, ()) and not unfinished
    is_gone = row.status in GONE["forget"] and loss.of != "opened"  # one that was let go comes back by being opened
    return is_gone or not holds(row, loss)


class ApprovalRecord(NamedTuple):
    """An approval that an apply began with: what it covers, what of that has not settled yet, and when it was used.

    `run` and `plan` are those that began first; a use without an end (`used` None) covers what is left.
    """

    text: str
    run: str
    plan: str | None
    at: float
    covers: tuple[Loss, ...]
    remaining: tuple[Loss, ...]
    used: float | None = None


COLUMNS = ("approval", "run", "plan", "at", "covers", "remaining", "used")
ALL_RECORDS = f"SELECT {', '.join(COLUMNS)} FROM state_approvals ORDER BY at, approval"  # noqa: S608 - names of columns


@dataclass(frozen=True, slots=True)
class Approved:
    """The removals of a plan when its apply begins, and the approvals of them.

    `touched` are the keys of all its changes; `is_whole`: no selection, so that whatever it leaves alone nobody wants
    removed, unless it is `set_aside`. `taken_back` is a run that it takes back whole, with all that it was approved.
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
        """Whether nobody asks any more for this removal, approved when `run` began, so that its approval ends."""
        is_whole = self.is_whole or run == self.taken_back
        is_left_alone = not is_whole or loss.key in self.set_aside
        return not self.asks_for(loss) and (loss.key in self.touched or not is_left_alone)


def to_list(losses: Iterable[Loss]) -> list[list[str]]:
    return [[loss.of, loss.key.kind.value, loss.key.name, loss.what] for loss in losses]


def from_lists(lists: Iterable[Sequence[str]]) -> Iterator[Loss]:
    """The losses again; ValueError or LookupError where they are damaged."""
    for of, kind, name, what in lists:
        yield Loss(of, Key(KINDS[kind], name), what)


def record_of(values: Sequence[Any], loads: Any) -> ApprovalRecord:
    """A record from the values of COLUMNS; `loads` reads JSON."""
    text, run, plan, at, covers, remaining, used = values
    covered, rest = (tuple(from_lists(loads(each))) for each in (covers, remaining))
    return ApprovalRecord(text, run, plan, float(at), covered, rest, None if used is None else float(used))
