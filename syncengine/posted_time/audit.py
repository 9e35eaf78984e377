"""Compare the service's list of posted groups with the receipts of sinks: which side lacks which group.

Pure. Of the statuses that a listed group may have docs/interface.md 2.5 shows PENDING alone: a group is posted there
when it is listed as anything else, unless we refused it. Groups not listed as SUCCESS are shown one by one, with the
facts known here. A sink with a condition takes only some groups: it lacks one only where the inbox knows that it was
to have it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from syncengine.posted_time.shares import suffixes, tag_of
from syncengine.state.inbox_entries import sink_of
from syncengine.state.inbox_states import GroupState, PostedTimeStatus

PENDING = "PENDING"
"""The one stored status that the interface shows; that of what was posted is SUCCESS (docs/service.md §2)."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A group as the service lists it. `submitted` in milliseconds since epoch; `tags`: their names."""

    group_id: str
    status: str | None
    submitted: int | None
    tags: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditReceipt:
    """Receipt of a sink for a group, under its own name or that and one tag. `at` in seconds since epoch."""

    group_id: str
    key: str
    at: float
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class Lacking:
    """A group that the service lists as posted and of which a sink has no receipt."""

    group_id: str
    sink: str
    submitted: int | None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Unposted:
    """A sink took it, and the service waits for it (PENDING), or does not list it (None)."""

    group_id: str
    sink: str
    at: float
    status: str | None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """The inbox's facts about a group: its state, the last answer to the service, the keys of its deliveries."""

    state: GroupState
    outcome: PostedTimeStatus | None
    keys: frozenset[str] = frozenset()

    @property
    def is_refused(self) -> bool:
        return self.outcome not in (None, PostedTimeStatus.SUCCESS)


@dataclass(frozen=True, slots=True)
class Other:
    """Listed, and not as SUCCESS. `takers`: the sinks that took it; `entry` None: it is not in the inbox."""

    group_id: str
    status: str | None
    submitted: int | None
    entry: Known | None
    takers: tuple[str, ...]


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
    receipts: Iterable[AuditReceipt],
    sinks: Mapping[str, bool],
    inbox: Mapping[str, Known],
    since: float,
    each_tag: Collection[str] = (),
) -> Audit:
    """`sinks`: name → whether it takes every group; `each_tag`: those given it once for each tag. `inbox`: its groups.

    Groups submitted since then are looked for in the sinks, receipts since then at the service.
    """
    by_id = {group.group_id: group for group in listed}
    receipts = list(receipts)
    marks = {(receipt.group_id, receipt.key) for receipt in receipts}
    recent = [group for group in by_id.values() if group.submitted is None or group.submitted >= since * 1000]
    posted = [group for group in recent if _is_posted(group, inbox.get(group.group_id))]
    lacking = [
        Lacking(group.group_id, sink, group.submitted, tag)
        for group in posted
        for sink, takes_all in sinks.items()
        for key, tag in _parts(sink, group, inbox.get(group.group_id), sink in each_tag).items()
        if (group.group_id, key) not in marks and _was_meant(key, takes_all, inbox.get(group.group_id))
    ]
    unposted = [
        _unposted(receipt, group)
        for receipt in receipts
        if receipt.at >= since and ((group := by_id.get(receipt.group_id)) is None or group.status == PENDING)
    ]
    others = [
        Other(group.group_id, group.status, group.submitted, inbox.get(group.group_id), _takers(group, sinks, marks))
        for group in recent
        if group.status != PostedTimeStatus.SUCCESS
    ]
    return Audit(len(recent), len(posted), tuple(lacking), tuple(unposted), tuple(others))


def _is_posted(group: Listed, entry: Known | None) -> bool:
    if group.status in (PENDING, PostedTimeStatus.SUCCESS):
        return group.status == PostedTimeStatus.SUCCESS
    return entry is None or not entry.is_refused


def _parts(sink: str, group: Listed, entry: Known | None, each_tag: bool) -> Mapping[str, str | None]:
    """The keys under which a sink was to have the group, with the tag of each where it was divided."""
    before = {key for key in entry.keys if sink_of(key) == sink} if entry else set()
    keys = {sink + suffix: tag for tag, suffix in suffixes(group.tags).items()} if each_tag else {}
    if len(keys) < 2 or before == {sink}:
        return {sink: None}  # also where it came whole, before it was given tag by tag
    return keys


def _unposted(receipt: AuditReceipt, group: Listed | None) -> Unposted:
    sink = sink_of(receipt.key)
    tag = tag_of(receipt.key, sink, group.tags) if group and receipt.key != sink else None
    return Unposted(receipt.group_id, sink, receipt.at, group.status if group else None, tag)


def _was_meant(key: str, takes_all: bool, entry: Known | None) -> bool:
    """Whether a sink should have the group; one that the inbox never saw is lacking in each sink that might take it."""
    return takes_all or entry is None or key in entry.keys


def _takers(group: Listed, sinks: Iterable[str], marks: set[tuple[str, str]]) -> tuple[str, ...]:
    parts = ("", *suffixes(group.tags).values())
    return tuple(sink for sink in sinks if any((group.group_id, sink + part) in marks for part in parts))
