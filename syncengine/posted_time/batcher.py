"""Batches of items that come side by side, one after another. Knows nothing of the work.

While one batch is under way the next ones collect; where none is, an item is begun at once: a lone one never waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Pending(asyncio.Future[Result]):
    """A result. Once the work on it is begun, whoever is cancelled while waiting ends with it, and not before."""

    is_begun = False

    def cancel(self, msg: object = None) -> bool:
        return not self.is_begun and super().cancel(msg)

    def lose(self) -> None:
        """End it without a result: there is nobody left to work on it."""
        super().cancel()


_Waiting = tuple[Item, _Pending[Result]]


class Batcher(Generic[Item, Result]):
    """Gives `work` at most `most` items at a time, in the order in which they came.

    It returns a result for each, or the error of that item alone; what it raises is the error of all of them.
    """

    def __init__(self, work: Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]], most: int) -> None:
        self._work = work
        self._most = most
        self._waiting = deque[_Waiting[Item, Result]]()
        self._running: asyncio.Task[None] | None = None

    async def result(self, item: Item) -> Result:
        """Return the result of the item, or raise its error.

        A caller that is cancelled ends only when the work on its item has ended.
        """
        answer = _Pending[Result]()
        self._waiting.append((item, answer))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await answer

    async def _run(self) -> None:
        batch: Sequence[_Waiting[Item, Result]] = ()
        try:
            while self._waiting:
                await asyncio.sleep(0)  # all that the batch before has set free hand in what they have
                batch = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
                await self._made([waiting for waiting in batch if not waiting[1].done()])
        except asyncio.CancelledError:
            for _, answer in (*batch, *self._waiting):
                answer.lose()
            self._waiting.clear()
            raise
        finally:
            self._running = None

    async def _made(self, batch: Sequence[_Waiting[Item, Result]]) -> None:
        """Do the work of a batch, and hand each result to the task that waits for it."""
        if not batch:
            return
        for _, answer in batch:
            answer.is_begun = True
        try:
            results = await self._work([item for item, _ in batch])
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # it belongs to those who wait
            results = [error] * len(batch)  # type: ignore[list-item] # whatever it is, it is raised
        for (_, answer), result in zip(batch, results, strict=True):
            if answer.done():
                continue
            if isinstance(result, BaseException):
                answer.set_exception(result)
            else:
                answer.set_result(result)
