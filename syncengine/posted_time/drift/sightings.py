"""Decode a page of posted time into groups with nothing but their tags and times of submission. Pure.

The decoder skips everything else in a group (people, narratives, rows) without creating values.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from syncengine.posted_time.group import PostedTag, clean
from syncengine.service.answers import mended
from syncengine.service.partial_json import items
from syncengine.service.posted_time import LAST_INSTANT

Text = str | int | float | None


class _Tag(Struct, gc=False):
    name: Text = None
    path: Text = None
    description: Text = None
    externalId: Text = None  # noqa: N815 - as it is sent


class _Group(Struct, gc=False):
    groupId: Text = None  # noqa: N815 - as it is sent
    submissionTime: Text = None  # noqa: N815 - as it is sent
    tags: list[_Tag] | None = None


_PAGE = msgspec.json.Decoder(list[_Group])
_PIECES = msgspec.json.Decoder(list[Raw])
_ITEM = msgspec.json.Decoder(_Group)
_TROUBLE = (msgspec.MsgspecError, UnicodeError, RecursionError)


class Sighting(NamedTuple):
    """A group with its named tags and the time of its submission (milliseconds since epoch). `key` identifies it."""

    key: Hashable
    at: int
    tags: tuple[PostedTag, ...]


def sightings(content: bytes) -> list[Sighting | None] | None:
    """Return the groups of a page, with `None` for each unreadable one; or `None` when the content is not a list."""
    if not content.strip():
        return []
    try:
        return [_sighting(group) for group in _PAGE.decode(content)]
    except _TROUBLE:
        return _one_by_one(mended(content))


def _one_by_one(content: bytes) -> list[Sighting | None] | None:
    try:
        pieces: list[Raw] | list[bytes] | None = _PIECES.decode(content)
    except _TROUBLE:
        pieces = items(content)
    return None if pieces is None else [_read(piece) for piece in pieces]


def _read(piece: Raw | bytes) -> Sighting | None:
    try:
        return _sighting(_ITEM.decode(piece))
    except _TROUBLE:
        return None


def _sighting(group: _Group) -> Sighting | None:
    at = group.submissionTime
    if not isinstance(at, int | float) or not 0 <= at < LAST_INSTANT:
        return None
    tags = {tag.name: tag for tag in map(_tag, group.tags or ()) if tag.name}
    key = group.groupId if group.groupId is not None else (int(at), tuple(tags))
    return Sighting(key, int(at), tuple(tags.values()))


def _tag(tag: _Tag) -> PostedTag:
    return PostedTag(*(None if value is None else clean(str(value)) for value in _values(tag)))


def _values(tag: _Tag) -> tuple[Text, ...]:
    return tag.name, tag.path, tag.description, tag.externalId
