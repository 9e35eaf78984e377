"""Which groups `time retry --sink` delivers again."""

from __future__ import annotations

from pathlib import Path

from syncengine.posted_time.retry import taken_by
from syncengine.state.database import open_database
from syncengine.state.inbox_model import DeliveryStatus, InboxEntry, Offer
from tests.support.inbox import InboxByHand


class BusyInbox(InboxByHand):
    """An inbox to which another process delivers g3 as soon as its groups have been read."""

    def deliver(self, id: str, at: float) -> None:
        self._now = lambda: at
        entry = self.receive(Offer(id, f"digest of {id}", "{}", "fetch"))
        self.begin(entry, "ledger")
        self.ended(entry, "ledger", DeliveryStatus.ACCEPTED)

    def delivered_since(self, since: float) -> list[InboxEntry]:
        found = super().delivered_since(since)
        self.deliver("g3", 300.0)
        return found


def test_a_delivery_beside_the_selection_does_not_disturb_it(tmp_path: Path) -> None:
    """`serve` goes on while a person asks for the groups that a sink took: what it delivers meanwhile is not among
    them. They come in the order in which the sink took them."""
    with BusyInbox(open_database(str(tmp_path / "state.db"), write=True), lambda: 0.0) as inbox:
        inbox.deliver("g2", 100.0)
        inbox.deliver("g1", 200.0)
        assert taken_by(inbox, "ledger", 0.0).group_ids == ["g2", "g1"]
