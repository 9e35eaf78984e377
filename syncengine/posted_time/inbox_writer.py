"""Write to the inbox for many groups at the same time. Simultaneous writes share a transaction and a thread."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Collection, Sequence
from typing import Any

from syncengine.posted_time.batcher import Batcher
from syncengine.state.inbox import Acknowledgement, Inbox, InboxEntry, Offer
from syncengine.state.inbox_entries import DeliveryKey
from syncengine.state.inbox_writes import Read, Receive, Remember, Write

MOST = 500
"""The maximum number of writes in one transaction, for which other writes wait."""


class InboxWriter:
    """The only writer of groups in this process, so that no write waits for the lock of another one."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self._batches = Batcher[Write, Any](lambda writes: to_thread(inbox.write, writes), MOST)

    async def write(self, write: Write) -> Any:
        """Execute a write, and return its result once it is durable."""
        return await self._batches.result(write)

    async def receive(self, offer: Offer) -> InboxEntry:
        """Store an offer, and return the group's entry."""
        entry: InboxEntry = await self.write(Receive(offer))
        return entry

    async def read(self, group_id: str) -> InboxEntry | None:
        """Return the entry of a group, or `None` when the inbox does not have it."""
        entry: InboxEntry | None = await self.write(Read(group_id))
        return entry

    def keep(self, memos: Sequence[tuple[DeliveryKey, str | None]]) -> None:
        """Store the notes that sinks need after a crash. Called in a thread."""
        for found in self.inbox.write([Remember(key, memo) for key, memo in memos]):
            if isinstance(found, Exception):
                raise found

    def with_notes(self, sink: str, memos: Collection[str]) -> Sequence[tuple[DeliveryKey, str]]:
        """Return the sink's deliveries that have one of these notes, each with its note. Called in a thread."""
        return self.inbox.with_notes(sink, memos)

    async def waiting(self) -> Sequence[Acknowledgement]:
        """Return the verdicts that the service has not accepted yet, oldest first."""
        return await to_thread(lambda: list(self.inbox.waiting()))
