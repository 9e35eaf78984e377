"""A row before and after a change ↔ its differences as JSON, for the history; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from syncengine.resource import Key, Recorded, Status, Value, is_blank
from syncengine.state.codec import STATUSES, content_of, from_json, frozen, to_json

MESSAGE_LIMIT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """The differences between a row before and after a change. A field's pair has `None` where the field was absent.

    `metadata_before` maps each name that is set or deleted to its former value, `None` if it had none. `server_id` is
    the id that the row lost.
    """

    fields: Mapping[str, tuple[Value | None, Value | None]] = field(default_factory=dict)
    keywords_added: tuple[str, ...] = ()
    keywords_deleted: tuple[str, ...] = ()
    metadata_set: Mapping[str, str] = field(default_factory=dict)
    metadata_deleted: tuple[str, ...] = ()
    metadata_before: Mapping[str, str | None] = field(default_factory=dict)
    status: tuple[Status | None, Status] | None = None
    protect: tuple[bool, bool] | None = None
    server_id: str | None = None
    message: str | None = None

    @property
    def changes_something(self) -> bool:
        """Whether the change alters the meaning of the row."""
        parts = (self.fields, self.keywords_added, self.keywords_deleted, self.metadata_set, self.metadata_deleted)
        return any(parts) or self.status is not None or self.protect is not None


class RowDifference(NamedTuple):
    """The differences of a row as JSON, `None` if there are none. `takes`: something may be lost by them."""

    detail: str | None
    takes: bool


class RemovalLine(NamedTuple):
    """A change that may record a loss. `is_sent`: by a call. `approved`: its run needed approval and had it."""

    at: float
    is_sent: bool
    key: Key
    detail: Detail
    approved: bool


def difference(before: Recorded | None, after: Recorded) -> RowDifference:
    """Return the differences of a row. Those of a new one are its body."""
    if before is None:
        made = {"body": content_of(after.body), "status": (None, after.status.value)}
        return RowDifference(to_json(made), takes=False)
    old, new = before.body, after.body
    new_keywords, old_keywords = set(new.keywords), set(old.keywords)
    names = () if old.fields == new.fields else {**old.fields, **new.fields}
    metadata = () if old.metadata == new.metadata else {**old.metadata, **new.metadata}
    fields = {n: (old.fields.get(n), new.fields.get(n)) for n in names if old.fields.get(n) != new.fields.get(n)}
    changed = {n: new.metadata[n] for n in metadata if n in new.metadata and old.metadata.get(n) != new.metadata[n]}
    parts: dict[str, Any] = {
        "fields": fields,
        "added": [keyword for keyword in new.keywords if keyword not in old_keywords],
        "deleted": [keyword for keyword in old.keywords if keyword not in new_keywords],
        "set": changed,
        "unset": [name for name in old.metadata if name not in new.metadata],
        "was": {n: old.metadata.get(n) for n in metadata if old.metadata.get(n) != new.metadata.get(n)},
        "status": (before.status.value, after.status.value) if before.status is not after.status else None,
        "protect": (before.protect, after.protect) if before.protect != after.protect else None,
        "id": before.server_id if before.server_id and not after.server_id else None,
    }
    is_cleared = any(is_blank(value) for _, value in fields.values()) or any(map(is_blank, changed.values()))
    takes = is_cleared or bool(parts["status"] or parts["deleted"] or parts["unset"])
    present = {name: value for name, value in parts.items() if value}
    return RowDifference(to_json(present) if present else None, takes)


def read(text: str | None) -> Detail:
    """Decode the differences of a change. Raise `ValueError` or `LookupError` if they are damaged."""
    parts = from_json(text)
    try:
        if body := parts.get("body"):
            parts["fields"] = {name: (None, value) for name, value in body["fields"].items()}
            parts |= {"added": body["keywords"], "set": body["metadata"], "was": dict.fromkeys(body["metadata"])}
        return Detail(
            fields={name: (frozen(before), frozen(after)) for name, (before, after) in parts.get("fields", {}).items()},
            keywords_added=tuple(parts.get("added", ())),
            keywords_deleted=tuple(parts.get("deleted", ())),
            metadata_set=parts.get("set", {}),
            metadata_deleted=tuple(parts.get("unset", ())),
            metadata_before=parts.get("was", {}),
            status=_status(parts.get("status")),
            protect=_flags(parts.get("protect")),
            server_id=parts.get("id"),
            message=parts.get("message"),
        )
    except (TypeError, AttributeError) as error:
        raise ValueError("the differences of a change are damaged") from error


def _status(pair: list[Any] | None) -> tuple[Status | None, Status] | None:
    if pair is None:
        return None
    before, after = pair
    return (None if before is None else STATUSES[before], STATUSES[after])


def _flags(pair: list[Any] | None) -> tuple[bool, bool] | None:
    return None if pair is None else (bool(pair[0]), bool(pair[1]))
