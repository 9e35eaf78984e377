"""The gate: the removals of a plan, whether they need an approval, and their hash; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from syncengine.document.digest import sha256_of
from syncengine.manifest.sources.records import SourceUse
from syncengine.plan.aim import may_be_held
from syncengine.plan.diff import Action, Change, Difference
from syncengine.plan.provenance import origins, template_of
from syncengine.plan.sweep import Sweep
from syncengine.project.schema import Limit
from syncengine.resource import Key, Kind, Recorded, Resource, Status


class Approval(Struct, frozen=True, gc=False):
    """COUNT@HASH at hand, and where: an option, a variable, or a line of the project file."""

    text: str
    by: str
    line: int | None = None

    def __str__(self) -> str:
        return self.by if self.line is None else f"{self.by}:{self.line}"


class Gate(Struct, frozen=True, gc=False):
    """Whether losses need an approval: `reasons` with their numbers, `approve` is COUNT@HASH when tripped.

    `approved`: the approval that is at hand for just these losses.
    """

    tripped: bool = False
    reasons: tuple[str, ...] = ()
    approve: str | None = None
    approved: Approval | None = None

    @property
    def is_closed(self) -> bool:
        """Whether it is tripped and nobody approved."""
        return self.tripped and self.approved is None

    def with_approvals(self, approvals: Iterable[Approval]) -> Gate:
        """The same gate, with the first of `approvals` that is for just these losses, if any is."""
        fitting = (each for each in approvals if self.tripped and each.text == self.approve)
        return replace(self, approved=next(fitting, None))


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that a plan takes away. `of` is the total that it counts in: tags, keywords, …"""

    of: str
    key: Key
    what: str = ""


@dataclass(frozen=True, slots=True)
class Earlier:
    """When something was taken below the gate, and whether it still counts as ours (`is_counted`)."""

    at: float
    is_counted: bool = False


SAYS: Mapping[str, str] = {
    "categories": "categories deleted",
    "activityTypes": "activity types deleted",
    "tags": "tags forgotten, retired or deleted",
    "keywords": "keywords deleted",
    "metadata": "metadata entries deleted",
    "fields": "fields cleared",
    "opened": "tags made public that were private",
}
"""What is counted, in the plan's words. Categories and opened tags always ask (docs/planning.md 5)."""

ALWAYS_ASKS = frozenset({"categories", "opened"})

LEFT = frozenset({Status.RELEASED, Status.RETIRED})
"""Rows that stay for ever: were they counted, an old estate could lose all that is left of it unasked."""

SWEPT = "everything that this project does not know"
NO_ROWS: Mapping[str, int] = MappingProxyType({})


def gate(
    differences: Collection[Difference],
    recorded: Mapping[Key, Recorded],
    limits: Mapping[str, Limit],
    desired: Mapping[Key, Resource] | None,
    *,
    sweep: Sweep | None,
    team: str | None,
    lineage: str,
    totals_of_all: Callable[[], Mapping[str, int]] | None = None,
    sources: Iterable[SourceUse] = (),
    had: Mapping[str, int] = NO_ROWS,
    recent: Callable[[], Mapping[Loss, Earlier]] = dict,
) -> Gate:
    """Judge the losses of a plan against the recorded rows of the whole estate, never of a selection.

    Whatever is lost while one of the `sources` shrank may be lost for that reason, as keywords made of its rows are;
    `had` maps the identity of each source to the rows that it had when it was last applied.
    `totals_of_all` counts the whole estate where `recorded` are not all of its rows. `desired` None: which
    made of which template is unknown today, and only shares of whole sources are judged. `recent`: what earlier
    runs took below the gate, which counts in.
    """
    losses = losses_in(differences)
    if not losses and sweep is None:
        return Gate()
    totals = _totals(totals_of(recorded.values()) if totals_of_all is None else totals_of_all(), recorded, losses)
    counts = Counter(loss.of for loss in losses)
    before = _before(recent(), losses)
    reasons = [
        reason for of, count in counts.items() if (reason := _too_much(of, count, totals[of], before[of], limits))
    ]
    if totals_of_all is None:
        renamed = {Key(d.change.key.kind, d.change.previously) for d in differences if d.change.previously}
        of_resources = list(shrunk([loss for loss in losses if loss.key not in renamed], recorded, desired))
        named_sources = {source for source, _ in of_resources}
        reasons += [reason for _, reason in of_resources]
        reasons += [
            f"{name} shrank: {missing:,} of {total:,} rows are gone (limit {SHRINKS})"
            for name, missing, total in _fewer_rows(sources, had)
            if SHRINKS.is_exceeded(missing, total) and name not in named_sources
        ]
    # docs/planning.md 3.4 and 3.6
    if sweep is not None and sweep.first:
        reasons.append(f"first sweep of this state: it deletes {SWEPT} among the team's activity types")
    if sweep is not None and not sweep.uploads:
        reasons.append("the sweep uploads nothing: it deletes every activity type of the team")
    if not reasons:
        return Gate()
    return Gate(True, tuple(reasons), approval_of(losses, sweeps=sweep is not None, team=team, lineage=lineage))


def _fewer_rows(sources: Iterable[SourceUse], had: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Sources that have fewer rows than when they were applied last: how many are gone, and of how many."""
    for identity, use in {use.identity: use for use in sources}.items():
        if (before := had.get(identity, 0)) > use.rows:
            yield use.name, before - use.rows, before


SHRINKS = Limit(percent=25)
"""How much of what came from one source, or from one template of it, may go (docs/planning.md 2.7)."""


def shrunk(
    losses: Iterable[Loss], recorded: Mapping[Key, Recorded], desired: Mapping[Key, Resource] | None
) -> Iterator[tuple[str, str]]:
    """Data sources that lose a large share of the resources made from them, each with the reason to ask for approval.

    Where a source as a whole loses little, each of its templates is judged by its own share.
    """
    leaving = {loss.key for loss in losses if loss.of in LEAVES_AS.values()}
    going = {key for key in leaving if key in recorded and template_of(recorded[key].source)}
    if not going:
        return
    templates_of = origins((row for row in recorded.values() if is_ours(row) or row.key in going), desired or {}).by
    sources = {key: template.data for key in templates_of if (template := template_of(recorded[key].source))}
    totals, departures = Counter(sources.values()), Counter(sources[key] for key in going)
    shrinking = {data for data, count in departures.items() if SHRINKS.is_exceeded(count, totals[data])}
    for data in sorted(shrinking):
        made_of_it = f"{departures[data]} of {totals[data]} resources made from it are removed"
        yield data, f"{data} shrank: {made_of_it} (limit {SHRINKS})"
    if desired is None:
        return
    parts = Counter(template for templates in templates_of.values() for template in templates)
    for template, count in sorted(Counter(template for key in going for template in templates_of[key]).items()):
        if template.data not in shrinking and SHRINKS.is_exceeded(count, parts[template]):
            where = f"{template.file}:{template.line}" if template.line else template.file
            made_there = f"{count} of {parts[template]} resources made from it at {where} are removed"
            yield template.data, f"{template.data} shrank: {made_there} (limit {SHRINKS})"


def losses_in(differences: Iterable[Difference]) -> list[Loss]:
    """Return everything that a plan removes from recorded rows."""
    return [loss for d in differences if d.row is not None for loss in losses_of(d.change)]


def losses_of(change: Change) -> Iterator[Loss]:
    """The losses of one change; a tag that leaves is counted once, not for each of its keywords."""
    if change.action in (Action.DELETE, Action.RETIRE, Action.FORGET):
        yield Loss(LEAVES_AS[change.key.kind], change.key, change.action.word)
        return
    for keyword in change.keywords_deleted:
        yield Loss("keywords", change.key, keyword)
    for name in change.metadata_deleted:
        yield Loss("metadata", change.key, name)
    for field in change.fields:
        if field.clears:
            yield Loss("fields", change.key, field.name)
        elif field.name == "visibility" and (field.before, field.after) == ("PRIVATE", "PUBLIC"):
            yield Loss("opened", change.key, field.name)


LEAVES_AS: Mapping[Kind, str] = {
    Kind.CATEGORY: "categories",
    Kind.ACTIVITY_TYPE: "activityTypes",
    Kind.TAG: "tags",
}


def totals_of(rows: Iterable[Recorded]) -> Counter[str]:
    """Count the resources that this project manages now, and their fields, keywords and so on, by kind of loss."""
    return _sum(row for row in rows if is_ours(row))


def _totals(all_of_it: Mapping[str, int], recorded: Mapping[Key, Recorded], losses: Iterable[Loss]) -> Counter[str]:
    """The totals of rows that are ours now, and of others that are lost."""
    going = {loss.key: recorded[loss.key] for loss in losses if loss.key in recorded}
    return Counter(all_of_it) + _sum(row for row in going.values() if not is_ours(row))


def is_ours(row: Recorded) -> bool:
    return may_be_held(row) and row.status not in LEFT


def _sum(rows: Iterable[Recorded]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for row in rows:
        body = row.body
        totals[LEAVES_AS[row.key.kind]] += 1
        totals["fields"] += sum(value not in ("", ()) for value in body.fields.values())
        totals["keywords"] += len(body.keywords)
        totals["metadata"] += len(body.metadata)
        totals["opened"] += body.fields.get("visibility") == "PRIVATE"
    return totals


def _before(recent: Mapping[Loss, Earlier], losses: Iterable[Loss]) -> defaultdict[str, list[Earlier]]:
    """Recent losses by the total that they count in; a thing that is taken again now counts once."""
    again = set(losses)
    leaving = {loss.key for loss in again if loss.of in LEAVES_AS.values()}
    earlier_losses = defaultdict(list)
    for loss, earlier in recent.items():
        if loss not in again and loss.key not in leaving:
            earlier_losses[loss.of].append(earlier)
    return earlier_losses


def _too_much(of: str, now: int, there: int, before: Sequence[Earlier], limits: Mapping[str, Limit]) -> str | None:
    """Return the reason if losses of one kind need an approval.

    `now` are lost by this plan, of those `there` are; earlier runs lost those in `before`.
    """
    count, total = now + len(before), there + sum(not each.is_counted for each in before)
    if of not in ALWAYS_ASKS and now < there and not limits[of].is_exceeded(count, total):
        return None
    return f"{count} of {total} {SAYS[of]}{_earlier(before)} (limit {0 if of in ALWAYS_ASKS else limits[of]})"


def _earlier(before: Sequence[Earlier]) -> str:
    if not before:
        return ""
    first = datetime.fromtimestamp(min(each.at for each in before), UTC)
    return f", {len(before)} of them in runs since {first:%Y-%m-%d %H:%M} UTC"


def approval_of(losses: Iterable[Loss], *, sweeps: bool, team: str | None, lineage: str) -> str:
    """COUNT@HASH over team, lineage and the sorted losses: no ids, times, lines or additions (docs/planning.md 5)."""
    lines = sorted(f"{loss.key}\0{loss.of}\0{loss.what}" for loss in losses)
    if sweeps:
        lines.append(SWEPT)
    whole = "\n".join((team or "", lineage, *lines))
    return f"{len(lines)}@{sha256_of(whole)[:12]}"
