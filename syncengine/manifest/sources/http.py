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
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import httpx

from syncengine.document.json_paths import Steps, value_at
from syncengine.errors import SOURCE_UNREACHABLE
from syncengine.manifest.sources.files import NotJson, loads
from syncengine.manifest.sources.records import (
    BAD_SOURCE,
    MAX_MEMORY,
    SOURCE_PARTIAL,
    SourceTrouble,
    memory_of,
    where_lists_are,
)
from syncengine.project.delivery_schema import Paging
from syncengine.project.signals import pause
from syncengine.service.answers import RETRIABLE, retry_after
from syncengine.service.client import ATTEMPTS, FIRST_WAIT, wait_before
from syncengine.service.exchange import Misconfigured, Reply, cause_of
from syncengine.service.list_pages import (
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
from syncengine.service.network import BlockingClient

MAX_PAGES = 10_000
MAX_PAGE_BYTES = 64 * 1024 * 1024
MAX_SECONDS = 300.0
MAX_ALL_BYTES = 512 * 1024 * 1024
"""The maximum number of bytes of all pages together."""
READ_AGAIN = 3
"""The number of times that a list which changes while it is read is read again."""


@dataclass(frozen=True, slots=True)
class HttpQuery:
    """A query to a service. `items` is the path of the list in an answer.

    `may_be_partial`: pages may be missing. `may_repeat`: equal rows are expected.
    """

    path: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    items: Steps = ()
    paging: Paging = field(default_factory=Paging.model_construct)
    may_be_partial: bool = False
    may_repeat: bool = False


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
    until = Until(time.monotonic() + seconds, seconds, pages)

    def read() -> list[Any]:
        with BlockingClient(headers, auth) as client:
            return _Listing(client, timeout, name, base, question, until, most).rows()

    yield from enumerate(_outside_loops(read), 1)


def _outside_loops(read: Callable[[], list[Any]]) -> list[Any]:
    """Return the result of `read`, which runs an event loop, even where one runs, as when an apply plans again."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return read()
    with ThreadPoolExecutor(1) as another:
        return another.submit(copy_context().run, read).result()


class TooLate(Exception):
    """Raised when the time limit of all pages together has passed."""


class Changed(Exception):
    """Raised when pages do not fit together, as of a list that changes while it is read. The message says how."""


def _credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return the URL without credentials, and the user and password, or `None` when the URL has none."""
    parts = urlsplit(url)
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    user, _, password = userinfo.partition(":")
    return parts._replace(netloc=host).geturl(), (unquote(user), unquote(password))


@dataclass(frozen=True, slots=True)
class _Listing:
    """One list of a service. Messages omit the source's URL, which may contain a key."""

    client: BlockingClient
    timeout: float
    name: str
    base: str
    question: HttpQuery
    until: Until
    most: int

    def rows(self) -> list[Any]:
        """Return all rows. Raise `SourceTrouble` when they cannot be read, or not as a whole."""
        for _ in range(READ_AGAIN):
            try:
                return self._rows()
            except Changed:
                continue
        try:
            return self._rows()
        except Changed as changed:
            again = f"{changed}, also when the list was read again"
            raise SourceTrouble(f"{self.name}: {again}", code=SOURCE_PARTIAL) from None

    def _rows(self) -> list[Any]:
        rows, memory, size = list[Any](), 0, 0
        repeats, total, met = Repeats(self.question.may_repeat), RowTotal(), set[object]()
        url, first = self._first_url(), None
        turn = 0
        while True:
            if (place := same_place(url)) in met:
                raise Changed("the next page is one that has already been read")
            met.add(place)
            page = self._page(url, first)
            first = first or page
            size += page.size
            if size > MAX_ALL_BYTES:
                raise self._trouble(f"all pages together are larger than {MAX_ALL_BYTES // 1024 // 1024} MB")
            if trouble := repeats.trouble_of(page.items) or total.trouble_of(page):
                raise Changed(f"{trouble}{self._hint()}")
            rows += page.items
            memory += sum(map(memory_of, page.items))
            if memory > self.most:
                raise self._trouble(f"the rows take more than {self.most // 1_000_000} MB; query fewer of them")
            turn += 1
            following = self._next_url(page, len(rows), turn)
            if following is None:
                self._check_end(page, total, len(rows))
                return rows
            if turn == self.until.pages:
                raise self._trouble(f"there are more than {self.until.pages:,} pages")
            url = following

    def _hint(self) -> str:
        """Return what may be wrong with the paging, if it is not the list that changes."""
        paging = self.question.paging
        parameter = paging.page or paging.offset or paging.cursor
        return f" (is `{parameter}` the right parameter for its pages?)" if parameter else ""

    def _check_end(self, last: Page, total: RowTotal, read: int) -> None:
        """Raise `SourceTrouble` if more rows were announced than read, as of a list whose pages are not followed."""
        if self.question.may_be_partial:
            return
        sign = sign_of_partial_list(self.question.paging, last, total, read)
        if sign is not None:
            raise self._trouble(
                f"the list is longer than the {read:,} row{'' if read == 1 else 's'} that were read, since"
                f" {sign.words}: set {sign.setting}, or `allowPartial: true` if these rows are enough",
                SOURCE_PARTIAL,
            )

    def _trouble(self, words: str, code: str = BAD_SOURCE) -> SourceTrouble:
        return SourceTrouble(f"{self.name}: {words}", code=code)

    # --- addresses

    def _first_url(self) -> httpx.URL:
        question, path = self.question, self.question.path
        if not path.isprintable() or "://" in path.partition("?")[0] or path.startswith("//") or "\\" in path:
            raise self._trouble("the path must be below the source's URL")
        address = self._checked(f"{self.base}/{path.lstrip('/')}" if path else self.base)
        return httpx.URL(address).copy_merge_params({**question.query, **first_parameters(question.paging)})

    def _next_url(self, page: Page, read: int, turn: int) -> httpx.URL | None:
        try:
            return next_url(self.question.paging, self.base, self._first_url(), page, read, turn)
        except NoPage as why:
            raise self._trouble(str(why)) from None

    def _checked(self, address: str) -> str:
        try:
            return address_below(self.base, address)
        except NoPage as why:
            raise self._trouble(str(why)) from None

    # --- answers

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
                    self._wait(attempt, delay)
                seconds = self.until.deadline - time.monotonic()
                if seconds <= 0:
                    raise TooLate
                reply = self.client.exchange("GET", url, seconds=min(self.timeout, seconds), most=MAX_PAGE_BYTES)
            except TooLate:
                words = f"all pages together take longer than {self.until.seconds:g} s{words and f': {words}'}"
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

    def _wait(self, attempt: int, delay: float | None) -> None:
        """Wait before a retry. Raise `TooLate` if the time of all pages together would be over."""
        if delay is None:
            delay = wait_before(attempt + 1, FIRST_WAIT)
        if time.monotonic() + delay >= self.until.deadline:
            raise TooLate
        pause(delay)


_MISSING = object()


def _elsewhere(url: httpx.URL, reply: Reply) -> str:
    """Return where a redirect leads, without its path, which may hold a secret."""
    try:
        parts = urlsplit(urljoin(str(url), reply.headers.get("location", "")))
        host = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return ""
    return f": it redirects to {host}, which is not followed" if 300 <= reply.status < 400 else ""
