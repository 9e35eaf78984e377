"""Resources in quarantine → text for people and documents for machines; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from syncengine.document.text import as_word
from syncengine.plan.quarantine import QuarantineVerdict, SetAside
from syncengine.project.quarantine import until_text
from syncengine.render.escape import quoted, visible
from syncengine.render.json import Document, diagnostic_items
from syncengine.render.words import when
from syncengine.resource import Key
from syncengine.state.refusals import QuarantineRecord

FORMAT = "syncengine.quarantine/v1"


def record_document(record: QuarantineRecord) -> Document:
    return {"format": FORMAT, "quarantined": str(record.key), "reason": record.reason, "until": when(record.until)}


def ended_document(key: Key) -> Document:
    return {"format": FORMAT, "ended": str(key)}


def record_text(record: QuarantineRecord, place: str = "") -> str:
    """Return the record as text, with the command that ends it. `place` are the options that name the project."""
    end = f" until {until_text(record.until)}" if record.until is not None else ""
    text = f"{visible(str(record.key))} is in quarantine{end}: applies skip it while its manifest is unchanged.\n"
    return f"{text}End it with: syncengine state quarantine {as_word(str(record.key))} --end{place}\n"


def verdict_document(verdict: QuarantineVerdict) -> Document:
    """Return the document of the resources in quarantine, with diagnostics for entries that have no effect."""
    return {
        "format": FORMAT,
        "quarantine": [_item(entry) for entry in verdict.entries.values()],
        "diagnostics": diagnostic_items(verdict.diagnostics),
    }


def _item(entry: SetAside) -> dict[str, Any]:
    refusal = entry.refusal
    return {
        "address": str(entry.key),
        "reason": entry.reason,
        "until": when(entry.until),
        "line": entry.line,
        "refused": {"times": refusal.times, "since": when(refusal.since), "message": refusal.message},
    }


def verdict_text(verdict: QuarantineVerdict) -> str:
    lines = [line for entry in verdict.entries.values() for line in _lines(entry)]
    lines += [visible(diagnostic.message) for diagnostic in verdict.diagnostics]
    return "\n".join(lines or ["Nothing is in quarantine."]) + "\n"


def _lines(entry: SetAside) -> Iterator[str]:
    refusal = entry.refusal
    end = f" until {until_text(entry.until)}" if entry.until is not None else ""
    place = f" (line {entry.line} of the project file)" if entry.line is not None else ""
    times = "once, at" if refusal.times == 1 else f"{refusal.times:,} times since"
    yield f"{visible(str(entry.key))}{end}: {visible(entry.reason)}{place}"
    yield f"    rejected {times} {when(refusal.since)}: {quoted(refusal.message)}"
