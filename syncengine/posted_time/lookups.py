"""Look up the rows that a group refers to, or the reason why it cannot be delivered. Reads the target."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from syncengine.database.errors import FAILURES, USER, cause, is_down, meaning, sentence
from syncengine.database.trouble import TroubleKind
from syncengine.posted_time.databases import Database, Statement, bound
from syncengine.posted_time.sinks.contract import Failed, Refused
from syncengine.posted_time.templates import Json, Text, Variables
from syncengine.posted_time.verdict import SinkTrouble
from syncengine.templating.values import Unknown


class Placeholder(dict[str, Any]):
    """The row of a lookup in a rehearsal, in which every column has the unknown value `<LOOKUP.COLUMN>`."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __missing__(self, column: str) -> Unknown:
        return Unknown(f"<{self.name}.{column}>")


@dataclass(frozen=True, slots=True)
class Lookup:
    """A query with bound parameters that must find exactly one row."""

    name: str
    database: Database
    query: Statement
    params: Json
    when: Text | None
    missing: Text | None

    def columns(self) -> frozenset[str] | None:
        """Return the names of the query's columns. Raise the database's own errors."""
        return self.database.ask_now(self._columns)

    def _columns(self, _: threading.Event) -> frozenset[str]:
        with self.database.engine.connect() as connection:
            self.query.check(connection)
            result = connection.execute(self.query.clause, dict.fromkeys(self.query.names))
            return frozenset(result.keys()) if result.returns_rows else frozenset()

    async def find(self, variables: Variables) -> Mapping[str, Any] | Refused | Failed | None:
        """Return the row, the reason why there is not exactly one, or `None` when the lookup's condition is false."""
        if self.when is not None and not self.when.holds(variables):
            return None
        dialect = self.database.engine.dialect.name
        params = {name: bound(value, dialect) for name, value in self.params(variables).items()}
        try:
            rows = await self.database.read(lambda connection: self._rows(connection, params))
        except FAILURES as error:
            if meaning(error) is not USER:
                return self._failed(error)
            rows = []  # a value that does not fit the column is in none of its rows
        if len(rows) == 1:
            return rows[0]
        words = self.missing.render(variables) if self.missing and not rows else ""
        return Refused(words or f"{self.name} was {'found more than once' if rows else 'not found'}.")

    def _failed(self, error: Exception) -> Failed:
        kind = meaning(error) or TroubleKind.UNKNOWN
        answered = kind in (TroubleKind.PERMISSIONS, TroubleKind.UNKNOWN)
        down, words = is_down(error), sentence(self.public_name, kind)
        return Failed(kind, words, is_down=down, has_answered=answered, detail=cause(error), where=self.part)

    @property
    def part(self) -> str:
        """The lookup's name among the parts that can be down, which no sink can have."""
        return f"lookup {self.name}"

    @property
    def public_name(self) -> str:
        """The database's name for people who post time; `name` is internal to the project file."""
        return self.database.public_name

    async def probe(self) -> SinkTrouble | None:
        kind = await self.database.probe()
        return (
            SinkTrouble(self.public_name, kind, sentence(self.public_name, kind), self.database.cause) if kind else None
        )

    def _rows(self, connection: sa.Connection, params: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return at most two rows, which is enough to know whether there is exactly one."""
        return [dict(row) for row in connection.execute(self.query.clause, params).mappings().fetchmany(2)]
