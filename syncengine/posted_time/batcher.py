"""Collect items that arrive at the same time into batches, and process one batch after another.

While a batch is being processed, new items collect for the next batch; otherwise an item is processed at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Pending(asyncio.Future[Result]):
    """A future result that cannot be cancelled once the work on it has begun."""

    is_begun = False

    def cancel(self, msg: object = None) -> bool:
        return not self.is_begun and super().cancel(msg)

    def lose(self) -> None:
        """Cancel the result for good, because nothing will work on it any more."""
        super().cancel()


_Waiting = tuple[Item, _Pending[Result]]


class Batcher(Generic[Item, Result]):
    """A queue that passes its items to `work` in batches of at most `most`, in order of arrival.

    `work` returns a result or an error for each item; an exception from it is the error of every item in the batch.
    """

    def __init__(self, work: Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]], most: int) -> None:
        self._work = work
        self._most = most
        self._waiting = deque[_Waiting[Item, Result]]()
        self._running: asyncio.Task[None] | None = None

    async def result(self, item: Item) -> Result:
        """Return the result of the item, or raise its error.

        A cancelled caller is kept waiting until work on its item, once begun, has ended.
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
                await asyncio.sleep(0)  # let tasks that the last batch released add their items
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
        """Process a batch, and pass each result to the task that waits for it."""
        if not batch:
            return
        for _, answer in batch:
            answer.is_begun = True
        try:
            results = await self._work([item for item, _ in batch])
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # it is raised in the waiting tasks
            results = [error] * len(batch)  # type: ignore[list-item] # whatever it is, it is raised
        for (_, answer), result in zip(batch, results, strict=True):
            if answer.done():
                continue
            if isinstance(result, BaseException):
                answer.set_exception(result)
            else:
                answer.set_result(result)
