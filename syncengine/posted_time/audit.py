"""What the service lists as posted, against what the sinks took: groups and receipts → what is missing on which side.

Pure. A sink with a condition takes only some groups: it lacks one only where the inbox knows that it was to have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

POSTED = "SUCCESS"
"""The stored status of a group that was posted (service-facts §2)."""


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
    """A sink took it, and the service does not list it as posted: its status there, None when it is not listed."""

    group_id: str
    sink: str
    at: float
    status: str | None


@dataclass(frozen=True, slots=True)
class Audit:
    """`posted`: how many groups the service lists as posted."""

    posted: int
    lacking: tuple[Lacking, ...]
    unposted: tuple[Unposted, ...]

    @property
    def agrees(self) -> bool:
        return not self.lacking and not self.unposted


def audit(
    listed: Iterable[Listed],
    taken: Iterable[Taken],
    sinks: Mapping[str, bool],
    meant: Mapping[str, Set[str]],
    since: float,
) -> Audit:
    """`sinks`: name → whether it takes every group. `meant`: group → sinks that the inbox gave it to, or tried to.

    Groups submitted since then are looked for in the sinks, receipts since then at the service.
    """
    known = {group.group_id: group for group in listed}
    taken = list(taken)
    receipts = {(receipt.group_id, receipt.sink) for receipt in taken}
    posted = [g for g in known.values() if g.status == POSTED and (g.submitted is None or g.submitted >= since * 1000)]
    lacking = [
        Lacking(group.group_id, sink, group.submitted)
        for group in posted
        for sink, takes_all in sinks.items()
        if (group.group_id, sink) not in receipts and _was_meant(group, sink, takes_all, meant)
    ]
    unposted = [
        Unposted(receipt.group_id, receipt.sink, receipt.at, status)
        for receipt in taken
        if receipt.at >= since and (status := _status(known.get(receipt.group_id))) != POSTED
    ]
    return Audit(len(posted), tuple(lacking), tuple(unposted))


def _was_meant(group: Listed, sink: str, takes_all: bool, meant: Mapping[str, Set[str]]) -> bool:
    """A group that the inbox never saw was taken by none: each sink that might have had it lacks it."""
    given = meant.get(group.group_id)
    return takes_all or given is None or sink in given


def _status(group: Listed | None) -> str | None:
    return group.status if group else None
