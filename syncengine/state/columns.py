"""The catalogue and column types of a state's tables, alike on SQLite and PostgreSQL. Data only."""

from __future__ import annotations

import sqlalchemy as sa

METADATA = sa.MetaData()

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Text that sorts by code point, as SQLite does by itself."""

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
