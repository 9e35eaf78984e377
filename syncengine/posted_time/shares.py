"""Divide a group between its tags, and give each share the key that identifies it at a sink. Pure.

Tags are identified and sorted by name, so that each gets the same seconds and key whatever their order in the group.
The key of the first or only tag is the sink's name; the key of each other tag is the sink's name, a `/` (which no
sink's name contains) and a digest of the tag's name.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from syncengine.document.digest import sha256_of
from syncengine.posted_time.durations import Duration, hours
from syncengine.posted_time.group import Group, PostedTag
from syncengine.state.inbox_model import PART

DIVIDE, WHOLE = "DIVIDE_BETWEEN_TAGS", "WHOLE_DURATION_TO_EACH_TAG"
"""The service's strategies. A group without one is divided, so that nobody is billed twice."""

UNKNOWN_STRATEGY = (
    "This time has several tags, and the connector does not know the strategy for splitting its duration between them"
    " ({strategy}). Please post it once for each tag."
)
SAME_NAME = "This time has two tags with the same name, {name}. Please post it with only one of them."


@dataclass(frozen=True, slots=True)
class Share:
    """A tag of a group, and the tag's share of the duration. `suffix` follows the sink's name in the key."""

    tag: PostedTag
    duration: Duration
    suffix: str


def has_several(group: Group) -> bool:
    return len(_names(tag.name for tag in group.tags)) > 1


def shares(group: Group, whole: Duration) -> tuple[Share, ...] | str:
    """Return the share of each tag, sorted by name, or a message to the user if the group cannot be divided."""
    tags = {tag.name or "": tag for tag in group.tags}
    for tag in group.tags:
        if tag != tags[tag.name or ""]:
            return SAME_NAME.format(name=tag.name or "which is empty")
    strategy = group.durationSplitStrategy or DIVIDE
    if strategy not in (DIVIDE, WHOLE):
        return UNKNOWN_STRATEGY.format(strategy=strategy)
    keys = suffixes(tags)
    durations = divided(group, whole, len(tags))
    return tuple(Share(tags[name], part, keys[name]) for name, part in zip(keys, durations, strict=True))


def divided(group: Group, whole: Duration, parts: int) -> list[Duration]:
    """Return the duration of each part of a group that is divided by a known strategy."""
    if group.durationSplitStrategy == WHOLE:
        return [whole] * parts
    return [_of(whole, seconds) for seconds in _divide(whole.seconds, parts)]


def suffixes(names: Iterable[str | None]) -> Mapping[str, str]:
    """Return the suffix of each tag's key by the tag's name, sorted by name. The suffix of the first tag is empty."""
    return {name: _suffix(name) if place else "" for place, name in enumerate(_names(names))}


def tag_of(key: str, sink: str, names: Iterable[str | None]) -> str | None:
    """Return the name of the tag that a key belongs to, or `None` for the key of a whole group."""
    parts = suffixes(names)
    return next((name for name, suffix in parts.items() if len(parts) > 1 and sink + suffix == key), None)


def _names(names: Iterable[str | None]) -> list[str]:
    return sorted({name or "" for name in names})


def _suffix(name: str) -> str:
    return PART + base64.b32encode(bytes.fromhex(sha256_of(name))[:15]).decode().lower()


def _divide(seconds: int, parts: int) -> list[int]:
    """Divide seconds into whole seconds. Each of the first parts gets one second of the remainder."""
    each, rest = divmod(seconds, parts)
    return [each + (place < rest) for place in range(parts)]


def _of(whole: Duration, seconds: int) -> Duration:
    return replace(whole, seconds=seconds, hours=hours(seconds, 4).normalize() + 0)
