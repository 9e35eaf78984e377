"""A group → one statement in a database, in one transaction with our receipt. Writes the target.

Whatever happens to this process or to the connection, the row is there exactly when the receipt is, so an attempt whose
end nobody saw is simply made again. Without receipts it is at least once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from syncengine.database.errors import FAILURES, USER, Silent, cause, is_down, meaning, sentence
from syncengine.database.trouble import TroubleKind
from syncengine.posted_time import receipts
from syncengine.posted_time.databases import Database, Statement, bound
from syncengine.posted_time.sinks.contract import Answer, Differs, Failed, Note, Refused, RenderedGroup, Took, Words
from syncengine.posted_time.templates import Json, Variables, plain
from syncengine.posted_time.verdict import SinkTrouble
from syncengine.posted_time.wire import reference


class _Signed(Exception):
    """Another process delivered the group while this one was at it."""


class SqlSink:
    """A statement with bound parameters."""

    def __init__(
        self,
        name: str,
        database: Database,
        statement: Statement,
        params: Json,
        words: Words,
        *,
        keeps_receipts: bool,
        now: Callable[[], float],
    ) -> None:
        self.name = name
        self.keeps_receipts = keeps_receipts
        self._database = database
        self._engine = database.engine
        self._statement = statement
        self._params = params
        self._words = words
        self._now = now
        self._is_ready = not keeps_receipts

    def render(self, variables: Variables) -> Mapping[str, Any]:
        dialect = self._engine.dialect.name
        return {name: bound(value, dialect) for name, value in self._params(variables).items()}

    def shown(self, content: Mapping[str, Any]) -> Any:
        return {"sql": self._statement.clause.text, "params": plain(dict(content))}

    def check(self) -> None:
        """Have the target judge the statement, and make the table of receipts; whatever the database raises."""
        self._database.ask_now(self._checked)

    def _checked(self, _: threading.Event) -> None:
        with self._engine.connect() as connection:
            self._statement.check(connection)
        self._get_ready()

    async def deliver(self, parcel: RenderedGroup, memo: str | None, note: Note) -> Answer:
        try:
            return await self._database.ask(lambda given_up: self._deliver(parcel, given_up))
        except Silent as error:
            return self._failure(error, parcel, is_sure=False)

    async def recall(self, group_id: str, key: str, memo: str | None) -> bool | Failed | None:
        if not self.keeps_receipts:
            return None
        try:
            return await self._database.ask(lambda _: self._has_receipt(group_id, key))
        except FAILURES as error:
            kind = meaning(error) or TroubleKind.UNKNOWN
            return Failed(kind, sentence(self.name, kind), detail=cause(error))

    async def probe(self) -> SinkTrouble | None:
        kind = await self._database.probe()
        return SinkTrouble(self.name, kind, sentence(self.name, kind), self._database.cause) if kind else None

    async def close(self) -> None:
        """Engines are closed by whoever opened them."""

    def _get_ready(self) -> None:
        if not self._is_ready:
            receipts.create(self._engine)
            self._is_ready = True

    def _has_receipt(self, group_id: str, key: str) -> bool:
        self._get_ready()
        with self._engine.connect() as connection:
            return receipts.find(connection, group_id, key) is not None

    def _deliver(self, parcel: RenderedGroup, given_up: threading.Event) -> Answer:
        committing = False
        try:
            self._get_ready()
            with self._engine.connect().execution_options(writes=True) as connection:
                transaction = connection.begin()
                answer = self._written(connection, parcel)
                if given_up.is_set():
                    raise Silent  # the group is trouble already: it is offered again
                committing = True
                transaction.commit()
                return answer
        except _Signed:
            return self._deliver(parcel, given_up)
        except FAILURES as error:
            return self._failure(error, parcel, is_sure=not committing)

    def _written(self, connection: sa.Connection, parcel: RenderedGroup) -> Answer:
        known = receipts.find(connection, parcel.group_id, parcel.key) if self.keeps_receipts else None
        if known is not None:
            return Took(known.external_id) if known.digest == parcel.digest else Differs()
        result = connection.execute(self._statement.clause, dict(parcel.content))
        row = result.mappings().first() if result.returns_rows else None
        variables = {**parcel.variables, "returned": dict(row) if row else None}
        external_id = reference(self._words.external_id, variables)
        if self.keeps_receipts:
            self._sign(connection, parcel, external_id)
        return Took(external_id)

    def _sign(self, connection: sa.Connection, parcel: RenderedGroup, external_id: str | None) -> None:
        receipt = receipts.Receipt(parcel.digest, external_id)
        try:
            receipts.write(connection, parcel.group_id, parcel.key, parcel.revision, receipt, self._now())
        except exc.IntegrityError as error:
            raise _Signed from error

    def _failure(self, error: Exception, parcel: RenderedGroup, *, is_sure: bool) -> Answer:
        kind = meaning(error)
        if kind is USER:
            told = self._words.refused.render(parcel.variables) if self._words.refused else ""
            return Refused(told or f"{self.name} rejected the time: something in it does not fit there.", cause(error))
        self._is_ready = not self.keeps_receipts  # the table of receipts may be what is gone
        answered = kind in (TroubleKind.PERMISSIONS, TroubleKind.UNKNOWN)
        return Failed(kind, sentence(self.name, kind), is_sure, is_down(error, kind), answered, cause(error))
