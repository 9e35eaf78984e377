"""Translate posted time to and from the wire: queries, verdicts, groups, and pages of a list (docs/interface.md 4)."""

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
"""The year 10000 in milliseconds since the epoch; times from then on are invalid."""

_UNFIT = re.compile("[\x00\ud800-\udfff\N{REPLACEMENT CHARACTER}]")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An item in a list of groups that is not a group; `id` may be unknown, `digest` identifies the content."""

    id: str | None
    digest: str


class Unanswered(SyncengineError):
    """An answer that the service's specification does not allow."""

    code = "unexpected-answer"


def fetch_query(limit: int | None) -> dict[str, int] | None:
    """Return the parameters of a fetch. Raise `Usage` for a limit below 1 (docs/interface.md 4)."""
    if limit is not None and limit < 1:
        raise Usage(f"the limit of a fetch must be 1 or more, not {limit}")
    return None if limit is None else {"limit": limit}


def list_query(limit: int | None, submitted_before: int | None) -> dict[str, int] | None:
    """Return the query of a list. Raise `Usage` for a limit outside 1 to 500 groups per page."""
    if limit is not None and not 1 <= limit <= LISTED_AT_MOST:
        raise Usage(f"the limit of a list must be 1 to {LISTED_AT_MOST}, not {limit}")
    params = {"limit": limit, "submittedBefore": submitted_before}
    return {name: value for name, value in params.items() if value is not None} or None


async def fetch(client: Client, limit: int | None, patience: float) -> Answer:
    """Fetch by one long poll, which the service holds open for up to 60 seconds; `patience` must be longer."""
    return await client.call(FETCH_POSTED_TIME, query=fetch_query(limit), timeout=patience)


async def update_status(
    client: Client, group_id: str, status: str, message: str | None = None, external_id: str | None = None
) -> Answer:
    """Report the status of a group; parameters that are `None` are not sent."""
    params = {"timeGroupId": group_id, "status": status, "message": message, "externalId": external_id}
    return await client.call(UPDATE_POSTED_TIME_STATUS, {name: v for name, v in params.items() if v is not None})


def groups_of(answer: Answer) -> list[Group | Unreadable] | None:
    """Return the groups in an answer, or `None` when it contains no list. An empty answer is an empty list.

    An item that is not a group, or not JSON, is returned as `Unreadable`, so that all other items can still be read.
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
    """Return the id of a group, or `None` if it has no id that a status report could name."""
    return _identity(group.get("groupId"))


def _identity(id: object) -> str | None:
    """Return an id as received, or `None` if part of it was unreadable, since two ids could then look the same."""
    return id if isinstance(id, str) and id and not _UNFIT.search(id) else None


def submitted(group: Group) -> int | None:
    """Return the time at which a group was submitted, in milliseconds since the epoch, or `None` if unknown."""
    at = group.get("submissionTime")
    if isinstance(at, bool) or not isinstance(at, int | float):
        return None
    return int(at) if 0 <= at < LAST_INSTANT else None  # nan and the infinities fail this comparison


async def listed(
    client: Client, page: int = LISTED_AT_MOST, hidden: Callable[[int], None] = lambda instant: None
) -> AsyncIterator[Group]:
    """Yield all groups that the service lists, newest first, each once, in pages of at most `page` groups.

    `hidden` is called with each instant that fills a whole page, so that further groups may be missing.
    """

    async def ask(size: int, before: int | None) -> list[Group]:
        return _expected(LIST_POSTED_TIME, client, await client.call(LIST_POSTED_TIME, query=list_query(size, before)))

    async for groups in pages(ask, Entries(group_id, submitted), page, LISTED_AT_MOST, PageEvents(hidden=hidden)):
        for group in groups:
            yield group


def _expected(operation: Operation, client: Client, answer: Answer) -> list[Group]:
    """Return the groups in an answer, with only the id of an unreadable group. Raise an error for any other answer."""
    groups = groups_of(answer)
    if groups is None:
        raise refusal(operation, client, answer)
    return [{"groupId": group.id} if isinstance(group, Unreadable) else group for group in groups]


def refusal(operation: Operation, client: Client, answer: Answer) -> SyncengineError:
    """Return the error for an unexpected answer; it contains nothing that may be people's time."""
    if answer.status in (401, 403):
        return AuthFailed(f"the service rejected the API key: {answer.summary}")
    if answer.diverted:
        return Unreachable(answer.text)
    if answer.status is None:
        return Unreachable(f"the service cannot be reached: {answer.summary}; repeat unchanged once it answers")
    path = client.path(operation)
    if answer.ok:
        return Unanswered(f"{path} answered something that its specification does not allow: {answer.summary}")
    return Unanswered(f"{path} answered {answer.summary}", code=f"status-{answer.status}")
