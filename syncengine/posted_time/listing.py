"""All groups that the service lists, and the parts that it did not give. Asks the service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from syncengine.service.client import Client
from syncengine.service.posted_time import LISTED_AT_MOST, Group, group_id, listed


@dataclass(slots=True)
class Listing:
    """`unreadable`: items that are no group with an id. `hidden`: instants (milliseconds since epoch) of which
    the service lists no more groups than these."""

    groups: list[Group] = field(default_factory=list)
    unreadable: int = 0
    hidden: list[int] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return not self.unreadable and not self.hidden


async def listing(client: Client, enough: Callable[[Group], bool], page: int = LISTED_AT_MOST) -> Listing:
    """Newest first, up to the first group that is `enough`."""
    found = Listing()
    async for group in listed(client, page, found.hidden.append):
        if group_id(group) is None:
            found.unreadable += 1
        elif enough(group):
            break
        else:
            found.groups.append(group)
    return found
