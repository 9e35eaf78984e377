"""A process that is suspended between its last write and a delivery: another process may have delivered meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pytest

from syncengine.posted_time.build_route import BuiltRoute
from syncengine.posted_time.databases import Databases
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.route import SinkRule
from syncengine.state.database import LockLost, open_database
from syncengine.state.holder import Holder
from syncengine.state.inbox import Inbox, InboxTransaction
from tests.posted_time.mortal import Fate, Moody
from tests.posted_time.projects import bare_route
from tests.posted_time.samples import raw

T = TypeVar("T")


@dataclass
class Clock:
    at: float = 1_700_000_000.0

    def now(self) -> float:
        return self.at


class Sleeper(Inbox):
    """An inbox whose clock passes the end of its lease once a delivery has begun."""

    clock: Clock

    def write(self, work: Callable[[InboxTransaction], T]) -> T:
        done = super().write(work)
        if any(entry.deliveries for entry in self.entries()):
            self.clock.at += 61
        return done


def test_a_process_that_slept_through_its_lease_delivers_nothing(tmp_path: Path) -> None:
    """The delivery that had begun stays in doubt for the next process."""
    clock, sink = Clock(), Moody("one", Fate())
    database = open_database(str(tmp_path / "state.db"), write=True)
    inbox = Sleeper(database, clock.now)
    inbox.clock = clock
    bare = bare_route()
    route = replace(bare, sink_rules=(SinkRule(sink, None),))
    delivery = Delivery(BuiltRoute(route, Databases()), inbox, keep=1e9, now=clock.now)
    with inbox, inbox.lease(Holder.here("serve", {}), wait=0):
        with pytest.raises(LockLost):
            asyncio.run(delivery.take(raw("g1"), mechanism="fetch"))
        assert sink.calls == []
