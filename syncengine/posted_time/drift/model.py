"""The findings of a comparison between tags in posted time and recorded tags. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from syncengine.resource import Recorded, Status

FIELDS: Mapping[str, str] = {"description": "description", "path": "path", "externalId": "external_id"}
"""The fields of a posted tag besides its name (docs/interface.md 2.5), with the attributes of `PostedTag`."""


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

    def end_ignored(self) -> None:
        self.ignored = True

    def end_endless(self) -> None:
        self.endless = True

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
