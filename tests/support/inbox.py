"""An inbox with a verb for each write, as a test tells its story."""

import time
from collections.abc import Callable

from syncengine.state.database import open_database
from syncengine.state.inbox import Inbox
from syncengine.state.inbox_model import DeliveryKey, DeliveryStatus, EventKind, InboxEntry, Offer, PostedTimeStatus


def open_inbox(url: str, *, write: bool, now: Callable[[], float] = time.time) -> "InboxByHand":
    return InboxByHand(open_database(url, write=write), now)


class InboxByHand(Inbox):
    """Each verb makes one write, alone in its transaction."""

    def receive(self, offer: Offer) -> InboxEntry:
        return self.write(lambda tx: tx.receive(offer))

    def revise(self, offer: Offer) -> InboxEntry:
        return self.write(lambda tx: tx.revise(offer))

    def begin(self, entry: InboxEntry, sink: str) -> None:
        self.write(lambda tx: tx.begin(entry, sink))

    def remember(self, entry: InboxEntry, sink: str, memo: str) -> None:
        self.write(lambda tx: tx.remember(DeliveryKey(entry.group_id, entry.revision, sink), memo))

    def ended(
        self,
        entry: InboxEntry,
        sink: str,
        status: DeliveryStatus,
        *,
        message: str | None = None,
        external_id: str | None = None,
    ) -> None:
        self.write(lambda tx: tx.end(entry, sink, status, message, external_id))

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
        verdict = (outcome, message, external_id)
        kind = EventKind.CONFLICT if is_conflict else EventKind.VERDICT
        self.write(lambda tx: tx.decide(entry, *verdict, waits=waits, note=note, kind=kind))

    def answer_again(self, entry: InboxEntry, *, waits: bool) -> None:
        self.write(lambda tx: tx.answer_again(entry, waits=waits))

    def acknowledged(self, group_id: str, status: str, *, decided: float | None = None) -> None:
        self.write(lambda tx: tx.acknowledge(group_id, status, decided))

    def given_up(self, group_id: str, why: str) -> None:
        self.write(lambda tx: tx.give_up(group_id, why))
