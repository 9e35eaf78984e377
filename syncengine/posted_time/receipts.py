"""The receipts in a target database, written in the transaction of the delivered row. Reads and writes the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from syncengine.state.inbox_entries import PART

METADATA = sa.MetaData()
RECEIPTS = sa.Table(
    "syncengine_receipts",
    METADATA,
    sa.Column("group_id", sa.String(255), primary_key=True),
    sa.Column("sink", sa.String(63), primary_key=True),  # its name, or the key of one tag
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("external_id", sa.Text),
    sa.Column("delivered", sa.Double, nullable=False),
    comment="Receipts that syncengine writes with each delivery, so that no group is delivered twice.",
)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The proof that a sink took a group. `digest` is the digest of the posted content."""

    digest: str
    external_id: str | None


def create(engine: sa.Engine) -> None:
    """Create the table of receipts unless it exists, even if another process is creating it at the same time."""
    try:
        METADATA.create_all(engine)
    except exc.DBAPIError:
        if not sa.inspect(engine).has_table(RECEIPTS.name):
            raise


def find(connection: sa.Connection, group_ids: Sequence[str]) -> dict[tuple[str, str], Receipt]:
    """Return the receipts of these groups at all sinks, by group id and the sink's key."""
    columns = (RECEIPTS.c.group_id, RECEIPTS.c.sink, RECEIPTS.c.digest, RECEIPTS.c.external_id)
    rows = connection.execute(sa.select(*columns).where(RECEIPTS.c.group_id.in_(group_ids)))
    return {(row.group_id, row.sink): Receipt(row.digest, row.external_id) for row in rows}


@dataclass(frozen=True, slots=True)
class Signed:
    """A receipt as listed: a sink has the group, or the part under `key`. `delivered` is in seconds since the epoch."""

    group_id: str
    key: str
    delivered: float
    external_id: str | None


def all_of(engine: sa.Engine, sink: str) -> list[Signed]:
    """Return all receipts of a sink. An empty list when the table does not exist."""
    mine = sa.or_(RECEIPTS.c.sink == sink, RECEIPTS.c.sink.startswith(sink + PART, autoescape=True))
    columns = (RECEIPTS.c.group_id, RECEIPTS.c.sink, RECEIPTS.c.delivered, RECEIPTS.c.external_id)
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table(RECEIPTS.name):
            return []
        return [Signed(*row) for row in connection.execute(sa.select(*columns).where(mine))]


def row(mark: tuple[str, str], revision: int, receipt: Receipt, delivered: float) -> dict[str, Any]:
    """Return the row of a receipt. `mark` is the group's id and the sink's key of the group or its part."""
    group_id, key = mark
    facts = {"digest": receipt.digest, "external_id": receipt.external_id, "delivered": delivered}
    return {"group_id": group_id, "sink": key, "revision": revision, **facts}


def write(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert receipts. Raise `IntegrityError` when another process has inserted one of them."""
    connection.execute(sa.insert(RECEIPTS), rows)
