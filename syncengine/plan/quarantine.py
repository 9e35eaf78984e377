"""Decide which resources the entries of a quarantine exclude, and what waits with them. Pure (docs/repair.md).

An entry is a standing exclusion with a reason: in effect while the content that was last refused is what is asked for
and its date has not passed. A resource that it excludes never counts as removed. Both names of a rename wait together.
With a category wait the tags whose calls need it and, if it would be deleted, the members that would go with it. A tag
that may still be in a category keeps the category from being deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from msgspec import Struct

from syncengine.errors import Diagnostic, Severity
from syncengine.manifest.desired import Desired
from syncengine.plan.aim import Aim, Rules
from syncengine.plan.model import Quarantine, few
from syncengine.project.model import QuarantineEntry, is_too_late, until_text
from syncengine.resource import Key, Kind, Recorded, Removal, Resource, Source, found_at, place_of
from syncengine.state.records import REMOVAL, QuarantineRecord, Refusal, content_of

QUARANTINED, ENDED, UNUSED = "quarantined", "quarantine-ended", "quarantine-unused"
SWEEP_LEFT_OUT = "sweep-left-out"
CODES = frozenset({QUARANTINED, ENDED, UNUSED, SWEEP_LEFT_OUT})
"""The codes of warnings about quarantine, which every plan computes anew."""


class Hindrance(Struct, frozen=True):
    """A reason why an entry is not in effect. `ends`: it was in effect, and is no longer.

    `option` is the cure for the command, where its options are at fault.
    """

    why: str
    ends: bool = False
    option: str | None = None


NEVER = Hindrance("its last call was not refused")
NOWHERE = Hindrance("no manifest declares it, and the state does not know it")
CHANGED = Hindrance("its manifest changed since it was refused", ends=True)
UNKNOWN = Hindrance("the outcome of its last call is unknown: the next apply sends it again")
_TOO_LONG = "its removal can wait for 30 days at most"
NEEDS_UNTIL = Hindrance(f"{_TOO_LONG}: add `until` to the entry", option=f"{_TOO_LONG}: add --until DATE")
TOO_LATE = Hindrance(_TOO_LONG, option=f"{_TOO_LONG}: choose an earlier --until")

Contents = Callable[[Key], Collection[str]]
"""A function that returns the contents (`content_of`) of which any may be asked for a resource."""


class SetAside(Struct, frozen=True, gc=False):
    """A resource in quarantine, with the reason and the end. `line` is that of its entry in the project file."""

    key: Key
    reason: str
    until: float | None
    refusal: Refusal
    line: int | None = None


@dataclass(slots=True)
class QuarantineVerdict:
    """The resources that are set aside, and diagnostics about entries that are not in effect."""

    entries: dict[Key, SetAside] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def contents_by(desired: Desired, rules: Rules) -> Contents:
    """Return what the manifests and the rules for removals ask for."""

    def contents(key: Key) -> Collection[str]:
        if (resource := desired.resources.get(key)) is not None:
            return (content_of(resource.body),)
        if key.kind is not Kind.TAG:
            return (f"{REMOVAL}delete",)
        if (line := desired.removed.get(key)) is not None:
            return (REMOVAL + line.how.value,)
        return (REMOVAL + rules.tag_removal.value, REMOVAL + Removal.RETIRE.value)  # a rename always retires

    return contents


def obstacle(
    entry: QuarantineRecord | QuarantineEntry, quarantine: Quarantine, contents: Contents | None = None
) -> Hindrance | None:
    """Return why an entry is not in effect, or `None`. Without `contents`, what was refused is asked for still."""
    refusal, now = quarantine.refusals.get(entry.key), quarantine.now
    record = entry if isinstance(entry, QuarantineRecord) else None
    if entry.until is not None and entry.until <= now:
        return Hindrance(f"its date has passed ({until_text(entry.until)})", ends=record is not None)
    if refusal is None:
        return NEVER
    if not refusal.is_last:
        return UNKNOWN
    if record is not None and record.content != refusal.content:  # nobody has set the new content aside
        return CHANGED
    if contents is not None and refusal.content not in contents(entry.key):
        return CHANGED
    if refusal.content.startswith(REMOVAL):
        if entry.until is None:
            return NEEDS_UNTIL
        if is_too_late(entry.until, min(record.at, now) if record is not None else now):
            return TOO_LATE
    return None


def set_aside_now(quarantine: Quarantine) -> Iterator[SetAside]:
    """Yield the resources to set aside, assuming that the manifests still ask for the refused content."""
    for entry in quarantine.all:
        if obstacle(entry, quarantine) is None:
            yield _entry_in_effect(entry, quarantine)


def _entry_in_effect(entry: QuarantineRecord | QuarantineEntry, quarantine: Quarantine) -> SetAside:
    line = entry.line if isinstance(entry, QuarantineEntry) else None
    return SetAside(entry.key, entry.reason, entry.until, quarantine.refusals[entry.key], line)


def verdict_of(
    quarantine: Quarantine, desired: Desired, recorded: Mapping[Key, Recorded], rules: Rules
) -> QuarantineVerdict:
    """Judge every entry of the state and of the project file."""
    verdict, contents = QuarantineVerdict(), contents_by(desired, rules)
    for entry in quarantine.all:
        key, why = entry.key, obstacle(entry, quarantine, contents)
        if why is None:
            verdict.entries[key] = _entry_in_effect(entry, quarantine)
            continue
        if why is NEVER and key not in desired.resources and key not in recorded:
            why = NOWHERE
        line = entry.line if isinstance(entry, QuarantineEntry) else None
        what = f"the quarantine of {key} has ended" if why.ends else f"{key} is not in quarantine"
        cure = "; remove the entry" if why.ends and line is not None else ""
        code, message = ENDED if why.ends else UNUSED, f"{what}: {why.why}{cure}"
        own = place_of(desired.resources.get(key), recorded.get(key))
        place = own if line is None else Source(quarantine.file, line)
        verdict.diagnostics.append(found_at(place, key, code, message, Severity.WARNING))
    return verdict


# --- warnings about resources that are set aside


def warnings(
    verdict: QuarantineVerdict,
    quarantine: Quarantine,
    target: Aim,
    desired: Mapping[Key, Resource],
    recorded: Mapping[Key, Recorded],
) -> Iterator[Diagnostic]:
    """Yield a warning at the line of each resource that is set aside, and for each entry that is not in effect."""
    waiting: dict[Key, list[Key]] = {}
    for key, cause in target.aside.items():
        if key != cause:
            waiting.setdefault(cause, []).append(key)
    for key, entry in verdict.entries.items():
        refusal = entry.refusal
        since, now = (datetime.fromtimestamp(at, UTC).isoformat() for at in (refusal.since, quarantine.now))
        words = refused_words(refusal.times, since, now, refusal.message)
        parts = [f"{key} {entry_words(entry, quarantine.file)}", words]
        if others := waiting.get(key):
            parts.append(f"{few(map(str, others), 3)} {'waits' if len(others) == 1 else 'wait'} with it")
        if target.keeps_types == key:
            parts.append("no activity type is deleted meanwhile")
        place = place_of(desired.get(key), recorded.get(key))
        yield found_at(place, key, QUARANTINED, "; ".join(parts), Severity.WARNING)
    yield from verdict.diagnostics


def entry_words(entry: SetAside, file: str) -> str:
    """Return the end and the reason of a quarantine as part of a sentence."""
    until = f" until {until_text(entry.until)}" if entry.until is not None else ""
    place = f", {file}:{entry.line}" if entry.line is not None else ""
    return f"is in quarantine{until} ({entry.reason}{place})"


def refused_words(times: int, since: str, now: str, message: str) -> str:
    """Return the last refusal in the service's words: `refused 3 times since 11:03: "…"`.

    `since` is the time of the first one, and `now` today's, both in ISO 8601 and UTC.
    """
    at = since[11:16] if since[:10] == now[:10] else since[:16].replace("T", " ")
    return f'refused {"1 time" if times == 1 else f"{times:,} times"} since {at}: "{message}"'
