"""A file as it was read: its reading, which a cache can keep, and texts to compare with other files. Values; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from syncengine.document.text import folded
from syncengine.errors import Diagnostic
from syncengine.manifest.overlap_lints import compared_parts
from syncengine.manifest.sources.records import SourceUse
from syncengine.resource import Key, Kind, Removed, Resource, Row

_encode = msgspec.msgpack.Encoder().encode


class CategoryReference(Struct, frozen=True, gc=False, array_like=True):
    """A category that a default refers to, or the resource `key`, and where; `data` is the row that it is made of."""

    category: str
    file: str
    line: int
    column: int
    key: Key | None = None
    data: Row | None = None


class BlockRows(Struct, frozen=True, gc=False, array_like=True):
    """The rows of a block: their digests, and the number of resources of each."""

    block: str
    digests: bytes
    counts: tuple[int, ...]


class Reading(Struct, frozen=True, gc=False, array_like=True):
    """All of one file. `whole`: no category that it may declare is lost.

    `rows` are those that the last of the resources were made of.
    """

    file: str
    resources: tuple[Resource, ...] = ()
    removed: tuple[Removed, ...] = ()
    default_categories: tuple[CategoryReference, ...] = ()
    found: tuple[Diagnostic, ...] = ()
    whole: bool = True
    sources: tuple[SourceUse, ...] = ()
    rows: tuple[BlockRows, ...] = ()


class ReadFile(NamedTuple):
    """A file that was read: its reading, also in MessagePack, and texts to compare with other files, one line each.

    `names` are the folded names that tags have, had or are removed under, `words` their folded keywords, `parts` the
    parts of those. `sha256` is the digest of the file and of all its inputs; empty if it cannot be read.
    """

    reading: Reading
    packed: bytes
    names: str
    words: str
    parts: str = ""
    sha256: str = ""

    def __reduce__(self) -> tuple[Callable[..., ReadFile], tuple[object, ...]]:
        """Send it to another process without its reading, which is sooner decoded than unpickled."""
        return unpacked, self[1:]


reading_of = msgspec.msgpack.Decoder(Reading).decode
"""Decode a packed reading; msgspec.DecodeError if it is of another version."""


def unpacked(packed: bytes, *texts: str) -> ReadFile:
    """The file of all but its reading; msgspec.DecodeError if another version wrote it."""
    return ReadFile(reading_of(packed), packed, *texts)


def read_file(reading: Reading, most: int = 0) -> ReadFile:
    """A reading with all that other files must be compared with; parts of keywords where there are `most` at most."""
    tags = [resource for resource in reading.resources if resource.key.kind is Kind.TAG]
    names = [tag.key.name for tag in tags]
    names += [former for tag in tags for former in tag.previously]
    names += [line.key.name for line in reading.removed]
    words = _words(tags)
    parts = compared_parts(tags, words) if words.count("\n") < most else ""
    return ReadFile(reading, _encode(reading), _folded_lines("\n".join(names)), words, parts)


def _words(tags: Sequence[Resource]) -> str:
    """Return the folded keywords of tags, one a line; a tag's own spellings of one keyword count once."""
    lines = _folded_lines("\n".join(["\n".join(tag.body.keywords) for tag in tags if tag.body.keywords]))
    words = lines.split("\n")
    if len(set(words)) == len(words):
        return lines
    return "\n".join(word for tag in tags for word in dict.fromkeys(map(folded, tag.body.keywords)))


def _folded_lines(lines: str) -> str:
    """Case-fold every line, all at once where the text is ASCII."""
    return lines.casefold() if lines.isascii() else "\n".join(map(folded, lines.split("\n")))
