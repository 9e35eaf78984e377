"""Groups of the inbox, their stories, and previews of deliveries → documents and text; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from syncengine.posted_time.content_changes import ContentChange, changes_of
from syncengine.posted_time.group import read_group
from syncengine.posted_time.shares import tag_of
from syncengine.render.escape import excerpts, quoted, visible, wrapped
from syncengine.render.json import Document
from syncengine.render.schemas.posted_time import (
    ChangedEventItem,
    EventItem,
    GroupFormat,
    GroupItem,
    InboxFormat,
    SinkItem,
    document,
)
from syncengine.render.words import count_of, when
from syncengine.state.inbox_entries import Delivered, Event, InboxEntry, sink_of
from syncengine.state.inbox_states import EventKind, GroupState, PostedTimeStatus

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
    return {
        **{name: getattr(entry, name) for name in same},
        **{name: when(getattr(entry, name)) for name in times},
        "user": entry.user_name,
        "waiting": entry.waiting,
        "sinks": [_sink_item(delivery, entry) for delivery in entry.deliveries],
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


def _sink_item(delivery: Delivered, entry: InboxEntry) -> SinkItem:
    return SinkItem(
        sink=sink_of(delivery.sink),
        key=delivery.sink,
        tag=_part(delivery.sink, entry),
        revision=delivery.revision,
        status=delivery.status.value,
        attempts=delivery.attempts,
        first=when(delivery.first),
        last=when(delivery.last),
        external_id=delivery.external_id,
        message=delivery.message,
    )


def entries_text(entries: Sequence[InboxEntry]) -> str:
    """Return one line for each group, a second line with its problem if any, and the count of groups."""
    if not entries:
        return "No group is waiting, and none failed.\n"
    room = min(_ROOM, max(len(visible(entry.group_id)) for entry in entries))
    return "".join(_entry_lines(entry, room) for entry in entries) + f"{count_of(len(entries), 'group')}.\n"


def _entry_lines(entry: InboxEntry, room: int) -> str:
    whose = visible(entry.user_name or "no user")
    tag = visible(entry.tag or "no tag")
    first = f"{visible(entry.group_id):<{room}}  {entry.state:<12}  {when(entry.offered)}  {whose}, {tag}\n"
    why = _why(entry)
    answer = f"{entry.outcome}: " if entry.outcome and entry.outcome is not PostedTimeStatus.SUCCESS else ""
    return first + (f"  {answer}{visible(why)}\n" if why else "")


def _why(entry: InboxEntry) -> str | None:
    """Return the message for the user who posted the time, the operator's note, or both."""
    if entry.note and entry.message and entry.state is not GroupState.CONFLICT:
        return f"{entry.message} [{entry.note}]"
    return entry.note or entry.message


def story_document(entry: InboxEntry, events: Sequence[Event]) -> Document:
    """Return the JSON document of `time show`; events with new content have `changes`."""
    changes = changes_of(entry, events)
    story = [_event_item(event, entry, changes.get(place)) for place, event in enumerate(events)]
    group = GroupFormat(format="syncengine.group/v1", **_group(entry), group=entry.raw() or None, story=story)
    return document(group)


def _event_item(event: Event, entry: InboxEntry, changes: Sequence[ContentChange] | None) -> EventItem:
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
    return ChangedEventItem(**facts, changes=changes_document(changes)) if changes else EventItem(**facts)


def story_text(entry: InboxEntry, events: Sequence[Event]) -> str:
    """Return a group's facts, deliveries and whole story, oldest event first."""
    lines = [visible(entry.group_id), *(f"  {name}: {visible(str(value))}" for name, value in _facts(entry) if value)]
    lines += ["sinks:"] if entry.deliveries else []
    lines += [_delivered_line(delivery, entry) for delivery in entry.deliveries]
    lines += ["story:"] if events else ["Only the receipts are left: older details were removed."]
    changes = changes_of(entry, events)
    for place, event in enumerate(events):
        lines += [_event_line(event, entry), *changes_lines(changes.get(place, ()))]
    return "\n".join(lines) + "\n"


def _facts(entry: InboxEntry) -> Sequence[tuple[str, object]]:
    return (
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


def _delivered_line(delivery: Delivered, entry: InboxEntry) -> str:
    reference = f", reference {visible(delivery.external_id)}" if delivery.external_id else ""
    why = f": {visible(delivery.message)}" if delivery.message else ""
    tries = count_of(delivery.attempts, "attempt")
    at = f"{tries}, last {when(delivery.last)}"
    sink = f"{_called(delivery.sink, entry)}  revision {delivery.revision}"
    return f"  {sink}  {delivery.status.value} ({at}){reference}{why}"


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
    texts = [visible(text) for text in (event.message, _detail(event)) if text]
    why = f": {'; '.join(texts)}" if texts else ""
    return f"  {when(event.at)}  revision {event.revision}  {' '.join(parts)}{why}"


def _detail(event: Event) -> str | None:
    if event.kind is EventKind.UNACCEPTED:
        return f"{event.detail} times" if event.detail else None
    return None if event.kind is EventKind.OFFERED else event.detail


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
