"""Decide which resources the entries of a quarantine set aside, and report on each. Pure (docs/quarantine.md).

A resource whose last call was refused is left alone as if it were not selected, until its manifest asks for something
else or the entry's date has passed. The resource never counts as removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from syncengine.errors import Diagnostic, Severity
from syncengine.manifest.desired import Desired
from syncengine.plan.aim import Aim, Rules
from syncengine.plan.model import Plan, Quarantine, QuarantineUse
from syncengine.project.quarantine import QuarantineEntry, is_too_late, until_text
from syncengine.resource import Key, Kind, Recorded, Removal, Removed, Resource, Source, found_at
from syncengine.state.refusals import BY_HAND, REMOVAL, QuarantineRecord, Refusal, content_of

QUARANTINED, ENDED, UNUSED = "quarantined", "quarantine-ended", "quarantine-unused"
SWEEP_LEFT_OUT = "sweep-left-out"
CODES = frozenset({QUARANTINED, ENDED, UNUSED, SWEEP_LEFT_OUT})
"""The codes of warnings about quarantine, which every plan computes anew."""

NEVER = "its last call was not refused"
NOWHERE = "no manifest declares it, and the state does not know it"
CHANGED = "its manifest changed since it was refused"
UNKNOWN = "the outcome of its last call is unknown: the next apply sends it again"
NEEDS_UNTIL = "its removal can wait for 30 days at most: add `until` to the entry"
TOO_LATE = "its removal can wait for 30 days at most"
APPLIED = "it was applied"
REMOVALS: Mapping[str, str] = {
    NEEDS_UNTIL: f"{TOO_LATE}: add --until DATE",
    TOO_LATE: f"{TOO_LATE}: choose an earlier --until",
}
"""The command's words for the reasons why a removal is not set aside."""
FOR_NOW = frozenset({NEVER, NOWHERE, UNKNOWN, NEEDS_UNTIL, TOO_LATE})
"""The reasons that do not end a quarantine."""


class SetAside(Struct, frozen=True, gc=False):
    """A resource in quarantine, with the reason and the end. `line` is that of its entry in the project file."""

    key: Key
    reason: str
    until: float | None
    refusal: Refusal
    line: int | None = None


@dataclass(slots=True)
class QuarantineVerdict:
    """The part of a quarantine that is in effect.

    `entries` are the resources set aside. An apply records the entries that have `begun` and ends those that are
    `over`. `diagnostics` are about entries that are not in effect.
    """

    entries: dict[Key, SetAside] = field(default_factory=dict)
    begun: list[QuarantineRecord] = field(default_factory=list)
    over: list[QuarantineRecord] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def use(self, aside: Iterable[Key]) -> QuarantineUse:
        return QuarantineUse(tuple(aside), tuple(self.begun), tuple(self.over))


def obstacle(
    quarantine: Quarantine,
    desired: Desired,
    recorded: Mapping[Key, Recorded],
    rules: Rules,
    key: Key,
    until: float | None,
) -> str | None:
    """Return why a resource cannot be set aside now, or `None` when it can."""
    judge = _Judge(quarantine, desired.resources, desired.removed, recorded, rules)
    return judge.obstacle(key, until, quarantine.now, None)


def verdict_of(
    quarantine: Quarantine, desired: Desired, recorded: Mapping[Key, Recorded], rules: Rules
) -> QuarantineVerdict:
    """Judge every entry of the state and of the project file."""
    judge = _Judge(quarantine, desired.resources, desired.removed, recorded, rules)
    for record in quarantine.records:
        if record.origin == BY_HAND:
            judge.judge_record(record)
    records = {(record.key, record.origin): record for record in quarantine.records}
    for entry in quarantine.entries:
        judge.judge_entry(entry, records.pop((entry.key, entry.origin), None))
    return judge.verdict


def set_aside_now(quarantine: Quarantine) -> Iterator[SetAside]:
    """Yield the resources to set aside, assuming that the manifests still ask for the refused content."""
    refusals, now = quarantine.refusals, quarantine.now
    records = {(record.key, record.origin): record for record in quarantine.records}
    by_hand = (record for record in quarantine.records if record.origin == BY_HAND)
    found: list[tuple[Key, str, float | None, int | None, QuarantineRecord | None]]
    found = [(record.key, record.reason, record.until, None, record) for record in by_hand]
    found += [
        (entry.key, entry.reason, entry.until, entry.line, records.get((entry.key, entry.origin)))
        for entry in quarantine.entries
    ]
    for key, reason, until, line, record in found:
        refusal = refusals.get(key)
        if refusal is None or not refusal.is_last or (until is not None and until <= now):
            continue
        if record is not None and (record.ended is not None or record.content != refusal.content):
            continue
        if not refusal.content.startswith(REMOVAL) or (until is not None and not is_too_late(until, now)):
            yield SetAside(key, reason, until, refusal, line)


def entries_removed(quarantine: Quarantine) -> list[QuarantineRecord]:
    """Return the records of entries that are no longer in the project file."""
    origins = {BY_HAND, *(entry.origin for entry in quarantine.entries)}
    return [record for record in quarantine.records if record.origin not in origins]


def proven_use(plan: Plan, quarantine: Quarantine) -> QuarantineUse:
    """Return the part of a saved plan's use of the quarantine that the state and the project file confirm.

    The plan must already be proven to change nothing that is set aside now: its changes of such resources differ from
    the refused content.
    """
    claim = plan.quarantine or QuarantineUse()
    aside = {each.key for each in set_aside_now(quarantine)}
    begun_before = {(record.key, record.origin) for record in quarantine.records}
    entries = {(entry.key, entry.origin): entry for entry in quarantine.entries}
    begun = (
        replace(record, reason=entry.reason, until=entry.until, at=quarantine.now)
        for record in claim.begun
        if record.key in aside and (record.key, record.origin) not in begun_before
        if (entry := entries.get((record.key, record.origin))) is not None
        if record.content == quarantine.refusals[record.key].content
    )
    sent = {change.key for change in plan.changes}
    over = (record for record in claim.over if record in quarantine.records)
    over = (record for record in over if record.key in sent or record.key not in aside)
    return QuarantineUse(claim.set_aside, tuple(begun), tuple(over))


@dataclass(slots=True)
class _Judge:
    quarantine: Quarantine
    desired: Mapping[Key, Resource]
    statements: Mapping[Key, Removed]
    recorded: Mapping[Key, Recorded]
    rules: Rules
    verdict: QuarantineVerdict = field(default_factory=QuarantineVerdict)

    def judge_record(self, record: QuarantineRecord) -> None:
        """Judge an entry that was made by `state quarantine`."""
        since = min(record.at, self.quarantine.now)
        why = self.obstacle(record.key, record.until, since, record.content)
        if why is None:
            self._hold(record.key, record.reason, record.until)
        elif why in FOR_NOW:
            self._say(UNUSED, record.key, f"{record.key} is not in quarantine: {why}", None)
        else:
            self.verdict.over.append(record)
            self._say(ENDED, record.key, f"the quarantine of {record.key} has ended: {why}", None)

    def judge_entry(self, entry: QuarantineEntry, record: QuarantineRecord | None) -> None:
        """Judge an entry of the project file. `record` is the entry's record from an earlier apply."""
        now = self.quarantine.now
        if record is not None and record.ended is not None:
            message = f"the quarantine of {entry.key} has ended: remove the entry, or write a new one"
            self._say(ENDED, entry.key, message, entry)
            return
        content = record.content if record is not None else None
        why = self.obstacle(entry.key, entry.until, record.at if record else now, content)
        if why is None:
            self._begin(entry, record)
        elif record is not None and why not in FOR_NOW:
            self.verdict.over.append(record)
            self._say(ENDED, entry.key, f"the quarantine of {entry.key} has ended: {why}; remove the entry", entry)
        else:
            self._say(UNUSED, entry.key, f"{entry.key} is not in quarantine: {why}", entry)

    def obstacle(self, key: Key, until: float | None, since: float, content: str | None) -> str | None:
        """Return why a resource is not set aside, or `None`. `content` is the content refused when the entry began."""
        refusal = self.quarantine.refusals.get(key)
        if until is not None and until <= self.quarantine.now:
            return f"its date has passed ({until_text(until)})"
        if refusal is None:
            return self._never_refused(key) if content is None else APPLIED
        if not refusal.is_last:
            return UNKNOWN
        if content is not None and content != refusal.content:
            return CHANGED
        resource = self.desired.get(key)
        if resource is not None:
            return None if content_of(resource.body) == refusal.content else CHANGED
        return self._obstacle_of_removal(key, until, since, refusal)

    def _never_refused(self, key: Key) -> str:
        return NEVER if key in self.desired or key in self.recorded else NOWHERE

    def _obstacle_of_removal(self, key: Key, until: float | None, since: float, refusal: Refusal) -> str | None:
        if refusal.content not in {REMOVAL + way for way in self._ways_out(key)}:
            return CHANGED
        if until is None:
            return NEEDS_UNTIL
        return TOO_LATE if is_too_late(until, since) else None

    def _ways_out(self, key: Key) -> Iterator[str]:
        """Yield the ways in which a removal may be asked for. A rename retires whatever the policy is."""
        if key.kind is not Kind.TAG:
            yield "delete"
        elif statement := self.statements.get(key):
            yield statement.how.value
        else:
            yield from (self.rules.tag_removal.value, Removal.RETIRE.value)

    def _begin(self, entry: QuarantineEntry, record: QuarantineRecord | None) -> None:
        self._hold(entry.key, entry.reason, entry.until, entry.line)
        if record is None:
            refusal = self.quarantine.refusals[entry.key]
            begun = QuarantineRecord(
                key=entry.key,
                origin=entry.origin,
                reason=entry.reason,
                until=entry.until,
                at=self.quarantine.now,
                content=refusal.content,
            )
            self.verdict.begun.append(begun)

    def _hold(self, key: Key, reason: str, until: float | None, line: int | None = None) -> None:
        self.verdict.entries[key] = SetAside(key, reason, until, self.quarantine.refusals[key], line)

    def _say(self, code: str, key: Key, message: str, entry: QuarantineEntry | None) -> None:
        source = self._place(key) if entry is None else None
        if source is not None or entry is None or entry.line is None:
            self.verdict.diagnostics.append(found_at(source, key, code, message, Severity.WARNING))
            return
        self.verdict.diagnostics.append(
            Diagnostic(
                severity=Severity.WARNING,
                code=code,
                message=message,
                file=self.quarantine.file,
                line=entry.line,
                column=1,
                address=str(key),
            )
        )

    def _place(self, key: Key) -> Source | None:
        resource, row = self.desired.get(key), self.recorded.get(key)
        return resource.source if resource is not None else (row.source if row is not None else None)


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
        row = recorded.get(key)
        source = desired[key].source if key in desired else (row.source if row is not None else None)
        message = _sentence(entry, quarantine, waiting.get(key, ()), target.keeps_types == key)
        yield found_at(source, key, QUARANTINED, message, Severity.WARNING)
    yield from verdict.diagnostics


def entry_words(entry: SetAside, file: str) -> str:
    """Return the end and the reason of a quarantine as part of a sentence."""
    until = f" until {until_text(entry.until)}" if entry.until is not None else ""
    place = f", {file}:{entry.line}" if entry.line is not None else ""
    return f"is in quarantine{until} ({entry.reason}{place})"


def _sentence(entry: SetAside, quarantine: Quarantine, waiting: Sequence[Key], keeps_types: bool) -> str:
    parts = [
        f"{entry.key} {entry_words(entry, quarantine.file)}",
        refused_words(entry.refusal, quarantine.now),
        *([_waiting_words(waiting)] if waiting else []),
        *(["no activity type is deleted meanwhile"] if keeps_types else []),
    ]
    return "; ".join(parts)


def _waiting_words(waiting: Sequence[Key]) -> str:
    names = ", ".join(map(str, waiting[:3])) + (f" and {len(waiting) - 3:,} more" if len(waiting) > 3 else "")
    return f"{names} {'waits' if len(waiting) == 1 else 'wait'} with it"


def refused_words(refusal: Refusal, now: float) -> str:
    """Return the last refusal in the service's words: `refused 3 times since 11:03: "…"` (UTC)."""
    first, today = (datetime.fromtimestamp(seconds, UTC) for seconds in (refusal.since, now))
    since = f"{first:%H:%M}" if first.date() == today.date() else f"{first:%Y-%m-%d %H:%M}"
    times = "1 time" if refusal.times == 1 else f"{refusal.times:,} times"
    return f'refused {times} since {since}: "{refusal.message}"'
