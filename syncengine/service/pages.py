"""Read a list page by page, newest first, and yield each of its entries once.

Memory holds one page, however long the list is. The next page begins at the oldest instant of the previous page, since
several entries may share an instant (docs/interface.md 4); entries of the previous page are dropped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_PAGES = 20_000
"""The number of pages after which a list counts as endless: ten million entries, if pages are full."""


@dataclass(frozen=True, slots=True)
class Entries(Generic[T]):
    """How to identify entries, and to get the time of each (milliseconds since the epoch; `None` if unknown)."""

    key: Callable[[T], Hashable]
    at: Callable[[T], int | None]


def _unheard(*_: object) -> None:
    """Ignore an event."""


@dataclass(frozen=True, slots=True)
class PageEvents:
    """Callbacks for irregularities of a list.

    `hidden`: an instant fills a page, so that further entries of it may be missing. `ignored`: the service ignores the
    requested instant. `endless`: the list has more pages than will be read.
    """

    hidden: Callable[[int], None] = _unheard
    ignored: Callable[[], None] = _unheard
    endless: Callable[[], None] = _unheard


async def pages(
    ask: Callable[[int, int | None], Awaitable[Sequence[T]]],
    entries: Entries[T],
    size: int,
    largest: int,
    events: PageEvents,
    most: int = MOST_PAGES,
) -> AsyncIterator[list[T]]:
    """Yield the new entries of each page.

    `ask` requests up to `size` entries made before an instant, or `largest` entries where one instant fills a page.
    """
    last = set[Hashable]()
    before: int | None = None
    for _ in range(most):
        page = await ask(size, before)
        instants = {at for each in page if (at := entries.at(each)) is not None}
        if before is not None and any(at > before for at in instants):
            events.ignored()
            return
        new = [each for each in page if entries.key(each) not in last and _is_before(entries.at(each), before)]
        if new:
            yield new
        if not instants or (before is not None and min(instants) >= before):
            return
        last = {entries.key(each) for each in page}
        oldest, is_full = min(instants), len(instants) == 1 and len(page) >= size
        if is_full and size < largest:
            size = largest
            continue
        if is_full and new:
            events.hidden(oldest)
        before = oldest + 1 if new and (before is None or oldest + 1 < before) else oldest
    events.endless()


def _is_before(at: int | None, before: int | None) -> bool:
    return at is None or before is None or at < before
