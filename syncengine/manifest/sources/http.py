"""A query to an HTTP service → the items of the list in its answer, page by page. Sends requests.

Requests go only to URLs below the source's own URL: no redirect, no other host and no `..` is followed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import httpx

from syncengine.manifest.sources.files import NotJson, loads
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.service.causes import cause_of
from syncengine.service.exchange import HEADERS, Reply, exchange
from syncengine.templating.budget import MAX_MEMORY, memory_of

MAX_PAGES = 10_000
MAX_PAGE_BYTES = 64 * 1024 * 1024
MAX_SECONDS = 300.0
MAX_ALL_BYTES = 512 * 1024 * 1024
"""The maximum number of bytes of all pages together."""
ATTEMPTS = 3
DECODED = 3
"""The number of times that programs on the way are assumed to percent-decode a path."""


@dataclass(frozen=True, slots=True)
class HttpQuery:
    """A query to a service. `items` and `next` are paths in the answer; `page` is the parameter for the page number."""

    path: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    items: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    page: str | None = None
    first: int = 1


class Until(NamedTuple):
    """The limits of all pages together: a deadline of the monotonic clock, its seconds, and a number of pages."""

    deadline: float
    seconds: float
    pages: int


def http_rows(
    name: str,
    url: str,
    headers: Mapping[str, str],
    timeout: float,
    question: HttpQuery,
    seconds: float = MAX_SECONDS,
    most: int = MAX_MEMORY,
    pages: int = MAX_PAGES,
) -> Iterator[tuple[int, Any]]:
    """Yield the items of all pages, numbered from 1, within limits of seconds, bytes of memory and pages.

    A user and password in the URL are sent in a header.
    """
    base, auth = _credentials(url.rstrip("/"))
    number, size, until = 0, 0, Until(time.monotonic() + seconds, seconds, pages)
    with _asking(headers, auth, timeout, until.deadline) as ask:
        for items in _pages(ask, name, base, question, until):
            for item in items:
                number, size = number + 1, size + memory_of(item)
                if size > most:
                    raise SourceTrouble(f"{name}: the rows take more than {most // 1_000_000} MB; query fewer of them")
                yield number, item


class TooLate(Exception):
    """Raised when the time limit of all pages together has passed."""


Asked = Callable[[httpx.URL], Reply]
"""A function that sends one request and returns the reply. It raises `httpx.HTTPError` when there is none."""


@contextmanager
def _asking(headers: Mapping[str, str], auth: tuple[str, str] | None, timeout: float, until: float) -> Iterator[Asked]:
    """Yield a function that sends a request. Each answer takes at most `timeout` seconds and ends before `until`."""
    client = httpx.AsyncClient(
        timeout=timeout,
        follow_redirects=False,
        transport=httpx.AsyncHTTPTransport(retries=ATTEMPTS - 1),
        headers=HEADERS,
        auth=auth,
    )
    client.headers.update(headers)

    def ask(url: httpx.URL) -> Reply:
        seconds = until - time.monotonic()
        if seconds <= 0:
            raise TooLate
        request = client.build_request("GET", url)
        return loop.run(exchange(client, request, seconds=min(timeout, seconds), most=MAX_PAGE_BYTES))

    # An event loop of its own: only a task can be cancelled while it waits.
    with asyncio.Runner() as loop:
        try:
            yield ask
        finally:
            loop.run(client.aclose())


def _credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return the URL without credentials, and the user and password, or `None` when the URL has none."""
    parts = urlsplit(url)
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    user, _, password = userinfo.partition(":")
    return parts._replace(netloc=host).geturl(), (unquote(user), unquote(password))


def _pages(ask: Asked, name: str, base: str, question: HttpQuery, until: Until) -> Iterator[list[Any]]:
    address: str | None = _below(base, question.path, name)
    page, size = question.first, 0
    met, last = set[str](), None
    for turn in range(until.pages):
        if address is None:
            return
        if address in met and not question.page:
            raise SourceTrouble(f"{name}: the next page is one that has already been read")
        met.add(address)
        counting = {question.page: str(page + turn)} if question.page else {}
        query = {**question.query, **counting} if turn == 0 or question.page else {}
        answer, read = _answer(ask, name, base, address, query, until)
        size += read
        if size > MAX_ALL_BYTES:
            raise SourceTrouble(f"{name}: all pages together are larger than {MAX_ALL_BYTES // 1024 // 1024} MB")
        items = _at(answer, question.items, name)
        if not isinstance(items, list):
            raise SourceTrouble(f"{name}: the answer has no list{_where(question.items)}")
        if items and items == last and question.page:
            raise SourceTrouble(
                f"{name}: two pages in a row are the same: `{question.page}` is not the parameter for the page number"
            )
        last = items
        yield items
        if question.page:
            if not items:
                return
        else:
            address = _next(answer, question, base, address, name)
    raise SourceTrouble(f"{name}: there are more than {until.pages:,} pages")


def _next(answer: Any, question: HttpQuery, base: str, address: str, name: str) -> str | None:
    if not question.next:
        return None
    value: Any = answer
    for step in question.next:
        value = value.get(step) if isinstance(value, dict) else None
    if not value:
        return None
    if not isinstance(value, str):
        raise SourceTrouble(f"{name}: the next page{_where(question.next)} is not a URL")
    following = urljoin(address, value)
    return _checked(base, following, name)


def _below(base: str, path: str, name: str) -> str:
    if not path.isprintable() or "://" in path.partition("?")[0] or path.startswith("//") or "\\" in path:
        raise SourceTrouble(f"{name}: the path must be below the source's URL")
    return _checked(base, f"{base}/{path.lstrip('/')}" if path else base, name)


def _checked(base: str, address: str, name: str) -> str:
    """Return `address`. Raise `SourceTrouble` unless it belongs to the service of `base`, below its path."""
    try:
        ours, theirs = urlsplit(base), urlsplit(address)
        same = (ours.scheme, ours.hostname, ours.port) == (theirs.scheme, theirs.hostname, theirs.port)
    except ValueError:
        same = False
    is_below = same and (theirs.path + "/").startswith(ours.path.rstrip("/") + "/")
    if not is_below or _goes_up(theirs.path) or "@" in theirs.netloc:
        raise SourceTrouble(f"{name}: the address is outside the source's URL")
    return address


def _goes_up(path: str) -> bool:
    """Return whether a path has a `..` for any reader, however often it is decoded, with either slash or parameters."""
    for _ in range(DECODED):
        path = unquote(path)
    return any(part.partition(";")[0] == ".." for part in path.replace("\\", "/").split("/"))


def _answer(ask: Asked, name: str, base: str, address: str, query: Mapping[str, str], until: Until) -> tuple[Any, int]:
    """Return the JSON of the answer, and its size in bytes. Messages omit the source's URL, which may contain a key."""
    label = urlsplit(address).path.removeprefix(urlsplit(base).path.rstrip("/")) or "its URL"
    content = _content(ask, name, address, query, label, until)
    try:
        return loads(content), len(content)
    except NotJson as error:
        raise SourceTrouble(f"{name}: the answer of {label} is not JSON: {error}") from None
    except (ValueError, RecursionError):
        raise SourceTrouble(f"{name}: the answer of {label} is not JSON") from None


def _content(ask: Asked, name: str, address: str, query: Mapping[str, str], label: str, until: Until) -> bytes:
    for attempt in range(ATTEMPTS):
        is_last = attempt == ATTEMPTS - 1
        try:
            reply = ask(httpx.URL(address).copy_merge_params(dict(query)))
        except TooLate:
            break
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            if is_last:
                raise SourceTrouble(f"{name}: {label} cannot be read: {cause_of(error)}") from None
            continue
        if reply.status < 500 or is_last:
            return _checked_content(reply, name, label)
    raise SourceTrouble(f"{name}: all pages together take longer than {until.seconds:g} s")


def _checked_content(reply: Reply, name: str, label: str) -> bytes:
    if not 200 <= reply.status < 300:
        raise SourceTrouble(f"{name}: {label} answered with status {reply.status}")
    if reply.content is None:
        raise SourceTrouble(f"{name}: {label} answered with more than {MAX_PAGE_BYTES // 1024 // 1024} MB")
    return reply.content


def _at(answer: Any, steps: tuple[str, ...], name: str) -> Any:
    for step in steps:
        if not isinstance(answer, dict) or step not in answer:
            raise SourceTrouble(f"{name}: the answer has no `{step}`")
        answer = answer[step]
    return answer


def _where(steps: Callable[..., Any] | tuple[str, ...]) -> str:
    return f" at `{'.'.join(steps)}`" if isinstance(steps, tuple) and steps else ""
