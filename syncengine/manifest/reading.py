"""The result of reading one file: a reading that a cache can store, and texts to compare with other files. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from syncengine.document.text import folded
from syncengine.errors import Diagnostic
from syncengine.manifest.context import Input
from syncengine.manifest.overlap_lints import compared_parts
from syncengine.manifest.sources.records import SourceUse
from syncengine.resource import Key, Kind, Removed, Resource, Row

_encode = msgspec.msgpack.Encoder().encode


class CategoryReference(Struct, frozen=True, gc=False, array_like=True):
    """A reference to a category, with its place. `key` is the resource that refers to it, or `None` for a default.

    `data` is the row that the resource was generated from, if any.
    """

    category: str
    file: str
    line: int
    column: int
    key: Key | None = None
    data: Row | None = None


class Reading(Struct, frozen=True, gc=False, array_like=True):
    """The declarations and diagnostics of one file. `whole` is false when a problem may hide a category."""

    file: str
    resources: tuple[Resource, ...] = ()
    removed: tuple[Removed, ...] = ()
    default_categories: tuple[CategoryReference, ...] = ()
    found: tuple[Diagnostic, ...] = ()
    whole: bool = True
    sources: tuple[SourceUse, ...] = ()


class ReadFile(NamedTuple):
    """A file's reading, also in MessagePack, and texts to compare with other files, one item per line.

    `names` are the folded names that tags have, had or are removed under, `words` their folded keywords, and `parts`
    the parts of these keywords. `sha256` is a digest of the file and all its inputs, empty if the file is unreadable.
    `inputs` are the recorded ones, or `None` for a file that depends on its bytes alone, whose digest is `content`.
    """

    reading: Reading
    packed: bytes
    names: str
    words: str
    parts: str = ""
    sha256: str = ""
    inputs: tuple[Input, ...] | None = None
    content: str = ""


reading_of = msgspec.msgpack.Decoder(Reading).decode
"""The decoder of packed readings. It raises `msgspec.DecodeError` for a reading of another version."""


def unpacked(packed: bytes, names: str, words: str, parts: str, sha256: str) -> ReadFile:
    """Return the file with the reading in `packed`. Raise `msgspec.DecodeError` if another version wrote it."""
    return ReadFile(reading_of(packed), packed, names, words, parts, sha256)


def read_file(reading: Reading, most: int = 0) -> ReadFile:
    """Return a reading with the texts to compare with other files; with parts for no more than `most` keywords."""
    tags = [resource for resource in reading.resources if resource.key.kind is Kind.TAG]
    names = [tag.key.name for tag in tags]
    names += [former for tag in tags for former in tag.previously]
    names += [line.key.name for line in reading.removed]
    words = _words(tags)
    parts = compared_parts(tags, words) if words.count("\n") < most else ""
    return ReadFile(reading, _encode(reading), _folded_lines("\n".join(names)), words, parts)


def _words(tags: Sequence[Resource]) -> str:
    """Return the folded keywords of tags, one per line. Several spellings of a keyword in one tag count once."""
    lines = _folded_lines("\n".join(["\n".join(tag.body.keywords) for tag in tags if tag.body.keywords]))
    words = lines.split("\n")
    if len(set(words)) == len(words):
        return lines
    return "\n".join(word for tag in tags for word in dict.fromkeys(map(folded, tag.body.keywords)))


def _folded_lines(lines: str) -> str:
    """Case-fold every line, all at once where the text is ASCII."""
    return lines.casefold() if lines.isascii() else "\n".join(map(folded, lines.split("\n")))
