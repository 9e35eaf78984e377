"""Work on many things side by side, some at a time, in their order. Knows nothing of the work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")

WIDTH = 64
"""Groups that are under way at a time."""


async def each(items: Iterable[Item]) -> AsyncIterator[Item]:
    """Yield the items in turn."""
    for item in items:
        yield item


async def side_by_side(
    items: AsyncIterator[Item], work: Callable[[Item], Awaitable[object]], width: Callable[[], int]
) -> bool:
    """Whether all were begun. `width`, looked at before each: how many may be under way; 0: no more is begun.

    What was begun is waited for, whatever happens; then the first error is raised.
    """
    under_way: set[asyncio.Future[object]] = set()
    errors: list[BaseException] = []

    async def freed() -> None:
        nonlocal under_way
        done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
        errors.extend(error for one in done if (error := one.exception()))

    is_whole = True
    try:
        async for item in items:
            while under_way and 0 < width() <= len(under_way) and not errors:
                await freed()
            if errors or width() <= 0:
                is_whole = False
                break
            under_way.add(asyncio.ensure_future(work(item)))
    finally:
        while under_way:
            await freed()
    if errors:
        raise errors[0]
    return is_whole
