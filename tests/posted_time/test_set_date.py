"""The machine's date is set while a process delivers: its waits are measured by a clock that nobody sets."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.sink_health import FIRST_REST
from syncengine.state.inbox_model import PostedTimeStatus
from tests.posted_time.forgetful import finding_sink, forgetting
from tests.posted_time.projects import http_sink, project
from tests.posted_time.receiver import receiving
from tests.posted_time.samples import raw

SUCCESS, TROUBLE = PostedTimeStatus.SUCCESS, PostedTimeStatus.TROUBLE

pytestmark = pytest.mark.parametrize("step", [-604_800.0, 86_400.0], ids=["back a week", "forward a day"])


@dataclass
class Machine:
    """A machine with a date and a clock, in seconds."""

    date: float = 1_714_000_000.0
    clock: float = 1_000.0

    def delivering(self, folder: Path, deliver: str, story: Callable[[Delivery], Awaitable[None]]) -> None:
        found = project(folder, f"deliver:\n{textwrap.indent(deliver, '  ')}")

        async def working() -> None:
            async with Delivery.of(found, {}, now=lambda: self.date, clock=lambda: self.clock) as opened:
                await story(opened)

        asyncio.run(working())

    def waits(self, seconds: float) -> None:
        self.date += seconds
        self.clock += seconds


async def outcome(opened: Delivery) -> PostedTimeStatus:
    return (await opened.take(raw(), mechanism="webhook")).outcome


def test_a_failing_sink_is_tried_after_its_usual_rest(step: float, tmp_path: Path) -> None:
    machine = Machine()
    with receiving() as receiver:

        async def story(opened: Delivery) -> None:
            receiver.answer = lambda got: (503, {}) if got.method == "POST" else (404, {})
            assert await outcome(opened) is TROUBLE
            machine.date += step
            await opened.check_sinks()
            assert opened.troubles
            machine.waits(FIRST_REST)
            await opened.check_sinks()
            assert (opened.troubles, opened.is_cautious) == ((), True)

        machine.delivering(tmp_path, http_sink(receiver.url), story)


def test_a_receiver_that_asked_for_a_rest_has_it(step: float, tmp_path: Path) -> None:
    """So does one that asked an earlier process, unless the date was set forward: by it alone the next one counts."""
    machine = Machine()
    with receiving() as receiver:
        receiver.answer, receiver.headers = lambda got: (429, {}), {"Retry-After": "100"}

        async def asks(opened: Delivery) -> None:
            assert await outcome(opened) is TROUBLE
            machine.date += step
            machine.waits(99)
            assert await outcome(opened) is TROUBLE
            assert len(receiver.got) == 1

        async def is_left_alone(opened: Delivery) -> None:
            machine.waits(86_401)
            receiver.answer = lambda got: (201, {})
            assert await outcome(opened) is SUCCESS

        machine.delivering(tmp_path, http_sink(receiver.url), asks)
        machine.delivering(tmp_path, http_sink(receiver.url), is_left_alone)


def test_an_attempt_of_unknown_end_is_asked_for_after_its_usual_wait(step: float, tmp_path: Path) -> None:
    """Earlier, what the receiver executes late would not be seen, and the group be sent twice."""
    machine = Machine()
    with forgetting(lambda: machine.clock) as pms:

        async def story(opened: Delivery) -> None:
            pms.moods.append("lost")
            assert await outcome(opened) is TROUBLE
            machine.date += step
            machine.waits(59)
            assert (await outcome(opened), pms.questions) == (TROUBLE, [])
            machine.waits(2)
            assert (await outcome(opened), len(pms.questions)) == (SUCCESS, 1)
            assert len(pms.has("g1")) == 1

        machine.delivering(tmp_path, finding_sink(pms.receiver.url), story)
