"""Statements that are compiled once in a process, and not by each of the thousands of engines that tests create."""

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache


class SharedDialect(SQLiteDialect_pysqlite):
    """SQLite's dialect, which is the same for all engines of a process."""

    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


def compile_once() -> None:
    compiled = LRUCache(2000)  # tables of tests are part of the keys, and would never be freed without a bound
    registry.register("sqlite", __name__, SharedDialect.__name__)
    registry.register("sqlite.pysqlite", __name__, SharedDialect.__name__)

    @event.listens_for(sa.Engine, "engine_connect")
    def share(connection: sa.Connection) -> None:
        if isinstance(connection.dialect, SharedDialect):
            connection.execution_options(compiled_cache=compiled)
