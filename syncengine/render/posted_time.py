"""What the service lists, and how it agrees with the sinks → documents and text; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from syncengine.posted_time.audit import Audit, Known, Other
from syncengine.posted_time.listing import Listing
from syncengine.render.escape import visible
from syncengine.render.json import Document
from syncengine.render.schemas.posted_time import AuditFormat, LackingItem, OtherItem, UnpostedItem, document
from syncengine.render.state import when
from syncengine.render.words import counted
from syncengine.service.posted_time import submitted

LISTING_FORMAT = "syncengine.posted-time/v1"


def listing_document(found: Listing) -> Document:
    """`time list` for machines: groups as the service sent them."""
    return {"format": LISTING_FORMAT, **_completeness(found), "groups": found.groups}


def listing_text(found: Listing) -> str:
    return "".join(map(_line, found.groups)) or "The service lists no posted time.\n"


def _line(group: Mapping[str, Any]) -> str:
    tags, user = group.get("tags"), group.get("user")
    tag = tags[0].get("name") if isinstance(tags, list) and tags and isinstance(tags[0], dict) else None
    name = user.get("name") if isinstance(user, dict) else None
    parts = (_at(submitted(group)), group.get("status"), group.get("totalDurationSecs"), tag or "-", name)
    shown = "  ".join(visible(str(part)) for part in parts if part is not None)
    return f"{visible(str(group.get('groupId')))}  {shown}\n"


def incompleteness(found: Listing) -> Iterator[str]:
    """What is missing in a listing, in sentences."""
    if found.unreadable:
        yield f"{counted(found.unreadable, 'item')} of the list cannot be read as a group"
    for instant in found.hidden:
        yield f"500 groups or more were submitted at {_at(instant)}: the service lists at most 500 of one instant"


def _completeness(found: Listing) -> Document:
    return {
        "complete": found.is_complete,
        "unreadable": found.unreadable,
        "hidden": [_at(instant) for instant in found.hidden],
    }


def _at(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "-"
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def audit_document(found: Audit, listing: Listing, unread: Sequence[str]) -> Document:
    """`time audit` for machines. `unread`: sinks whose targets could not be asked."""
    return document(
        AuditFormat(
            format="syncengine.audit/v1",
            **_completeness(listing),
            unread=list(unread),
            listed=found.listed,
            posted=found.posted,
            lacking=[LackingItem.model_validate(one, from_attributes=True) for one in found.lacking],
            unposted=[
                UnpostedItem(group_id=one.group_id, sink=one.sink, tag=one.tag, taken=when(one.at), status=one.status)
                for one in found.unposted
            ],
            others=[
                OtherItem(
                    group_id=one.group_id,
                    status=one.status,
                    submitted=one.submitted,
                    state=one.known.state.value if one.known else None,
                    answer=one.known.outcome.value if one.known and one.known.outcome else None,
                    sinks=list(one.taken),
                )
                for one in found.others
            ],
        )
    )


def audit_text(found: Audit) -> str:
    lines = [
        f"{visible(one.group_id)}  posted {_at(one.submitted)}, and sink {_sink(one.sink, one.tag)} has no receipt"
        for one in found.lacking
    ]
    lines += [
        f"{visible(one.group_id)}  taken by sink {_sink(one.sink, one.tag)} {when(one.at)}, and the service "
        + (f"lists it as {visible(one.status)}" if one.status else "does not list it")
        for one in found.unposted
    ]
    lines += [_other_line(one) for one in found.others]
    lines.append(
        f"{counted(found.listed, 'group')} listed, {found.posted} posted; {len(found.lacking)} lacking,"
        f" {len(found.unposted)} not posted, {len(found.others)} not listed as SUCCESS."
    )
    return "\n".join(lines) + "\n"


def _sink(name: str, tag: str | None) -> str:
    return name if tag is None else f"{name} [{visible(tag)}]"


def _other_line(one: Other) -> str:
    status = visible(one.status) if one.status else "without a status"
    taken = f", taken by {' and '.join(one.taken)}" if one.taken else ""
    return f"{visible(one.group_id)}  listed as {status}, submitted {_at(one.submitted)}; {_known(one.known)}{taken}"


def _known(known: Known | None) -> str:
    if known is None:
        return "not in the inbox"
    return f"{known.state} in the inbox" + (f", answered {known.outcome}" if known.outcome else "")
