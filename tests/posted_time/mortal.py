"""An inbox that dies before or after any of its transactions, and sinks with moods that survive its death."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import sqlalchemy as sa

from syncengine.errors import TroubleKind
from syncengine.posted_time.build_route import BuiltRoute
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import SinkTrouble
from syncengine.posted_time.sinks.contract import Answer, Failed, Notes, Recalled, Refused, RenderedGroup, Took
from syncengine.posted_time.templates import Variables
from syncengine.state.database import open_database
from syncengine.state.inbox import Inbox
from syncengine.state.inbox_model import DeliveryKey

T = TypeVar("T")


class Dead(BaseException):
    """Raised in place of SIGKILL: no code of the process handles it."""


@dataclass
class Fate:
    """The number of instants until the process dies; with None it never dies."""

    left: int | None = None

    def instant(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Dead


class MortalInbox(Inbox):
    """Each transaction has two instants at which the process can die: before it begins, and after it is durable."""

    fate: Fate

    @contextmanager
    def _exclusively(self) -> Iterator[sa.Connection]:
        self.fate.instant()
        with super()._exclusively() as connection:
            yield connection
        self.fate.instant()


@dataclass
class Moody:
    """A sink that records the groups it took, by key. `moods` decide how it answers the next deliveries."""

    name: str
    fate: Fate
    moods: list[str] = field(default_factory=list)
    took: dict[str, set[str]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    asked_after: None = None

    def receiver(self) -> str:
        return self.name

    def render(self, variables: Variables) -> str:
        return str(variables["duration"].seconds)

    def shown(self, content: Any) -> Any:
        return content

    async def deliver(self, rendered: RenderedGroup, memo: str | None, notes: Notes) -> Answer:
        self.fate.instant()
        self.calls.append((rendered.group_id, rendered.content))
        mood = self.moods.pop(0) if self.moods else "take"
        if mood == "refuse":
            return Refused("no")
        if mood == "trouble":
            return Failed(TroubleKind.UNREACHABLE, "down")
        self.took.setdefault(rendered.group_id, set()).add(rendered.content)
        self.fate.instant()
        if mood == "lost":
            return Failed(TroubleKind.UNREACHABLE, "no answer", is_sure=False)
        return Took(f"{self.name}-{rendered.group_id}")

    async def recall(self, key: DeliveryKey, memo: str | None, notes: Notes, variables: Variables | None) -> Recalled:
        return None

    async def probe(self) -> SinkTrouble | None:
        return None

    async def close(self) -> None:
        """Do nothing: the sink survives the process."""


def lives(
    state: str, fate: Fate, built: BuiltRoute, work: Callable[[Delivery], Awaitable[T]], now: Callable[[], float]
) -> T | None:
    """What `work` returns in the delivery of a process with this state and clock; None if it died."""
    inbox = MortalInbox(open_database(state, write=True), now)
    inbox.fate = fate
    delivery = Delivery(built, inbox, keep=1e9, now=now, clock=now)

    async def living() -> T:
        try:
            return await work(delivery)
        finally:
            for sink in delivery.route.sinks:
                await sink.close()

    try:
        return asyncio.run(living())
    except Dead:
        return None
    finally:
        fate.left = None
        inbox.close()
