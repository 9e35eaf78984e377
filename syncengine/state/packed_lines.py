"""A packed line of the journal, as bytes: one verb on all keys of the calls that are written together; pure.

The entry of a key points to the packed line of its last change, so that a resource's history is followed from
its row (`state_rows.entry`). Ends are not chained: they are looked up among those of the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from syncengine.resource import Key, Source
from syncengine.service.operations import UPSERT_TAG_CATEGORIES
from syncengine.state import journal_detail
from syncengine.state.journal_detail import Detail


class JournalLine(Struct, frozen=True, gc=False, array_like=True):
    """The journal entry of one key. `previous` is the id of the packed line that holds its previous change.

    `detail` holds the differences, in the form of `journal_detail`; a new row has its `body` and `status` instead.
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
    """The journal entries of one call, one for each address in `keys`; `call` is None for changes without a call."""

    call: str | None
    operation: str | None
    keys: Sequence[str]
    lines: Sequence[JournalLine]


class CallEnd(Struct, frozen=True, gc=False, array_like=True):
    """Addresses of a call that ended together; without any, all that was open of it. `message`: why it failed."""

    call: str
    keys: Sequence[str]
    message: str | None = None


class _Read(Struct, frozen=True, gc=False, array_like=True):
    """A part whose lines are read one by one."""

    call: str | None
    operation: str | None
    keys: tuple[str, ...]
    lines: tuple[msgspec.Raw, ...]


_encode = msgspec.msgpack.Encoder().encode
_PARTS = msgspec.msgpack.Decoder(tuple[_Read, ...])
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
    """Calls with the addresses that they name."""
    return ((part.call, part.keys) for part in _PARTS.decode(packed))


def parts(packed: bytes) -> list[CallLines]:
    """All that is packed, as `pack` takes it."""
    return _ALL.decode(packed)


def lines(packed: bytes) -> Iterator[tuple[Key, JournalLine]]:
    """Return every key in the packed line with its journal entry."""
    for part in _PARTS.decode(packed):
        for address, line in zip(part.keys, part.lines, strict=True):
            yield Key.parse(address), _LINE.decode(line)


def lines_among(packed: bytes, keys: Collection[Key]) -> Iterator[tuple[Key, str | None, JournalLine]]:
    """The entries of these keys, with the call of each."""
    addresses = {str(key): key for key in keys}
    for part in _PARTS.decode(packed):
        for address, line in zip(part.keys, part.lines, strict=True):
            if address in addresses:
                yield addresses[address], part.call, _LINE.decode(line)


class ChangedLine(NamedTuple):
    """The entry of one key. `previous`: the one before it, in a call that may rename categories."""

    key: Key
    line: JournalLine
    previous: Key | None


def changed_lines(packed: bytes, addresses: Collection[str] | None) -> Iterator[ChangedLine]:
    """The entries of the addresses that are wanted, or of all."""
    for part in _PARTS.decode(packed):
        renames, before = part.operation == UPSERT_TAG_CATEGORIES.id, None
        for address, line in zip(part.keys, part.lines, strict=True):
            if addresses is None or address in addresses:
                yield ChangedLine(Key.parse(address), _LINE.decode(line), Key.parse(before) if before else None)
            before = address if renames else None


def lines_of(packed: bytes, key: Key) -> Iterator[tuple[str | None, str | None, JournalLine]]:
    """The entry of each key, with call and operation."""
    address = str(key)
    for part in _PARTS.decode(packed):
        if address in part.keys:
            for each, line in zip(part.keys, part.lines, strict=True):
                if each == address:
                    yield part.call, part.operation, _LINE.decode(line)
