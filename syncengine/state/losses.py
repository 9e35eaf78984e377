"""The losses that plans cause and the approvals of losses, as a state stores them. Values only; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from syncengine.content import sha256_of
from syncengine.resource import ALTERNATIVES, Body, Key, Kind, Recorded, Status, is_blank
from syncengine.state.codec import KINDS

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
        return self.what == other.what or STRENGTH.get(other.what, 9) <= STRENGTH.get(self.what, -1)


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
