"""Our receipts in a target database: that a sink took a group, in the same transaction as its row. Reads and writes."""

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
    comment="Written by syncengine with each delivery, so that none is made twice.",
)


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a sink took a group. `digest` is that of the posted content."""

    digest: str
    external_id: str | None


def create(engine: sa.Engine) -> None:
    """Make the table, unless it is there; another process may be making it at this moment."""
    try:
        METADATA.create_all(engine)
    except exc.DBAPIError:
        if not sa.inspect(engine).has_table(RECEIPTS.name):
            raise


def find(connection: sa.Connection, group_ids: Sequence[str]) -> dict[tuple[str, str], Receipt]:
    """The receipts of groups, by id and key: at whichever sink, as a whole or of one of their tags."""
    columns = (RECEIPTS.c.group_id, RECEIPTS.c.sink, RECEIPTS.c.digest, RECEIPTS.c.external_id)
    rows = connection.execute(sa.select(*columns).where(RECEIPTS.c.group_id.in_(group_ids)))
    return {(row.group_id, row.sink): Receipt(row.digest, row.external_id) for row in rows}


@dataclass(frozen=True, slots=True)
class Signed:
    """Proof that a sink has a group, or a part of it under `key`; `delivered` in seconds since epoch."""

    group_id: str
    key: str
    delivered: float
    external_id: str | None


def all_of(engine: sa.Engine, sink: str) -> list[Signed]:
    """Everything that a sink has; nothing where the table is not there."""
    mine = sa.or_(RECEIPTS.c.sink == sink, RECEIPTS.c.sink.startswith(sink + PART, autoescape=True))
    columns = (RECEIPTS.c.group_id, RECEIPTS.c.sink, RECEIPTS.c.delivered, RECEIPTS.c.external_id)
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table(RECEIPTS.name):
            return []
        return [Signed(*row) for row in connection.execute(sa.select(*columns).where(mine))]


def row(mark: tuple[str, str], revision: int, receipt: Receipt, delivered: float) -> dict[str, Any]:
    """The receipt of a group, or of its part, by this id and key."""
    group_id, key = mark
    facts = {"digest": receipt.digest, "external_id": receipt.external_id, "delivered": delivered}
    return {"group_id": group_id, "sink": key, "revision": revision, **facts}


def write(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Sign for groups; IntegrityError when another did at the same moment."""
    connection.execute(sa.insert(RECEIPTS), rows)
