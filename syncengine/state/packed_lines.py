"""Journal entries ↔ a packed journal line as bytes: one verb for all keys of the calls written together; pure.

Each entry points to the packed line with the previous change of its key, so that a resource's history can be followed
from its row (`state_rows.entry`). Ends of calls are not chained, but looked up among those of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

import msgspec
from msgspec import Struct

from syncengine.resource import Key, Source
from syncengine.service.operations import UPSERT_TAG_CATEGORIES
from syncengine.state import journal_detail
from syncengine.state.journal_detail import Detail


class JournalLine(Struct, frozen=True, gc=False, array_like=True):
    """The journal entry of one key. `previous` is the id of the packed line with the key's previous change.

    `detail` contains the differences, in the form of `journal_detail`. A new row has `body` and `status` instead.
    """

    previous: int | None
    file: str | None
    line: int | None
    detail: str | None = None
    body: str | None = None
    status: str | None = None

    @property
    def source(self) -> Source | None:
        return None if self.file is None or self.line is None else Source(self.file, self.line)

    def read(self) -> Detail:
        if self.body is not None and self.status is not None:
            return journal_detail.appeared(self.body, self.status)
        return journal_detail.read(self.detail)


class CallLines(Struct, frozen=True, gc=False, array_like=True):
    """The journal entries of one call, one per address in `keys`. `call` is `None` for changes without a call."""

    call: str | None
    operation: str | None
    keys: Sequence[str]
    lines: Sequence[JournalLine]


class CallEnd(Struct, frozen=True, gc=False, array_like=True):
    """The end of some addresses of a call, or without any address, of all that was open. `message`: why it failed."""

    call: str
    keys: Sequence[str]
    message: str | None = None


_encode = msgspec.msgpack.Encoder().encode
_PARTS = msgspec.msgpack.Decoder(tuple[tuple[str | None, str | None, tuple[str, ...], tuple[msgspec.Raw, ...]], ...])
"""The decoder of `CallLines` as tuples, which leaves the lines to be decoded one by one."""
_ALL = msgspec.msgpack.Decoder(list[CallLines])
_LINE = msgspec.msgpack.Decoder(JournalLine)
_ENDS = msgspec.msgpack.Decoder(tuple[CallEnd, ...])


def pack(parts: Sequence[CallLines]) -> bytes:
    return _encode(parts)


def pack_ends(ends: Sequence[CallEnd]) -> bytes:
    return _encode(ends)


def ends(packed: bytes) -> tuple[CallEnd, ...]:
    return _ENDS.decode(packed)


def keys(packed: bytes) -> Iterator[tuple[str | None, Sequence[str]]]:
    """Yield the packed calls, each with its addresses."""
    return ((call, addresses) for call, _, addresses, _ in _PARTS.decode(packed))


def parts(packed: bytes) -> list[CallLines]:
    """Return the packed calls with all their lines: the inverse of `pack`."""
    return _ALL.decode(packed)


class PackedEntry(NamedTuple):
    """The entry of one key, with its call. `previous` is the key before it in a call that may rename categories."""

    key: Key
    line: JournalLine
    call: str | None
    operation: str | None
    previous: Key | None


def entries(packed: bytes, addresses: Set[str] | None = None) -> Iterator[PackedEntry]:
    """Yield the packed entries of the given addresses, or of all addresses."""
    for call, operation, keys_of_call, lines in _PARTS.decode(packed):
        if addresses is not None and addresses.isdisjoint(keys_of_call):
            continue
        renames = operation == UPSERT_TAG_CATEGORIES.id
        before: str | None = None
        for address, line in zip(keys_of_call, lines, strict=True):
            if addresses is None or address in addresses:
                previous = Key.parse(before) if before is not None else None
                yield PackedEntry(Key.parse(address), _LINE.decode(line), call, operation, previous)
            before = address if renames else None
