"""A row before and after a change ↔ its differences as JSON, for a journal line; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from syncengine.resource import Recorded, Status, Value
from syncengine.state.codec import STATUSES, from_json, frozen, to_json

MESSAGE_LIMIT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """The differences between a row before and after a change. A field's pair has `None` where the field was absent.

    `metadata_before` maps each name that is set or deleted to its former value, `None` if it had none; it is itself
    `None` in lines of older versions. `server_id` is the id that the row lost.
    """

    fields: Mapping[str, tuple[Value | None, Value | None]] = field(default_factory=dict)
    keywords_added: tuple[str, ...] = ()
    keywords_deleted: tuple[str, ...] = ()
    metadata_set: Mapping[str, str] = field(default_factory=dict)
    metadata_deleted: tuple[str, ...] = ()
    metadata_before: Mapping[str, str | None] | None = None
    status: tuple[Status | None, Status] | None = None
    protect: tuple[bool, bool] | None = None
    server_id: str | None = None
    message: str | None = None

    @property
    def changes_something(self) -> bool:
        """Whether the change alters the meaning of the row."""
        parts = (self.fields, self.keywords_added, self.keywords_deleted, self.metadata_set, self.metadata_deleted)
        return any(parts) or self.status is not None or self.protect is not None


def difference(before: Recorded | None, after: Recorded) -> str | None:
    """Return the differences as JSON for a journal line, or `None` if there are none."""
    if before is None:
        return _written(_appearance(after))
    old, new = before.body, after.body
    new_keywords, old_keywords = set(new.keywords), set(old.keywords)
    names = () if old.fields == new.fields else {**old.fields, **new.fields}
    metadata = () if old.metadata == new.metadata else {**old.metadata, **new.metadata}
    return _written(
        {
            "fields": {
                name: (old.fields.get(name), new.fields.get(name))
                for name in names
                if old.fields.get(name) != new.fields.get(name)
            },
            "added": [keyword for keyword in new.keywords if keyword not in old_keywords],
            "deleted": [keyword for keyword in old.keywords if keyword not in new_keywords],
            "set": {name: value for name, value in new.metadata.items() if old.metadata.get(name) != value},
            "unset": [name for name in old.metadata if name not in new.metadata],
            "was": {n: old.metadata.get(n) for n in metadata if old.metadata.get(n) != new.metadata.get(n)},
            "status": (before.status.value, after.status.value) if before.status is not after.status else None,
            "protect": (before.protect, after.protect) if before.protect != after.protect else None,
            "id": before.server_id if before.server_id and not after.server_id else None,
        }
    )


def _appearance(after: Recorded) -> dict[str, object]:
    body = after.body
    return {
        "fields": {name: (None, value) for name, value in body.fields.items()},
        "added": body.keywords,
        "set": body.metadata,
        "status": (None, after.status.value),
    }


def _written(parts: Mapping[str, object]) -> str | None:
    parts_present = {name: value for name, value in parts.items() if value}
    return to_json(parts_present) if parts_present else None


def read(text: str | None) -> Detail:
    """Decode the detail of a journal line. Parts added by later versions are ignored."""
    parts = from_json(text)
    return Detail(
        fields={name: (frozen(before), frozen(after)) for name, (before, after) in parts.get("fields", {}).items()},
        keywords_added=tuple(parts.get("added", ())),
        keywords_deleted=tuple(parts.get("deleted", ())),
        metadata_set=parts.get("set", {}),
        metadata_deleted=tuple(parts.get("unset", ())),
        metadata_before=parts.get("was") if "set" in parts or "unset" in parts else {},
        status=_status(parts.get("status")),
        protect=_flags(parts.get("protect")),
        server_id=parts.get("id"),
        message=parts.get("message"),
    )


def appeared(body: str, status: str) -> Detail:
    """Return the detail of a new row, from its encoded body and its status."""
    parts = from_json(body)
    return Detail(
        fields={name: (None, frozen(value)) for name, value in parts["fields"].items()},
        keywords_added=tuple(parts["keywords"]),
        metadata_set=parts["metadata"],
        metadata_before=dict.fromkeys(parts["metadata"]),
        status=(None, STATUSES[status]),
    )


def _status(pair: list[Any] | None) -> tuple[Status | None, Status] | None:
    if pair is None:
        return None
    before, after = pair
    return (None if before is None else STATUSES[before], STATUSES[after])


def _flags(pair: list[Any] | None) -> tuple[bool, bool] | None:
    return None if pair is None else (bool(pair[0]), bool(pair[1]))
