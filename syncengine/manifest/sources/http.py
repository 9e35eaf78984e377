"""A query to an HTTP service → all items of the list in its answers, page by page. Sends requests.

A list is read whole, or refused: an answer that shows more than was read is an error, and a list that changes while it
is read is read again. Requests go only to URLs below the source's own URL: no redirect, no other host and no `..` is
followed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import httpx

from syncengine.document.json_text import value_at
from syncengine.errors import SOURCE_UNREACHABLE
from syncengine.http.exchange import RETRIABLE, BlockingClient, Misconfigured, Reply, cause_of, retry_after
from syncengine.http.list_pages import (
    NoPage,
    Page,
    Repeats,
    RowTotal,
    address_below,
    at_path,
    first_parameters,
    next_url,
    same_place,
    sign_of_partial_list,
)
from syncengine.manifest.sources.files import NotJson, loads
from syncengine.manifest.sources.records import (
    BAD_SOURCE,
    MAX_MEMORY,
    SOURCE_PARTIAL,
    HttpQuery,
    SourceTrouble,
    memory_of,
    where_lists_are,
)
from syncengine.project.signals import pause
from syncengine.service.client import ATTEMPTS, FIRST_WAIT, wait_before
from syncengine.templating.filters import plain_text

MAX_PAGES = 10_000
MAX_PAGE_BYTES = 64 * 1024 * 1024
MAX_SECONDS = 300.0
MAX_ALL_BYTES = 512 * 1024 * 1024
"""The maximum number of bytes of all pages together."""
READ_AGAIN = 3
"""The number of times that a list which changes while it is read is read again."""


class TooLate(Exception):
    """Raised when the time limit of all pages together has passed."""


class Changed(Exception):
    """Raised when pages do not fit together, as of a list that changes while it is read. The message says how."""


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

    A user and password in the URL are sent in a header. Raise `SourceTrouble` when they cannot be read as a whole.
    """
    parts = urlsplit(url.rstrip("/"))
    userinfo, at, host = parts.netloc.rpartition("@")
    user, _, password = userinfo.partition(":")
    deadline = time.monotonic() + seconds

    def read() -> list[Any]:
        with BlockingClient(headers, (unquote(user), unquote(password)) if at else None) as client:
            base = parts._replace(netloc=host).geturl()
            listing = _Listing(client, timeout, name, base, question, deadline, seconds, pages, most)
            for is_last in (*(False,) * READ_AGAIN, True):
                try:
                    return listing.rows()
                except Changed as changed:
                    if is_last:
                        again = f"{changed}, also when the list was read again"
                        raise SourceTrouble(f"{name}: {again}", code=SOURCE_PARTIAL) from None
            raise AssertionError

    yield from enumerate(_outside_loops(read), 1)


def _outside_loops(read: Callable[[], list[Any]]) -> list[Any]:
    """Return the result of `read`, which runs an event loop, even where one runs, as when an apply plans again."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return read()
    with ThreadPoolExecutor(1) as another:
        return another.submit(copy_context().run, read).result()


@dataclass(frozen=True, slots=True)
class _Listing:
    """One list of a service, within limits. Messages omit the source's URL, which may contain a key.

    All pages together have until `deadline`, of the monotonic clock, which is after `seconds`.
    """

    client: BlockingClient
    timeout: float
    name: str
    base: str
    question: HttpQuery
    deadline: float
    seconds: float
    pages: int
    most: int

    def rows(self) -> list[Any]:
        """Return all rows. Raise `Changed` if the list changes meanwhile."""
        paging, rows, memory, size = self.question.paging, list[Any](), 0, 0
        repeats, total, met = Repeats(self.question.may_repeat), RowTotal(), set[object]()
        start = following = self._first_url()
        first: Page | None = None
        turn = 0
        while True:
            if (place := same_place(following)) in met:
                raise Changed("the next page is one that has already been read")
            met.add(place)
            page = self._page(following, first)
            first = first or page
            size += page.size
            if size > MAX_ALL_BYTES:
                raise self._trouble(f"all pages together are larger than {MAX_ALL_BYTES // 1024 // 1024} MB")
            if trouble := repeats.trouble_of(page.items) or total.trouble_of(page):
                # It may not be the list that changes.
                parameter = paging.page or paging.offset or paging.cursor
                hint = f" (is `{parameter}` the right parameter for its pages?)" if parameter else ""
                raise Changed(f"{trouble}{hint}")
            rows += page.items
            memory += sum(map(memory_of, page.items))
            if memory > self.most:
                raise self._trouble(f"the rows take more than {self.most // 1_000_000} MB; query fewer of them")
            turn += 1
            try:
                next_page = next_url(paging, self.base, start, page, len(rows), turn)
            except NoPage as why:
                raise self._trouble(str(why)) from None
            if next_page is None:
                sign = sign_of_partial_list(paging, page, total, len(rows), turn)
                if sign is not None and not self.question.may_be_partial:
                    raise self._trouble(
                        f"the list is longer than the {len(rows):,} row{'' if len(rows) == 1 else 's'} that were read,"
                        f" since {sign.words}: set {sign.setting}, or `allowPartial: true` if these rows are enough",
                        SOURCE_PARTIAL,
                    )
                return rows
            if turn == self.pages:
                raise self._trouble(f"there are more than {self.pages:,} pages")
            following = next_page

    def _trouble(self, words: str, code: str = BAD_SOURCE) -> SourceTrouble:
        return SourceTrouble(f"{self.name}: {words}", code=code)

    def _first_url(self) -> httpx.URL:
        question, path = self.question, self.question.path or ""
        if not path.isprintable() or "://" in path.partition("?")[0] or path.startswith("//") or "\\" in path:
            raise self._trouble("the path must be below the source's URL")
        try:
            address = address_below(self.base, f"{self.base}/{path.lstrip('/')}" if path else self.base)
        except NoPage as why:
            raise self._trouble(str(why)) from None
        params = {name: plain_text(value) for name, value in (question.params or {}).items()}
        return httpx.URL(address).copy_merge_params({**params, **first_parameters(question.paging)})

    def _page(self, url: httpx.URL, first: Page | None) -> Page:
        label = urlsplit(str(url)).path.removeprefix(urlsplit(self.base).path.rstrip("/")) or "its URL"
        reply = self._reply(url, label)
        if not reply.ok:
            raise self._trouble(f"{label} answered with status {reply.status}{_elsewhere(url, reply)}")
        if reply.content is None:
            raise self._trouble(f"{label} answered with more than {MAX_PAGE_BYTES // 1024 // 1024} MB")
        try:
            answer = loads(reply.content)
        except (ValueError, RecursionError) as error:
            why = f": {error}" if isinstance(error, NotJson) else ""
            why = ": it is not encoded as UTF-8" if isinstance(error, UnicodeDecodeError) else why
            is_page = "html" in reply.headers.get("content-type", "").lower()
            why = ", but a web page, as of a login or a proxy" if is_page else why
            raise self._trouble(f"the answer of {label} is not JSON{why}") from None
        return Page(url, answer, self._items(answer, first), self.question.items, reply)

    def _items(self, answer: Any, first: Page | None) -> list[Any]:
        """Return the items of an answer. A later page without items may leave out the list, but say nothing else."""
        steps = self.question.items
        items = value_at(answer, steps, _MISSING)
        if isinstance(items, list):
            return items
        before = first.answer if first is not None else None
        if isinstance(answer, dict) and isinstance(before, dict) and answer.keys() <= before.keys():
            if items is None or items is _MISSING:
                return []
        elif items is _MISSING:
            raise self._trouble(f"the answer has no `{'.'.join(steps)}`{where_lists_are(answer)}")
        raise self._trouble(f"the answer has no list{at_path(steps)}{where_lists_are(answer)}")

    def _reply(self, url: httpx.URL, label: str) -> Reply:
        """Return a reply that no retry would change. Wait as the client of the service does before each retry."""
        words, delay = "", None
        for attempt in range(ATTEMPTS):
            try:
                if attempt:
                    wait = wait_before(attempt + 1, FIRST_WAIT) if delay is None else delay
                    if time.monotonic() + wait >= self.deadline:
                        raise TooLate
                    pause(wait)
                seconds = self.deadline - time.monotonic()
                if seconds <= 0:
                    raise TooLate
                reply = self.client.exchange("GET", url, seconds=min(self.timeout, seconds), most=MAX_PAGE_BYTES)
            except TooLate:
                words = f"all pages together take longer than {self.seconds:g} s{words and f': {words}'}"
                break
            except Misconfigured as error:
                raise self._trouble(str(error)) from None
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                words, delay = f"{label} cannot be read: {cause_of(error)}", None
            else:
                if reply.status not in RETRIABLE:
                    return reply
                delay = retry_after(reply.headers.get("retry-after"), time.time())
                asks = f" (it asks for a retry in {delay:.0f} s)" if delay else ""
                words = f"{label} answered with status {reply.status}{asks}"
        raise self._trouble(words, SOURCE_UNREACHABLE)


_MISSING = object()


def _elsewhere(url: httpx.URL, reply: Reply) -> str:
    """Return where a redirect leads, without its path, which may hold a secret."""
    try:
        parts = urlsplit(urljoin(str(url), reply.headers.get("location", "")))
        host = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return ""
    is_redirect = 300 <= reply.status < 400 and "location" in reply.headers
    return f": it redirects to {host}, which is not followed" if is_redirect else ""
