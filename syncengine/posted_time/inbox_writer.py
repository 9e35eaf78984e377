"""Write to the inbox for many groups at the same time, by one thread.

SQLite has one writer at a time, and a durable commit costs more than what it holds: what arrives while a transaction is
being written is written together by the next one.
"""

from __future__ import annotations

import asyncio
from asyncio import to_thread
from collections.abc import Sequence
from typing import Any

from syncengine.state.inbox import Acknowledgement, Inbox, InboxEntry, Offer
from syncengine.state.inbox_entries import DeliveryKey
from syncengine.state.inbox_writes import Read, Receive, Remember, Write

MOST = 500
"""The maximum number of writes in one transaction, for which other writes wait."""


class InboxWriter:
    """The only writer of groups in this process."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self._waiting: list[tuple[Write, asyncio.Future[Any]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, write: Write) -> Any:
        """Execute a write, and return its result once it is durable. A write that has begun ends, whoever waits."""
        result = asyncio.get_running_loop().create_future()
        self._waiting.append((write, result))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        return await result

    async def _write_all(self) -> None:
        while self._waiting:
            await asyncio.sleep(0)  # let tasks that the last transaction released add their writes
            batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            batch = [(write, result) for write, result in batch if not result.done()]
            try:
                found = await to_thread(self.inbox.write, [write for write, _ in batch])
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

    async def receive(self, offer: Offer) -> InboxEntry:
        """Store an offer, and return the group's entry."""
        entry: InboxEntry = await self.write(Receive(offer))
        return entry

    async def read(self, group_id: str) -> InboxEntry | None:
        """Return the entry of a group, or `None` when the inbox does not have it."""
        entry: InboxEntry | None = await self.write(Read(group_id))
        return entry

    def keep(self, key: DeliveryKey, memo: str | None) -> None:
        """Store the note that a sink needs after a crash, from the sink's thread. `None` removes it."""
        self.inbox.write([Remember(key, memo)])

    def with_note(self, sink: str, memo: str) -> Sequence[DeliveryKey]:
        """Return the sink's deliveries that have this note."""
        return [key for key, _ in self.inbox.with_notes(sink, {memo})]

    async def waiting(self) -> Sequence[Acknowledgement]:
        """Return the verdicts that the service has not accepted yet, oldest first."""
        return await to_thread(lambda: list(self.inbox.waiting()))
