"""Translate posted time to and from the wire: queries, verdicts, groups, and pages of a list (docs/interface.md 4)."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from syncengine.content import sha256_of
from syncengine.document.json_text import InvalidJson
from syncengine.errors import AuthFailed, SyncengineError, Unreachable, Usage
from syncengine.service.answers import Answer, read_loosely
from syncengine.service.client import Client
from syncengine.service.operations import FETCH_POSTED_TIME, LIST_POSTED_TIME, UPDATE_POSTED_TIME_STATUS, Operation

T = TypeVar("T")
Group = Mapping[str, Any]
"""A posted time group as the service sent it."""

LISTED_AT_MOST = 500
"""The number of groups in a page of a list (docs/interface.md 4)."""
LAST_INSTANT = 253_402_300_800_000
"""The year 10000 in milliseconds since the epoch; times from then on are invalid."""

MOST_PAGES = 20_000
"""The number of pages after which a list counts as endless: ten million entries, if pages are full."""

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
    return await client.call(FETCH_POSTED_TIME, query=fetch_query(limit), timeout=patience, decode=groups_in)


async def update_status(
    client: Client, group_id: str, status: str, message: str | None = None, external_id: str | None = None
) -> Answer:
    """Report the status of a group; parameters that are `None` are not sent."""
    params = {"timeGroupId": group_id, "status": status, "message": message, "externalId": external_id}
    return await client.call(UPDATE_POSTED_TIME_STATUS, {name: v for name, v in params.items() if v is not None})


def groups_of(answer: Answer) -> list[Group | Unreadable] | None:
    """Return the groups in an answer that `groups_in` decoded, or `None` when it contains no list."""
    return answer.data if answer.ok and isinstance(answer.data, list) else None


def groups_in(content: bytes) -> list[Group | Unreadable] | None:
    """Return the groups in the content of an answer, or `None` when it is no list. No content is an empty list.

    An item that is not a group, or not JSON, is returned as `Unreadable`, so that all other items can still be read.
    """
    if not content.strip():
        return []
    try:
        found = read_loosely(content)
        return [_group(item) for item in found] if isinstance(found, list) else None
    except InvalidJson:
        if (pieces := items_in(content)) is None:
            return None
    groups: list[Group | Unreadable] = []
    for piece in pieces:
        try:
            groups.append(_group(read_loosely(piece)))
        except InvalidJson:
            groups.append(Unreadable(_identity(id_in(piece)), sha256_of(piece)))
    return groups


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


# --- lists, page by page


@dataclass(frozen=True, slots=True)
class PageEvents:
    """Callbacks for irregularities of a list.

    `hidden`: an instant fills a page, so that further entries of it may be missing. `ignored`: the service ignores the
    requested instant. `endless`: the list has more pages than will be read.
    """

    hidden: Callable[[int], None] = lambda *_: None
    ignored: Callable[[], None] = lambda *_: None
    endless: Callable[[], None] = lambda *_: None


async def pages(
    ask: Callable[[int, int | None], Awaitable[Sequence[T]]],
    key: Callable[[T], Hashable],
    at: Callable[[T], int | None],
    size: int,
    events: PageEvents,
    most: int = MOST_PAGES,
) -> AsyncIterator[list[T]]:
    """Yield the new entries of each page, newest first. Memory holds one page, however long the list is.

    `ask` requests up to `size` entries made before an instant, or as many as allowed where one instant fills a page.
    `key` identifies an entry, `at` is its time in milliseconds since the epoch, `None` if unknown.
    """
    last = set[Hashable]()
    before: int | None = None
    for _ in range(most):
        page = await ask(size, before)
        instants = {instant for each in page if (instant := at(each)) is not None}
        if before is not None and max(instants, default=0) > before:
            events.ignored()
            return
        # Several entries may share an instant, so that a page begins within the oldest one of the page before.
        limit = math.inf if before is None else before
        new = [each for each in page if key(each) not in last and (at(each) is None or (at(each) or 0) < limit)]
        if new:
            yield new
        if not instants or (before is not None and min(instants) >= before):
            return
        last = {key(each) for each in page}
        oldest, is_full = min(instants), len(instants) == 1 and len(page) >= size
        if is_full and size < LISTED_AT_MOST:
            size = LISTED_AT_MOST
            continue
        if is_full and new:
            events.hidden(oldest)
        before = oldest + 1 if new and (before is None or oldest + 1 < before) else oldest
    events.endless()


async def listed(
    client: Client, page: int = LISTED_AT_MOST, hidden: Callable[[int], None] = lambda instant: None
) -> AsyncIterator[Group]:
    """Yield all groups that the service lists, newest first, each once, in pages of at most `page` groups.

    `hidden` is called with each instant that fills a whole page, so that further groups may be missing.
    """

    async def ask(size: int, before: int | None) -> list[Group]:
        answer = await client.call(LIST_POSTED_TIME, query=list_query(size, before), decode=groups_in)
        if (groups := groups_of(answer)) is None:
            raise refusal(LIST_POSTED_TIME, client, answer)
        return [{"groupId": group.id} if isinstance(group, Unreadable) else group for group in groups]

    async for groups in pages(ask, group_id, submitted, page, PageEvents(hidden=hidden)):
        for group in groups:
            yield group


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


# --- malformed lists, whose items are read one by one


_STRING = rb'"(?>(?:[^"\\]|\\.)*)"'
_TOKEN = re.compile(rb'"groupId"\s*+:\s*+(?P<id>' + _STRING + rb")|" + _STRING + rb"|[\[{]|[\]}]|,", re.DOTALL)


def items_in(content: bytes) -> list[bytes] | None:
    """Return the items of a JSON array as raw bytes, or `None` for anything else."""
    parts: list[bytes] = []
    depth = begin = 0
    for token in _TOKEN.finditer(content):
        if depth == 0 and (token[0] != b"[" or parts or content[: token.start()].strip(b" \t\r\n\xef\xbb\xbf")):
            return None
        depth += _level(token[0])
        if depth == 1 and token[0] == b"[" and not begin:
            begin = token.end()
        elif (depth == 1 and token[0] == b",") or depth == 0:
            parts.append(content[begin : token.start()])
            begin = token.end()
    return parts if begin and depth == 0 and not content[begin:].strip() else None


def _level(token: bytes) -> int:
    return (token in (b"[", b"{")) - (token in (b"]", b"}"))


def id_in(item: bytes) -> str | None:
    """Return the `groupId` of an object that is not valid JSON, or `None` when it cannot be found."""
    depth = 0
    for token in _TOKEN.finditer(item):
        depth += _level(token[0])
        if token["id"] is not None and depth == 1:
            try:
                return str(read_loosely(token["id"])) or None
            except InvalidJson:
                return None
    return None
