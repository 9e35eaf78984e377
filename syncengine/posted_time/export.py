"""Groups of the inbox → one row for each delivery that a sink took, to compare with the sink's books."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from syncengine.errors import Usage
from syncengine.posted_time.durations import Duration, divided, duration_of, objection, tag_of
from syncengine.posted_time.group import Group, group_start, named_zone, placed, read_group
from syncengine.project.delivery_schema import DurationSection, PostedTimeSection
from syncengine.project.model import Project
from syncengine.state.inbox import open_inbox
from syncengine.state.inbox_model import TAKEN, Delivered, InboxEntry, PostedTimeStatus, sink_of


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """The settings by which the time of a delivery is computed. `each_tag` are the sinks that get each tag alone."""

    zone: tzinfo | None
    duration: DurationSection
    each_tag: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class ExportedDelivery:
    """A group, or its part for one tag, that a sink took at `delivered` (seconds since the epoch).

    `start` is in ISO 8601, with the offset of its zone. `group` is the group as the service sent it. What the group
    tells is `None` once the group is reduced to its receipts.
    """

    delivered: float
    group_id: str
    sink: str
    key: str
    revision: int
    external_id: str | None
    outcome: PostedTimeStatus | None
    tag: str | None
    user: str | None
    email: str | None
    activity_type: str | None
    date: str | None
    start: str | None
    seconds: int | None
    hours: float | None
    posted_seconds: int | float | None
    description: str | None
    group: Mapping[str, Any] | None

    @property
    def is_reduced(self) -> bool:
        """Whether only the receipt of the delivery is left."""
        return self.group is None


def exported(
    entries: Iterable[InboxEntry], settings: ExportSettings, since: float = 0.0, sink: str | None = None
) -> list[ExportedDelivery]:
    """Return what sinks, or one `sink`, took since `since` (seconds since the epoch), oldest first."""
    rows = [
        _row(entry, found, settings)
        for entry in entries
        for found in entry.deliveries
        if found.status in TAKEN and found.last >= since and sink in (None, sink_of(found.sink))
    ]
    return sorted(rows, key=lambda row: (row.delivered, row.group_id, row.key))


def _row(entry: InboxEntry, found: Delivered, settings: ExportSettings) -> ExportedDelivery:
    raw = entry.raw()
    group = placed(read_group(raw), settings.zone)
    tag = _tag_of_part(entry, found, group, settings)
    duration = _duration(entry, found, group, settings, tag) if raw else None
    start = group_start(group, settings.zone)
    return ExportedDelivery(
        delivered=found.last,
        group_id=entry.group_id,
        sink=sink_of(found.sink),
        key=found.sink,
        revision=found.revision,
        external_id=found.external_id,
        outcome=entry.outcome,
        tag=entry.tag if tag is None else tag,
        user=entry.user_name,
        email=group.user.email if group.user else None,
        activity_type=group.activityType.code if group.activityType else None,
        date=start.date().isoformat() if start else group.localDate,
        start=start.isoformat() if start else None,
        seconds=duration.seconds if duration else None,
        hours=float(duration.hours) if duration else None,
        posted_seconds=group.posted_seconds,
        description=group.description,
        group=raw or None,
    )


def _tag_of_part(entry: InboxEntry, found: Delivered, group: Group, settings: ExportSettings) -> str | None:
    """Return the tag that a delivery was for; `None` for a whole group, and when its tags are no longer known."""
    sink = sink_of(found.sink)
    is_divided = sink in settings.each_tag or any(
        other.sink != sink and sink_of(other.sink) == sink for other in entry.deliveries
    )
    return tag_of(found.sink, sink, (tag.name for tag in group.tags)) if is_divided else None


def _duration(
    entry: InboxEntry, found: Delivered, group: Group, settings: ExportSettings, tag: str | None
) -> Duration | None:
    """Return the duration of a delivery by today's settings, as a delivery would compute it; `None` if it could not."""
    if objection(group, settings.duration) is not None:
        return None
    whole = duration_of(group, settings.duration)
    if tag is None:
        return whole
    tags = {
        _tag_of_part(entry, other, group, settings) for other in entry.deliveries if other.revision == found.revision
    }
    kept = sorted(name for name in tags if name is not None)
    return divided(group, whole, len(kept))[kept.index(tag)]


def exported_by(project: Project, since: float, sink: str | None) -> list[ExportedDelivery]:
    """Return what the sinks of a project, or one `sink`, took since `since`, by the settings of today. Reads the inbox.

    Raise `Usage` for a sink that the project does not have and that took nothing.
    """
    section = project.posted_time or PostedTimeSection()
    settings = ExportSettings(
        named_zone(section.timezone),
        section.duration or DurationSection(),
        {part.name.text for part in section.deliver or () if part.each},
    )
    with open_inbox(project.state, write=False) as inbox:
        rows = exported(inbox.delivered_since(since), settings, since, sink)
    names = {part.name.text for part in section.deliver or ()}
    if sink is not None and sink not in names and not rows:
        choice = f"choose from {', '.join(sorted(names))}" if names else "`postedTime.deliver` has none"
        raise Usage(f"there is no sink {sink!r}: {choice}")
    return rows
