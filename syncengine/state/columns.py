"""The metadata and the column types of a state's tables, which are alike on SQLite and PostgreSQL. Data only."""

from __future__ import annotations

import sqlalchemy as sa

METADATA = sa.MetaData()

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""The type of text that sorts by code point, as SQLite does by default."""

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
