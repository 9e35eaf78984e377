"""Count what a plan takes away: its losses, what sources of data lost, and the losses of the last 24 hours."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from msgspec import Struct

from syncengine.document.diagnostics import Collector
from syncengine.errors import Diagnostic, Problems
from syncengine.manifest.desired import Desired
from syncengine.manifest.sources.records import SourceUse
from syncengine.plan.aim import may_be_held
from syncengine.plan.diff import REMOVALS, Action, Change, FieldChange, is_cleared
from syncengine.project.model import Limit
from syncengine.resource import LET_GO, Key, Kind, Recorded, Source, Status, is_blank
from syncengine.state.codec import RemovalLine
from syncengine.state.records import LEAVES_AS, ApprovalRecord, Loss, leaves, opened_as

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


def losses_of(change: Change) -> Iterator[Loss]:
    """Yield the losses of one change. A tag that leaves counts once, not once for each of its keywords."""
    if change.action in REMOVALS:
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


UNLOSABLE = frozenset({"label", "visibility"})
"""The fields that no plan clears: a resource has them always, and a row may say them without any declaration."""


def totals_of(rows: Iterable[Recorded]) -> Counter[str]:
    """Count the managed resources, and of them what was declared and can be lost, by kind of loss."""
    return _count(row for row in rows if is_ours(row))


def totals_with(all_of_it: Mapping[str, int], recorded: Mapping[Key, Recorded], losses: Iterable[Loss]) -> Counter[str]:
    """Return the totals of managed rows (`all_of_it`) and of what else is lost: other rows, and names as keywords."""
    losses = list(losses)
    going = {loss.key: recorded[loss.key] for loss in losses if loss.key in recorded}
    totals = Counter(all_of_it) + _count(row for row in going.values() if not is_ours(row) and may_be_held(row))
    # A name as a keyword is a loss that no total counts, since nobody declares it.
    totals["keywords"] += sum(loss.of == "keywords" and loss.what == loss.key.name for loss in losses)
    return totals


def is_ours(row: Recorded) -> bool:
    """Return whether a row counts towards the totals: the service may hold it, and the project has not let go of it."""
    # Rows that were let go stay for ever: if they counted, an old estate could lose all others without an approval.
    return row.status not in LET_GO and may_be_held(row)


def _count(rows: Iterable[Recorded]) -> Counter[str]:
    resources: Counter[Kind] = Counter()
    fields = keywords = metadata = private = 0
    for row in rows:
        key, body = row.key, row.body
        resources[key.kind] += 1
        # A false flag is the service's default, so it says nothing, even where it is declared.
        fields += sum(not (value is False or is_blank(value) or n in UNLOSABLE) for n, value in body.fields.items())
        keywords += len(body.keywords) - (key.name in body.keywords)
        metadata += sum(not is_blank(value) for value in body.metadata.values())
        # as `is_private`, which would be a call for each row of the state
        private += key.kind is Kind.TAG and body.fields.get("visibility") != "PUBLIC"
    totals = Counter({LEAVES_AS[kind]: count for kind, count in resources.items()})
    totals.update(fields=fields, keywords=keywords, metadata=metadata, opened=private)
    return totals


SHRINKS = Limit(percent=25)
"""The share of one source's rows, or of the resources made from it, that may be lost without an approval."""

MOST_USES = 3
"""The most uses of one source that a reason names."""


class Template(NamedTuple):
    """The templates of one manifest that use one source, by its name. Lines move, so they tell nothing."""

    file: str
    data: str


def template_of(source: Source | None) -> Template | None:
    """Return the templates at a source, or `None` in a plain manifest. A text template (`.j2`) may be its own data."""
    if source is None:
        return None
    if source.data:
        return Template(source.file, source.data.file)
    return Template(source.file, source.file) if source.file.lower().endswith(".j2") else None


# --- empty sources


def refuse_emptied(desired: Desired, recorded: Mapping[Key, Recorded], had: Mapping[str, int]) -> None:
    """Raise `Problems` for sources that have become empty, which rarely means "delete everything".

    `had` has each source's rows at the last apply, by identity. An adopted or rebuilt state does not know them; there,
    the recorded resources that were made from the source decide.
    """
    emptied = [use for use in desired.sources if use.is_empty]
    if not emptied:
        return
    orphans = (row for row in recorded.values() if row.status is Status.ACTIVE and row.key not in desired.resources)
    made = Counter(template for row in orphans if (template := template_of(row.source)))
    # A manifest that is gone may have been renamed, so what it made counts for every use of its source.
    elsewhere: Counter[str] = Counter()
    for template, count in made.items():
        elsewhere[template.data] += 0 if template.file in desired.files else count
    problems: list[Diagnostic] = []
    for use in emptied:
        count = made[Template(use.file, use.name)] + made[Template(use.file, use.file)] + elsewhere[use.name]
        rows = had.get(use.identity)
        if count and rows != 0:  # one query of a database that never had rows may be empty beside others
            why = f"{count} resource{'s were' if count > 1 else ' was'} made from it before"
        elif rows:
            why = f"had {rows:,} row{'s' if rows > 1 else ''} at the last apply"
        else:
            continue
        message = f"{use.name} has no rows, but {why}; set `allowEmpty: true` if that is intended"
        Collector(use.file, problems).at("source-empty", use.line, use.column, message)
    if problems:
        raise Problems(problems)


# --- shrunken sources


class Shrunk(Struct, frozen=True, gc=False):
    """A source that lost `missing` of `total` rows, or resources made from it, with the `reason` to ask for approval.

    `files` are the manifests that use it, if its rows are counted and not the resources made from them.
    """

    source: str
    reason: str
    missing: int
    total: int
    files: tuple[str, ...] = ()


def shrunken(
    leaving: Collection[Key], recorded: Mapping[Key, Recorded], uses: Collection[SourceUse], had: Mapping[str, int]
) -> Iterator[Shrunk]:
    """Yield the sources that lost a large share of their rows or of the resources made from them.

    The rows (`had`, by identity) are those of the last apply. Of the resources made by one manifest from one source,
    `leaving` ones may leave with rows that are gone, or with rows that `when` leaves out, which the reason names. So
    may all that was made at one line while `when` leaves out every row of a block: a condition that is misspelt empties
    one block of several, which may be little of what the source made.
    """
    found: dict[str, Shrunk] = {}
    silent = {(use.file, use.name) for use in uses if use.rows and use.left_out == use.rows}
    made, gone = Counter[Template](), Counter[Template]()
    made_at, gone_at = Counter[tuple[str, int, str]](), Counter[tuple[str, int, str]]()
    for row in recorded.values() if any(key in recorded for key in leaving) else ():
        template, source = template_of(row.source), row.source
        if template is None or source is None or not (is_ours(row) or row.key in leaving):
            continue
        made[template] += 1
        gone[template] += row.key in leaving
        if source.data and template in silent:
            place = (source.file, source.line, source.data.file)
            made_at[place] += 1
            gone_at[place] += row.key in leaving
    shares = [(each.data, count, made[each], f"in {each.file}") for each, count in sorted(gone.items())]
    blocks = [(place, count) for place, count in sorted(gone_at.items()) if count == made_at[place]]
    shares += [(data, count, count, f"at {file}:{line}") for (file, line, data), count in blocks]
    for data, count, total, where in shares:
        if SHRINKS.is_exceeded(count, total):
            what = f"{count} of {total} resources made from it {where} are removed"
            reason = f"{data}: {what} (limit {SHRINKS}){_left_out(data, uses)}"
            found.setdefault(data, Shrunk(data, reason, count, total))
    for identity, use in {use.identity: use for use in uses}.items():
        before = had.get(identity, 0)
        if SHRINKS.is_exceeded(before - use.rows, before):
            reason = f"{use.name} shrank: {before - use.rows:,} of {before:,} rows are gone (limit {SHRINKS})"
            files = tuple(sorted({each.file for each in uses if each.identity == identity}))
            reason = found[use.name].reason if use.name in found else reason
            found[use.name] = Shrunk(use.name, reason, before - use.rows, before, files)
    yield from found.values()


def _left_out(source: str, uses: Iterable[SourceUse]) -> str:
    """Return `; `when` leaves out …` with the rows of a source that conditions leave out, or an empty text."""
    of_it = [use for use in uses if use.name == source]
    most = sorted((use for use in of_it if use.left_out), key=lambda use: -use.left_out / use.rows)[:MOST_USES]
    counts = [f"{'all' if use.left_out == use.rows else f'{use.left_out:,}'} of its {use.rows:,} rows" for use in most]
    if len(of_it) > 1:
        counts = [f"{count} at {use.file}:{use.line}" for count, use in zip(counts, most, strict=True)]
    return f"; `when` leaves out {', '.join(counts)}" if counts else ""


LEFT_BY: Mapping[Status, Action] = {
    Status.RELEASED: Action.FORGET,
    Status.RETIRED: Action.RETIRE,
    Status.DELETED: Action.DELETE,
}


def recent_losses(lines: Iterable[RemovalLine], approvals: Iterable[ApprovalRecord]) -> dict[Loss, float]:
    """Return all that calls and runs meant to take without an approval by the journal's `lines`, with the times.

    The journal has them from before the first call, each once. What came back since counts all the same: whether it is
    gone on the service is what nobody can ask.
    """
    last: dict[Loss, RemovalLine] = {}
    for line in lines:
        for loss in losses_of(_change(line)):
            if loss.of not in ALWAYS_ASKS:
                # A resource that leaves is the same loss whichever way it leaves.
                last[replace(loss, what="") if leaves(loss) else loss] = line
    approved: defaultdict[Key, list[tuple[Loss, ApprovalRecord]]] = defaultdict(list)
    for record in approvals if last else ():
        for covered in record.covers:
            approved[covered.key].append((covered, record))

    def is_approved(loss: Loss, at: float) -> bool:
        """Return whether an approval covered the loss at that time, also as a part of a resource that was removed."""
        return any(
            (leaves(covered) or (covered.of, covered.what) == (loss.of, loss.what))
            and record.at <= at
            and (record.used is None or at <= record.used)
            for covered, record in approved[loss.key]
        )

    return {loss: line.at for loss, line in last.items() if not (line.approved or is_approved(loss, line.at))}


def _change(line: RemovalLine) -> Change:
    """Return the change that a line records. Without a call, it is only about whether the resource leaves."""
    key, detail = line.key, line.detail
    before, after = detail.status or (None, None)
    action = LEFT_BY.get(after, Action.UPDATE) if before and after else Action.UPDATE
    if action is not Action.UPDATE or not line.is_sent:
        return Change(key=key, action=action, source=None)
    return Change(
        key=key,
        action=action,
        source=None,
        fields=tuple(FieldChange(n, *values) for n, values in detail.fields.items() if is_cleared(key, n, *values)),
        keywords_deleted=detail.keywords_deleted,
        metadata_set=detail.metadata_set,
        metadata_deleted=detail.metadata_deleted,
        metadata_before={n: v for n, v in detail.metadata_before.items() if v is not None},
    )
