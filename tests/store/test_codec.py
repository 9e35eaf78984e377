"""Digests of rows and values, which are stored and shown, and the tables as PostgreSQL has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from syncengine.content import sha256_at, sha256_of, sha256_of_parts, sha256_of_values
from syncengine.resource import Body, Recorded, Row, Source, Status
from syncengine.state.codec import digest
from syncengine.state.tables import METADATA

from .estate import tag

FULL = Recorded(
    tag("ACME-0042"),
    Body({"category": "acme", "excludeTagNameKeyword": False, "list": ("b", "a")}, ("b", "a"), {"Client": "ACME"}),
    Status.RETIRED,
    doubtful=True,
    confirmed=True,
    server_id="17",
    source=Source("a.yaml", 3, Row("data.csv", 4711)),
    protect=True,
    former_categories=("category/old", "id/9"),
)


def test_order_writer_and_place_do_not_change_a_digest() -> None:
    """A saved plan depends on the content of a row, not on who wrote it or where it is declared."""
    body = Body(dict(reversed(FULL.body.fields.items())), ("a", "b"), FULL.body.metadata)
    assert digest(replace(FULL, body=body)) == digest(FULL)
    assert digest(replace(FULL, run="r", plan="p", source=None, confirmed=False)) == digest(FULL)


@pytest.mark.parametrize(
    "other",
    [
        replace(FULL, doubtful=False),
        replace(FULL, status=Status.ACTIVE),
        replace(FULL, server_id="18"),
        replace(FULL, protect=False),
        replace(FULL, former_categories=()),
        replace(FULL, key=tag("ACME-0043")),
        replace(FULL, body=replace(FULL.body, keywords=("a",))),
        replace(FULL, body=replace(FULL.body, metadata={})),
        None,
    ],
)
def test_whatever_a_plan_depends_on_changes_the_digest(other: Recorded | None) -> None:
    """Status, doubt, server id, protection and every part of the body, and whether the row exists at all."""
    assert digest(other) != digest(FULL)


def test_digests_keep_the_values_that_are_stored(tmp_path: Path) -> None:
    """For text, bytes, parts, files and values; the order of keys does not matter."""
    (tmp_path / "ab").write_bytes(b"ab")
    of_bytes = {sha256_of("ab"), sha256_of(b"ab"), sha256_of_parts(iter((b"a", b"b"))), sha256_at(tmp_path / "ab")}
    assert {text[:16] for text in of_bytes} == {"fb8e20fc2e4c3f24"}
    assert sha256_of("grün").startswith("fe263064ba02eaea")
    for values in ({"b": 2, "a": None}, {"a": None, "b": 2}):
        assert sha256_of_values((1, values)).startswith("749b2a8886e05ca3")


def test_names_are_sorted_by_code_point_in_postgresql() -> None:
    for table in METADATA.sorted_tables:
        text = str(CreateTable(table).compile(dialect=postgresql.dialect()))
        assert ('COLLATE "C"' in text) == (not {"name", "names"}.isdisjoint(table.c.keys())), table.name
