"""Audit posted time: the service's list of groups and the receipts in targets → what each side lacks.

docs/interface.md 2.5 shows only one status of a listed group, PENDING: a group with any other status counts as posted,
unless we refused it. Groups not listed as SUCCESS are shown one by one, with the facts from the inbox. A sink with a
condition takes only some groups: it lacks a group only if the inbox shows that the sink was to have it. The inbox also
records which groups a target took; after a restore from a backup, only the target knows which it still has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from syncengine.database.errors import FAILURES, meaning, sentence
from syncengine.database.open import open_engine
from syncengine.errors import Problems, TroubleKind
from syncengine.posted_time import receipts
from syncengine.posted_time.databases import Database
from syncengine.posted_time.durations import suffixes, tag_of
from syncengine.posted_time.group import read_group
from syncengine.project.connections import Connections
from syncengine.project.model import Project
from syncengine.service.client import Client
from syncengine.service.posted_time import LISTED_AT_MOST, Group, group_id, listed, submitted
from syncengine.state.inbox import open_inbox
from syncengine.state.inbox_model import GroupState, PostedTimeStatus, SinkReceipt, decided_without, sink_of

PENDING = "PENDING"
"""The only stored status that the interface shows; that of a posted group is SUCCESS (docs/service.md §2)."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A group in the service's list. `submitted` is in milliseconds since epoch; `tags` are the names of its tags."""

    group_id: str
    status: str | None
    submitted: int | None
    tags: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Lacking:
    """A group, or the part for `tag`, that the service lists as posted and a sink has no receipt for.

    `is_left_out`: it was decided without the sink, for example before the sink was added, and is not delivered to it.
    """

    group_id: str
    sink: str
    submitted: int | None
    tag: str | None = None
    is_left_out: bool = False


@dataclass(frozen=True, slots=True)
class Unposted:
    """A group that a sink took, but the service lists as PENDING, or does not list (`status` is `None`)."""

    group_id: str
    sink: str
    at: float
    status: str | None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """The inbox's facts about a group: its state, the last verdict sent to the service, and its deliveries' keys."""

    state: GroupState
    outcome: PostedTimeStatus | None
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Other:
    """A group with any status but SUCCESS. `takers` are the sinks that took it; without `entry` the inbox lacks it."""

    group_id: str
    status: str | None
    submitted: int | None
    entry: Known | None
    takers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit. `listed` counts the groups in the service's list, and `posted` those listed as posted."""

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
    signed: Iterable[SinkReceipt],
    sinks: Mapping[str, bool],
    inbox: Mapping[str, Known],
    since: float,
    each_tag: Collection[str] = (),
) -> Audit:
    """Compare the groups and the `signed` receipts since `since` (seconds since the epoch). Pure.

    `sinks` maps names to whether a sink takes every group; sinks in `each_tag` get a group once for each of its tags.
    `inbox` holds the inbox's facts about groups by their ids.
    """
    by_id = {group.group_id: group for group in listed}
    signed = list(signed)
    marks = {(receipt.group_id, receipt.key) for receipt in signed}
    recent = [group for group in by_id.values() if group.submitted is None or group.submitted >= since * 1000]
    posted, lacking, unposted, others = 0, list[Lacking](), list[Unposted](), list[Other]()
    for group in recent:
        entry = inbox.get(group.group_id)
        is_refused = entry is not None and entry.outcome not in (None, PostedTimeStatus.SUCCESS)
        if group.status == PostedTimeStatus.SUCCESS or (group.status != PENDING and not is_refused):
            posted += 1
            for sink, takes_all in sinks.items():
                is_left_out = entry is not None and decided_without(sink, entry.outcome, entry.keys)
                for key, tag in _parts(sink, group, entry, sink in each_tag).items():
                    # A group that the inbox does not know may have been meant for every sink.
                    was_meant = takes_all or entry is None or key in entry.keys
                    if was_meant and (group.group_id, key) not in marks:
                        lacking.append(Lacking(group.group_id, sink, group.submitted, tag, is_left_out))
        if group.status != PostedTimeStatus.SUCCESS:
            parts = ("", *suffixes(group.tags).values())
            takers = tuple(sink for sink in sinks if any((group.group_id, sink + part) in marks for part in parts))
            others.append(Other(group.group_id, group.status, group.submitted, entry, takers))
    for receipt in signed:
        listed_as, sink = by_id.get(receipt.group_id), sink_of(receipt.key)
        if receipt.at >= since and (listed_as is None or listed_as.status == PENDING):
            tag = tag_of(receipt.key, sink, listed_as.tags) if listed_as and receipt.key != sink else None
            status = listed_as.status if listed_as else None
            unposted.append(Unposted(receipt.group_id, sink, receipt.at, status, tag))
    return Audit(len(recent), posted, tuple(lacking), tuple(unposted), tuple(others))


def _parts(sink: str, group: Listed, entry: Known | None, each_tag: bool) -> Mapping[str, str | None]:
    """Return the keys under which a sink should have the group, each with its tag, or `None` for a whole group."""
    before = {key for key in entry.keys if sink_of(key) == sink} if entry else set()
    keys = {sink + suffix: tag for tag, suffix in suffixes(group.tags).items()} if each_tag else {}
    if len(keys) < 2 or before == {sink}:
        return {sink: None}  # also if it was delivered whole, before `each: tag` was added
    return keys


# --- what the service lists


@dataclass(slots=True)
class Listing:
    """The listed groups. `unreadable` counts items without an id; `hidden` has instants (ms) that fill a page."""

    groups: list[Group] = field(default_factory=list)
    unreadable: int = 0
    hidden: list[int] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return not self.unreadable and not self.hidden


async def listing(client: Client, enough: Callable[[Group], bool], page: int = LISTED_AT_MOST) -> Listing:
    """Return the listed groups, newest first, up to but without the first for which `enough` is true."""
    found = Listing()
    async for group in listed(client, page, found.hidden.append):
        if group_id(group) is None:
            found.unreadable += 1
        elif enough(group):
            break
        else:
            found.groups.append(group)
    return found


# --- what targets have


@dataclass(frozen=True, slots=True)
class Targets:
    """The receipts of targets that answered, by sink, and in `unread` the reasons why other targets did not."""

    by_sink: dict[str, Sequence[SinkReceipt]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)


async def ask_targets(project: Project, environ: Mapping[str, str]) -> Targets:
    """Read the receipts of every sink that keeps them in its target."""
    found = Targets()
    for sink in (project.posted_time and project.posted_time.deliver) or ():
        if sink.sql is None or sink.sql.receipts is False:
            continue
        name = sink.name.text
        try:
            what, url = Connections(project.sources, project.root, environ).database(sink.sql, name)
            found.by_sink[name] = await _receipts_in(open_engine(url, what), name)
        except Problems as problems:
            found.unread[name] = problems.found[0].message
        except FAILURES as error:
            found.unread[name] = sentence(name, meaning(error) or TroubleKind.UNKNOWN)
    return found


async def _receipts_in(engine: sa.Engine, sink: str) -> Sequence[SinkReceipt]:
    try:
        return await Database(engine, sink).ask(lambda _: receipts.all_of(engine, sink))
    finally:
        engine.dispose()


# --- the audit of a project


async def audit_project(
    client: Client, project: Project, environ: Mapping[str, str], since: float
) -> tuple[Audit, Listing, Targets]:
    """Compare the service's list with the receipts of the project's sinks, since `since`. Reads both and the inbox.

    The list is read until it is older than that, and has all groups whose receipts are not.
    """
    sections = (project.posted_time and project.posted_time.deliver) or ()
    sinks = {sink.name.text: sink.when is None for sink in sections}
    targets = await ask_targets(project, environ)
    receipts = [one for signed in targets.by_sink.values() for one in signed]
    with open_inbox(project.state, write=False) as inbox:
        for sink in sinks.keys() - targets.by_sink.keys():
            receipts += inbox.receipts(sink, 0.0)
        entries = {
            entry.group_id: Known(entry.state, entry.outcome, frozenset(delivery.sink for delivery in entry.deliveries))
            for entry in inbox.entries()
        }
    unseen = {receipt.group_id for receipt in receipts if receipt.at >= since}

    def enough(group: Group) -> bool:
        at = submitted(group)
        if at is not None and at < since * 1000 and not unseen:
            return True
        unseen.discard(group_id(group) or "")
        return False

    whole = await listing(client, enough)
    groups = [
        Listed(
            group_id(group) or "",
            str(group["status"]) if group.get("status") else None,
            submitted(group),
            tuple(tag.name for tag in read_group(group).tags),
        )
        for group in whole.groups
    ]
    each_tag = {sink.name.text for sink in sections if sink.each}
    return audit(groups, receipts, sinks, entries, since, each_tag), whole, targets
