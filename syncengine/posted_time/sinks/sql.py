"""Deliver a group as one SQL statement, in one transaction with its receipt.

Groups that arrive together share a transaction, with a receipt each. When one of them fails, all are repeated, each
behind a savepoint; a group that fails there is tried in a transaction of its own before its failure counts.

Whatever happens to this process or to the connection, the target has the row exactly when it has the receipt, so an
attempt with an unknown end is simply repeated. Without receipts, a group is delivered at least once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from syncengine.database.batches import changed_rows, prepare
from syncengine.database.errors import (
    FAILURES,
    SLOW,
    USER,
    Replaced,
    Silent,
    cause,
    fault_of,
    is_down,
    is_outage,
    meaning,
    sentence,
)
from syncengine.database.open import is_replaced, limit_statements, statements_limited
from syncengine.database.trouble import TroubleKind
from syncengine.posted_time import receipts
from syncengine.posted_time.batcher import Batcher
from syncengine.posted_time.databases import Database, Statement, bound
from syncengine.posted_time.sinks.contract import Answer, Differs, Failed, Notes, Refused, RenderedGroup, Took, Words
from syncengine.posted_time.templates import Json, Variables, plain
from syncengine.posted_time.verdict import SinkTrouble
from syncengine.posted_time.wire import reference
from syncengine.state.inbox_entries import DeliveryKey

MOST = 64
"""The maximum number of groups in one transaction."""

HOLD_SECONDS = 0.1
"""How long a transaction with several groups may keep rows locked."""

AT_ONCE = 16
"""The maximum number of groups in one round trip."""

SHARE_SECONDS = HOLD_SECONDS / AT_ONCE
"""How long each statement of a shared round trip may take, so that all of them fit into `HOLD_SECONDS`."""

_Receipts = Mapping[tuple[str, str], receipts.Receipt]
"""Receipts of a target by group id and sink key."""

NO_ROW = "the statement changed no row (no-row)"


class _Signed(Exception):
    """Raised when another process has delivered a group since its receipt was looked for."""

    def __init__(self, error: exc.IntegrityError) -> None:
        super().__init__()
        self.error = error


class _Fallen(Exception):
    """Raised when a group failed in a shared transaction without savepoints."""


class _NoRow(Exception):
    """Raised when the statement for a group that is delivered alone changed no row."""


class SqlSink:
    """A sink that delivers each group by one SQL statement with bound parameters."""

    def __init__(
        self,
        name: str,
        database: Database,
        statement: Statement,
        params: Json,
        words: Words,
        *,
        keeps_receipts: bool,
        allows_no_row: bool,
        now: Callable[[], float],
    ) -> None:
        self.name = name
        self.keeps_receipts = keeps_receipts
        self._allows_no_row = allows_no_row
        self._database = database
        self._engine = database.engine
        self._statement = statement
        self._params = params
        self._words = words
        self._now = now
        self._is_ready = not keeps_receipts
        event.listen(self._engine, "connect", self._look_for_receipts)
        self._takes_company = _takes_company(statement, self._engine.dialect.name)
        self._is_plain = False
        """Whether the last statement returned no rows, so that several statements can share a round trip."""
        self._shares_trips = prepare(self._engine)
        self._batches = Batcher[RenderedGroup, Answer](self._delivered, MOST)

    def render(self, variables: Variables) -> Mapping[str, Any]:
        dialect = self._engine.dialect.name
        return {name: bound(value, dialect) for name, value in self._params(variables).items()}

    def shown(self, content: Mapping[str, Any]) -> Any:
        return {"sql": self._statement.clause.text, "params": plain(dict(content))}

    def check(self) -> None:
        """Have the target check the statement, and create the table of receipts. Raise the database's own errors."""
        self._database.ask_now(self._checked)

    def _checked(self, _: threading.Event) -> None:
        with self._engine.connect() as connection:
            with connection.begin():
                self._statement.check(connection)
            self._get_ready(connection)

    async def deliver(self, parcel: RenderedGroup, memo: str | None, notes: Notes) -> Answer:
        return await self._batches.result(parcel)

    async def recall(self, key: DeliveryKey, memo: str | None, notes: Notes) -> bool | Failed | None:
        if not self.keeps_receipts:
            return None
        try:
            return await self._database.ask(lambda _: self._has_receipt(key.group_id, key.sink))
        except FAILURES as error:
            kind = meaning(error) or TroubleKind.UNKNOWN
            return Failed(kind, sentence(self.name, kind), detail=cause(error))

    async def probe(self) -> SinkTrouble | None:
        kind = await self._database.probe()
        return SinkTrouble(self.name, kind, sentence(self.name, kind), self._database.cause) if kind else None

    async def close(self) -> None:
        """Do nothing: the engine is closed by `Databases`, which opened it."""

    def _look_for_receipts(self, *_: object) -> None:
        """Note that a new connection may lead to another database, such as a restored one, without the table."""
        self._is_ready = not self.keeps_receipts

    def _get_ready(self, connection: sa.Connection) -> None:
        if not self._is_ready:
            receipts.create(connection)
            self._is_ready = True

    def _has_receipt(self, group_id: str, key: str) -> bool:
        with self._engine.connect() as connection:
            self._get_ready(connection)
            return (group_id, key) in receipts.find(connection, [group_id])

    async def _delivered(self, parcels: Sequence[RenderedGroup]) -> list[Answer | Exception]:
        """Deliver groups together, and retry each failed group alone. After an outage, try no further groups."""
        answers = list[Answer | Exception]()
        outage: Failed | None = None
        while rest := parcels[len(answers) :]:
            found = [None] if outage else await self._in_company(rest)
            for parcel, company in zip(rest, found, strict=False):
                answer = company or (_echo(outage) if outage else await self._alone(parcel))
                if isinstance(answer, Failed) and answer.is_down and not answer.has_answered:
                    outage = outage or answer
                answers.append(answer)
        return answers

    async def _in_company(self, parcels: Sequence[RenderedGroup]) -> Sequence[Answer | None]:
        """Return the results of the first groups, at least one. `None` means that the group must be tried alone."""
        if len(parcels) == 1 or not self._takes_company:
            return [None]
        try:
            return await self._database.ask(lambda given_up: self._together(parcels, given_up))
        except Silent as error:
            return _shared(self._failure(error, parcels[0], is_sure=False), len(parcels))

    async def _alone(self, parcel: RenderedGroup) -> Answer | Exception:
        try:
            return await self._database.ask(lambda given_up: self._deliver(parcel, given_up))
        except Silent as error:
            return self._failure(error, parcel, is_sure=False)
        except Exception as error:  # it concerns this group only
            return error

    def _together(
        self, parcels: Sequence[RenderedGroup], given_up: threading.Event, *, behind_savepoints: bool = False
    ) -> list[Answer | None]:
        """Write as many groups in one transaction as fit into `HOLD_SECONDS`, and return their results.

        Savepoints would double the work and most batches do not fail, so they are set only after a first failure.
        """
        answers = list[Answer | None]()
        committing = False
        try:
            with self._engine.connect().execution_options(writes=True) as connection:
                self._get_ready(connection)
                transaction = connection.begin()
                earlier = self._receipts_of(connection, parcels)
                limit_statements(connection, HOLD_SECONDS)
                for answer in self._in_turns(connection, parcels, earlier, behind_savepoints):
                    answers.append(answer)
                posted = zip(parcels, answers, strict=False)
                self._sign(connection, [(one, answer) for one, answer in posted if one.mark not in earlier])
                if given_up.is_set():
                    raise Silent  # the groups were already reported as trouble, and are offered again
                committing = True
                _commit(connection, transaction)
                return answers
        except _Signed:
            return [None] * len(answers)
        except _Fallen:
            return self._together(parcels, given_up, behind_savepoints=True)
        except FAILURES as error:
            return self._lost(error, parcels, len(answers), committing=committing)

    def _lost(
        self, error: Exception, parcels: Sequence[RenderedGroup], begun: int, *, committing: bool
    ) -> list[Answer | None]:
        """Return the results of groups whose transaction failed: `None` (try it alone) where that can help."""
        if _may_pass_alone(error):
            return [None] * max(begun, 1)
        failure = self._failure(error, parcels[0], is_sure=not committing)
        return _shared(failure, begun if committing else len(parcels))

    def _in_turns(
        self, connection: sa.Connection, parcels: Sequence[RenderedGroup], earlier: _Receipts, behind_savepoints: bool
    ) -> Iterator[Answer | None]:
        """Yield the results of as many groups as can be written within `HOLD_SECONDS`, in order.

        The first group shows whether the other groups can share round trips.
        """
        first, *others = parcels
        began = time.monotonic()
        until = began + HOLD_SECONDS
        yield self._in_turn(connection, first, earlier, behind_savepoints)
        if self._is_plain and not behind_savepoints and time.monotonic() - began < SHARE_SECONDS / 2:
            yield from self._at_once(connection, others, earlier, until)
            return
        for parcel in others:
            if time.monotonic() >= until:
                return
            yield self._in_turn(connection, parcel, earlier, behind_savepoints)

    def _at_once(
        self, connection: sa.Connection, parcels: Sequence[RenderedGroup], earlier: _Receipts, until: float
    ) -> Iterator[Answer]:
        """Yield the results of groups that share round trips, until no time is left for another one."""
        rest = deque(parcels)
        with statements_limited(connection, SHARE_SECONDS):
            while rest and (most := int((until - time.monotonic()) / SHARE_SECONDS)) > 0:
                some = [rest.popleft() for _ in range(min(most, len(rest)))]
                yield from self._in_one_trip(connection, some, earlier)

    def _in_one_trip(
        self, connection: sa.Connection, parcels: Sequence[RenderedGroup], earlier: _Receipts
    ) -> list[Answer]:
        """Return the results of groups sent in one round trip. Raise `_Fallen` when any of them fails."""
        new = [parcel.content for parcel in parcels if parcel.mark not in earlier]
        try:
            if all(changed_rows(connection, self._statement.clause, new)):
                return [_earlier_answer(earlier, parcel) or self._took(parcel, None) for parcel in parcels]
        except Exception as error:  # of any kind: it is examined when the group is tried alone
            if not _may_pass_alone(error):
                raise
        raise _Fallen

    def _in_turn(
        self, connection: sa.Connection, parcel: RenderedGroup, earlier: _Receipts, behind_savepoint: bool
    ) -> Answer | None:
        """Write one group, and return its result, or `None` when it failed and was rolled back to its savepoint.

        Raise `_Fallen` if it failed without a savepoint. Alone it may succeed: groups of one transaction share `now()`.
        """
        if answer := _earlier_answer(earlier, parcel):
            return answer
        savepoint = connection.begin_nested() if behind_savepoint else None
        try:
            answer, changed = self._posted(connection, parcel)
        except Exception as error:  # of any kind: it is examined when the group is tried alone
            if not _may_pass_alone(error):
                raise
            changed = False
        if savepoint is None:
            if not changed:
                raise _Fallen
            return answer
        if not changed:
            savepoint.rollback()
            return None
        savepoint.commit()
        return answer

    def _deliver(self, parcel: RenderedGroup, given_up: threading.Event, *, is_repeated: bool = False) -> Answer:
        committing = False
        try:
            with self._engine.connect().execution_options(writes=True) as connection:
                self._get_ready(connection)
                transaction = connection.begin()
                earlier = self._receipts_of(connection, [parcel])
                answer = _earlier_answer(earlier, parcel) or self._posted_alone(connection, parcel)
                self._sign(connection, [] if parcel.mark in earlier else [(parcel, answer)])
                if given_up.is_set():
                    raise Silent  # the group was already reported as trouble, and is offered again
                committing = True
                _commit(connection, transaction)
                return answer
        except _NoRow:
            return self._refused(parcel, f"{self.name} rejected the time: no row there belongs to it.", NO_ROW)
        except _Signed as signed:
            if is_repeated:  # its receipt cannot be found: the table takes another group's id for it
                return self._failure(signed.error, parcel, is_sure=True)
            return self._deliver(parcel, given_up, is_repeated=True)
        except FAILURES as error:
            return self._failure(error, parcel, is_sure=not committing)

    def _receipts_of(self, connection: sa.Connection, parcels: Sequence[RenderedGroup]) -> _Receipts:
        return receipts.find(connection, [parcel.group_id for parcel in parcels]) if self.keeps_receipts else {}

    def _posted_alone(self, connection: sa.Connection, parcel: RenderedGroup) -> Took:
        answer, changed = self._posted(connection, parcel)
        if not changed and not self._allows_no_row and self._statement.counts_rows:
            raise _NoRow
        return answer

    def _posted(self, connection: sa.Connection, parcel: RenderedGroup) -> tuple[Took, bool]:
        """Execute the statement for a group, and return the answer, and whether it changed or returned any row.

        A database that does not count the rows counts as having changed some.
        """
        before = _all_changes(connection)
        result = connection.execute(self._statement.clause, dict(parcel.content))
        row = result.mappings().first() if result.returns_rows else None
        if result.returns_rows:
            changed = row is not None
        elif before is not None:  # SQLite counts no rows of a `WITH`, nor those that triggers of a view change
            changed = _all_changes(connection) != before
        else:
            changed = result.rowcount != 0
        self._is_plain = self._shares_trips and not result.returns_rows
        return self._took(parcel, dict(row) if row else None), changed

    def _took(self, parcel: RenderedGroup, returned: Mapping[str, Any] | None) -> Took:
        return Took(reference(self._words.external_id, {**parcel.variables, "returned": returned}))

    def _sign(self, connection: sa.Connection, posted: Sequence[tuple[RenderedGroup, Answer | None]]) -> None:
        """Write the receipts of the groups that were taken, in the transaction of their rows."""
        new = [
            receipts.row(parcel.mark, parcel.revision, receipts.Receipt(parcel.digest, answer.external_id), self._now())
            for parcel, answer in posted
            if isinstance(answer, Took)
        ]
        if not new or not self.keeps_receipts:
            return
        try:
            receipts.write(connection, new)
        except exc.IntegrityError as error:
            raise _Signed(error) from error

    def _refused(self, parcel: RenderedGroup, words: str, detail: str) -> Refused:
        """Return a refusal with the project's sentence, or these words."""
        return Refused((self._words.refused and self._words.refused.render(parcel.variables)) or words, detail)

    def _failure(self, error: Exception, parcel: RenderedGroup, *, is_sure: bool) -> Answer:
        kind = meaning(error)
        if kind is USER:
            words = f"{self.name} rejected the time: something in it does not fit there."
            return self._refused(parcel, words, cause(error))
        self._is_ready = not self.keeps_receipts  # the table of receipts may have been dropped
        answered = kind in (TroubleKind.PERMISSIONS, TroubleKind.UNKNOWN)
        return Failed(kind, sentence(self.name, kind), is_sure, is_down(error), answered, cause(error))


def _takes_company(statement: Statement, dialect: str) -> bool:
    """Return whether groups may share a transaction: on SQLite, and on PostgreSQL unless the statement is an upsert.

    An upsert could silently overwrite the row of another group in the transaction, since both have the same `now()`.
    """
    return dialect == "sqlite" or (dialect == "postgresql" and not statement.is_upsert)


def _all_changes(connection: sa.Connection) -> int | None:
    """Return the number of rows that a connection to SQLite has ever changed, or `None` for other databases."""
    return getattr(connection.connection.dbapi_connection, "total_changes", None)


def _commit(connection: sa.Connection, transaction: sa.Transaction) -> None:
    """Commit. Raise `Replaced` if that went into a file which is no longer there."""
    transaction.commit()
    if is_replaced(connection):
        raise Replaced


def _may_pass_alone(error: Exception) -> bool:
    """Return whether a group that failed together with others may succeed alone: the server answered, or was slow."""
    return not is_outage(error) or fault_of(error) is SLOW


def _earlier_answer(earlier: _Receipts, parcel: RenderedGroup) -> Took | Differs | None:
    """Return the answer that follows from a group's earlier receipt, or `None` without a receipt."""
    receipt = earlier.get(parcel.mark)
    if receipt is None:
        return None
    return Took(receipt.external_id) if receipt.digest == parcel.digest else Differs()


def _echo(outage: Failed) -> Failed:
    """Return the answer for a group that was not tried because of an outage."""
    return replace(outage, is_sure=True, is_echo=True)


def _shared(answer: Answer, groups: int) -> list[Answer | None]:
    """Return the answer for each of `groups` groups. A trouble that they share counts once."""
    echo = replace(answer, is_echo=True) if isinstance(answer, Failed) else answer
    return [answer, *[echo] * (groups - 1)]
