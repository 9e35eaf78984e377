"""The service's list of posted time, and its comparison with the sinks → documents and text; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from syncengine.posted_time.audit import Audit, Known, Listing, Other
from syncengine.render.escape import visible
from syncengine.render.json import Document
from syncengine.render.schemas.posted_time import AuditFormat, LackingItem, OtherItem, UnpostedItem, document
from syncengine.render.words import count_of, when
from syncengine.service.posted_time import submitted

LISTING_FORMAT = "syncengine.posted-time/v1"


def listing_document(listing: Listing) -> Document:
    """Return the JSON document of `time list`, with groups as the service sent them."""
    return {"format": LISTING_FORMAT, **_completeness(listing), "groups": listing.groups}


def listing_text(listing: Listing) -> str:
    return "".join(map(_line, listing.groups)) or "The service lists no posted time.\n"


def _line(group: Mapping[str, Any]) -> str:
    tags, user = group.get("tags"), group.get("user")
    tag = tags[0].get("name") if isinstance(tags, list) and tags and isinstance(tags[0], dict) else None
    name = user.get("name") if isinstance(user, dict) else None
    parts = (_at(submitted(group)), group.get("status"), group.get("totalDurationSecs"), tag or "-", name)
    text = "  ".join(visible(str(part)) for part in parts if part is not None)
    return f"{visible(str(group.get('groupId')))}  {text}\n"


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
    lines = [
        f"{visible(one.group_id)}  posted {_at(one.submitted)}, but sink {_sink(one.sink, one.tag)} has no receipt"
        for one in audit.lacking
    ]
    lines += [
        f"{visible(one.group_id)}  taken by sink {_sink(one.sink, one.tag)} at {when(one.at)}, but the service "
        + (f"lists it as {visible(one.status)}" if one.status else "does not list it")
        for one in audit.unposted
    ]
    lines += [_other_line(one) for one in audit.others]
    lines.append(
        f"{count_of(audit.listed, 'group')} listed, {audit.posted} posted; {len(audit.lacking)} lacking"
        f" a receipt, {len(audit.unposted)} taken but not posted, {len(audit.others)} not listed as SUCCESS."
    )
    return "\n".join(lines) + "\n"


def _sink(name: str, tag: str | None) -> str:
    return name if tag is None else f"{name} [{visible(tag)}]"


def _other_line(one: Other) -> str:
    status = f"as {visible(one.status)}" if one.status else "without a status"
    sinks = f", taken by {' and '.join(one.takers)}" if one.takers else ""
    return f"{visible(one.group_id)}  listed {status}, submitted {_at(one.submitted)}; {_in_inbox(one.entry)}{sinks}"


def _in_inbox(entry: Known | None) -> str:
    if entry is None:
        return "not in the inbox"
    return f"{entry.state} in the inbox" + (f", answered {entry.outcome}" if entry.outcome else "")
