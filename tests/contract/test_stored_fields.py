"""What is stored as MessagePack can be read and written back without loss, so that no stored field was renamed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from syncengine.manifest.cache import FORMAT, Settled
from syncengine.state.records import Attempt
from tests.contract.program import DATABASES, restore

FORMAT_OF_TODAY = 7
"""The format of the cache; raising it discards older entries, and then their fields may be renamed."""


def _contents(folder: Path, name: str, query: str) -> Iterator[bytes]:
    with closing(sqlite3.connect(folder / DATABASES[name])) as database:
        yield from (content for (content,) in database.execute(query))


def _unlike(contents: list[bytes], type_: type[object]) -> list[bytes]:
    assert contents
    return [each for each in contents if not _is_kept(msgspec.msgpack.decode(each), _read(each, type_))]


def _read(content: bytes, type_: type[object]) -> Any:
    """Return what is written after the content was read."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(msgspec.msgpack.decode(content, type=type_)))


def _is_kept(stored: Any, written: Any) -> bool:
    """Return whether all that is stored is written again. Fields that were added since may stand beside it."""
    if isinstance(stored, dict) and isinstance(written, dict):
        return all(name in written and _is_kept(value, written[name]) for name, value in stored.items())
    if isinstance(stored, list) and isinstance(written, list):
        return len(stored) == len(written) and all(map(_is_kept, stored, written))
    return bool(stored == written)


def test_calls_that_may_still_land_are_read_in_full(tmp_path: Path) -> None:
    """Including the ids and survivors that only a late call needs."""
    restore(tmp_path, "interrupted")
    assert (
        _unlike(
            list(_contents(tmp_path, "state.sql", "SELECT content FROM state_calls WHERE content IS NOT NULL")), Attempt
        )
        == []
    )


def test_a_settled_plan_is_read_in_full_or_its_format_is_another(tmp_path: Path) -> None:
    """A cached entry is a checksum of four bytes and the content."""
    restore(tmp_path, "interrupted")
    contents = [each[4:] for each in _contents(tmp_path, "cache.sql", "SELECT content FROM basis")]
    assert FORMAT != FORMAT_OF_TODAY or _unlike(contents, Settled) == []
