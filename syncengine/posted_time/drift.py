"""Compare recorded tags with pages of posted time: what is found, and what of it may be published. Pure.

Memory grows with the number of tags, never with the number of groups. Published are counts, and names of declared tags
that are not PRIVATE; other names, recorded and posted values, and times appear in local output only. A count of groups
so small that it could point to a person is shown as `<5`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from syncengine.posted_time.group import PostedTag
from syncengine.resource import Key, Kind, Recorded, Status

FIELDS = ("description", "path", "externalId")
"""The fields of a posted tag besides its name (docs/interface.md 2.5)."""


class DriftKind(StrEnum):
    """The kinds of drift, in the order in which findings are shown."""

    UNKNOWN = "unknown"
    RETIRED_IN_USE = "retired-in-use"
    DIFFERS = "differs"
    UNUSED = "unused"


class RecordedTag(NamedTuple):
    """The recorded content of a tag that posted time can show. `run` makes values from different writes unequal."""

    status: Status
    doubtful: bool
    is_private: bool
    fields: Mapping[str, str]
    run: str | None

    @classmethod
    def of(cls, row: Recorded) -> RecordedTag:
        fields = {name: str(value) for name in FIELDS if (value := row.body.fields.get(name)) is not None}
        return cls(row.status, row.doubtful, row.body.fields.get("visibility") != "PUBLIC", fields, row.run)

    @property
    def speaks(self) -> bool:
        """Whether the service's content of the tag is known, because the row is neither doubtful nor released."""
        return not self.doubtful and self.status is not Status.RELEASED

    @property
    def is_declared(self) -> bool:
        return self.status is Status.ACTIVE

    @property
    def is_gone(self) -> bool:
        """Whether the tag was retired or deleted. A released tag may still tag time (docs/planning.md 2.2)."""
        return self.status in (Status.RETIRED, Status.DELETED)


@dataclass(frozen=True, slots=True)
class DriftFinding:
    """The drift of a tag. `groups` counts the groups that show it; `last` is when the newest was submitted.

    `last` is in milliseconds since epoch. `recorded` and `seen` are fields by the interface's names, with the newest
    values seen. `is_public`: the name may be published. `similar`: a declared tag whose name differs only by case or
    Unicode form. `mended`: a newer group shows the recorded content.
    """

    kind: DriftKind
    name: str
    groups: int = 0
    last: int | None = None
    recorded: Mapping[str, str] = field(default_factory=dict)
    seen: Mapping[str, str] = field(default_factory=dict)
    is_public: bool = False
    similar: str | None = None
    mended: bool = False


@dataclass(slots=True)
class ListReading:
    """How completely the service's list was read. `unreadable` counts items that are not a group.

    `hidden` lists instants (milliseconds since epoch) that fill a whole page, so that further groups may be missing.
    `ignored` and `endless` tell why reading ended early.
    """

    groups: int = 0
    unreadable: int = 0
    hidden: list[int] = field(default_factory=list)
    ignored: bool = False
    endless: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the list was read to its end, and no group is known to be missing."""
        return not (self.hidden or self.ignored or self.endless)

    @property
    def is_complete(self) -> bool:
        return self.is_whole and not self.unreadable


@dataclass(frozen=True, slots=True)
class Drift:
    """The findings about all tags. `since` and `unused_since` are in seconds since the epoch.

    `declared` and `seen` count tags. `unlisted` counts groups with undeclared tags that are too many to be listed.
    """

    since: float
    unused_since: float | None
    reading: ListReading
    declared: int
    seen: int
    findings: tuple[DriftFinding, ...]
    unlisted: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found but unused tags, which need no action."""
        return all(finding.kind is DriftKind.UNUSED for finding in self.findings)

    def count(self, kind: DriftKind) -> int:
        return sum(finding.kind is kind for finding in self.findings)


class Sighting(NamedTuple):
    """A group with its named tags and the time of its submission (milliseconds since epoch). `key` identifies it."""

    key: Hashable
    at: int
    tags: tuple[PostedTag, ...]


MOST_UNKNOWN = 10_000
"""The maximum number of undeclared tags that are remembered by name; groups of further tags are only counted."""


def differences(tag: PostedTag, recorded: RecordedTag) -> dict[str, str]:
    """Return the posted values of the tag's fields that differ from the recorded values.

    Fields that were never declared, or that the group omits, are not compared, except that an omitted `externalId`
    counts as empty: the interface always sends one that there is (docs/interface.md 2.1). Surrounding whitespace and
    Unicode form are ignored, and an empty path is the root.
    """

    def plain(name: str, value: str) -> str:
        text = unicodedata.normalize("NFC", value).strip()
        return text or "/" if name == "path" else text

    values = {}
    for name, value in recorded.fields.items():
        text = getattr(tag, name)
        text = "" if text is None and name == "externalId" else text
        if text is None or (name == "description" and not value):
            continue
        if plain(name, text) != plain(name, value):
            values[name] = text
    return values


def is_absence(tag: PostedTag, names: Collection[str]) -> bool:
    """Return whether the only difference is an `externalId` that was not sent."""
    return tag.externalId is None and set(names) == {"externalId"}


@dataclass(slots=True)
class _Seen:
    """The groups in which one tag differs: `absent` counts those that only lack `externalId`, `groups` all others."""

    groups: int = 0
    absent: int = 0
    last: int = 0
    values: dict[str, str] = field(default_factory=dict)
    mended: bool = False


@dataclass(slots=True)
class DriftComparison:
    """A comparison of `tags` with pages, newest first. `since` and `unused_since` are in milliseconds since the epoch.

    `settled_at` returns when tags settled, in seconds since the epoch; a tag that is missing has no known time.
    `declared_seen` are the declared tags in posted time, and `unlisted` counts the groups of tags that are too many.
    """

    tags: Mapping[str, RecordedTag]
    since: float
    unused_since: float | None
    settled_at: Callable[[Collection[str]], Mapping[str, float]]
    groups: int = 0
    unlisted: int = 0
    declared_seen: set[str] = field(default_factory=set)
    _settled: dict[str, float | None] = field(default_factory=dict)
    _found: dict[str, _Seen] = field(default_factory=dict)
    _right: set[str] = field(default_factory=set)
    _used: set[str | None] = field(default_factory=set)
    _sends_ids: bool = False
    _strangers: int = 0

    def take(self, page: Sequence[Sighting]) -> None:
        """Compare the tags of a page's groups, and add the results."""
        recent = [group for group in page if group.at >= self.since]
        self.groups += len(recent)
        if self.unused_since is not None:
            self._used |= {
                tag.name
                for group in page
                if group.at >= self.unused_since
                for tag in group.tags
                if tag.name in self.tags
            }
        # The state is asked once a page, and only for tags of which it matters when they settled.
        names = {
            tag.name or ""
            for group in recent
            for tag in group.tags
            if (recorded := self.tags.get(tag.name or "")) and tag.name not in self._settled
            if recorded.speaks and (recorded.is_gone or differences(tag, recorded))
        }
        if names:
            times = self.settled_at(names)
            self._settled |= {name: times.get(name) for name in names}
        for group in recent:
            for tag in group.tags:
                self._sends_ids |= tag.externalId is not None
                self._take(tag, group.at)

    def _take(self, tag: PostedTag, at: int) -> None:
        """Add a tag that a group shows to what was found, unless it agrees with what is recorded."""
        name = tag.name or ""
        values = {name: value for name in FIELDS if (value := getattr(tag, name)) is not None}
        recorded, is_absent = self.tags.get(name), False
        if recorded is None:
            if name not in self._found and self._strangers >= MOST_UNKNOWN:
                self.unlisted += 1
                return
            self._strangers += name not in self._found
        else:
            if recorded.is_declared:
                self.declared_seen.add(name)
            if not recorded.speaks:
                return
            if not recorded.is_gone:
                values = differences(tag, recorded)
                if not values:
                    self._right.add(name)
                    return
                is_absent = is_absence(tag, values)
            settled_at = self._settled.get(name)
            if settled_at is None or at <= settled_at * 1000:  # it was posted before the tag got its content
                return
        # Pages come newest first: a tag that was right already was right in a newer group, and newer values stay.
        seen = self._found.setdefault(name, _Seen(mended=name in self._right))
        seen.groups += not is_absent
        seen.absent += is_absent
        seen.last = max(seen.last, at)
        seen.values = {**values, **seen.values}

    def findings(self, *, is_whole: bool) -> Iterator[DriftFinding]:
        """Yield the findings so far. `is_whole`: no group is missing, so that tags not seen are reported as unused."""
        for name, seen in self._found.items():
            recorded, groups, values = self.tags.get(name), seen.groups, seen.values
            if recorded is None:
                yield DriftFinding(DriftKind.UNKNOWN, name, groups, seen.last, seen=values)
            elif recorded.is_gone:
                status = {"status": recorded.status.value}
                yield DriftFinding(DriftKind.RETIRED_IN_USE, name, groups, seen.last, status, values)
            else:
                # A service that never sends an externalId does not show that one is missing.
                if self._sends_ids:
                    groups += seen.absent
                else:
                    values = {each: value for each, value in values.items() if value or each != "externalId"}
                if groups:
                    public, before = not recorded.is_private, {each: recorded.fields[each] for each in values}
                    kind, mended = DriftKind.DIFFERS, seen.mended
                    yield DriftFinding(kind, name, groups, seen.last, before, values, public, mended=mended)
        if self.unused_since is not None and is_whole:
            for name, recorded in self.tags.items():
                if recorded.is_declared and recorded.speaks and name not in self._used:
                    yield DriftFinding(DriftKind.UNUSED, name, is_public=not recorded.is_private)


FEWEST = 5
"""The smallest number of groups that is published; smaller numbers are shown as `<5`."""

Groups = int | str


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding in the form for one audience. `address` is `None` when the tag's name may not be shown."""

    kind: DriftKind
    address: str | None
    groups: Groups
    recorded: Mapping[str, str | None] | None
    seen: Mapping[str, str | None] | None
    last: int | None = None
    mended: bool = False
    similar: str | None = None


def shown_count(groups: int, *, published: bool) -> Groups:
    return f"<{FEWEST}" if published and groups < FEWEST else groups


def shown_findings(drift: Drift, *, published: bool) -> list[ShownFinding]:
    """Return the findings for local output, or reduced to their publishable part."""
    shown = []
    for each in drift.findings:
        address = str(Key(Kind.TAG, each.name))
        if published:
            fields = dict.fromkeys(each.recorded) if each.kind is DriftKind.DIFFERS and each.recorded else None
            groups, name = shown_count(each.groups, published=True), address if each.is_public else None
            shown.append(ShownFinding(each.kind, name, groups, fields, fields, mended=each.mended))
        else:
            values, seen = each.recorded or None, each.seen if each.kind is not DriftKind.UNUSED else None
            similar = str(Key(Kind.TAG, each.similar)) if each.similar else None
            shown.append(ShownFinding(each.kind, address, each.groups, values, seen, each.last, each.mended, similar))
    return shown
