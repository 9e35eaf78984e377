"""Count a plan's losses, which is all that it removes from recorded rows, and the totals to compare with. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from syncengine.plan.aim import may_be_held
from syncengine.plan.diff import Action, Change, Difference
from syncengine.resource import Body, Key, Kind, Recorded, Status, is_blank
from syncengine.state.codec import Content
from syncengine.state.losses import EMPTY_SWEEP, LEAVES_AS, SWEEP, SWEPT, Loss, leaves, opened_as

__all__ = ["EMPTY_SWEEP", "LEAVES_AS", "SWEEP", "SWEPT", "Loss", "leaves"]


SAYS: Mapping[str, str] = {
    "categories": "categories deleted",
    "activityTypes": "activity types deleted",
    "tags": "tags forgotten, retired or deleted",
    "keywords": "keywords deleted",
    "metadata": "metadata entries deleted or blanked",
    "fields": "fields cleared",
    "opened": "private tags made public",
}
"""The plan's words for each kind of loss. Categories and opened tags always need an approval (docs/planning.md 5)."""

SAYS_OF_ONE: Mapping[str, str] = {
    "categories": "category deleted",
    "activityTypes": "activity type deleted",
    "tags": "tag forgotten, retired or deleted",
    "keywords": "keyword deleted",
    "metadata": "metadata entry deleted or blanked",
    "fields": "field cleared",
    "opened": "private tag made public",
}
"""The plan's words for each kind of loss, for a total of one."""

ALWAYS_ASKS = frozenset({"categories", "opened"})

LEFT = frozenset({Status.RELEASED, Status.RETIRED})
"""Statuses of rows that stay for ever. If they counted, an old estate could lose all other rows without an approval."""


def with_losses(differences: Iterable[Difference]) -> list[tuple[Change, Loss]]:
    """Return each loss with its change. A new resource can only lose the privacy of its former name."""
    touching = (d.change for d in differences if d.row is not None or d.change.previously is not None)
    return [(change, loss) for change in touching for loss in losses_of(change)]


def losses_of(change: Change) -> Iterator[Loss]:
    """Yield the losses of one change. A tag that leaves counts once, not once for each of its keywords."""
    if change.action in (Action.DELETE, Action.RETIRE, Action.FORGET):
        yield Loss(LEAVES_AS[change.key.kind], change.key, change.action.word)
        return
    for keyword in change.keywords_deleted:
        yield Loss("keywords", change.key, keyword)
    for name in (*change.metadata_deleted, *change.metadata_blanked):
        if not is_blank(change.metadata_before.get(name, name)):
            yield Loss("metadata", change.key, name)
    for field in change.fields:
        if field.clears:
            yield Loss("fields", change.key, field.name)
    if change.opening is not None:
        own = change.key.name
        for name in change.opens or (own,):
            yield Loss("opened", change.key, "visibility" if name == own else opened_as(name))


def totals_of(rows: Iterable[Recorded]) -> Counter[str]:
    """Count the managed resources, and of them what was declared and can be lost, by kind of loss."""
    return _sum((row.key, row.body) for row in rows if is_ours(row))


def totals_of_contents(contents: Iterable[Content]) -> Counter[str]:
    """Return the result of `totals_of` from the contents of all rows, which take less than half the time to read."""
    return _sum((key, body) for key, status, is_doubtful, body in contents if _is_ours(status, is_doubtful))


def totals_with(all_of_it: Mapping[str, int], recorded: Mapping[Key, Recorded], losses: Iterable[Loss]) -> Counter[str]:
    """Return the totals of managed rows (`all_of_it`) and of what else is lost: other rows, and names as keywords."""
    losses = list(losses)  # a name as a keyword is a loss that no total counts, since nobody declares it
    going = {loss.key: recorded[loss.key] for loss in losses if loss.key in recorded}
    totals = Counter(all_of_it) + _sum(
        (row.key, row.body) for row in going.values() if not is_ours(row) and may_be_held(row)
    )
    totals["keywords"] += sum(loss.of == "keywords" and loss.what == loss.key.name for loss in losses)
    return totals


def is_ours(row: Recorded) -> bool:
    """Return whether a row counts towards the totals: the service may hold it, and the project has not let go of it."""
    return _is_ours(row.status, row.doubtful)


def _is_ours(status: Status, is_doubtful: bool) -> bool:
    return status not in LEFT and (status is not Status.DELETED or is_doubtful)


UNLOSABLE = frozenset({"label", "visibility"})
"""The fields that no plan clears: a resource has them always, and a row may say them without any declaration."""


def _sum(bodies: Iterable[tuple[Key, Body]]) -> Counter[str]:
    resources: Counter[Kind] = Counter()
    fields = keywords = metadata = private = 0
    for key, body in bodies:
        resources[key.kind] += 1
        # A false flag is the service's default, so it says nothing, even where it is declared.
        fields += sum(not (value is False or is_blank(value) or n in UNLOSABLE) for n, value in body.fields.items())
        keywords += len(body.keywords) - (key.name in body.keywords)
        metadata += sum(not is_blank(value) for value in body.metadata.values())
        private += key.kind is Kind.TAG and body.fields.get("visibility") != "PUBLIC"
    totals = Counter({LEAVES_AS[kind]: count for kind, count in resources.items()})
    totals.update(fields=fields, keywords=keywords, metadata=metadata, opened=private)
    return totals
