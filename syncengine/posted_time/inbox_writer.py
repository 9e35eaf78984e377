"""Write to the inbox for many groups at the same time, by one thread."""

from __future__ import annotations

import asyncio
from asyncio import to_thread
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from syncengine.state.inbox import Inbox, InboxTransaction
from syncengine.state.inbox_model import Acknowledgement, DeliveryKey

T = TypeVar("T")
Work = Callable[[InboxTransaction], T]
"""A write: a call of one method of the transaction, or several that stand or fall together."""

MOST = 500
"""The maximum number of writes in one transaction: the next ones wait for it, some 0.3 s at most."""


class InboxWriter:
    """The only writer of groups in this process."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self._waiting: list[tuple[Work[Any], asyncio.Future[Any]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, work: Work[T]) -> T:
        """Execute `work`, and return its result once it is durable. Work that has begun ends, whoever waits.

        It is repeated in a transaction of its own if another group's work in the same one was rejected.
        """
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, result))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        return await result

    async def _write_all(self) -> None:
        # SQLite has one writer at a time, and a durable commit costs more than what it holds: 300 groups a second, with
        # four writes each, are more commits than a disk can bring to its platter. So what arrives while a transaction
        # is being written is written together by the next one.
        while self._waiting:
            await asyncio.sleep(0)  # let tasks that the last transaction released add their writes
            batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            batch = [(work, result) for work, result in batch if not result.done()]
            try:
                found = await to_thread(self.inbox.write_all, [work for work, _ in batch])
            except asyncio.CancelledError:
                for _, result in (*batch, *self._waiting):
                    result.cancel()
                raise
            except BaseException as error:  # whatever it is, it is raised where the writes were asked for
                found = [error] * len(batch)
            for (_, result), value in zip(batch, found, strict=True):
                if result.done():
                    continue
                if isinstance(value, BaseException):
                    result.set_exception(value)
                else:
                    result.set_result(value)

    async def close(self) -> None:
        """Wait for the transaction that is being written."""
        if self._writing is not None:
            await self._writing

    def keep(self, key: DeliveryKey, memo: str | None) -> None:
        """Store the note that a sink needs after a crash, from the sink's thread. `None` removes it."""
        self.inbox.write(lambda tx: tx.remember(key, memo))

    def with_note(self, sink: str, memo: str) -> Sequence[DeliveryKey]:
        """Return the sink's deliveries that have this note."""
        return self.inbox.with_memo(sink, memo)

    async def waiting(self) -> Sequence[Acknowledgement]:
        """Return the verdicts that the service has not accepted yet, oldest first."""
        return await to_thread(self.inbox.waiting)
