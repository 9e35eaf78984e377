"""What is stored as MessagePack can be read and written back to the same bytes, so that no stored field was renamed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

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
    return [each for each in contents if msgspec.msgpack.encode(msgspec.msgpack.decode(each, type=type_)) != each]


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
