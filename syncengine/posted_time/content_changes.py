"""The differences between two contents of a group. Pure.

Compares only the fields of `group.content`, which decide whether two contents count as different.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from syncengine.content import value_changes
from syncengine.posted_time.group import content, read_group
from syncengine.state.inbox_model import Event, EventKind, InboxEntry

PAIRED = 30
"""The most rows of which all changed ones are matched in pairs. Of more rows, they may count as removed and added."""


@dataclass(frozen=True, slots=True)
class ContentChange:
    """A changed field, by its path such as `timeRows[0].durationSecs`. `None` where a value, row or tag is missing."""

    field: str
    before: object
    after: object


def changes(before: str, after: str) -> tuple[ContentChange, ...]:
    """Return the differences between two groups given as JSON, whatever the order of their rows and tags."""
    one, other = (
        content(read_group(raw if isinstance(raw := orjson.loads(body), Mapping) else {})) for body in (before, after)
    )
    rows = max(len(one["timeRows"]), len(other["timeRows"]))
    found = list[ContentChange]()
    for change in value_changes(
        one,
        other,
        ignore_order=True,
        report_repetition=True,
        ignore_nan_inequality=True,
        # With 1, pairs are always sought, which costs the square of the rows; with 0.7 not where little is in common.
        cutoff_intersection_for_pairs=1 if rows <= PAIRED else 0.7,
        cutoff_distance_for_pairs=0.6,  # rows that differ in more than that are no pair: one went, and one came
    ):
        first, *rest = change.path
        field = str(first) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)
        values = (v if isinstance(v, str | int | float | dict) else None for v in (change.before, change.after))
        found.append(ContentChange(field, *values))
    return tuple(sorted(found, key=lambda change: change.field))


def last_changes(entry: InboxEntry, story: Sequence[Event]) -> tuple[ContentChange, ...]:
    """Return the changes of the last offer, which a conflict is about. Empty when the content is the same."""
    last = max((place for place, event in enumerate(story) if event.kind is EventKind.OFFERED), default=0)
    return changes_of(entry, story).get(last, ())


def changes_of(entry: InboxEntry, story: Sequence[Event]) -> dict[int, tuple[ContentChange, ...]]:
    """Return the changes of each offer with different content, by its index in `story`.

    The first content of a revised group is not kept, so the offer that replaced it shows no changes.
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
