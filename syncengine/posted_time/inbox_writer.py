"""The inbox for many groups at a time: calls side by side are one transaction, in one thread. Reads and writes."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Collection, Sequence
from typing import Any

from syncengine.posted_time.batcher import Batcher
from syncengine.state.inbox import Acknowledgement, Inbox, InboxEntry, Offer
from syncengine.state.inbox_entries import DeliveryKey
from syncengine.state.inbox_writes import Read, Receive, Remember, Write

MOST = 500
"""Writes in one transaction: others wait for it."""


class InboxWriter:
    """Everything that this process writes of groups goes through one of these, so that nothing waits for a lock."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self._batches = Batcher[Write, Any](lambda writes: to_thread(inbox.write, writes), MOST)

    async def write(self, write: Write) -> Any:
        """The result of the call, once it is durable."""
        return await self._batches.result(write)

    async def receive(self, offer: Offer) -> InboxEntry:
        """Keep an offer."""
        entry: InboxEntry = await self.write(Receive(offer))
        return entry

    async def read(self, group_id: str) -> InboxEntry | None:
        """Read a group as stored."""
        entry: InboxEntry | None = await self.write(Read(group_id))
        return entry

    def keep(self, memos: Sequence[tuple[DeliveryKey, str | None]]) -> None:
        """Keep the notes that sinks need after a crash. Called in a thread."""
        for found in self.inbox.write([Remember(key, memo) for key, memo in memos]):
            if isinstance(found, Exception):
                raise found

    def with_notes(self, sink: str, memos: Collection[str]) -> Sequence[tuple[DeliveryKey, str]]:
        """Deliveries of the sink with one of these notes, and which. Called in a thread."""
        return self.inbox.with_notes(sink, memos)

    async def waiting(self) -> Sequence[Acknowledgement]:
        """Verdicts that the service has not accepted yet, oldest first."""
        return await to_thread(lambda: list(self.inbox.waiting()))
