"""The fetch loop: which groups it takes, when it waits, and what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from syncengine.errors import SyncengineError, TroubleKind
from syncengine.posted_time.events import Event, Offered, RetryLater, SinkTrouble, Taken, Verdict
from syncengine.posted_time.loops import Fetching, WebhookRegistered
from syncengine.posted_time.pace import WIDTH, Pace, each, side_by_side
from syncengine.service.client import Client, Conduct
from syncengine.state.database import LockLost
from syncengine.state.inbox_model import PostedTimeStatus
from tests.posted_time.desk import SUCCESS, TROUBLE
from tests.service.scripted import CUT, Reply, Scripted, saying, serving
from tests.service.talking import key

from .line import SWIFT, group, until

NOTHING = saying([])
Scene = Callable[[Scripted, Fetching, list[Event], asyncio.Event], Awaitable[Any]]


def fetching(
    script: Sequence[Reply],
    delivery: Any,
    scene: Scene,
    limit: Callable[[], int | None] = lambda: None,
    pace: Pace = SWIFT,
) -> Any:
    """Run the loop against a scripted service until the scene returns."""

    async def play() -> Any:
        told: list[Event] = []
        stop = asyncio.Event()
        conduct = Conduct(attempts=1, breaks=False)
        async with serving(*script) as server, Client(server.url, key, conduct=conduct) as client:
            loop = Fetching(client, delivery, limit, told.append, stop, pace=pace)
            async with asyncio.timeout(60):
                return await scene(server, loop, told, stop)

    return asyncio.run(play())


def told_until(script: Sequence[Reply], delivery: Any, there: Callable[[list[Event]], bool]) -> list[Event]:
    """Run the loop until its events are `there`, and return them."""
    told: list[Event] = fetching(script, delivery, lambda _, *loop: run_until(there, *loop))
    return told


async def run_until(
    there: Callable[[list[Event]], bool], loop: Fetching, told: list[Event], stop: asyncio.Event
) -> list[Event]:
    running = asyncio.ensure_future(loop.run())
    await until(told, there)
    stop.set()
    await running
    return told


def has_taken(count: int) -> Callable[[list[Event]], bool]:
    return lambda told: len(taken(told)) == count


def taken(told: list[Event]) -> list[tuple[str, PostedTimeStatus]]:
    return [(event.group_id, event.verdict.outcome) for event in told if isinstance(event, Taken)]


class Desk:
    """A delivery that takes every group and stores nothing, for tests of the loop that need no sink."""

    def __init__(self, *troubles: SinkTrouble, raising: Exception | None = None) -> None:
        self.troubles: Sequence[SinkTrouble] = troubles
        self.raising = raising
        self.took: list[str] = []
        self.stored: list[str] = []
        self.verdicts: dict[str, Verdict] = {}
        """The verdicts on groups that are not taken."""
        self.is_cautious = False

    def width(self) -> int:
        return 0 if self.troubles else 1 if self.is_cautious else WIDTH

    async def resume(self, stop: asyncio.Event, deliver: Callable[[str], Awaitable[object]]) -> int:
        stored, self.stored = self.stored, []
        begun = await side_by_side(each(stored), deliver, lambda: 0 if stop.is_set() else self.width())
        self.stored = stored[begun:] + self.stored
        return begun

    async def store(self, raw: Any, *, mechanism: str) -> None:
        self.stored.append(raw["groupId"])

    async def again(self, id: str) -> Verdict:
        self.took.append(id)
        if self.raising is not None:
            raising, self.raising = self.raising, None
            raise raising
        return self.verdicts.get(id, Verdict(SUCCESS))


@pytest.mark.parametrize(
    "trouble",
    [
        CUT,
        saying({}, 500),
        saying({}, 503),
        Reply(429, b"", {"Retry-After": "0"}),
        Reply(200, b"<html>"),
        saying({}, 401),
    ],
    ids=["no answer", "500", "503", "429", "html", "401"],
)
def test_the_loop_waits_and_goes_on_after_trouble(trouble: Reply) -> None:
    """Each failed fetch is reported as an event."""
    desk = Desk()
    told = told_until((trouble, trouble, saying([group("a")]), NOTHING), desk, has_taken(1))
    assert [type(event) for event in told][:4] == [RetryLater, RetryLater, Offered, Taken]
    assert desk.took == ["a"]


def test_an_empty_answer_is_no_trouble() -> None:
    assert {type(event) for event in told_until((NOTHING,), Desk(), lambda told: len(told) >= 3)} == {Offered}


@pytest.mark.parametrize("ending", [None, Reply(504), Reply(408), CUT], ids=["never", "504", "408", "closed"])
def test_a_fetch_that_ends_without_an_answer_after_its_time_is_no_trouble(ending: Reply | None) -> None:
    """The service or a gateway ended a fetch that it held open for its whole time: the next fetch follows at once."""
    slow, pace = asyncio.Event(), replace(SWIFT, fetch=2.0)  # long enough to connect on a busy machine

    async def scene(server: Scripted, loop: Fetching, told: list[Event], stop: asyncio.Event) -> list[Event]:
        if ending is not None:
            server.on_request = lambda: asyncio.get_running_loop().call_later(0.85 * pace.fetch, slow.set)
        return await run_until(has_taken(1), loop, told, stop)

    script = (replace(ending or Reply(), until=slow), saying([group("a")]), NOTHING)
    assert [type(event) for event in fetching(script, Desk(), scene, pace=pace)][:2] == [Offered, Taken]


def test_a_webhook_of_the_team_ends_the_loop_with_an_explanation() -> None:
    """On a 409 the error says how to unregister the webhook, and no second fetch is sent."""

    async def scene(server: Scripted, loop: Fetching, _: list[Event], __: asyncio.Event) -> int:
        with pytest.raises(WebhookRegistered, match=r"has a webhook.*unregister webhook"):
            await loop.run()
        return len(server.heard)

    assert fetching((saying("webhook there", 409),), Desk(), scene) == 1


def test_nothing_is_fetched_while_a_sink_is_down() -> None:
    """The loop fetches again as soon as the sink is up."""
    desk = Desk(SinkTrouble("ledger", TroubleKind.UNREACHABLE, "The ledger cannot be reached."))

    async def scene(server: Scripted, loop: Fetching, told: list[Event], stop: asyncio.Event) -> int:
        running = asyncio.ensure_future(loop.run())
        await asyncio.sleep(5 * SWIFT.empty)
        asked = len(server.heard)
        desk.troubles = ()
        await until(told, lambda seen: bool(taken(seen)))
        stop.set()
        await running
        return asked

    assert fetching((saying([group("a")]), NOTHING), desk, scene) == 0


@pytest.mark.parametrize("error", [SyncengineError("the state is busy"), KeyError("secret-in-a-key")])
def test_the_loop_waits_for_an_inbox_that_cannot_store_a_group(error: Exception) -> None:
    """The rest of the answer is dropped, as the service offers it again. The event repeats no text of a foreign
    exception."""
    desk = Desk(raising=error)
    told = told_until((saying([group("a"), group("b")]), saying([group("b")]), NOTHING), desk, has_taken(1))
    assert desk.took == ["a", "b"]
    waiting = next(event for event in told if isinstance(event, RetryLater))
    assert waiting.what == "take"
    assert "secret" not in waiting.why


def test_a_lost_lease_ends_the_loop() -> None:
    """Another process has the inbox: this one begins no further group."""
    desk = Desk(raising=LockLost("taken over"))

    async def scene(_: Scripted, loop: Fetching, __: list[Event], ___: asyncio.Event) -> None:
        with pytest.raises(LockLost):
            await loop.run()

    fetching((saying([group(id) for id in MANY]),), desk, scene)
    assert desk.took == MANY[:WIDTH]


def test_a_stop_aborts_the_open_fetch() -> None:
    """The loop ends at once, although the service would hold the fetch open for a minute."""

    async def scene(server: Scripted, loop: Fetching, _: list[Event], stop: asyncio.Event) -> int:
        asked = asyncio.Event()
        server.on_request = asked.set
        running = asyncio.ensure_future(loop.run())
        await asked.wait()
        stop.set()
        await asyncio.wait_for(running, 30)
        return len(server.heard)

    assert fetching((Reply(until=asyncio.Event()),), Desk(), scene) == 1


MANY = [f"g{number}" for number in range(WIDTH + 2)]


def test_a_stop_finishes_begun_groups_and_leaves_the_rest() -> None:
    """The other groups are in the inbox, where the next process continues with them."""

    class Slow(Desk):
        async def again(self, id: str) -> Verdict:
            stopping.set()
            return await super().again(id)

    stopping = asyncio.Event()
    desk: Any = Slow()

    async def play() -> list[Event]:
        told: list[Event] = []
        async with serving(saying([group(id) for id in MANY])) as server, Client(server.url, key) as client:
            await Fetching(client, desk, lambda: None, tell=told.append, stop=stopping, pace=SWIFT).run()
        return told

    assert taken(asyncio.run(play())) == [(id, SUCCESS) for id in MANY[:WIDTH]]
    assert desk.took == MANY[:WIDTH]


def test_the_limit_is_computed_before_each_fetch() -> None:
    """After trouble with a sink, a single group is fetched first."""
    limits = iter([1, *[25] * 7])

    async def scene(server: Scripted, *loop: Any) -> list[str]:
        await run_until(lambda seen: len(seen) >= 2, *loop)
        return [heard.path.partition("?")[2] for heard in server.heard][:2]

    assert fetching((NOTHING,), Desk(), scene, limit=lambda: next(limits)) == ["limit=1", "limit=25"]


def test_a_held_group_is_tried_before_the_next_fetch() -> None:
    """It tests the doubtful sink. A verdict that is not final is reported as an event, but not sent."""

    class Doubting(Desk):
        async def again(self, id: str) -> Verdict:
            self.is_cautious = bool(self.stored)
            return await super().again(id)

    desk = Doubting()
    desk.stored, desk.is_cautious = ["kept", "again"], True
    desk.verdicts = {"again": Verdict(TROUBLE, "No.", is_final=False)}
    told = told_until((saying([group("a")]), NOTHING), desk, has_taken(2))
    assert taken(told) == [("kept", SUCCESS), ("a", SUCCESS)]
    assert [type(event) for event in told][:4] == [Taken, RetryLater, Offered, Taken]


def test_groups_left_in_the_inbox_come_before_the_next_fetch() -> None:
    """A sink went down during their delivery and recovered: the rest does not wait for the next start."""

    class Falling(Desk):
        async def again(self, id: str) -> Verdict:
            if id == "left":
                self.troubles = (SinkTrouble("ledger", TroubleKind.UNREACHABLE, "No."),)
                asyncio.get_running_loop().call_later(0.05, setattr, self, "troubles", ())
            return await super().again(id)

    desk = Falling()
    desk.stored = ["left", "rest"]
    told = told_until((saying([group("a")]), NOTHING), desk, has_taken(3))
    assert [id for id, _ in taken(told)] == ["left", "rest", "a"]
