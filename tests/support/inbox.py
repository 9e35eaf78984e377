"""An inbox with a verb for each write, as a test tells its story."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from syncengine.state.database import open_database
from syncengine.state.inbox import Inbox
from syncengine.state.inbox_entries import DeliveryKey, DeliveryStatus, InboxEntry, Offer
from syncengine.state.inbox_states import PostedTimeStatus
from syncengine.state.inbox_writes import (
    Acknowledge,
    AnswerAgain,
    Begin,
    Decide,
    EndDelivery,
    GiveUp,
    Receive,
    Remember,
    Revise,
    Write,
)
from syncengine.state.store import new_lineage


def open_inbox(url: str, *, write: bool, now: Callable[[], float] = time.time) -> InboxByHand:
    """As the program opens one."""
    return InboxByHand(open_database(url, write=write, new_lineage=new_lineage), now)


class InboxByHand(Inbox):
    """Each verb makes one write, alone in its transaction."""

    def _one(self, write: Write) -> Any:
        return self.write([write])[0]

    def receive(self, offer: Offer) -> InboxEntry:
        entry: InboxEntry = self._one(Receive(offer))
        return entry

    def revise(self, offer: Offer) -> InboxEntry:
        entry: InboxEntry = self._one(Revise(offer))
        return entry

    def begin(self, entry: InboxEntry, sink: str) -> None:
        self._one(Begin(entry, sink))

    def remember(self, entry: InboxEntry, sink: str, memo: str) -> None:
        self._one(Remember(DeliveryKey(entry.group_id, entry.revision, sink), memo))

    def ended(
        self,
        entry: InboxEntry,
        sink: str,
        status: DeliveryStatus,
        *,
        message: str | None = None,
        external_id: str | None = None,
    ) -> None:
        self._one(EndDelivery(entry, sink, status, message, external_id))

    def decide(
        self,
        entry: InboxEntry,
        outcome: PostedTimeStatus,
        message: str | None = None,
        external_id: str | None = None,
        *,
        waits: bool,
        note: str | None = None,
        is_conflict: bool = False,
    ) -> None:
        self._one(Decide(entry, outcome, message, external_id, waits, note, is_conflict))

    def answer_again(self, entry: InboxEntry, *, waits: bool) -> None:
        self._one(AnswerAgain(entry, waits))

    def acknowledged(self, group_id: str, status: str, *, decided: float | None = None) -> None:
        self._one(Acknowledge(group_id, status, decided))

    def given_up(self, group_id: str, why: str) -> None:
        self._one(GiveUp(group_id, why))
