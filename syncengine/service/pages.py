"""A list that is asked for page by page, newest first → its entries, each once, of whatever kind.

Memory holds one page, however long the list is. The next page begins at the last one's oldest instant, since
several entries may share it (docs/interface.md 4), and those of the last page are dropped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_PAGES = 20_000
"""Pages after which a list counts as endless: ten million entries, if pages are full."""


@dataclass(frozen=True, slots=True)
class Entries(Generic[T]):
    """How entries are told apart, and when each was made (milliseconds since epoch; None: that is not known)."""

    key: Callable[[T], Hashable]
    at: Callable[[T], int | None]


def _unheard(*_: object) -> None:
    """Hear of hidden groups and do nothing."""


@dataclass(frozen=True, slots=True)
class PageEvents:
    """`hidden`: an instant has as many entries as a page, so that no request returns the rest of them. `ignored`: the
    service does not look at the instant that it is asked for. `endless`: there were as many pages as are asked for."""

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
    """The new entries of each page. `ask` for at most so many, made before an instant; at least `size`, at most
    `largest`, which is asked for where one instant fills a page."""
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
