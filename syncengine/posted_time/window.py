"""Process items in order, with a limited number of them at the same time. Independent of the kind of work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

WIDTH = 64
"""The maximum number of groups that are on their way at the same time. Most of them wait for the inbox, which writes
together what arrives; how many a database is asked for at once is `databases.AT_ONCE`."""


async def to_its_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of work that goes on when its caller is cancelled. The caller is kept waiting until it ends."""
    task = asyncio.create_task(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    return task.result()


async def each(items: Iterable[Item]) -> AsyncIterator[Item]:
    """Yield the items as an asynchronous iterator."""
    for item in items:
        yield item


async def side_by_side(
    items: AsyncIterator[Item], work: Callable[[Item], Awaitable[object]], width: Callable[[], int]
) -> bool:
    """Run `work` on the items, and return whether all were begun. Raise the first error after all have ended.

    `width` is called before each item, and returns how many may run at the same time; 0 means that no more are begun.
    """
    under_way = 0
    errors: list[BaseException] = []
    freed = asyncio.Event()

    def ended(one: asyncio.Future[object]) -> None:
        nonlocal under_way
        under_way -= 1
        freed.set()
        if error := asyncio.CancelledError() if one.cancelled() else one.exception():
            errors.append(error)

    async def one_ended() -> None:
        freed.clear()
        await freed.wait()

    is_whole = True
    try:
        async for item in items:
            while 0 < width() <= under_way and not errors:
                await one_ended()
            if errors or width() <= 0:
                is_whole = False
                break
            under_way += 1
            asyncio.ensure_future(work(item)).add_done_callback(ended)
    finally:
        while under_way:
            await one_ended()
    if errors:
        raise errors[0]
    return is_whole
