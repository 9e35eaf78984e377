"""The tables of a state as PostgreSQL has them."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from syncengine.state.tables import METADATA

DIALECT = postgresql.dialect()


@pytest.mark.parametrize("table", METADATA.sorted_tables, ids=str)
def test_every_table_compiles_for_postgresql(table: sa.Table) -> None:
    """With its indexes, and names are sorted by code point."""
    text = str(CreateTable(table).compile(dialect=DIALECT))
    assert ("AUTOINCREMENT" in text) is False
    assert ('COLLATE "C"' in text) == (not {"name", "names"}.isdisjoint(table.c.keys()))
    for index in table.indexes:
        assert str(CreateIndex(index).compile(dialect=DIALECT)).startswith("CREATE INDEX")
