"""Rows, history, lock, versions and quarantine of a state → documents, whose models stand here, and text; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, UnsetType, convert

from syncengine.document.text import as_word
from syncengine.plan.quarantine import QuarantineVerdict
from syncengine.project.model import until_text
from syncengine.render.documents import diagnostic_items
from syncengine.render.escape import file_name, quoted, visible
from syncengine.render.formats import Address, DiagnosticItem, KeywordChange, Line, OpenModel
from syncengine.render.words import count_of, when
from syncengine.resource import Kind, Recorded, Source, Status, Value
from syncengine.state.git_store import Version
from syncengine.state.history import HistoryEntry, Run
from syncengine.state.lock import LockInfo
from syncengine.state.records import QuarantineRecord
from syncengine.state.removal import Erased, Pruned

FieldValue = Value | None


# --- rows


class RecordedPlace(OpenModel, frozen=True):
    file: Annotated[str, "The manifest, relative to the project's folder."]
    line: Line


class RecordedItem(OpenModel, frozen=True):
    """A resource as it is recorded in the state."""

    address: Address
    kind: Kind
    status: Status
    doubtful: Annotated[bool, "Whether the service may hold something else, so that it is sent again."]
    fields: Annotated[Mapping[str, FieldValue], "The recorded fields by name."]
    keywords: Annotated[tuple[str, ...], "The keywords that take effect, including the name if it is one."]
    metadata: Mapping[str, str]
    server_id: Annotated[str | None, "The id that the service gave a category; null for other kinds."]
    protect: Annotated[bool, "Whether the resource is protected from removal."]
    source: Annotated[RecordedPlace | None, "The place where the resource was last declared."]


class StateFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.state/v1"):
    """The document of `state list --format json`."""

    resources: list[RecordedItem]


class ResourceFormat(RecordedItem, frozen=True, tag_field="format", tag="syncengine.resource/v1"):
    """The document of `state show ADDRESS --format json`."""


def recorded_item(row: Recorded, model: type[RecordedItem] = RecordedItem) -> RecordedItem:
    return model(
        str(row.key),
        row.key.kind,
        row.status,
        row.doubtful,
        row.body.fields,
        row.body.keywords,
        row.body.metadata,
        row.server_id,
        row.protect,
        _place(row.source),
    )


def _place(source: Source | None) -> RecordedPlace | None:
    return RecordedPlace(source.file, source.line) if source else None


def rows_text(rows: Sequence[Recorded], width: int) -> str:
    """Return one line for each row: address, special states, and place; lines are cut to the width."""
    # A name of more than 60 letters is rare, and must not push the places of all others away.
    room, lines = min(60, max((len(visible(str(row.key))) for row in rows), default=0)), list[str]()
    for row in rows:
        flags = [row.status.value] if row.status is not Status.ACTIVE else []
        flags += ["doubtful"] if row.doubtful else []
        flags += ["protected"] if row.protect else []
        place = file_name(str(row.source)) if row.source else ""
        lines.append(f"{visible(str(row.key)):<{room}}  {' '.join(flags):<10}  {place}".rstrip()[: max(width, 40)])
    return "\n".join(lines or ["Nothing is recorded."]) + "\n"


def row_text(row: Recorded) -> str:
    """Return all recorded data of one resource, one fact a line."""
    lines = [visible(str(row.key)), f"  status: {row.status.value}{', doubtful' if row.doubtful else ''}"]
    lines += [f"  {name}: {_value(value)}" for name, value in row.body.fields.items()]
    if row.body.keywords:
        lines.append(f"  effective keywords: {_value(row.body.keywords)}")
    lines += [f"  metadata {visible(name)}: {quoted(value)}" for name, value in row.body.metadata.items()]
    lines += [f"  server id: {visible(row.server_id)}"] if row.server_id else []
    lines += ["  protect: true"] if row.protect else []
    lines += [f"  declared at {file_name(str(row.source))}"] if row.source else []
    return "\n".join(lines) + "\n"


def _value(value: Value | None) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, tuple):
        return ", ".join(map(quoted, value)) or "(none)"
    return quoted(value) if isinstance(value, str) else str(value).lower()


# --- history


class StatusChange(OpenModel, frozen=True):
    before: Status | None
    after: Status


class EntryField(OpenModel, frozen=True):
    name: str
    before: FieldValue
    after: FieldValue


class EntryMetadata(OpenModel, frozen=True):
    set: Mapping[str, str]
    delete: Sequence[str]


class HistoryItem(OpenModel, frozen=True):
    """A change of a resource, or an attempt at one."""

    at: str
    outcome: Annotated[str, "`settled`, or what kept the change from being made."]
    run: Annotated[str | None, "The id of the run; null if the history of the run was removed."]
    command: str | None
    commit: str | None
    user: str | None
    host: str | None
    job_url: str | None
    operation: Annotated[str | None, "The operation that was called; null if nothing was sent."]
    source: RecordedPlace | None
    fields: list[EntryField]
    keywords: KeywordChange
    metadata: EntryMetadata
    status: StatusChange | None
    message: str | None


class RunItem(OpenModel, frozen=True, omit_defaults=True):
    """A run of a command that writes."""

    id: str
    started: str
    ended: Annotated[str | None, "The time when the run ended; null while it runs, or if it was killed."]
    command: str
    outcome: str | None
    plan: str | None
    user: str
    host: str
    job_url: str | None
    commit: str | None
    clean: Annotated[bool | None, "Whether the commit had no uncommitted changes; null outside of Git."]
    counts: Mapping[str, int]
    actor: Annotated[str | None, "The person who started the CI job; null outside of CI."]
    approvals: Sequence[str]
    exit_code: int | None
    reason: str | None
    undoes: Annotated[str | None, "The id of the run that this one undid; absent otherwise."] = None


class HistoryFormat(OpenModel, frozen=True, omit_defaults=True, tag_field="format", tag="syncengine.history/v1"):
    """The document of `state history --format json`: `entries` of one address, otherwise `runs`."""

    entries: Annotated[list[HistoryItem] | UnsetType, "The changes of one resource, oldest first; absent of runs."] = (
        UNSET
    )
    runs: Annotated[list[RunItem] | UnsetType, "The runs, newest first; absent of one resource."] = UNSET


def history_document(entries: Iterable[HistoryEntry]) -> HistoryFormat:
    items = []
    for each in entries:
        detail, who = each.detail, (each.run, each.command, each.commit, each.user, each.host, each.job_url)
        items.append(
            HistoryItem(
                when(each.at),
                each.outcome,
                *who,
                each.operation,
                _place(each.source),
                [EntryField(name, *convert(values, tuple[Any, Any])) for name, values in detail.fields.items()],
                KeywordChange(detail.keywords_added, detail.keywords_deleted),
                EntryMetadata(detail.metadata_set, detail.metadata_deleted),
                StatusChange(*detail.status) if detail.status else None,
                detail.message,
            )
        )
    return HistoryFormat(entries=items)


def history_text(entries: Sequence[HistoryEntry]) -> str:
    """Return the history of one resource, newest entry first; `entries` are in the opposite order, as in JSON."""
    return "".join(line + "\n" for entry in reversed(entries) for line in _entry_lines(entry))


def _entry_lines(entry: HistoryEntry) -> Iterator[str]:
    commit = f" commit {entry.commit[:12]}" if entry.commit else ""
    who = f" by {entry.user}@{entry.host}" if entry.user else ""
    operation = f" {entry.operation}" if entry.operation else ""
    place = f" ({file_name(str(entry.source))})" if entry.source else ""
    run = f" in run {entry.run}" if entry.run else ""
    yield visible(f"{when(entry.at)} {entry.outcome}{operation}{run}{who}{commit}{place}")
    detail = entry.detail
    if detail.status:
        before, after = detail.status
        yield f"    status: {before.value if before else '(none)'} → {after.value}"
    for name, (old, new) in detail.fields.items():
        yield f"    {name}: {_value(old)} → {_value(new)}"
    for word, texts in (("added", detail.keywords_added), ("deleted", detail.keywords_deleted)):
        if texts:
            yield f"    keywords {word}: {_value(texts)}"
    yield from (f"    metadata {visible(n)}: {quoted(value)}" for n, value in detail.metadata_set.items())
    if detail.metadata_deleted:
        yield f"    metadata deleted: {_value(detail.metadata_deleted)}"
    if detail.message:
        yield f"    {visible(detail.message)}"


def runs_document(runs: Iterable[Run]) -> HistoryFormat:
    same = set(RunItem.__struct_fields__) - {"started", "ended"}
    return HistoryFormat(
        runs=[
            RunItem(started=when(run.started), ended=when(run.ended), **{name: getattr(run, name) for name in same})
            for run in runs
        ]
    )


def runs_text(runs: Sequence[Run]) -> str:
    """Return one line for each run, in the given order."""
    lines = []
    for run in runs:
        tree = "" if run.clean else " (with uncommitted changes)"
        counts = ", ".join(f"{count} {name}" for name, count in run.counts.items() if count)
        facts = [
            f"{when(run.started)} {run.id} {run.command} {run.outcome or 'running or killed'}",
            f" (exit {run.exit_code})" if run.exit_code is not None else "",
            f" ({counts})" if counts else "",
            f", undoes {run.undoes}" if run.undoes else "",
            f", approved: {' '.join(run.approvals)}" if run.approvals else "",
            f" by {run.user}@{run.host}" + (f" for {run.actor}" if run.actor else ""),
            f" commit {run.commit[:12]}{tree}" if run.commit else "",
            f" {run.job_url}" if run.job_url else "",
            f": {run.reason}" if run.reason else "",
        ]
        lines.append(visible("".join(facts)) + "\n")
    return "".join(lines) or "Nothing has been applied yet.\n"


# --- the lock


class HolderItem(OpenModel, frozen=True):
    host: str
    user: str
    pid: int
    command: str


class LockItem(OpenModel, frozen=True):
    """The lock of the state and its holder."""

    id: Annotated[str, "The id that `state unlock` takes."]
    holder: HolderItem
    job_url: str | None
    reason: str | None
    since: str
    expires: Annotated[str | None, "The time when the lock ends by itself; null if it does not."]


class LockFormat(OpenModel, frozen=True, omit_defaults=True, tag_field="format", tag="syncengine.lock/v1"):
    """The document of `state lock --format json` and `state unlock --format json`."""

    lock: Annotated[LockItem | None, "The lock that holds now; null after `unlock`."]
    unlocked: Annotated[str | None, "The id of the lock that was ended; absent from `lock`."] = None


def lock_document(lock: LockInfo) -> LockFormat:
    holder = lock.holder
    who = HolderItem(holder.host, holder.user, holder.pid, holder.command)
    return LockFormat(LockItem(lock.id, who, holder.job_url, holder.reason, when(lock.since), when(lock.expires)))


# --- what changes a state by hand


class ForgetFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.forget/v1"):
    """The document of `state forget --format json`."""

    forgotten: Annotated[list[Address], "The resources that are recorded no more; the service keeps them."]


class PruneFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.prune/v1"):
    """The document of `state prune --format json`."""

    before: Annotated[str, "The time before which the history was, or with `--dry-run` would be, removed."]
    runs: Annotated[int, "How many runs were removed."]
    entries: Annotated[int, "How many changes of resources were removed."]
    in_doubt: Annotated[int, "How many resources in doubt kept their history."]
    dry_run: bool
    compacted: Annotated[bool, "Whether the database gave back the space, so that its files have no remains."]


class EraseFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.erase/v1"):
    """The document of `state erase --format json`, without names, because it may end up in a log."""

    erased: Annotated[int, "How many resources were erased."]
    entries: Annotated[int, "How many changes of the history lost their names and contents."]
    runs: Annotated[int, "How many runs can no longer be undone for the erased resources."]
    compacted: Annotated[bool, "Whether the database gave back the space, so that its files have no remains."]


class RestoreFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.restore/v1"):
    """The document of `state restore --format json`."""

    restored: Annotated[str | None, "The version; null if a state that was set back was accepted as it is."]
    rows: Annotated[int, "How many resources are recorded now, all in doubt."]


class ImportFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.import/v1"):
    """The document of `state import --format json`."""

    imported: Annotated[int, "How many resources were recorded, all in doubt."]


class RebuildFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.rebuild/v1"):
    """The document of `state rebuild --format json`."""

    commit: Annotated[str, "The commit whose manifests are recorded."]
    rebuilt: Annotated[int, "How many resources of it are recorded, all in doubt."]
    diagnostics: list[DiagnosticItem]


class RebindFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.rebind/v1"):
    """The document of `state rebind --format json`."""

    team: Annotated[str, "The team to which the state belongs now."]
    before: Annotated[str | None, "The team to which it belonged; null if it belonged to none."]


def pruned_text(pruned: Pruned, before: float, dry_run: bool, is_compact: bool, in_git: bool) -> str:
    """Return sentences on the history that `state prune` removed or would remove, and on the consequences."""
    numbers = f"{count_of(pruned.runs, 'run')} and {count_of(pruned.entries, 'entry')} of the history"
    lines = [f"{'Would remove' if dry_run else 'Removed'} {numbers} from before {when(pruned.before)}."]
    if pruned.before < before:
        lines.append("The last 24 hours are kept, because the gate counts their removals.")
    if pruned.in_doubt:
        lines.append(f"The history of {count_of(pruned.in_doubt, 'resource')} in doubt is kept.")
    if pruned.runs:
        will = "could" if dry_run else "can"
        lines.append(
            f"Pruned runs {will} no longer be undone, and plans saved before that time {will} no longer be resumed."
        )
    if dry_run:
        lines += ["Earlier versions could no longer be restored."] if in_git else []
        return "\n".join(lines) + "\n"
    return "\n".join((*lines, *_what_is_left(is_compact, in_git))) + "\n"


def erased_text(count: int, erased: Erased, remaining: Sequence[Recorded], is_compact: bool, in_git: bool) -> str:
    """Return sentences on what `state erase` removed, without names, because the text may end up in a log."""
    lines = [
        f"Erased {count_of(count, 'resource')}: {count_of(erased.entries, 'entry')} of the history"
        f" no longer {'has' if erased.entries == 1 else 'have'} a name or content."
    ]
    if erased.runs:
        lines.append(f"{count_of(erased.runs, 'run')} can no longer be undone for the erased resources.")
    if remaining:
        lines.append(
            "The service may still have tags that were only released or retired: a plan that deletes their category no"
            " longer counts them."
        )
    lines.append("Copies in Git, saved plans, reports, exports, backups and posted time are not erased.")
    return "\n".join((*lines, *_what_is_left(is_compact, in_git))) + "\n"


def _what_is_left(is_compact: bool, in_git: bool) -> list[str]:
    """Return sentences on the places where removed data may still be stored."""
    if in_git:
        clones = "Other clones" if is_compact else "Clones, including this one,"
        return [
            f"Earlier versions can no longer be restored. {clones} keep the data that they fetched"
            " (.syncengine/git-state), and the server keeps its data until `git gc` runs there."
        ]
    if is_compact:
        return []
    return [
        "The database files may still contain the removed data, because another process was reading or this user may"
        " not rewrite the tables: run `syncengine state prune --before 9999d` when no other process uses the database,"
        " or VACUUM FULL as its owner."
    ]


# --- versions

SHOWN_OF_ID = 12
"""The number of characters of a version's id that are shown; they suffice to restore the version."""


class VersionItem(OpenModel, frozen=True):
    id: Annotated[str, "The id that `state restore` takes; its first 12 characters are enough."]
    number: int
    when: str
    who: str
    command: str
    run: Annotated[str | None, "The id of the run that wrote it; null if no run did."]
    rows: int


class StateVersionsFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.state-versions/v1"):
    """The document of `state versions --format json`."""

    versions: Annotated[list[VersionItem], "The restorable versions, newest first."]


def versions_document(versions: Sequence[Version]) -> StateVersionsFormat:
    items = []
    for each in versions:
        info = each.info
        items.append(VersionItem(each.id, info.serial, when(info.when), info.who, info.command, info.run, info.rows))
    return StateVersionsFormat(items)


def versions_text(versions: Sequence[Version]) -> str:
    """Return one line for each version."""
    lines = []
    for each in versions:
        info, run = each.info, f"  run {each.info.run}" if each.info.run else ""
        noun = "row " if info.rows == 1 else "rows"
        about = f"{when(info.when)}  {info.rows:>6} {noun}  {info.command}{run}  by {info.who}"
        lines.append(visible(f"{each.id[:SHOWN_OF_ID]}  {about}") + "\n")
    return "".join(lines) or "There are no versions.\n"


def restored_text(version: Version) -> str:
    count = count_of(version.info.rows, "resource")
    return (
        f"Restored version {version.id[:SHOWN_OF_ID]} of {when(version.info.when)} with {count}; all rows are doubtful,"
        " and the next apply sends them again.\n"
    )


# --- quarantine


class RefusalItem(OpenModel, frozen=True):
    times: int
    since: str
    message: Annotated[str, "The last words of the service."]


class SetAsideItem(OpenModel, frozen=True):
    """A resource that is set aside."""

    address: Address
    reason: str
    until: str | None
    line: Annotated[int | None, "The line of the project file; null if it was set aside with a command."]
    refused: RefusalItem


class QuarantineFormat(OpenModel, frozen=True, omit_defaults=True, tag_field="format", tag="syncengine.quarantine/v1"):
    """The document of `state quarantine --format json`: the list, the resource set aside, or with `--end` released."""

    quarantine: Annotated[list[SetAsideItem] | UnsetType, "The resources in quarantine; absent with an ADDRESS."] = (
        UNSET
    )
    diagnostics: Annotated[list[DiagnosticItem] | UnsetType, "Entries without effect; absent with an ADDRESS."] = UNSET
    quarantined: Annotated[str | UnsetType, "The resource that was set aside; absent otherwise."] = UNSET
    reason: Annotated[str | UnsetType, "Why it was set aside; absent otherwise."] = UNSET
    until: Annotated[str | UnsetType | None, "When its quarantine ends by itself; null or absent if it does not."] = (
        UNSET
    )
    ended: Annotated[str | UnsetType, "The resource whose quarantine was ended; absent otherwise."] = UNSET


def set_aside_document(record: QuarantineRecord) -> QuarantineFormat:
    return QuarantineFormat(quarantined=str(record.key), reason=record.reason, until=when(record.until))


def set_aside_text(record: QuarantineRecord, place: str) -> str:
    """Return the record as text, with the command that ends it. `place` are the options that name the project."""
    end = f" until {until_text(record.until)}" if record.until is not None else ""
    text = f"{visible(str(record.key))} is in quarantine{end}: applies skip it while its manifest is unchanged.\n"
    return f"{text}End it with: syncengine state quarantine {as_word(str(record.key))} --end{place}\n"


def quarantine_document(verdict: QuarantineVerdict) -> QuarantineFormat:
    """Return the document of the resources in quarantine, with diagnostics for entries that have no effect."""
    items = []
    for each in verdict.entries.values():
        refused = RefusalItem(each.refusal.times, when(each.refusal.since), each.refusal.message)
        items.append(SetAsideItem(str(each.key), each.reason, when(each.until), each.line, refused))
    return QuarantineFormat(quarantine=items, diagnostics=diagnostic_items(verdict.diagnostics))


def quarantine_text(verdict: QuarantineVerdict) -> str:
    lines = []
    for entry in verdict.entries.values():
        refusal = entry.refusal
        end = f" until {until_text(entry.until)}" if entry.until is not None else ""
        place = f" (line {entry.line} of the project file)" if entry.line is not None else ""
        times = "once, at" if refusal.times == 1 else f"{refusal.times:,} times since"
        lines.append(f"{visible(str(entry.key))}{end}: {visible(entry.reason)}{place}")
        lines.append(f"    rejected {times} {when(refusal.since)}: {quoted(refusal.message)}")
    lines += [visible(diagnostic.message) for diagnostic in verdict.diagnostics]
    return "\n".join(lines or ["Nothing is in quarantine."]) + "\n"
