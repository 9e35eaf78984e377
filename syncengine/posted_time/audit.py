"""What the service lists as posted, against what the sinks took: groups and receipts → what is missing on which side.

Pure. Of the statuses that a listed group may have the specification shows PENDING alone (§3): a group is posted there
when it is listed as anything else, unless we refused it. What is not listed as SUCCESS is told one by one, with what is
known of it here. A sink with a condition takes only some groups: it lacks one only where the inbox knows that it was
to have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PENDING, SUCCESS = "PENDING", "SUCCESS"
"""Stored statuses: the one that the specification shows, and the one of what was posted (service-facts §2)."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A group as the service lists it. `submitted` in milliseconds since epoch."""

    group_id: str
    status: str | None
    submitted: int | None


@dataclass(frozen=True, slots=True)
class Taken:
    """That a sink took a group; `at` in seconds since epoch."""

    group_id: str
    sink: str
    at: float
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class Lacking:
    """The service says that it was posted, and the sink has no receipt of it."""

    group_id: str
    sink: str
    submitted: int | None


@dataclass(frozen=True, slots=True)
class Unposted:
    """A sink took it, and the service waits for it (PENDING), or does not list it (None)."""

    group_id: str
    sink: str
    at: float
    status: str | None


@dataclass(frozen=True, slots=True)
class Known:
    """What the inbox knows of a group: its state, the last answer to the service, the sinks that it was given to."""

    state: str
    outcome: str | None
    sinks: frozenset[str] = frozenset()

    @property
    def is_refused(self) -> bool:
        return self.outcome not in (None, SUCCESS)


@dataclass(frozen=True, slots=True)
class Other:
    """Listed, and not as SUCCESS. `taken` by these sinks; `known` None: it is not in the inbox."""

    group_id: str
    status: str | None
    submitted: int | None
    known: Known | None
    taken: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """`listed`, `posted`: how many groups the service lists, and how many of them as posted."""

    listed: int
    posted: int
    lacking: tuple[Lacking, ...]
    unposted: tuple[Unposted, ...]
    others: tuple[Other, ...]

    @property
    def agrees(self) -> bool:
        return not self.lacking and not self.unposted


def audit(
    listed: Iterable[Listed],
    taken: Iterable[Taken],
    sinks: Mapping[str, bool],
    known: Mapping[str, Known],
    since: float,
) -> Audit:
    """`sinks`: name → whether it takes every group. `known`: the groups of the inbox.

    Groups submitted since then are looked for in the sinks, receipts since then at the service.
    """
    by_id = {group.group_id: group for group in listed}
    taken = list(taken)
    receipts = {(receipt.group_id, receipt.sink) for receipt in taken}
    recent = [group for group in by_id.values() if group.submitted is None or group.submitted >= since * 1000]
    posted = [group for group in recent if _is_posted(group, known.get(group.group_id))]
    lacking = [
        Lacking(group.group_id, sink, group.submitted)
        for group in posted
        for sink, takes_all in sinks.items()
        if (group.group_id, sink) not in receipts and _was_meant(sink, takes_all, known.get(group.group_id))
    ]
    unposted = [
        Unposted(receipt.group_id, receipt.sink, receipt.at, group.status if group else None)
        for receipt in taken
        if receipt.at >= since and ((group := by_id.get(receipt.group_id)) is None or group.status == PENDING)
    ]
    others = [
        Other(group.group_id, group.status, group.submitted, known.get(group.group_id), _takers(group, sinks, receipts))
        for group in recent
        if group.status != SUCCESS
    ]
    return Audit(len(recent), len(posted), tuple(lacking), tuple(unposted), tuple(others))


def _is_posted(group: Listed, known: Known | None) -> bool:
    if group.status in (PENDING, SUCCESS):
        return group.status == SUCCESS
    return known is None or not known.is_refused


def _was_meant(sink: str, takes_all: bool, known: Known | None) -> bool:
    """A group that the inbox never saw was taken by none: each sink that might have had it lacks it."""
    return takes_all or known is None or sink in known.sinks


def _takers(group: Listed, sinks: Iterable[str], receipts: set[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(sink for sink in sinks if (group.group_id, sink) in receipts)
