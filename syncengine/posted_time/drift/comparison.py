"""Recorded tags, and pages of posted time as they come → findings. Knows neither service nor state.

Memory grows with the number of tags, never with that of groups.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from syncengine.document.text import folded
from syncengine.posted_time.drift.model import FIELDS, DriftFinding, DriftKind, RecordedTag
from syncengine.posted_time.drift.sightings import Sighting
from syncengine.posted_time.group import PostedTag

MOST_UNKNOWN = 10_000
"""Tags that nobody declared, remembered by name; groups of others are only counted."""

NOTHING = ""
"""The value of a field that the interface always sends (docs/interface.md 2.1), and that is not there."""


def differences(tag: PostedTag, recorded: RecordedTag) -> dict[str, str]:
    """The values that a group shows of fields that differ from the recorded ones.

    A field that was never declared, or that the group omits, is not compared; an omitted externalId is one that the
    tag does not have. Blanks around a value and its Unicode form say nothing, and a path that is empty is the root.
    """
    values = {}
    for name, value in recorded.fields.items():
        text = getattr(tag, FIELDS[name])
        if name == "externalId" and text is None:
            text = NOTHING
        if text is None or (name == "description" and not value):
            continue
        if _plain(name, text) != _plain(name, value):
            values[name] = text
    return values


def _plain(name: str, value: str) -> str:
    text = unicodedata.normalize("NFC", value).strip()
    return text or "/" if name == "path" else text


def is_absence(tag: PostedTag, names: Collection[str]) -> bool:
    """Whether the differences are no more than an externalId that was not sent."""
    return tag.external_id is None and set(names) == {"externalId"}


@dataclass(slots=True)
class _Seen:
    """The groups that show one tag: their number, those that only lack an externalId apart; values of the newest."""

    groups: int = 0
    absent: int = 0
    last: int = 0
    values: dict[str, str] = field(default_factory=dict)
    mended: bool = False


class DriftComparison:
    """Takes pages, newest first. `since`, `unused_since`: milliseconds since epoch."""

    def __init__(self, tags: Mapping[str, RecordedTag], since: float, unused_since: float | None) -> None:
        self._tags = tags
        self._since = since
        self._unused_since = unused_since
        self._settled: dict[str, float | None] = {}
        self._found: dict[str, _Seen] = {}
        self._right: set[str] = set()
        self._used: set[str | None] = set()
        self._recorded_names: set[str] = set()
        self._sends_ids = False
        self._strangers = 0
        self.groups = 0
        self.unlisted = 0

    def in_question(self, page: Iterable[Sighting]) -> set[str]:
        """Tags of which it must be known when they settled, before the page is taken."""
        tags = (tag for group in page if group.at >= self._since for tag in group.tags)
        return {
            tag.name or ""
            for tag in tags
            if (recorded := self._tags.get(tag.name or "")) and tag.name not in self._settled
            if recorded.speaks and (recorded.is_gone or differences(tag, recorded))
        }

    def learn_times(self, names: Iterable[str], at: Mapping[str, float]) -> None:
        """Learn when tags settled, in seconds since epoch; of one that is not in `at` nobody knows."""
        self._settled |= {name: at.get(name) for name in names}

    def take(self, page: Sequence[Sighting]) -> None:
        """Take a page."""
        for group in page:
            is_recent = group.at >= self._since
            self.groups += is_recent
            if self._unused_since is not None and group.at >= self._unused_since:
                self._used |= {tag.name for tag in group.tags if tag.name in self._tags}
            for tag in group.tags if is_recent else ():
                self._sends_ids |= tag.external_id is not None
                self._take(tag, group.at)

    def _take(self, tag: PostedTag, at: int) -> None:
        name = tag.name or ""
        recorded = self._tags.get(name)
        if recorded is None:
            self._unknown(tag, at)
            return
        if recorded.is_declared:
            self._recorded_names.add(name)
        if not recorded.speaks:
            return
        values = values_of(tag) if recorded.is_gone else differences(tag, recorded)
        settled_at = self._settled.get(name)
        if not (values or recorded.is_gone):
            self._right.add(name)
        elif settled_at is not None and at > settled_at * 1000:
            self._note(name, at, values, absent=recorded.is_declared and is_absence(tag, values))

    def _unknown(self, tag: PostedTag, at: int) -> None:
        name = tag.name or ""
        if name not in self._found and self._strangers >= MOST_UNKNOWN:
            self.unlisted += 1
            return
        self._strangers += name not in self._found
        self._note(name, at, values_of(tag))

    def _note(self, name: str, at: int, values: Mapping[str, str], *, absent: bool = False) -> None:
        summary = self._found.setdefault(name, _Seen(mended=name in self._right))
        summary.groups += not absent
        summary.absent += absent
        summary.last = max(summary.last, at)
        summary.values = {**values, **summary.values}

    @property
    def declared(self) -> int:
        return sum(tag.is_declared for tag in self._tags.values())

    @property
    def seen_count(self) -> int:
        """How many declared tags were seen."""
        return len(self._recorded_names)

    def findings(self, *, is_whole: bool) -> Iterator[DriftFinding]:
        """The findings so far. `is_whole`: nothing is missing, so that a tag that was not seen is not used."""
        for name, summary in self._found.items():
            recorded = self._tags.get(name)
            finding = (
                self._unknown_finding(name, summary) if recorded is None else self._finding(name, recorded, summary)
            )
            if finding.groups:
                yield finding
        if self._unused_since is not None and is_whole:
            for name, recorded in self._tags.items():
                if recorded.is_declared and recorded.speaks and name not in self._used:
                    yield DriftFinding(DriftKind.UNUSED, name, is_public=not recorded.is_private)

    def _unknown_finding(self, name: str, summary: _Seen) -> DriftFinding:
        return DriftFinding(DriftKind.UNKNOWN, name, summary.groups, summary.last, seen=summary.values)

    def _finding(self, name: str, recorded: RecordedTag, summary: _Seen) -> DriftFinding:
        if recorded.is_gone:
            status = {"status": recorded.status.value}
            return DriftFinding(DriftKind.RETIRED_IN_USE, name, summary.groups, summary.last, status, summary.values)
        # Of a service that never sends an externalId, one that is missing says nothing.
        groups, values = summary.groups, summary.values
        if self._sends_ids:
            groups += summary.absent
        else:
            values = {each: value for each, value in values.items() if value != NOTHING or each != "externalId"}
        return DriftFinding(
            DriftKind.DIFFERS,
            name,
            groups,
            summary.last,
            {each: recorded.fields[each] for each in values},
            values,
            is_public=not recorded.is_private,
            mended=summary.mended,
        )


def values_of(tag: PostedTag) -> dict[str, str]:
    """The fields that a group shows of a tag."""
    return {name: value for name, attribute in FIELDS.items() if (value := getattr(tag, attribute)) is not None}


def similar_names(names: Iterable[str], declared: Iterable[str]) -> dict[str, str]:
    """Declared tags whose names differ from these only by case or Unicode form, as manifests are warned of."""
    forms = {folded(name) for name in names}
    by_form = {form: name for name in declared if (form := folded(name)) in forms}
    return {name: by_form[form] for name in names if (form := folded(name)) in by_form}
