"""Rows, history, lock, versions and quarantine of a state → documents and text; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from syncengine.document.text import as_word, to_camel
from syncengine.plan.quarantine import QuarantineVerdict
from syncengine.project.model import until_text
from syncengine.render.escape import file_name, quoted, visible
from syncengine.render.json import Document, diagnostic_items
from syncengine.render.words import count_of, when
from syncengine.resource import Key, Recorded, Source, Status, Value
from syncengine.state.history import HistoryEntry, Run
from syncengine.state.lock import LockInfo
from syncengine.state.records import QuarantineRecord
from syncengine.state.removal import Erased, Pruned
from syncengine.state.snapshots.git_store import Version

STATE_FORMAT = "syncengine.state/v1"
HISTORY_FORMAT = "syncengine.history/v1"
RESOURCE_FORMAT = "syncengine.resource/v1"
LOCK_FORMAT = "syncengine.lock/v1"
FORGET_FORMAT = "syncengine.forget/v1"
PRUNE_FORMAT = "syncengine.prune/v1"
ERASE_FORMAT = "syncengine.erase/v1"
RESTORE_FORMAT = "syncengine.restore/v1"
IMPORT_FORMAT = "syncengine.import/v1"
REBUILD_FORMAT = "syncengine.rebuild/v1"
REBIND_FORMAT = "syncengine.rebind/v1"


# --- rows


def rows_document(rows: Iterable[Recorded]) -> Document:
    """Return the JSON document of `state list`."""
    return {"format": STATE_FORMAT, "resources": [row_document(row) for row in rows]}


def resource_document(row: Recorded) -> Document:
    """Return the JSON document of `state show`."""
    return {"format": RESOURCE_FORMAT, **row_document(row)}


def row_document(row: Recorded) -> Document:
    return {
        "address": str(row.key),
        "kind": row.key.kind,
        **_fields(row, "status", "doubtful"),
        **_fields(row.body, "fields", "keywords", "metadata"),
        **_fields(row, "server_id", "protect"),
        "source": _place(row.source),
    }


def _fields(value: object, *names: str) -> Document:
    return {to_camel(name): getattr(value, name) for name in names}


def _place(source: Source | None) -> Document | None:
    return None if source is None else {"file": source.file, "line": source.line}


def rows_text(rows: Sequence[Recorded], width: int) -> str:
    """Return one line for each row: address, special states, and place; lines are cut to the width."""
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


def history_document(entries: Iterable[HistoryEntry]) -> Document:
    documents = []
    for entry in entries:
        detail = entry.detail
        documents.append(
            {
                "at": when(entry.at),
                **_fields(entry, "outcome", "run", "command", "commit", "user", "host", "job_url", "operation"),
                "source": _place(entry.source),
                "fields": [{"name": n, "before": old, "after": new} for n, (old, new) in detail.fields.items()],
                "keywords": {"add": list(detail.keywords_added), "delete": list(detail.keywords_deleted)},
                "metadata": {"set": dict(detail.metadata_set), "delete": list(detail.metadata_deleted)},
                "status": {"before": detail.status[0], "after": detail.status[1]} if detail.status else None,
                "message": detail.message,
            }
        )
    return {"format": HISTORY_FORMAT, "entries": documents}


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


RUN_FIELDS = (
    "command", "outcome", "plan", "user", "host", "job_url", "commit", "clean", "counts", "actor", "approvals",
    "exit_code", "reason",
)  # fmt: skip


def runs_document(runs: Iterable[Run]) -> Document:
    documents = [
        {
            "id": run.id,
            "started": when(run.started),
            "ended": when(run.ended),
            **_fields(run, *RUN_FIELDS),
            **(_fields(run, "undoes") if run.undoes else {}),
        }
        for run in runs
    ]
    return {"format": HISTORY_FORMAT, "runs": documents}


def runs_text(runs: Sequence[Run]) -> str:
    """Return one line for each run, in the given order."""
    lines = []
    for run in runs:
        tree = "" if run.clean else " (with uncommitted changes)"
        commit = f" commit {run.commit[:12]}{tree}" if run.commit else ""
        counts = ", ".join(f"{count} {name}" for name, count in run.counts.items() if count)
        facts = [
            f"{when(run.started)} {run.id} {run.command} {run.outcome or 'running or killed'}",
            f" (exit {run.exit_code})" if run.exit_code is not None else "",
            f" ({counts})" if counts else "",
            f", undoes {run.undoes}" if run.undoes else "",
            f", approved: {' '.join(run.approvals)}" if run.approvals else "",
            f" by {run.user}@{run.host}" + (f" for {run.actor}" if run.actor else ""),
            commit,
            f" {run.job_url}" if run.job_url else "",
            f": {run.reason}" if run.reason else "",
        ]
        lines.append(visible("".join(facts)) + "\n")
    return "".join(lines) or "Nothing has been applied yet.\n"


# --- the lock


def unlocked_document(id: str) -> Document:
    return {"format": LOCK_FORMAT, "lock": None, "unlocked": id}


def lock_document(lock: LockInfo) -> Document:
    holder = lock.holder
    return {
        "format": LOCK_FORMAT,
        "lock": {
            "id": lock.id,
            "holder": _fields(holder, "host", "user", "pid", "command"),
            "jobUrl": holder.job_url,
            "reason": holder.reason,
            "since": when(lock.since),
            "expires": when(lock.expires),
        },
    }


# --- what changes a state by hand


def restored_document(version: str | None, rows: int) -> Document:
    return {"format": RESTORE_FORMAT, "restored": version, "rows": rows}


def forgotten_document(keys: Iterable[Key]) -> Document:
    return {"format": FORGET_FORMAT, "forgotten": [str(key) for key in keys]}


def forgotten_text(count: int) -> str:
    return f"Forgot {count_of(count, 'resource')}; nothing was deleted on the service.\n"


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


VERSIONS_FORMAT = "syncengine.state-versions/v1"
LETTERS = 12
"""The number of characters of a version's id that are shown; they suffice to restore the version."""


def versions_document(versions: Sequence[Version]) -> Document:
    documents = [
        {
            "id": each.id,
            "number": each.info.serial,
            "when": when(each.info.when),
            **_fields(each.info, "who", "command", "run", "rows"),
        }
        for each in versions
    ]
    return {"format": VERSIONS_FORMAT, "versions": documents}


def versions_text(versions: Sequence[Version]) -> str:
    """Return one line for each version."""
    lines = []
    for each in versions:
        info, run = each.info, f"  run {each.info.run}" if each.info.run else ""
        about = f"{when(info.when)}  {info.rows:>6} rows  {info.command}{run}  by {info.who}"
        lines.append(visible(f"{each.id[:LETTERS]}  {about}") + "\n")
    return "".join(lines) or "There are no versions.\n"


def restored_text(version: Version) -> str:
    count = count_of(version.info.rows, "resource")
    return (
        f"Restored version {version.id[:LETTERS]} of {when(version.info.when)} with {count}; all rows are doubtful, and"
        " the next apply sends them again.\n"
    )


QUARANTINE_FORMAT = "syncengine.quarantine/v1"


def set_aside_document(record: QuarantineRecord) -> Document:
    return {
        "format": QUARANTINE_FORMAT,
        "quarantined": str(record.key),
        "reason": record.reason,
        "until": when(record.until),
    }


def ended_document(key: Key) -> Document:
    return {"format": QUARANTINE_FORMAT, "ended": str(key)}


def set_aside_text(record: QuarantineRecord, place: str = "") -> str:
    """Return the record as text, with the command that ends it. `place` are the options that name the project."""
    end = f" until {until_text(record.until)}" if record.until is not None else ""
    text = f"{visible(str(record.key))} is in quarantine{end}: applies skip it while its manifest is unchanged.\n"
    return f"{text}End it with: syncengine state quarantine {as_word(str(record.key))} --end{place}\n"


def quarantine_document(verdict: QuarantineVerdict) -> Document:
    """Return the document of the resources in quarantine, with diagnostics for entries that have no effect."""
    entries = [
        {
            "address": str(entry.key),
            "reason": entry.reason,
            "until": when(entry.until),
            "line": entry.line,
            "refused": {
                "times": entry.refusal.times,
                "since": when(entry.refusal.since),
                "message": entry.refusal.message,
            },
        }
        for entry in verdict.entries.values()
    ]
    return {"format": QUARANTINE_FORMAT, "quarantine": entries, "diagnostics": diagnostic_items(verdict.diagnostics)}


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
