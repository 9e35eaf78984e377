"""Findings → their publishable part: counts, and names of declared tags that are not PRIVATE. Pure.

Everything else is in local output alone: other names, recorded and observed values, and times. A count of groups so
small that it could point to a person is shown as `<5`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from syncengine.posted_time.drift.model import Drift, DriftFinding, DriftKind
from syncengine.resource import Key, Kind

FEWEST = 5
"""Groups that are counted in public, at least."""

Groups = int | str
Values = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding as it is shown somewhere. `address` None: the name may not be shown there."""

    kind: DriftKind
    address: str | None
    groups: Groups
    recorded: Values | None
    seen: Values | None
    last: int | None = None
    mended: bool = False
    similar: str | None = None


def shown_findings(drift: Drift, *, published: bool) -> list[ShownFinding]:
    """The findings for one's own screen, or for everybody."""
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
