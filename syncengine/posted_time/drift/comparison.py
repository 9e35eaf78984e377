"""Compare recorded tags with pages of posted time, and collect the findings. Pure.

Memory grows with the number of tags, never with the number of groups.
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
"""The maximum number of undeclared tags that are remembered by name; groups of further tags are only counted."""

NOTHING = ""
"""The value that stands for a missing field which the interface always sends (docs/interface.md 2.1)."""


def differences(tag: PostedTag, recorded: RecordedTag) -> dict[str, str]:
    """Return the posted values of the tag's fields that differ from the recorded values.

    Fields that were never declared, or that the group omits, are not compared, except that an omitted `externalId`
    counts as empty. Surrounding whitespace and Unicode form are ignored, and an empty path is the root.
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
    """Return whether the only difference is an `externalId` that was not sent."""
    return tag.external_id is None and set(names) == {"externalId"}


@dataclass(slots=True)
class _Seen:
    """The groups in which one tag differs: `absent` counts those that only lack `externalId`, `groups` all others."""

    groups: int = 0
    absent: int = 0
    last: int = 0
    values: dict[str, str] = field(default_factory=dict)
    mended: bool = False


class DriftComparison:
    """A comparison that takes pages, newest first. `since` and `unused_since` are in milliseconds since the epoch."""

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
        """Return the tags whose settling time must be passed to `learn_times` before the page is taken."""
        tags = (tag for group in page if group.at >= self._since for tag in group.tags)
        return {
            tag.name or ""
            for tag in tags
            if (recorded := self._tags.get(tag.name or "")) and tag.name not in self._settled
            if recorded.speaks and (recorded.is_gone or differences(tag, recorded))
        }

    def learn_times(self, names: Iterable[str], at: Mapping[str, float]) -> None:
        """Store when tags settled, in seconds since the epoch. For a tag missing from `at`, the time is unknown."""
        self._settled |= {name: at.get(name) for name in names}

    def take(self, page: Sequence[Sighting]) -> None:
        """Compare the tags of a page's groups, and add the results."""
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
        """The number of declared tags that were seen in posted time."""
        return len(self._recorded_names)

    def findings(self, *, is_whole: bool) -> Iterator[DriftFinding]:
        """Yield the findings so far. `is_whole`: no group is missing, so that tags not seen are reported as unused."""
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
        # A service that never sends an externalId does not show that one is missing.
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
    """Return the fields of a posted tag that are present, by the interface's names."""
    return {name: value for name, attribute in FIELDS.items() if (value := getattr(tag, attribute)) is not None}


def similar_names(names: Iterable[str], declared: Iterable[str]) -> dict[str, str]:
    """Return the declared tag for each of `names` that differs from it only by case or Unicode form."""
    forms = {folded(name) for name in names}
    by_form = {form: name for name in declared if (form := folded(name)) in forms}
    return {name: by_form[form] for name in names if (form := folded(name)) in by_form}
