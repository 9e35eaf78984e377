"""Rows of the state: encoding, decoding and digests."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncengine.resource import Body, Recorded, Row, Source, Status
from syncengine.state.codec import digest, from_row, to_row

from .estate import category, tag

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


def _again(row: Recorded) -> Recorded:
    return from_row([*to_row(row, row.run, row.plan).values()])


@pytest.mark.parametrize("row", [FULL, Recorded(category("acme")), replace(FULL, source=Source("a.yaml", 3))])
def test_a_row_is_decoded_as_it_was_encoded(row: Recorded) -> None:
    assert _again(row) == row


def test_order_does_not_change_a_digest() -> None:
    """The order of fields, keywords and metadata is irrelevant to a saved plan."""
    body = Body(dict(reversed(FULL.body.fields.items())), ("a", "b"), FULL.body.metadata)
    assert digest(replace(FULL, body=body)) == digest(FULL)


def test_the_writer_and_the_place_do_not_change_a_digest() -> None:
    """A saved plan depends on the content of a row, not on who wrote it or where it is declared."""
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
