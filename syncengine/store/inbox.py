"""The inbox of posted time: what was offered, what each sink did with it, what the service was told. Reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from syncengine.store.lock import Holder, Lease

__all__ = ["Acknowledgement", "Holder", "Inbox", "Receipt"]

InboxLease = Lease


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A verdict that the service has not accepted yet. `status` is SUCCESS, FAILURE or RETRIABLE_FAILURE."""

    group_id: str
    status: str
    message: str | None
    external_id: str | None


@dataclass(frozen=True, slots=True)
class Receipt:
    """That a sink took a group. `at` in seconds since epoch; `external_id` is the sink's reference."""

    group_id: str
    sink: str
    at: float
    external_id: str | None


class Inbox:
    """Groups in the state's database. Every method is one transaction."""

    def waiting(self) -> Iterator[Acknowledgement]:
        """Verdicts that the service has not accepted yet, oldest first. Only those of the fetch mechanism."""
        raise NotImplementedError

    def acknowledged(self, group_id: str, status: str) -> None:
        """The service accepted this status. A newer verdict with another status goes on waiting."""
        raise NotImplementedError

    def given_up(self, group_id: str, why: str) -> None:
        """The service will never accept a status of this group (404): it stays visible, and waits no more."""
        raise NotImplementedError

    def lease(self, holder: Holder) -> AbstractContextManager[InboxLease]:
        """Hold the inbox; waits as a standby for as long as another holds it and lives."""
        raise NotImplementedError

    def receipts(self, sink: str, since: float) -> Iterator[Receipt]:
        """What a sink took since then, oldest first; what was reduced too."""
        raise NotImplementedError
