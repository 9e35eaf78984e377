"""The receipts in a target database, written in the transaction of the delivered row. Reads and writes the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.dialects import mysql

from syncengine.database.open import MYSQL
from syncengine.state.inbox_model import PART, SinkReceipt


class _Exact(sa.types.TypeDecorator[str]):
    """Text that equals only itself. By their defaults some databases ignore case, accents or blanks at the end."""

    impl = sa.String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        if dialect.name in MYSQL:
            return dialect.type_descriptor(mysql.VARBINARY(4 * self.length))  # in UTF-8
        if dialect.name == "mssql":
            return dialect.type_descriptor(sa.String(self.length, collation="Latin1_General_BIN2"))
        return self.impl_instance

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> Any:
        return value.encode() if value is not None and dialect.name in MYSQL else value

    def process_result_value(self, value: Any, _: sa.Dialect) -> str | None:
        return value.decode() if isinstance(value, bytes) else value


METADATA = sa.MetaData()
KEY = {"group_id": 255, "sink": 63}
"""The columns that identify a receipt, with their lengths: the group, and the sink's name or the key of one tag."""
RECEIPTS = sa.Table(
    "syncengine_receipts",
    METADATA,
    *(sa.Column(name, _Exact(length), primary_key=True) for name, length in KEY.items()),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("external_id", sa.Text),
    sa.Column("delivered", sa.Double, nullable=False),
    mysql_engine="InnoDB",  # a server's default engine may have no transactions
    comment="Receipts that syncengine writes with each delivery, so that no group is delivered twice.",
)
_OF_GROUP = sa.select(*RECEIPTS.c["digest", "external_id"]).where(
    RECEIPTS.c.group_id == sa.bindparam("group_id"), RECEIPTS.c.sink == sa.bindparam("sink")
)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The proof that a sink took a group. `digest` is the digest of the posted content."""

    digest: str
    external_id: str | None


def create(connection: sa.Connection) -> None:
    """Create the table of receipts unless it exists, even if another process is creating it at the same time."""
    try:
        with connection.begin():
            METADATA.create_all(connection)
    except exc.DBAPIError:
        # Another process may have created it meanwhile: then it is there, or else this was another error.
        with connection.begin():
            if not sa.inspect(connection).has_table(RECEIPTS.name):
                raise


def find(connection: sa.Connection, mark: tuple[str, str]) -> Receipt | None:
    """Return the receipt of a group (or its part) at a sink, by the group's id and the sink's key, or `None`."""
    row = connection.execute(_OF_GROUP, {"group_id": mark[0], "sink": mark[1]}).one_or_none()
    return None if row is None else Receipt(row.digest, row.external_id)


def all_of(engine: sa.Engine, sink: str) -> list[SinkReceipt]:
    """Return all receipts of a sink. An empty list when the table does not exist."""
    mine = sa.or_(RECEIPTS.c.sink == sink, RECEIPTS.c.sink.startswith(sink + PART, autoescape=True))
    columns = (RECEIPTS.c.group_id, RECEIPTS.c.sink, RECEIPTS.c.delivered, RECEIPTS.c.external_id)
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table(RECEIPTS.name):
            return []
        return [SinkReceipt(*row) for row in connection.execute(sa.select(*columns).where(mine))]


def write(connection: sa.Connection, mark: tuple[str, str], revision: int, receipt: Receipt, delivered: float) -> None:
    """Insert a receipt. Raise `IntegrityError` when another process has inserted it.

    `mark` is the group's id and the sink's key of the group or its part. `delivered` is in seconds since the epoch.
    """
    group_id, key = mark
    facts = {"digest": receipt.digest, "external_id": receipt.external_id, "delivered": delivered}
    row = {"group_id": group_id, "sink": key, "revision": revision, **facts}
    connection.execute(sa.insert(RECEIPTS), row)
