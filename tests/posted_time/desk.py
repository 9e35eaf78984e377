"""A delivery at work, as a test uses it: each step is a plain call that returns once it is done."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import SinkTrouble, Verdict
from syncengine.posted_time.pace import Pace
from syncengine.state.inbox_model import InboxEntry, PostedTimeStatus

SUCCESS, REFUSED, TROUBLE = PostedTimeStatus
SWIFT = Pace(first=0.01, longest=0.05, empty=0.01, fetch=1.0, well=0.05, down=0.02, renew=0.1)
"""Short waits that keep tests fast; the loops still wait for the same things."""
T = TypeVar("T")

Raw = dict[str, Any]
"""A group as the service sends it."""


@dataclass(frozen=True)
class Desk:
    """`wait` runs a coroutine to its end, in the loop in which all steps of the delivery run."""

    delivery: Delivery
    runner: asyncio.Runner

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def take(self, group: Raw, mechanism: str = "fetch") -> Verdict:
        return self.wait(self.delivery.take(group, mechanism=mechanism))

    def together(self, *groups: Raw) -> list[Verdict]:
        async def take() -> list[Verdict]:
            return await asyncio.gather(*(self.delivery.take(group, mechanism="fetch") for group in groups))

        return self.wait(take())

    def store(self, group: Any) -> None:
        self.wait(self.delivery.store(group, mechanism="fetch"))

    def catch_up(self) -> int:
        return self.wait(self.delivery.catch_up(asyncio.Event()))

    def resume(self) -> list[Verdict | None]:
        """The verdicts of the groups that waited in the inbox."""
        verdicts = list[Verdict | None]()

        async def deliver(id: str) -> None:
            verdicts.append(await self.delivery.again(id))

        assert self.wait(self.delivery.resume(asyncio.Event(), deliver)) == len(verdicts)
        return verdicts

    def check_sinks(self) -> tuple[SinkTrouble, ...]:
        return self.wait(self.delivery.check_sinks())

    def remember_troubles(self) -> None:
        self.wait(self.delivery.remember_troubles())

    def __getattr__(self, name: str) -> Any:
        """What it lacks is the delivery's: `troubles`, `reported`, `is_cautious` and `inbox`."""
        return getattr(self.delivery, name)

    def entry(self, id: str = "g1") -> InboxEntry:
        entry = self.delivery.inbox.entry(id)
        assert entry is not None
        return entry

    def acknowledge(self, id: str, status: str = "SUCCESS") -> None:
        self.inbox.write(lambda tx: tx.acknowledge(id, status))

    def ask(self, ids: list[str], sink: str) -> None:
        """A person asks for the groups to be delivered to the sink again."""
        self.inbox.write(lambda tx: tx.ask(ids, sink))


@contextmanager
def at_work(delivery: Delivery) -> Iterator[Desk]:
    """A delivery that is open for the duration of the block."""
    with asyncio.Runner() as runner:
        runner.run(delivery.__aenter__())
        try:
            yield Desk(delivery, runner)
        finally:
            runner.run(delivery.__aexit__(None, None, None))


def taking(delivery: Delivery, *groups: Raw) -> list[Verdict]:
    with at_work(delivery) as desk:
        return [desk.take(group) for group in groups]


def refused(delivery: Delivery, group: Raw) -> tuple[str, str]:
    """The message for the user and the note for the operator, of a group that is refused for good."""
    with at_work(delivery) as desk:
        verdict, entry = desk.take(group), desk.entry(group["groupId"])
        assert (verdict.outcome, entry.state, desk.troubles) == (REFUSED, "refused", ())
        return verdict.message or "", entry.note or ""


def outcomes(verdicts: list[Verdict]) -> list[PostedTimeStatus]:
    return [verdict.outcome for verdict in verdicts]
