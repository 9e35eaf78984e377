"""One group of posted time → inbox → sinks → verdict. Writes the inbox and the sinks.

A group is in the inbox before anything else happens to it. Refusal rules, lookups, narrative and every sink's rendering
come before the first delivery; a sink that took the group is never asked again, however often the group is offered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType

from syncengine.posted_time.verdict import Outcome, SinkTrouble, TroubleKind, Verdict
from syncengine.settings import Project
from syncengine.store.inbox import Inbox

__all__ = ["Delivery", "Outcome", "SinkTrouble", "TroubleKind", "Verdict"]


class Delivery:
    """Where posted time goes. An async context manager, opened once per process; `take` may run many times at once."""

    inbox: Inbox

    @classmethod
    def of(cls, project: Project, environ: Mapping[str, str], *, now: Callable[[], float] = time.time) -> Delivery:
        """Every template, table and source is checked here: Problems with all that is wrong.

        A target that cannot be reached is no problem of the project but a trouble: see `troubles`.
        """
        raise NotImplementedError

    async def take(self, raw: Mapping[str, object], *, mechanism: str) -> Verdict:
        """Deliver a group as the service sent it; `mechanism` is `fetch` or `webhook` (whose answer is the verdict).

        Idempotent per group and sink. LockLost when the inbox's lease was lost: nothing more may be taken then.
        """
        raise NotImplementedError

    async def catch_up(self) -> int:
        """Deliver what `time retry` and `time redeliver` asked for meanwhile; how many groups that were.

        For `serve`, between two rounds: whoever holds the lease does what others may only ask for.
        """
        raise NotImplementedError

    async def check_sinks(self) -> tuple[SinkTrouble, ...]:
        """Probe every sink and the sources of lookups; () when all are well. What is told here is to be reported."""
        raise NotImplementedError

    @property
    def troubles(self) -> tuple[SinkTrouble, ...]:
        """Sinks known to be down now: fetch nothing while there are any.

        A sink whose probe is well but whose last delivery failed is not among them, so that one group can try it; it is
        in the answer of `check_sinks` until it took or refused a group.
        """
        raise NotImplementedError

    async def __aenter__(self) -> Delivery:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close clients, pools and the inbox."""
