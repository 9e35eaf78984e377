"""Deliver a group as one SQL statement, in one transaction with its receipt.

Whatever happens to this process or to the connection, the target has the row exactly when it has the receipt, so an
attempt with an unknown end is simply repeated. Without receipts, a group is delivered at least once.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from syncengine.database.errors import (
    FAILURES,
    USER,
    Replaced,
    Silent,
    cause,
    is_down,
    meaning,
    sentence,
)
from syncengine.database.open import MYSQL, is_replaced
from syncengine.errors import TroubleKind
from syncengine.posted_time import receipts
from syncengine.posted_time.databases import Database, Statement, bound
from syncengine.posted_time.events import SinkTrouble
from syncengine.posted_time.sinks.contract import (
    Answer,
    Differs,
    Failed,
    Lacks,
    Notes,
    Recalled,
    Refused,
    RenderedGroup,
    Took,
    Words,
    reference,
)
from syncengine.posted_time.templates import Json, Variables, plain
from syncengine.state.inbox_model import DeliveryKey

_CHANGED = re.compile(r"\b(?:INTO|UPDATE)\s+(?:`?(?P<schema>\w+)`?\s*\.\s*)?`?(?P<name>\w+)", re.IGNORECASE)
"""The table that a statement of MySQL or MariaDB changes, as most statements name it."""
_ENGINE = sa.text(
    "SELECT e.engine FROM information_schema.tables t JOIN information_schema.engines e ON e.engine = t.engine"
    " WHERE t.table_schema = coalesce(:schema, database()) AND t.table_name = :name AND e.transactions = 'NO'"
)

NO_ROW = "the statement changed no row (no-row)"


@dataclass(eq=False, repr=False)
class SqlSink:
    """A sink that delivers each group by one SQL statement with bound parameters."""

    name: str
    database: Database
    statement: Statement
    params: Json
    words: Words
    keeps_receipts: bool = field(kw_only=True)
    allows_no_row: bool = field(kw_only=True)
    now: Callable[[], float] = field(kw_only=True)
    asked_after: None = field(default=None, init=False)
    _is_ready: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        event.listen(self.database.engine, "connect", self._look_for_receipts)

    def render(self, variables: Variables) -> Mapping[str, Any]:
        dialect = self.database.engine.dialect.name
        return {name: bound(value, dialect) for name, value in self.params.value(variables).items()}

    def shown(self, content: Mapping[str, Any]) -> Any:
        return {"sql": self.statement.clause.text, "params": plain(dict(content))}

    def check(self) -> str | None:
        """Have the target check the statement, and create the table of receipts. Raise the database's own errors.

        Return the engine of the table that the statement changes if it has no transactions, in which a receipt is
        written with its row.
        """

        def look(_: threading.Event) -> str | None:
            with self.database.engine.connect() as connection:
                with connection.begin():
                    self.statement.check(connection)
                    engine = self._engine_without_transactions(connection) if self.keeps_receipts else None
                self._get_ready(connection)
                return engine

        return self.database.ask_now(look)

    def _engine_without_transactions(self, connection: sa.Connection) -> str | None:
        if connection.dialect.name not in MYSQL or not (table := _CHANGED.search(self.statement.clause.text)):
            return None
        engine: str | None = connection.scalar(_ENGINE, table.groupdict())
        return engine

    async def deliver(self, rendered: RenderedGroup, memo: str | None, notes: Notes) -> Answer:
        has_begun = False

        def work(given_up: threading.Event) -> Answer:
            nonlocal has_begun
            has_begun = True
            return self._deliver(rendered, given_up)

        try:
            return await self.database.ask(work)
        except Silent as error:
            return self._failure(error, rendered, is_sure=not has_begun)

    def receiver(self) -> str:
        return self.name

    async def recall(self, key: DeliveryKey, memo: str | None, notes: Notes, variables: Variables | None) -> Recalled:
        if not self.keeps_receipts:
            return None

        def look(_: threading.Event) -> Recalled:
            with self.database.engine.connect() as connection:
                self._get_ready(connection)
                receipt = receipts.find(connection, (key.group_id, key.sink))
                return Took(receipt.external_id) if receipt else Lacks()

        try:
            return await self.database.ask(look)
        except FAILURES as error:
            kind = meaning(error) or TroubleKind.UNKNOWN
            return Failed(kind, sentence(self.name, kind), detail=cause(error))

    async def probe(self) -> SinkTrouble | None:
        return await self.database.probe(self.name)

    async def close(self) -> None:
        """Do nothing: the engine is closed by `Databases`, which opened it."""

    def _look_for_receipts(self, *_: object) -> None:
        """Note that a new connection may lead to another database, such as a restored one, without the table."""
        self._is_ready = False

    def _get_ready(self, connection: sa.Connection) -> None:
        if self.keeps_receipts and not self._is_ready:
            receipts.create(connection)
            self._is_ready = True

    def _deliver(self, rendered: RenderedGroup, given_up: threading.Event, *, is_repeated: bool = False) -> Answer:
        """Deliver a group in a thread, in a transaction that ends before the next group of this thread begins."""
        signing = committing = False
        try:
            with self.database.engine.connect().execution_options(writes=True) as connection:
                self._get_ready(connection)
                transaction = connection.begin()
                receipt = receipts.find(connection, rendered.mark) if self.keeps_receipts else None
                answer: Answer
                if receipt is not None:
                    answer = Took(receipt.external_id) if receipt.digest == rendered.digest else Differs()
                elif (posted := self._posted(connection, rendered)) is None:
                    words = f"{self.name} rejected the time: no row there belongs to it."
                    return self._refused(rendered, words, NO_ROW)
                else:
                    answer = posted
                    if self.keeps_receipts:
                        receipt = receipts.Receipt(rendered.digest, posted.external_id)
                        signing = True
                        receipts.write(connection, rendered.mark, rendered.revision, receipt, self.now())
                        signing = False
                if given_up.is_set():
                    raise Silent  # the group was already reported as trouble, and is offered again
                committing = True  # from here on an error may come after the commit
                transaction.commit()
                if is_replaced(connection):
                    raise Replaced
                return answer
        except FAILURES as error:
            # Another process has delivered the group since its receipt was looked for: now it is found. If it is not,
            # the table takes another group's id for this one.
            if signing and isinstance(error, exc.IntegrityError) and not is_repeated:
                return self._deliver(rendered, given_up, is_repeated=True)
            return self._failure(error, rendered, is_sure=not committing)

    def _posted(self, connection: sa.Connection, rendered: RenderedGroup) -> Took | None:
        """Execute the statement for a group. Return `None` if it changed and returned no row.

        A database that does not count the rows counts as having changed some.
        """
        before = _all_changes(connection)
        result = connection.execute(self.statement.clause, dict(rendered.content))
        row = result.mappings().first() if result.returns_rows else None
        if result.returns_rows:
            changed = row is not None
        elif before is not None:  # SQLite counts no rows of a `WITH`, nor those that triggers of a view change
            changed = _all_changes(connection) != before
        else:
            changed = result.rowcount != 0
        if not changed and not self.allows_no_row and self.statement.counts_rows:
            return None
        variables = {**rendered.variables, "returned": dict(row) if row else None}
        return Took(reference(self.words.external_id, variables))

    def _refused(self, rendered: RenderedGroup, words: str, detail: str) -> Refused:
        """Return a refusal with the project's sentence, or these words."""
        return Refused((self.words.refused and self.words.refused.render(rendered.variables)) or words, detail)

    def _failure(self, error: Exception, rendered: RenderedGroup, *, is_sure: bool) -> Answer:
        kind = meaning(error)
        if kind is USER:
            words = f"{self.name} rejected the time: something in it does not fit there."
            return self._refused(rendered, words, cause(error))
        self._is_ready = False  # the table of receipts may have been dropped
        answered = kind in (TroubleKind.PERMISSIONS, TroubleKind.UNKNOWN)
        return Failed(kind, sentence(self.name, kind), is_sure, is_down(error), answered, cause(error))


def _all_changes(connection: sa.Connection) -> int | None:
    """Return the number of rows that a connection to SQLite has ever changed, or `None` for other databases."""
    return getattr(connection.connection.dbapi_connection, "total_changes", None)
