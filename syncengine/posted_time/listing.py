"""Read all groups that the service lists, and note which of them it did not return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from syncengine.service.client import Client
from syncengine.service.posted_time import LISTED_AT_MOST, Group, group_id, listed


@dataclass(slots=True)
class Listing:
    """The listed groups. `unreadable` counts items without an id; `hidden` has instants (ms) that fill a page."""

    groups: list[Group] = field(default_factory=list)
    unreadable: int = 0
    hidden: list[int] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return not self.unreadable and not self.hidden


async def listing(client: Client, enough: Callable[[Group], bool], page: int = LISTED_AT_MOST) -> Listing:
    """Return the listed groups, newest first, up to but without the first for which `enough` is true."""
    found = Listing()
    async for group in listed(client, page, found.hidden.append):
        if group_id(group) is None:
            found.unreadable += 1
        elif enough(group):
            break
        else:
            found.groups.append(group)
    return found
