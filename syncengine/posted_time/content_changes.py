"""The differences between two contents of a group; pure.

Compares the fields that tell two contents apart (`group.content`), so that the result is why they are two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from syncengine.document.comparison import ValueChange, value_changes
from syncengine.posted_time.group import Content, content, read_group
from syncengine.state.inbox import Event, InboxEntry
from syncengine.state.inbox_states import EventKind

PAIRED = 30
"""Rows up to which each is compared with each other one, to find the row that it was; beyond, rows came or went."""


@dataclass(frozen=True, slots=True)
class ContentChange:
    """A field by its path, such as `timeRows[0].durationSecs`; None where there is no value, row or tag."""

    field: str
    before: object
    after: object


def changes(before: str, after: str) -> tuple[ContentChange, ...]:
    """The differences of two contents as JSON; rows and tags may come in any order."""
    one, other = _content(before), _content(after)
    rows = max(len(one["timeRows"]), len(other["timeRows"]))
    found = value_changes(
        one,
        other,
        ignore_order=True,
        report_repetition=True,
        ignore_nan_inequality=True,
        cutoff_intersection_for_pairs=1 if rows <= PAIRED else 0.7,
        cutoff_distance_for_pairs=0.6,
    )
    return tuple(sorted(map(_change, found), key=lambda change: change.field))


def _change(change: ValueChange) -> ContentChange:
    before, after = (
        value if isinstance(value, str | int | float | dict) else None for value in (change.before, change.after)
    )
    return ContentChange(_field(change.path), before, after)


def _content(body: str) -> Content:
    raw = orjson.loads(body)
    return content(read_group(raw if isinstance(raw, Mapping) else {}))


def _field(path: Sequence[str | int]) -> str:
    first, *rest = path
    return str(first) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)


def last_changes(entry: InboxEntry, story: Sequence[Event]) -> tuple[ContentChange, ...]:
    """The changes of the last offer: the subject of a conflict. None where it came with the same content."""
    last = max((place for place, event in enumerate(story) if event.kind is EventKind.OFFERED), default=0)
    return changes_of(entry, story).get(last, ())


def changes_of(entry: InboxEntry, story: Sequence[Event]) -> dict[int, tuple[ContentChange, ...]]:
    """The changes of each offer of other content, by its place in the story.

    The first content of a revised group is not kept; its replacement shows no changes.
    """
    contents = {1: entry.body} if entry.revision == 1 else {}
    offered, found = None, dict[int, tuple[ContentChange, ...]]()
    for place, event in enumerate(story):
        if event.kind is EventKind.OFFERED:
            offered, before = event.detail, contents.get(event.revision)
            if offered and before:
                found[place] = changes(before, offered)
        elif event.kind is EventKind.REVISED:
            contents[event.revision] = offered
    return found
