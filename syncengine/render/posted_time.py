"""Posted time on the service and in the inbox → documents, whose models stand here, and text; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType, to_builtins

from syncengine.instants import instant
from syncengine.posted_time.audit import Audit, Listing
from syncengine.posted_time.durations import tag_of
from syncengine.posted_time.events import Event as FetchEvent
from syncengine.posted_time.events import GivenUp, RetryLater, Taken, Unusable
from syncengine.posted_time.export import ExportedDelivery
from syncengine.posted_time.group import ContentChange, changes_of, read_group
from syncengine.posted_time.sinks.appended_file import record
from syncengine.render.escape import excerpts, quoted, visible, wrapped
from syncengine.render.formats import OpenModel, one_of
from syncengine.render.words import count_of, when
from syncengine.service.posted_time import submitted
from syncengine.state.inbox_model import (
    DeliveryStatus,
    Event,
    EventKind,
    GroupState,
    InboxEntry,
    PostedTimeStatus,
    sink_of,
)

Count = Annotated[int, Meta(ge=0)]
Ordinal = Annotated[int, Meta(ge=1)]
Answer = Annotated[str, one_of(*PostedTimeStatus)]
SinkTag = Annotated[str | None, "The tag of a group with several, of which this is the part; null for the whole group."]
SinkReference = Annotated[str | None, "The sink's reference; null if there is none."]


# --- the list of the service


class Completeness(OpenModel, frozen=True):
    complete: Annotated[bool, "Whether all groups of the service's list were read."]
    unreadable: Annotated[Count, "The number of items of the list that are not a group with an id."]
    hidden: Annotated[list[str], "Instants that fill a whole page of the list, so that further groups may be missing."]


class ListingFormat(Completeness, frozen=True, tag_field="format", tag="syncengine.posted-time/v1"):
    """The document of `time list --format json`."""

    groups: Annotated[Sequence[Mapping[str, Any]], "The groups as the service sent them, newest first."]


def listing_document(listing: Listing) -> ListingFormat:
    return ListingFormat(*_completeness(listing), listing.groups)


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


def _completeness(listing: Listing) -> tuple[bool, int, list[str]]:
    return listing.is_complete, listing.unreadable, [instant(at) or "" for at in listing.hidden]


def _at(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "-"
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


# --- the service's list compared with the receipts of the sinks


class LackingItem(OpenModel, frozen=True):
    """A group that the service lists as posted, but for which a sink has no receipt."""

    group_id: str
    sink: str
    tag: SinkTag
    submitted: Annotated[int | None, "The time of submission, in milliseconds since the epoch."]


class UnpostedItem(OpenModel, frozen=True):
    """A group that a sink took, but that the service lists as pending or does not list (status null)."""

    group_id: str
    sink: str
    tag: SinkTag
    taken: str
    status: str | None


class OtherItem(OpenModel, frozen=True):
    """A group that the service lists with another status than SUCCESS, and its state in the inbox."""

    group_id: str
    status: str | None
    submitted: int | None
    state: Annotated[GroupState | None, "The state of the group in the inbox; null if it is not in the inbox."]
    answer: Annotated[PostedTimeStatus | None, "The last status that was or will be sent to the service; null if none."]
    sinks: Annotated[Sequence[str], "The sinks that took the group."]


class AuditFormat(Completeness, frozen=True, tag_field="format", tag="syncengine.audit/v1"):
    """The document of `time audit --format json`."""

    unread: Annotated[Sequence[str], "Sinks whose database could not be read, so the inbox was used instead."]
    listed: int
    posted: int
    lacking: list[LackingItem]
    unposted: list[UnpostedItem]
    others: list[OtherItem]


def audit_document(audit: Audit, listing: Listing, unread: Sequence[str]) -> AuditFormat:
    """Return the document of `time audit`; `unread` are the sinks whose receipts could not be read."""
    others = []
    for each in audit.others:
        state, answer = (each.entry.state, each.entry.outcome) if each.entry else (None, None)
        others.append(OtherItem(each.group_id, each.status, each.submitted, state, answer, each.takers))
    return AuditFormat(
        *_completeness(listing),
        unread,
        audit.listed,
        audit.posted,
        [LackingItem(each.group_id, each.sink, each.tag, each.submitted) for each in audit.lacking],
        [UnpostedItem(each.group_id, each.sink, each.tag, when(each.at), each.status) for each in audit.unposted],
        others,
    )


def audit_text(audit: Audit) -> str:
    """Return one line for each group on which the service and the sinks differ, and their numbers."""

    def sink(name: str, tag: str | None) -> str:
        return name if tag is None else f"{name} [{visible(tag)}]"

    lines = [
        f"{visible(one.group_id)}  posted {_at(one.submitted)}, but sink {sink(one.sink, one.tag)} has no receipt"
        + (": it was decided without this sink" if one.is_left_out else "")
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
    if any(one.is_left_out for one in audit.lacking):
        lines.append(
            "A group that was decided without a sink, as before the sink was added or renamed, is not delivered to it;"
            " `syncengine time export --format json` prints the groups that other sinks took."
        )
    lines.append(
        f"{count_of(audit.listed, 'group')} listed, {audit.posted} posted; {len(audit.lacking)} lacking"
        f" a receipt, {len(audit.unposted)} taken but not posted, {len(audit.others)} not listed as SUCCESS."
    )
    return "\n".join(lines) + "\n"


# --- the inbox

_ROOM = 40  # an id of the service has 36 letters
_WIDTH = 80
_MOST_CHANGES = 20  # one screen; the JSON document has all of them


class SinkItem(OpenModel, frozen=True):
    """The delivery of one revision of a group, or of one of its tags, to a sink."""

    sink: str
    key: Annotated[
        str, "The key in the receipt and in `Idempotency-Key`: the sink's name, or the name and a tag's digest."
    ]
    tag: SinkTag
    revision: Ordinal
    status: DeliveryStatus
    attempts: Ordinal
    first: str
    last: str
    external_id: SinkReference
    message: str | None


class GroupItem(OpenModel, frozen=True):
    """A group in the inbox."""

    group_id: str
    state: GroupState
    revision: Ordinal
    outcome: Annotated[PostedTimeStatus | None, "The verdict; null if there is none yet."]
    message: Annotated[str | None, "The message for the user who posted the time; null if there is none."]
    external_id: str | None
    note: Annotated[str | None, "A note for the operator; null if there is none."]
    user: str | None
    tag: str | None
    mechanism: Annotated[str, one_of("fetch", "webhook")]
    offers: Ordinal
    received: str
    offered: str
    decided: str | None
    answered: str | None
    waiting: Annotated[bool, "Whether the service has not yet accepted the verdict."]
    asked: str | None
    sinks: list[SinkItem]


class InboxFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.inbox/v1"):
    """The document of `time inbox`, and of immediate deliveries by `time retry`."""

    groups: list[GroupItem]


def entries_document(entries: Sequence[InboxEntry]) -> InboxFormat:
    return InboxFormat([GroupItem(**_group(entry)) for entry in entries])


def _group(entry: InboxEntry) -> dict[str, Any]:
    """Return the fields of a group under the names of `GroupItem`."""
    sinks = []
    for each in entry.deliveries:
        at = (each.attempts, when(each.first), when(each.last))
        whose = (sink_of(each.sink), each.sink, _part(each.sink, entry))
        sinks.append(SinkItem(*whose, each.revision, each.status, *at, each.external_id, each.message))
    times = {name: when(getattr(entry, name)) for name in ("received", "offered", "decided", "answered", "asked")}
    found = {"user": entry.user_name, "sinks": sinks, **times}
    return {**{n: getattr(entry, n) for n in GroupItem.__struct_fields__ if n not in found}, **found}


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


# --- the story of a group


class ContentChangeItem(OpenModel, frozen=True):
    """A difference between the content of a group that was delivered or offered before, and what was offered then."""

    field: Annotated[str, "The path of the value within the group."]
    before: Annotated[Any, "The value before; null if there was none."]
    after: Annotated[Any, "The value that was offered; null if there is none."]


class EventItem(OpenModel, frozen=True, omit_defaults=True):
    """An event in the story of a group."""

    at: str
    kind: EventKind
    revision: int
    sink: str | None
    tag: str | None
    outcome: str | None
    message: str | None
    external_id: str | None
    detail: str | None
    changes: Annotated[
        list[ContentChangeItem] | UnsetType, "What an offer with other content changed; absent of other events."
    ] = UNSET


class GroupFormat(GroupItem, frozen=True, tag_field="format", tag="syncengine.group/v1"):
    """The document of `time show --format json`."""

    group: Annotated[
        Mapping[str, Any] | None, "The group as the service sent it; null if unreadable or reduced to receipts."
    ]
    story: Annotated[list[EventItem], "The events of the group, oldest first."]


def story_document(entry: InboxEntry, events: Sequence[Event]) -> GroupFormat:
    """Return the document of `time show`; events with new content have `changes`."""
    changes, story = changes_of(entry, events), list[EventItem]()
    for place, event in enumerate(events):
        sink, tag = (sink_of(event.sink), _part(event.sink, entry)) if event.sink else (None, None)
        said = (event.outcome, event.message, event.external_id, event.detail)
        own = change_items(changes[place]) if changes.get(place) else UNSET
        story.append(EventItem(when(event.at), event.kind, event.revision, sink, tag, *said, own))
    return GroupFormat(**_group(entry), group=entry.raw() or None, story=story)


def change_items(changes: Sequence[ContentChange]) -> list[ContentChangeItem]:
    return [ContentChangeItem(each.field, each.before, each.after) for each in changes]


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


# --- a preview


class PreviewedSink(OpenModel, frozen=True):
    sink: str
    key: str
    tag: SinkTag
    seconds: int
    content: dict[str, Any]


class PreviewedDuration(OpenModel, frozen=True):
    seconds: int
    hours: int | float
    worked_seconds: int
    total_seconds: int
    is_edited: bool
    weighting_percent: int | float | None


class PreviewFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.preview/v1"):
    """The document of `time preview --format json`."""

    group_id: str | None
    outcome: Annotated[PostedTimeStatus | None, "The verdict; null if it depends on the row of a lookup."]
    message: str | None
    narrative: str | None
    duration: PreviewedDuration | None
    start: str | None
    sinks: list[PreviewedSink]


def preview_text(preview: PreviewFormat) -> str:
    """Return a preview for people: the narrative line by line, all other content as names and values."""
    name = "A group without an id" if preview.group_id is None else visible(preview.group_id)
    lines = [f"{name}: {preview.outcome or 'not known before a lookup is read'}"]
    if preview.message:
        lines.append(f"  {visible(preview.message)}")
    if preview.narrative is not None and (duration := preview.duration):
        lines.append(f"  {duration.seconds} s ({duration.hours} h), worked {duration.worked_seconds} s")
        lines += ["narrative:", *(f"  | {visible(line)}" for line in preview.narrative.splitlines())]
    for sink in preview.sinks:
        whose = f" [{visible(sink.tag)}, {sink.seconds} s]" if sink.tag is not None else ""
        lines.append(f"{visible(sink.sink)}{whose}:")
        lines += [f"  {visible(line)}" for line in _leaves("", sink.content)]
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


# --- what the sinks took


class ExportedItem(OpenModel, frozen=True):
    """A group, or its part for one tag, that a sink took."""

    delivered: str
    group_id: str
    sink: str
    key: str
    revision: Ordinal
    external_id: SinkReference
    outcome: Annotated[PostedTimeStatus | None, "The verdict on the group; null if there is none yet."]
    tag: Annotated[str | None, "The delivered tag, or the tags of a whole group, separated by `, `."]
    user: str | None
    email: str | None
    activity_type: Annotated[str | None, "The code of the activity type."]
    date: Annotated[str | None, "The local day of the start."]
    start: Annotated[str | None, "The local time of the first row."]
    seconds: Annotated[int | None, "The duration, or the share of the tag, by the settings of today."]
    hours: Annotated[float | None, "The same duration in hours."]
    posted_seconds: Annotated[int | float | None, "The total of the whole group, as posted."]
    description: str | None
    group: Annotated[
        Mapping[str, Any] | None, "The group as the service sent it; null if it is reduced to its receipts."
    ]


class TimeExportFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.time-export/v1"):
    """The document of `time export --format json`."""

    deliveries: Annotated[list[ExportedItem], "What the sinks took, oldest first."]


def export_document(rows: Sequence[ExportedDelivery]) -> TimeExportFormat:
    """Return the document of `time export`, with texts and groups as the service sent them."""
    _, *same = ExportedItem.__struct_fields__
    return TimeExportFormat([ExportedItem(when(row.delivered), *(getattr(row, n) for n in same)) for row in rows])


EXPORT_COLUMNS = (
    "delivered", "groupId", "sink", "externalId", "date", "start", "tag", "user", "email", "activityType", "seconds",
    "hours", "postedSeconds", "description", "outcome", "revision",
)  # fmt: skip
"""The columns of the table, in order, which are members of the document."""


def export_csv(rows: Sequence[ExportedDelivery]) -> str:
    """Return a header and one record for each delivery."""
    items = to_builtins(export_document(rows))["deliveries"]
    return record(EXPORT_COLUMNS) + "".join(record(item[name] for name in EXPORT_COLUMNS) for item in items)


# --- what commands on posted time do


class PulledItem(OpenModel, frozen=True):
    """A fetched group and the outcome of its delivery."""

    group_id: str
    status: Annotated[PostedTimeStatus, "The verdict on the group."]
    message: Annotated[str | None, "The message for the user who posted the time; null if there is none."]
    external_id: SinkReference
    acknowledged: Annotated[bool, "Whether the service accepted the verdict."]


class AcknowledgedItem(OpenModel, frozen=True):
    """A status that the service accepted, possibly of a group that was fetched earlier."""

    group_id: str
    status: Answer


class PullFormat(OpenModel, frozen=True, tag_field="format", tag="syncengine.pull/v1"):
    """The document of `time pull --format json`."""

    fetched: Annotated[bool, "Whether groups were fetched; none are fetched while a sink is down."]
    groups: list[PulledItem]
    acknowledged: list[AcknowledgedItem]
    troubles: Annotated[Sequence[str], "Messages about failures."]


def pull_document(
    groups: Sequence[Taken], heard: Mapping[str, str], troubles: Sequence[str], has_fetched: bool
) -> PullFormat:
    """Return the document of one fetch; `heard` are the statuses that the service accepted, by group."""
    pulled = []
    for event in groups:
        verdict, is_heard = event.verdict, event.group_id in heard
        pulled.append(PulledItem(event.group_id, verdict.outcome, verdict.message, verdict.external_id, is_heard))
    return PullFormat(has_fetched, pulled, [AcknowledgedItem(id, status) for id, status in heard.items()], troubles)


def pull_text(groups: Sequence[Taken], heard: Mapping[str, str]) -> str:
    lines = []
    for event in groups:
        words = f": {visible(event.verdict.message)}" if event.verdict.message else ""
        remark = "" if event.group_id in heard else " (not acknowledged yet)"
        lines.append(f"{visible(event.group_id)}  {event.verdict.outcome.value}{words}{remark}\n")
    return "".join(lines) or "There is no posted time to fetch.\n"


def troubles_of(events: Sequence[FetchEvent]) -> Iterator[str]:
    """Yield a message for each failure among the events of a fetch."""
    for event in events:
        match event:
            case RetryLater(what, why, _):
                yield f"{what}: {why}"
            case Unusable(why):
                yield why
            case GivenUp(group_id, why):
                yield f"{group_id}: {why}"


class SelectionFormat(OpenModel, frozen=True, omit_defaults=True, tag_field="format", tag="syncengine.selection/v1"):
    """The document of `time retry` for groups that it did not deliver at once."""

    act: Annotated[
        str,
        one_of("settled", "rehearsed", "asked"),
        "`settled`: by `--accept`. `rehearsed`: nothing was done without `-y`. `asked`: left to the process that uses"
        " the inbox.",
    ]
    groups: Annotated[Sequence[str], "The ids of the selected groups."]
    changes: Annotated[
        Mapping[str, list[ContentChangeItem]] | UnsetType,
        "By group, what the settled content changed; absent if nothing did.",
    ] = UNSET


class MechanismFormat(
    OpenModel, frozen=True, omit_defaults=True, kw_only=True, tag_field="format", tag="syncengine.mechanism/v1"
):
    """The document of `time register --format json` and `time unregister --format json`."""

    registered: Annotated[
        str | UnsetType,
        one_of("fetch", "webhook"),
        "The mechanism that is registered now; absent from `unregister`.",
    ] = UNSET
    unregistered: Annotated[
        str | UnsetType | None,
        "The registration that was ended, `fetch client` or `webhook`; null if there was none; absent from `register`.",
    ] = UNSET
    messages: Annotated[Sequence[str], "Messages about the actions that were taken."]
