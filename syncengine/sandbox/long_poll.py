"""Wait for the sandbox's data to change, or for a posted group to become due."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Receive

from syncengine.sandbox.bodies import RuleAnswer
from syncengine.sandbox.instance import Sandbox
from syncengine.sandbox.posted_time import FETCH, first_due


class Bell:
    """A bell that each change of the sandbox's data rings, and that wakes all waiting tasks."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()
        self._rung = asyncio.Event()

    async def wait(self, seconds: float | None = None) -> None:
        """Return when the bell rings, or after `seconds` unless `None`."""
        try:
            await asyncio.wait_for(self._rung.wait(), seconds)
        except TimeoutError:
            return


def seconds_until_due(sandbox: Sandbox) -> float | None:
    """Return the seconds until a group is due, or `None` when no group will be due unless the data change."""
    due = first_due(sandbox.store)
    return None if due is None else max(0.0, (due - sandbox.now()) / 1000)


class Hold:
    """Keeps a fetch waiting for posted time (docs/interface.md 4, fetch rule 1), or a late call for its answer."""

    def __init__(self, sandbox: Sandbox, bell: Bell, stopping: asyncio.Event) -> None:
        self._sandbox, self._bell, self._stopping = sandbox, bell, stopping

    async def until_posted_time(self, receive: Receive, seconds: float) -> bool:
        """Wait up to `seconds` for posted time. Return whether the client is still connected and may get groups."""

        async def posted_time() -> None:
            """Return when a group is due, or when no fetch client is registered any more."""
            while self._sandbox.store.connection["mechanism"] == FETCH:
                until = seconds_until_due(self._sandbox)
                if until == 0:
                    return
                await self._bell.wait(until)

        return await self._until(asyncio.ensure_future(posted_time()), receive, seconds)

    async def until_answered(self, answers: asyncio.Queue[RuleAnswer | None], receive: Receive) -> RuleAnswer | None:
        """Return a late call's answer, or `None` when the client leaves, the sandbox stops or the call is dropped."""
        answer = asyncio.ensure_future(answers.get())
        await self._until(answer, receive)
        return answer.result() if answer.done() and not answer.cancelled() else None

    async def _until(self, event: asyncio.Future[Any], receive: Receive, seconds: float | None = None) -> bool:
        disconnection, stopped = map(asyncio.ensure_future, (disconnected(receive), self._stopping.wait()))
        tasks: set[asyncio.Future[Any]] = {disconnection, stopped, event}
        try:
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return not disconnection.done()
        finally:
            for task in tasks:
                task.cancel()


async def disconnected(receive: Receive) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
