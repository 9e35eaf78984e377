"""A group → one statement in a database, in one transaction with our receipt. Writes the target.

Groups that come side by side share a transaction, with a receipt each; where one of them fails, all are made again,
each behind a savepoint. Only success is believed in company: a group that fails there is tried alone.

Whatever happens to this process or to the connection, the row is there exactly when the receipt is, so an attempt whose
end nobody saw is simply made again. Without receipts it is at least once.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from syncengine.database.batches import changed_rows, prepare
from syncengine.database.errors import (
    FAILURES,
    SLOW,
    USER,
    Silent,
    cause,
    fault_of,
    is_down,
    is_outage,
    meaning,
    sentence,
)
from syncengine.database.open import limit_statements, statements_limited
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
"""Groups in one transaction."""

HOLD_SECONDS = 0.1
"""How long a transaction with several groups may hold what it wrote locked."""

AT_ONCE = 16
"""Groups in one round trip."""

SHARE_SECONDS = HOLD_SECONDS / AT_ONCE
"""How long each of them may take: together they take no longer than the transaction may."""

_Receipts = Mapping[tuple[str, str], receipts.Receipt]
"""Receipts of a target by group and key."""

_UPSERT = re.compile(r"\b(on\s+conflict|merge)\b", re.IGNORECASE)


class _Signed(Exception):
    """Another process delivered a group while this one was at it."""


class _Fallen(Exception):
    """A group failed in a shared transaction, and there is no savepoint before it."""


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
        self._takes_company = _takes_company(statement, self._engine.dialect.name)
        self._is_plain = False
        """The last statement returned no rows, and others like it can share its round trip."""
        self._shares_trips = prepare(self._engine)
        self._batches = Batcher[RenderedGroup, Answer](self._delivered, MOST)

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
        """Close nothing: the opener of the engine closes it."""

    def _get_ready(self) -> None:
        if not self._is_ready:
            receipts.create(self._engine)
            self._is_ready = True

    def _has_receipt(self, group_id: str, key: str) -> bool:
        self._get_ready()
        with self._engine.connect() as connection:
            return (group_id, key) in receipts.find(connection, [group_id])

    async def _delivered(self, parcels: Sequence[RenderedGroup]) -> list[Answer | Exception]:
        """Deliver groups together; retry alone one that fails. After an outage, the rest is not tried."""
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
        """The results of the first of them, of one at least. None: that one is to be tried alone."""
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
        except Exception as error:  # it is this group's alone
            return error

    def _together(
        self, parcels: Sequence[RenderedGroup], given_up: threading.Event, *, behind_savepoints: bool = False
    ) -> list[Answer | None]:
        """Write groups in one transaction, as many as fit before it is open for too long; each succeeds or fails alone.

        Savepoints would double the work, and most batches have no failure: they are set only after a first one.
        """
        answers = list[Answer | None]()
        committing = False
        try:
            self._get_ready()
            with self._engine.connect().execution_options(writes=True) as connection:
                transaction = connection.begin()
                earlier = self._receipts_of(connection, parcels)
                limit_statements(connection, HOLD_SECONDS)
                for answer in self._in_turns(connection, parcels, earlier, behind_savepoints):
                    answers.append(answer)
                posted = zip(parcels, answers, strict=False)
                self._sign(connection, [(one, answer) for one, answer in posted if one.mark not in earlier])
                if given_up.is_set():
                    raise Silent  # the groups are trouble already: they are offered again
                committing = True
                transaction.commit()
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
        """The results of groups whose transaction failed: each is tried alone, where that can help."""
        if _may_pass_alone(error):
            return [None] * max(begun, 1)
        failure = self._failure(error, parcels[0], is_sure=not committing)
        return _shared(failure, begun if committing else len(parcels))

    def _in_turns(
        self, connection: sa.Connection, parcels: Sequence[RenderedGroup], earlier: _Receipts, behind_savepoints: bool
    ) -> Iterator[Answer | None]:
        """The results of groups in their order, as many as can be written while the rows of the first are locked.

        The first shows whether the others can share round trips.
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
        """The results of groups, as many of them in each round trip as have time for their share."""
        rest = deque(parcels)
        with statements_limited(connection, SHARE_SECONDS):
            while rest and (most := int((until - time.monotonic()) / SHARE_SECONDS)) > 0:
                some = [rest.popleft() for _ in range(min(most, len(rest)))]
                yield from self._in_one_trip(connection, some, earlier)

    def _in_one_trip(
        self, connection: sa.Connection, parcels: Sequence[RenderedGroup], earlier: _Receipts
    ) -> list[Answer]:
        """The results; _Fallen where one group did not get through: each is looked at behind a savepoint then."""
        new = [parcel.content for parcel in parcels if parcel.mark not in earlier]
        try:
            if all(changed_rows(connection, self._statement.clause, new)):
                return [_earlier_answer(earlier, parcel) or self._took(parcel, None) for parcel in parcels]
        except Exception as error:  # whatever it is, it is looked at where the group is alone
            if not _may_pass_alone(error):
                raise
        raise _Fallen

    def _in_turn(
        self, connection: sa.Connection, parcel: RenderedGroup, earlier: _Receipts, behind_savepoint: bool
    ) -> Answer | None:
        """The result; None: it did not get through, and left nothing. _Fallen if no savepoint is there to go back to.

        A group may fail because of its company: `now()` is the same for all of a transaction.
        """
        if answer := _earlier_answer(earlier, parcel):
            return answer
        savepoint = connection.begin_nested() if behind_savepoint else None
        try:
            answer, changed = self._posted(connection, parcel)
        except Exception as error:  # whatever it is, it is looked at where the group is alone
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

    def _deliver(self, parcel: RenderedGroup, given_up: threading.Event) -> Answer:
        committing = False
        try:
            self._get_ready()
            with self._engine.connect().execution_options(writes=True) as connection:
                transaction = connection.begin()
                earlier = self._receipts_of(connection, [parcel])
                answer = _earlier_answer(earlier, parcel) or self._posted(connection, parcel)[0]
                self._sign(connection, [] if parcel.mark in earlier else [(parcel, answer)])
                if given_up.is_set():
                    raise Silent  # the group is trouble already: it is offered again
                committing = True
                transaction.commit()
                return answer
        except _Signed:
            return self._deliver(parcel, given_up)
        except FAILURES as error:
            return self._failure(error, parcel, is_sure=not committing)

    def _receipts_of(self, connection: sa.Connection, parcels: Sequence[RenderedGroup]) -> _Receipts:
        return receipts.find(connection, [parcel.group_id for parcel in parcels]) if self.keeps_receipts else {}

    def _posted(self, connection: sa.Connection, parcel: RenderedGroup) -> tuple[Took, bool]:
        """The row; and whether there was anything that the statement changed or found."""
        result = connection.execute(self._statement.clause, dict(parcel.content))
        row = result.mappings().first() if result.returns_rows else None
        changed = row is not None if result.returns_rows else result.rowcount != 0
        self._is_plain = self._shares_trips and not result.returns_rows
        return self._took(parcel, dict(row) if row else None), changed

    def _took(self, parcel: RenderedGroup, returned: Mapping[str, Any] | None) -> Took:
        return Took(reference(self._words.external_id, {**parcel.variables, "returned": returned}))

    def _sign(self, connection: sa.Connection, posted: Sequence[tuple[RenderedGroup, Answer | None]]) -> None:
        """Write the receipts of those that got through, in the transaction of their rows."""
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
            raise _Signed from error

    def _failure(self, error: Exception, parcel: RenderedGroup, *, is_sure: bool) -> Answer:
        kind = meaning(error)
        if kind is USER:
            text = self._words.refused.render(parcel.variables) if self._words.refused else ""
            return Refused(text or f"{self.name} rejected the time: something in it does not fit there.", cause(error))
        self._is_ready = not self.keeps_receipts  # the table of receipts may be what is gone
        answered = kind in (TroubleKind.PERMISSIONS, TroubleKind.UNKNOWN)
        return Failed(kind, sentence(self.name, kind), is_sure, is_down(error), answered, cause(error))


def _takes_company(statement: Statement, dialect: str) -> bool:
    """Whether a group may share its transaction with others: where a savepoint takes back all that a group did.

    A statement that takes another row for its own says nothing of it, and groups of one transaction have one `now()`.
    """
    return dialect == "sqlite" or (dialect == "postgresql" and _UPSERT.search(statement.clause.text) is None)


def _may_pass_alone(error: Exception) -> bool:
    """Whether one of those that met it together may fare otherwise: the server answered, or it has more time alone."""
    return not is_outage(error) or fault_of(error) is SLOW


def _earlier_answer(earlier: _Receipts, parcel: RenderedGroup) -> Took | Differs | None:
    """The answer that the receipt of a group gives, where it has one."""
    receipt = earlier.get(parcel.mark)
    if receipt is None:
        return None
    return Took(receipt.external_id) if receipt.digest == parcel.digest else Differs()


def _echo(outage: Failed) -> Failed:
    """The answer to a group that was not tried."""
    return replace(outage, is_sure=True, is_echo=True)


def _shared(answer: Answer, groups: int) -> list[Answer | None]:
    """Return the answer for each of `groups` groups; a trouble that they share counts once."""
    echo = replace(answer, is_echo=True) if isinstance(answer, Failed) else answer
    return [answer, *[echo] * (groups - 1)]
