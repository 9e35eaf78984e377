"""Posted time on the wire (docs/interface.md 4): limits → query, verdict → body, answer → groups; pages of a list."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from syncengine.document.digest import sha256_of
from syncengine.errors import AuthFailed, SyncengineError, Unreachable, Usage
from syncengine.service.answers import Answer, read_loosely
from syncengine.service.client import Client
from syncengine.service.operations import FETCH_POSTED_TIME, LIST_POSTED_TIME, UPDATE_POSTED_TIME_STATUS, Operation
from syncengine.service.pages import Entries, PageEvents, pages
from syncengine.service.partial_json import id_in, items

Group = Mapping[str, Any]
"""A posted time group as the service sent it."""

LISTED_AT_MOST = 500
LAST_INSTANT = 253_402_300_800_000
"""The year 10000, in milliseconds since epoch: no later time is one."""

_UNFIT = re.compile("[\x00\ud800-\udfff\N{REPLACEMENT CHARACTER}]")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An item in a list of groups that is none. `id` where one can be made out; `digest` tells it from another."""

    id: str | None
    digest: str


class Unanswered(SyncengineError):
    """The service answered with something that its specification does not allow."""

    code = "unexpected-answer"


def fetch_query(limit: int | None) -> dict[str, int] | None:
    """Return the parameters of a fetch; asking for no group at all is a usage error (docs/interface.md 4)."""
    if limit is not None and limit < 1:
        raise Usage(f"a fetch takes a limit of 1 or more, not {limit}")
    return None if limit is None else {"limit": limit}


def list_query(limit: int | None, submitted_before: int | None) -> dict[str, int] | None:
    """Return the query of a list, with 1 to 500 groups a page; Usage for any other number."""
    if limit is not None and not 1 <= limit <= LISTED_AT_MOST:
        raise Usage(f"a list takes a limit from 1 to {LISTED_AT_MOST}, not {limit}")
    params = {"limit": limit, "submittedBefore": submitted_before}
    return {name: value for name, value in params.items() if value is not None} or None


async def fetch(client: Client, limit: int | None, patience: float) -> Answer:
    """One long poll: it is held open until there is posted time, for 60 seconds at most; `patience` is longer."""
    return await client.call(FETCH_POSTED_TIME, query=fetch_query(limit), timeout=patience)


async def update_status(
    client: Client, group_id: str, status: str, message: str | None = None, external_id: str | None = None
) -> Answer:
    """Report the status of a group; parameters that are None are not sent."""
    params = {"timeGroupId": group_id, "status": status, "message": message, "externalId": external_id}
    return await client.call(UPDATE_POSTED_TIME_STATUS, {name: v for name, v in params.items() if v is not None})


def groups_of(answer: Answer) -> list[Group | Unreadable] | None:
    """The groups in an answer; None when it holds no list. An empty answer is an empty list.

    An item that is no group, or no JSON, is returned as such, so that the others can still be read.
    """
    if not answer.ok:
        return None
    if answer.understood and answer.data is None:
        return []
    try:
        found = answer.data if answer.understood else read_loosely(answer.unread)
        return [_group(item) for item in found] if isinstance(found, list) else None
    except orjson.JSONDecodeError:
        pieces = items(answer.unread)
        return None if pieces is None else [_read(piece) for piece in pieces]


def _read(piece: bytes) -> Group | Unreadable:
    try:
        return _group(read_loosely(piece))
    except orjson.JSONDecodeError:
        return Unreadable(_identity(id_in(piece)), sha256_of(piece))


def _group(item: object) -> Group | Unreadable:
    if isinstance(item, dict):
        return item
    return Unreadable(None, sha256_of(repr(item).encode("utf-8", "replace")))


def group_id(group: Group) -> str | None:
    """Return the id of a group; None if it has none that a status could name."""
    return _identity(group.get("groupId"))


def _identity(id: object) -> str | None:
    """Return an id as received; None if some of it was unreadable, since two ids could then look the same."""
    return id if isinstance(id, str) and id and not _UNFIT.search(id) else None


def submitted(group: Group) -> int | None:
    """When it was submitted, in milliseconds since epoch."""
    at = group.get("submissionTime")
    if isinstance(at, bool) or not isinstance(at, int | float):
        return None
    return int(at) if 0 <= at < LAST_INSTANT else None  # nan and the infinities are between no two numbers


async def listed(
    client: Client, page: int = LISTED_AT_MOST, hidden: Callable[[int], None] = lambda instant: None
) -> AsyncIterator[Group]:
    """All groups that the service lists, newest first, each once, in pages of at most `page`.

    `hidden` is called with instants of which the service lists no more groups than it has room for.
    """

    async def ask(size: int, before: int | None) -> list[Group]:
        return _expected(LIST_POSTED_TIME, client, await client.call(LIST_POSTED_TIME, query=list_query(size, before)))

    async for groups in pages(ask, Entries(group_id, submitted), page, LISTED_AT_MOST, PageEvents(hidden=hidden)):
        for group in groups:
            yield group


def _expected(operation: Operation, client: Client, answer: Answer) -> list[Group]:
    """The group to expect; of an unreadable one the id alone."""
    groups = groups_of(answer)
    if groups is None:
        raise refusal(operation, client, answer)
    return [{"groupId": group.id} if isinstance(group, Unreadable) else group for group in groups]


def refusal(operation: Operation, client: Client, answer: Answer) -> SyncengineError:
    """The error for an answer that is not the expected one; nothing that may be anybody's time is in it."""
    if answer.status in (401, 403):
        return AuthFailed(f"the service refuses the API key: {answer.summary}")
    if answer.status is None:
        return Unreachable(f"the service cannot be reached: {answer.summary}; repeat unchanged once it answers")
    path = client.path(operation)
    if answer.ok:
        return Unanswered(f"{path} answered something that its specification does not allow: {answer.summary}")
    return Unanswered(f"{path} answered {answer.summary}", code=f"status-{answer.status}")
