"""Posted time as the service lists it and as the inbox keeps it → documents, text and tables; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from syncengine.posted_time.audit import Audit, Listing
from syncengine.posted_time.content_changes import ContentChange, changes_of
from syncengine.posted_time.durations import tag_of
from syncengine.posted_time.export import ExportedDelivery
from syncengine.posted_time.group import read_group
from syncengine.posted_time.sinks.line_forms import record
from syncengine.render.escape import excerpts, quoted, visible, wrapped
from syncengine.render.json import Document
from syncengine.render.schemas import document
from syncengine.render.schemas.posted_time import (
    AuditFormat,
    ChangedEventItem,
    EventItem,
    ExportedItem,
    GroupFormat,
    GroupItem,
    InboxFormat,
    LackingItem,
    OtherItem,
    SinkItem,
    TimeExportFormat,
    UnpostedItem,
)
from syncengine.render.words import count_of, when
from syncengine.service.posted_time import submitted
from syncengine.state.inbox_model import Event, EventKind, GroupState, InboxEntry, PostedTimeStatus, sink_of

LISTING_FORMAT = "syncengine.posted-time/v1"


def listing_document(listing: Listing) -> Document:
    """Return the JSON document of `time list`, with groups as the service sent them."""
    return {"format": LISTING_FORMAT, **_completeness(listing), "groups": listing.groups}


def listing_text(listing: Listing) -> str:
    """Return one line for each group, with whatever the service sent of it."""
    lines = []
    for group in listing.groups:
        tags, user = group.get("tags"), group.get("user")
        tag = tags[0].get("name") if isinstance(tags, list) and tags and isinstance(tags[0], dict) else None
        name = user.get("name") if isinstance(user, dict) else None
        parts = (_at(submitted(group)), group.get("status"), group.get("totalDurationSecs"), tag or "-", name)
        text = "  ".join(visible(str(part)) for part in parts if part is not None)
        lines.append(f"{visible(str(group.get('groupId')))}  {text}\n")
    return "".join(lines) or "The service lists no posted time.\n"


def incompleteness(listing: Listing) -> Iterator[str]:
    """Yield sentences about groups that are missing from a listing."""
    if listing.unreadable:
        yield f"ignored {count_of(listing.unreadable, 'item')} of the list that cannot be read as a group"
    for instant in listing.hidden:
        yield f"500 or more groups were submitted at {_at(instant)}, but the service lists at most 500 for one instant"


def _completeness(listing: Listing) -> Document:
    return {
        "complete": listing.is_complete,
        "unreadable": listing.unreadable,
        "hidden": [_at(instant) for instant in listing.hidden],
    }


def _at(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "-"
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def audit_document(audit: Audit, listing: Listing, unread: Sequence[str]) -> Document:
    """Return the JSON document of `time audit`; `unread` are the sinks whose receipts could not be read."""
    return document(
        AuditFormat(
            format="syncengine.audit/v1",
            **_completeness(listing),
            unread=list(unread),
            listed=audit.listed,
            posted=audit.posted,
            lacking=[LackingItem.model_validate(one, from_attributes=True) for one in audit.lacking],
            unposted=[
                UnpostedItem(group_id=one.group_id, sink=one.sink, tag=one.tag, taken=when(one.at), status=one.status)
                for one in audit.unposted
            ],
            others=[
                OtherItem(
                    group_id=one.group_id,
                    status=one.status,
                    submitted=one.submitted,
                    state=one.entry.state.value if one.entry else None,
                    answer=one.entry.outcome.value if one.entry and one.entry.outcome else None,
                    sinks=list(one.takers),
                )
                for one in audit.others
            ],
        )
    )


def audit_text(audit: Audit) -> str:
    """Return one line for each group on which the service and the sinks differ, and their numbers."""

    def sink(name: str, tag: str | None) -> str:
        return name if tag is None else f"{name} [{visible(tag)}]"

    lines = [
        f"{visible(one.group_id)}  posted {_at(one.submitted)}, but sink {sink(one.sink, one.tag)} has no receipt"
        for one in audit.lacking
    ]
    for late in audit.unposted:
        listed = f"lists it as {visible(late.status)}" if late.status else "does not list it"
        holder = f"taken by sink {sink(late.sink, late.tag)} at {when(late.at)}"
        lines.append(f"{visible(late.group_id)}  {holder}, but the service {listed}")
    for other in audit.others:
        status = f"as {visible(other.status)}" if other.status else "without a status"
        place = "not in the inbox"
        if entry := other.entry:
            place = f"{entry.state} in the inbox" + (f", answered {entry.outcome}" if entry.outcome else "")
        sinks = f", taken by {' and '.join(other.takers)}" if other.takers else ""
        about = f"listed {status}, submitted {_at(other.submitted)}; {place}{sinks}"
        lines.append(f"{visible(other.group_id)}  {about}")
    lines.append(
        f"{count_of(audit.listed, 'group')} listed, {audit.posted} posted; {len(audit.lacking)} lacking"
        f" a receipt, {len(audit.unposted)} taken but not posted, {len(audit.others)} not listed as SUCCESS."
    )
    return "\n".join(lines) + "\n"


PREVIEW_FORMAT = "syncengine.preview/v1"
_ROOM = 40
_WIDTH = 80
_MOST_CHANGES = 20


def entries_document(entries: Sequence[InboxEntry]) -> Document:
    """Return the JSON document of `time inbox`."""
    groups = [GroupItem(**_group(entry)) for entry in entries]
    return document(InboxFormat(format="syncengine.inbox/v1", groups=groups))


def _group(entry: InboxEntry) -> dict[str, Any]:
    """Return the fields of a group under the names of `GroupItem`."""
    same = ("group_id", "state", "revision", "outcome", "message", "external_id", "note", "tag", "mechanism", "offers")
    times = ("received", "offered", "decided", "answered", "asked")
    sinks = [
        SinkItem(
            sink=sink_of(each.sink),
            key=each.sink,
            tag=_part(each.sink, entry),
            revision=each.revision,
            status=each.status.value,
            attempts=each.attempts,
            first=when(each.first),
            last=when(each.last),
            external_id=each.external_id,
            message=each.message,
        )
        for each in entry.deliveries
    ]
    return {
        **{name: getattr(entry, name) for name in same},
        **{name: when(getattr(entry, name)) for name in times},
        "user": entry.user_name,
        "waiting": entry.waiting,
        "sinks": sinks,
    }


def _part(key: str, entry: InboxEntry) -> str | None:
    """Return the tag whose share a sink received; `None` for a whole group, and when the tag is no longer known."""
    sink = sink_of(key)
    if not any(delivery.sink != sink and sink_of(delivery.sink) == sink for delivery in entry.deliveries):
        return None
    return tag_of(key, sink, (tag.name for tag in read_group(entry.raw()).tags))


def _called(key: str, entry: InboxEntry) -> str:
    """Return the name of a sink, followed by the tag when the sink received only the share of one tag."""
    tag = _part(key, entry)
    return visible(key) if tag is None else f"{visible(sink_of(key))} [{visible(tag)}]"


def entries_text(entries: Sequence[InboxEntry]) -> str:
    """Return one line for each group, a second line with its problem if any, and the count of groups."""
    if not entries:
        return "No group is waiting, and none failed.\n"
    room = min(_ROOM, max(len(visible(entry.group_id)) for entry in entries))
    lines = []
    for entry in entries:
        whose, tag = visible(entry.user_name or "no user"), visible(entry.tag or "no tag")
        lines.append(f"{visible(entry.group_id):<{room}}  {entry.state:<12}  {when(entry.offered)}  {whose}, {tag}\n")
        # The message is for the user who posted the time, the note for the operator.
        why = entry.note or entry.message
        if entry.note and entry.message and entry.state is not GroupState.CONFLICT:
            why = f"{entry.message} [{entry.note}]"
        answer = f"{entry.outcome}: " if entry.outcome and entry.outcome is not PostedTimeStatus.SUCCESS else ""
        lines += [f"  {answer}{visible(why)}\n"] if why else []
    return "".join(lines) + f"{count_of(len(entries), 'group')}.\n"


def story_document(entry: InboxEntry, events: Sequence[Event]) -> Document:
    """Return the JSON document of `time show`; events with new content have `changes`."""
    changes, story = changes_of(entry, events), list[EventItem]()
    for place, event in enumerate(events):
        facts: dict[str, Any] = {
            "at": when(event.at),
            "kind": event.kind.value,
            "revision": event.revision,
            "sink": sink_of(event.sink) if event.sink else None,
            "tag": _part(event.sink, entry) if event.sink else None,
            "outcome": event.outcome,
            "message": event.message,
            "external_id": event.external_id,
            "detail": event.detail,
        }
        own = changes.get(place)
        story.append(ChangedEventItem(**facts, changes=changes_document(own)) if own else EventItem(**facts))
    return document(GroupFormat(format="syncengine.group/v1", **_group(entry), group=entry.raw() or None, story=story))


def story_text(entry: InboxEntry, events: Sequence[Event]) -> str:
    """Return a group's facts, deliveries and whole story, oldest event first."""
    facts = (
        ("state", entry.state + (", not yet reported to the service" if entry.waiting else "")),
        ("revision", entry.revision),
        ("user", entry.user_name),
        ("tag", entry.tag),
        ("answer", entry.outcome),
        ("message", entry.message),
        ("reference", entry.external_id),
        ("note", entry.note),
        ("requested again", when(entry.asked)),
    )
    lines = [visible(entry.group_id), *(f"  {name}: {visible(str(value))}" for name, value in facts if value)]
    lines += ["sinks:"] if entry.deliveries else []
    for each in entry.deliveries:
        reference = f", reference {visible(each.external_id)}" if each.external_id else ""
        why = f": {visible(each.message)}" if each.message else ""
        at = f"{each.status.value} ({count_of(each.attempts, 'attempt')}, last {when(each.last)})"
        lines.append(f"  {_called(each.sink, entry)}  revision {each.revision}  {at}{reference}{why}")
    lines += ["story:"] if events else ["Only the receipts are left: older details were removed."]
    changes = changes_of(entry, events)
    for place, event in enumerate(events):
        lines += [_event_line(event, entry), *changes_lines(changes.get(place, ()))]
    return "\n".join(lines) + "\n"


EVENT_WORDS: Mapping[EventKind, str] = {
    EventKind.OFFERED: "offered",
    EventKind.REVISED: "new content: next revision",
    EventKind.ATTEMPT: "sent to",
    EventKind.VERDICT: "verdict",
    EventKind.CONFLICT: "conflict",
    EventKind.STATUS: "the service accepted the status",
    EventKind.UNACCEPTED: "the service did not accept the status",
    EventKind.GIVEN_UP: "given up",
    EventKind.ASKED: "requested again",
    EventKind.SETTLED: "settled by hand",
}
"""The words for each kind of event in a story."""


def _event_line(event: Event, entry: InboxEntry) -> str:
    parts = [EVENT_WORDS[event.kind]]
    parts += [_called(event.sink, entry) + (":" if event.outcome else "")] if event.sink else []
    parts += [event.outcome] if event.outcome else []
    parts += [f"reference {visible(event.external_id)}"] if event.external_id else []
    detail = None if event.kind is EventKind.OFFERED else event.detail
    if detail and event.kind is EventKind.UNACCEPTED:
        detail = f"{detail} times"
    texts = [visible(text) for text in (event.message, detail) if text]
    why = f": {'; '.join(texts)}" if texts else ""
    return f"  {when(event.at)}  revision {event.revision}  {' '.join(parts)}{why}"


def changes_document(changes: Sequence[ContentChange]) -> Sequence[Document]:
    """Return the differences between two contents of a group as JSON objects."""
    return [{"field": one.field, "before": one.before, "after": one.after} for one in changes]


def changes_lines(changes: Sequence[ContentChange]) -> Iterator[str]:
    """Yield the differences between two contents in lines of 80 columns, cutting long values and long lists."""
    for change in changes[:_MOST_CHANGES]:
        before, after = excerpts(_content_value(change.before), _content_value(change.after))
        first, *rest = wrapped(f"{change.field}: {before} → {after}", _WIDTH - 6)
        yield from (f"    {first}", *(f"      {line}" for line in rest))
    if (more := len(changes) - _MOST_CHANGES) > 0:
        yield f"    … and {more:,} more; `syncengine time show --format json` lists all of them"


def _content_value(value: object) -> str:
    match value:
        case None:
            return "none"
        case str():
            return quoted(value)
        case dict():
            return ", ".join(f"{name} {_content_value(inner)}" for name, inner in value.items() if inner is not None)
        case _:
            return "unreadable" if value != value else str(value)  # nan is unlike itself


def preview_text(document: Document) -> str:
    """Return a preview for people: the narrative line by line, all other content as names and values."""
    id = document["groupId"]
    outcome = document["outcome"] or "not known before a lookup is read"
    lines = [f"{'A group without an id' if id is None else visible(str(id))}: {outcome}"]
    if document["message"]:
        lines.append(f"  {visible(str(document['message']))}")
    if document["narrative"] is not None:
        duration = document["duration"]
        lines.append(f"  {duration['seconds']} s ({duration['hours']} h), worked {duration['workedSeconds']} s")
        lines += ["narrative:", *(f"  | {visible(line)}" for line in str(document["narrative"]).splitlines())]
    for sink in document["sinks"]:
        whose = f" [{visible(sink['tag'])}, {sink['seconds']} s]" if sink["tag"] is not None else ""
        lines.append(f"{visible(sink['sink'])}{whose}:")
        lines += [f"  {visible(line)}" for line in _leaves("", sink["content"])]
    return "\n".join(lines) + "\n"


def _leaves(name: str, value: object) -> Sequence[str]:
    """Return one `path = value` line for each value nested in `value`."""
    match value:
        case dict():
            return [line for key, inner in value.items() for line in _leaves(f"{name}.{key}" if name else key, inner)]
        case list():
            return [line for n, inner in enumerate(value) for line in _leaves(f"{name}[{n}]", inner)]
        case None:
            return [f"{name} = none"]
        case _:
            return [f"{name} = {value!r}" if isinstance(value, str) else f"{name} = {value}"]


EXPORT_COLUMNS: Mapping[str, Callable[[ExportedDelivery], Any]] = {
    "delivered": lambda row: when(row.delivered),
    "groupId": lambda row: row.group_id,
    "sink": lambda row: row.sink,
    "externalId": lambda row: row.external_id,
    "date": lambda row: row.date,
    "start": lambda row: row.start,
    "tag": lambda row: row.tag,
    "user": lambda row: row.user,
    "email": lambda row: row.email,
    "activityType": lambda row: row.activity_type,
    "seconds": lambda row: row.seconds,
    "hours": lambda row: row.hours,
    "postedSeconds": lambda row: row.posted_seconds,
    "description": lambda row: row.description,
    "outcome": lambda row: row.outcome and row.outcome.value,
    "revision": lambda row: row.revision,
}
"""The columns of the table, in order."""


def export_csv(rows: Sequence[ExportedDelivery]) -> str:
    """Return a header and one record for each delivery."""
    return record(EXPORT_COLUMNS) + "".join(record(value(row) for value in EXPORT_COLUMNS.values()) for row in rows)


def export_document(rows: Sequence[ExportedDelivery]) -> Document:
    """Return the JSON document of `time export`, with texts and groups as the service sent them."""
    same = ("group_id", "sink", "key", "revision", "external_id", "outcome", "tag", "user", "email", "activity_type")
    facts = (*same, "date", "start", "seconds", "hours", "posted_seconds", "description", "group")
    items = [
        ExportedItem(**{name: getattr(row, name) for name in facts}, delivered=when(row.delivered)) for row in rows
    ]
    return document(TimeExportFormat(format="syncengine.time-export/v1", deliveries=items))
