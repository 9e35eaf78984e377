"""The result of reading one file, in a form that a cache can store. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Struct

from syncengine.errors import Diagnostic
from syncengine.manifest.context import Input
from syncengine.manifest.sources.records import SourceUse
from syncengine.resource import Key, Removed, Resource, Row


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
    """A file's reading, and what it depends on.

    `sha256` is a digest of the file and its inputs, empty if the file is unreadable. `inputs` are the recorded ones,
    or `None` for a file that depends on its bytes alone; `content` is then the digest of those.
    """

    reading: Reading
    sha256: str = ""
    inputs: tuple[Input, ...] | None = None
    content: str = ""


packed = msgspec.msgpack.Encoder().encode
reading_of = msgspec.msgpack.Decoder(Reading).decode
"""The decoder of packed readings. It raises `msgspec.DecodeError` for a reading of another version."""
