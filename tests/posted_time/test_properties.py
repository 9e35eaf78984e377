"""Whatever is offered, refused, lost or killed: every sink has a group before the service gets its SUCCESS."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from syncengine.posted_time.build_route import BuiltRoute
from syncengine.posted_time.databases import Databases
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import Verdict
from syncengine.posted_time.route import SinkRule
from syncengine.project.runner import Holder
from syncengine.state.database import LockLost, open_database
from syncengine.state.inbox import Inbox, InboxTransaction, open_inbox
from tests.posted_time.desk import SUCCESS, TROUBLE
from tests.posted_time.mortal import Fate, Moody, lives
from tests.posted_time.projects import bare_route
from tests.posted_time.samples import raw
from tests.support.memory import MEMORY
from tests.support.profiles import tried

pytestmark = pytest.mark.slow

GROUPS = st.sampled_from(["a", "b"])
CONTENTS = st.sampled_from([100, 200])
MOODS = st.lists(st.sampled_from(["take", "take", "refuse", "trouble", "lost"]), max_size=2)
DEATHS = st.none() | st.integers(0, 14)
OFFERS = st.tuples(st.just("offer"), GROUPS, CONTENTS, MOODS, MOODS, DEATHS)
ANSWERS = st.tuples(st.just("acknowledge"), st.booleans(), DEATHS)
HISTORIES = st.lists(OFFERS | OFFERS | ANSWERS, max_size=9)


class World:
    """The file of a state, two sinks, and the statuses that the service got."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "state.db")
        self.fate = Fate()
        self.sinks = (Moody("one", self.fate), Moody("two", self.fate))
        self.told: dict[str, str] = {}
        open_inbox(self.path, write=True).close()

    def live(self, work: Callable[[Delivery], Awaitable[Verdict | None]], deaths: int | None) -> Verdict | None:
        """Run one process; None if it died."""
        route = replace(bare_route(), sink_rules=tuple(SinkRule(sink, None) for sink in self.sinks))
        self.fate.left = deaths
        return lives(self.path, self.fate, BuiltRoute(route, Databases()), work, lambda: 1.0)

    def offer(self, group: str, content: int, deaths: int | None = None) -> Verdict | None:
        verdict = self.live(
            lambda delivery: delivery.take(raw(group, totalDurationSecs=content), mechanism="fetch"), deaths
        )
        if verdict is not None and verdict.outcome is SUCCESS:
            self.check_taken(group)
        return verdict

    def acknowledge(self, *, is_heard: bool, deaths: int | None = None) -> None:
        """Send the waiting statuses; with `is_heard` false the answers of the service are lost."""

        async def telling(delivery: Delivery) -> None:
            for update in delivery.inbox.waiting():
                if update.status == "SUCCESS":
                    self.check_taken(update.group_id)
                self.told[update.group_id] = update.status
                if is_heard:
                    delivery.inbox.write(lambda tx, told=update: tx.acknowledge(told.group_id, told.status))

        self.live(telling, deaths)

    def check_taken(self, group: str) -> None:
        """Every sink has the group before its SUCCESS is sent."""
        assert all(group in sink.took for sink in self.sinks)

    def check(self) -> None:
        """No sink holds two contents of one group, and every group with SUCCESS is in every sink."""
        for sink in self.sinks:
            assert all(len(contents) == 1 for contents in sink.took.values()), sink.took
        for group, status in self.told.items():
            if status == "SUCCESS":
                self.check_taken(group)


def _then_changed(first: str, *then: str, deaths: int | None = None) -> list[tuple[object, ...]]:
    """A sink answers so, then so or the process dies after so many instants, and then the user changes the group."""
    return [
        ("offer", "a", 100, [first], [], None),
        ("offer", "a", 100, [*then], [], deaths),
        ("offer", "a", 200, [], [], None),
    ]


@example(_then_changed("lost", "refuse"))
@example(_then_changed("lost", "trouble"))
@example(_then_changed("trouble", deaths=4))
@example(_then_changed("trouble", deaths=5))
@example(_then_changed("trouble", deaths=6))
@settings(max_examples=tried(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(HISTORIES)
def test_sinks_have_a_group_before_the_service_gets_success(history: list[tuple[object, ...]]) -> None:
    """Each sink gets one content only, and in the end every deliverable group is delivered."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        world = World(Path(folder))
        offered: dict[str, int] = {}
        for event in history:
            match event:
                case ("offer", str(group), int(content), list(first), list(second), deaths):
                    world.sinks[0].moods[:], world.sinks[1].moods[:] = first, second
                    world.offer(group, content, deaths if isinstance(deaths, int) else None)
                    offered[group] = content
                case ("acknowledge", bool(is_heard), deaths):
                    world.acknowledge(is_heard=is_heard, deaths=deaths if isinstance(deaths, int) else None)
            world.check()
        _come_to_rest(world, offered)


def _come_to_rest(world: World, offered: dict[str, int]) -> None:
    """Offer every group until it has a final verdict: FAILURE only if a sink holds another content."""
    for sink in world.sinks:
        sink.moods.clear()
    for group, content in offered.items():
        verdict = world.offer(group, content)
        assert verdict is not None
        assert verdict.outcome is not TROUBLE
        held = {text for sink in world.sinks for text in sink.took.get(group, ())}
        assert (verdict.outcome is SUCCESS) == (held == {str(content)})
        before = [list(sink.calls) for sink in world.sinks]
        assert world.offer(group, content) == verdict
        assert [sink.calls for sink in world.sinks] == before
    world.acknowledge(is_heard=True)
    world.check()
    assert world.told.keys() >= offered.keys()


def test_a_process_that_slept_through_its_lease_delivers_nothing(tmp_path: Path) -> None:
    """The delivery that had begun stays in doubt for the next process."""
    now, sink = 1_700_000_000.0, Moody("one", Fate())

    class Sleeper(Inbox):
        """An inbox whose clock passes the end of its lease once a delivery has begun."""

        def write(self, work: Callable[[InboxTransaction], Any]) -> Any:
            nonlocal now
            done = super().write(work)
            now += 61 * any(entry.deliveries for entry in self.entries())
            return done

    inbox = Sleeper(open_database(str(tmp_path / "state.db"), write=True), lambda: now)
    route = replace(bare_route(), sink_rules=(SinkRule(sink, None),))
    delivery = Delivery(BuiltRoute(route, Databases()), inbox, keep=1e9, now=lambda: now)
    with inbox, inbox.lease(Holder.here("serve", {}), wait=0):
        with pytest.raises(LockLost):
            asyncio.run(delivery.take(raw("g1"), mechanism="fetch"))
        assert sink.calls == []
