"""Tags in posted time that differ from the recorded ones. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from syncengine.resource import Recorded, Status

FIELDS: Mapping[str, str] = {"description": "description", "path": "path", "externalId": "external_id"}
"""Fields of a posted tag besides its name (docs/interface.md 2.5), and the attributes of `PostedTag` that hold them."""


class DriftKind(StrEnum):
    """The kinds of drift, in the order in which findings are shown."""

    UNKNOWN = "unknown"
    RETIRED_IN_USE = "retired-in-use"
    DIFFERS = "differs"
    UNUSED = "unused"


class RecordedTag(NamedTuple):
    """The recorded content of a tag, as far as posted time can show it. Any write of the row makes it another value."""

    status: Status
    doubtful: bool
    is_private: bool
    fields: Mapping[str, str]
    run: str | None

    @classmethod
    def of(cls, row: Recorded) -> RecordedTag:
        fields = {name: str(value) for name in FIELDS if (value := row.body.fields.get(name)) is not None}
        return cls(row.status, row.doubtful, row.body.fields.get("visibility") == "PRIVATE", fields, row.run)

    @property
    def speaks(self) -> bool:
        """Whether the content that the service holds is known, and was not released since."""
        return not self.doubtful and self.status is not Status.RELEASED

    @property
    def is_declared(self) -> bool:
        return self.status is Status.ACTIVE

    @property
    def is_gone(self) -> bool:
        """Whether it was retired or deleted. A released one was left to go on tagging time (docs/planning.md 2.2)."""
        return self.status in (Status.RETIRED, Status.DELETED)


@dataclass(frozen=True, slots=True)
class DriftFinding:
    """The drift of a tag. `groups`: how many show it so; `last`: when the newest of them was submitted (milliseconds).

    `recorded` and `seen`: fields by the interface's names, with the newest values that were seen. `is_public`: the name
    may be published. `similar`: a declared tag whose name differs by case or Unicode form only. `mended`: a newer group
    shows it as recorded.
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
    """How the list was read. `unreadable`: items that are no group; `hidden`: instants (milliseconds) with more groups
    than the service lists; `ignored`, `endless`: why reading ended early."""

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
        """Whether no group is missing that the service has, as far as can be known."""
        return not (self.hidden or self.ignored or self.endless)

    @property
    def is_complete(self) -> bool:
        return self.is_whole and not self.unreadable


@dataclass(frozen=True, slots=True)
class Drift:
    """`since`, `unused_since`: seconds since epoch. `declared`, `seen`: numbers of tags. `unlisted`: groups of tags
    that nobody declared, beyond those that are listed."""

    since: float
    unused_since: float | None
    reading: ListReading
    declared: int
    seen: int
    findings: tuple[DriftFinding, ...]
    unlisted: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found that somebody should look at; that a tag is not used proves nothing."""
        return all(finding.kind is DriftKind.UNUSED for finding in self.findings)

    def count(self, kind: DriftKind) -> int:
        return sum(finding.kind is kind for finding in self.findings)
