"""Reduce findings to their publishable part: counts, and names of declared tags that are not PRIVATE. Pure.

Other names, recorded and posted values, and times appear in local output only. A count of groups so small that it
could point to a person is shown as `<5`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from syncengine.posted_time.drift.model import Drift, DriftFinding, DriftKind
from syncengine.resource import Key, Kind

FEWEST = 5
"""The smallest number of groups that is published; smaller numbers are shown as `<5`."""

Groups = int | str
Values = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding in the form for one audience. `address` is `None` when the tag's name may not be shown."""

    kind: DriftKind
    address: str | None
    groups: Groups
    recorded: Values | None
    seen: Values | None
    last: int | None = None
    mended: bool = False
    similar: str | None = None


def shown_findings(drift: Drift, *, published: bool) -> list[ShownFinding]:
    """Return the findings for local output, or reduced to their publishable part."""
    return [(_published if published else _local)(finding) for finding in drift.findings]


def shown_count(groups: int, *, published: bool) -> Groups:
    return f"<{FEWEST}" if published and groups < FEWEST else groups


def address_of(name: str) -> str:
    return str(Key(Kind.TAG, name))


def _local(finding: DriftFinding) -> ShownFinding:
    return ShownFinding(
        finding.kind,
        address_of(finding.name),
        finding.groups,
        finding.recorded or None,
        finding.seen if finding.kind is not DriftKind.UNUSED else None,
        finding.last,
        finding.mended,
        address_of(finding.similar) if finding.similar else None,
    )


def _published(finding: DriftFinding) -> ShownFinding:
    address = address_of(finding.name) if finding.is_public else None
    fields: Sequence[str] = list(finding.recorded) if finding.kind is DriftKind.DIFFERS else ()
    values = dict.fromkeys(fields) or None
    groups = shown_count(finding.groups, published=True)
    return ShownFinding(finding.kind, address, groups, values, values, mended=finding.mended)
