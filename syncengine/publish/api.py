"""Call the HTTP interface of GitHub or GitLab: request → JSON, pages → items. The token is never shown.

Requests that only read are repeated here. Requests that write are not: they may have been executed, or another job may
have written meanwhile, so that their caller looks again first (`Transient`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx
import orjson
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential, wait_random

from syncengine.errors import AuthFailed, SyncengineError, Unreachable, Usage
from syncengine.service.answers import RETRIABLE, retry_after, tidy, without
from syncengine.service.exchange import HEADERS, Misconfigured, Reply, cause_of, exchange
from syncengine.service.network import http_client

T = TypeVar("T")

ATTEMPTS = 6
PATIENCE_SECONDS = 180.0
"""The time limit for a whole publication, including the waits that the host asks for."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 20.0
TIMEOUT_SECONDS = 20.0
LARGEST = 64 * 1024 * 1024
MOST_PAGES = 1_000
MOST_REDIRECTS = 5
PER_PAGE = 100
SECONDARY_SECONDS = 60.0
"""The least wait that GitHub's documentation asks for after a secondary rate limit, whose answer may name none."""
TOO_QUICK_SECONDS = 15.0
"""The wait after a comment that came too soon. All attempts together take longer than GitHub's minute for comments."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LINK = re.compile(r",\s*(?=<)")
_NEXT = re.compile(r'\s*<([^>]*)>.*;\s*rel="?[^";]*\bnext\b', re.IGNORECASE)
"""The pattern of a link of RFC 8288 to the next page, which may have more relations than one."""
_PORTS = {"https": 443, "http": 80}


class Transient(Exception):
    """An error that a repeat may cure. `delay` is the wait in seconds that the host asks for, if any."""

    def __init__(self, words: str, delay: float | None = None) -> None:
        super().__init__(words)
        self.words = words
        self.delay = delay


class NotAllowed(Exception):
    """A 403 answer: the token lacks a right. The message is the host's."""


class NotThere(Exception):
    """A 404 or 410 answer, or one that the host knows no such commit. The message is the host's."""


class HostReply(NamedTuple):
    """The parsed JSON and the headers of an answer."""

    data: Any
    headers: Mapping[str, str]


class HostApi:
    """A client for the paths below one URL, with one token, for one thread. Use it as a context manager."""

    def __init__(self, name: str, url: str, headers: Mapping[str, str], token: str) -> None:
        self._name = name
        self._url = url
        self._token = token
        self._headers = {**HEADERS, "accept": "application/json", **headers}
        self._until = time.monotonic() + PATIENCE_SECONDS
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._runner.__enter__()
        self._client = http_client(TIMEOUT_SECONDS, self._headers)
        return self

    def __exit__(self, *exc: object) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def get(self, path: str) -> HostReply:
        """Return the answer to a GET request, repeated while a repeat may help."""
        return self.persist(lambda: self._once("GET", path))

    def write(self, method: str, path: str, body: object = None) -> Any:
        """Send one request and return its JSON. Raise `Transient` when a repeat may help."""
        return self._once(method, path, body).data

    def download(self, path: str) -> bytes:
        """Return the content of a file. A redirect to another address is followed without the token."""
        return self.persist(lambda: self._file(path))

    def _file(self, path: str) -> bytes:
        reply = self._exchange("GET", path, {})
        if reply.status in REDIRECTS and (address := reply.headers.get("location")):
            if not address.startswith(("https://", "http://")):
                raise SyncengineError(f"{self._name} redirects to an address that is not HTTP", code="publish-host")
            reply = self._exchange("GET", address, {}, anonymous=True)
        if not 200 <= reply.status < 300:
            self._read("GET", path, reply)
        if reply.content is None:
            raise SyncengineError(f"{self._name}: the file is larger than {LARGEST >> 20} MB", code="publish-host")
        return reply.content

    def pages(self, path: str, key: str | None = None) -> Iterator[Any]:
        """Yield the items of all pages of a list, which is in the member `key` of an object, if given.

        The host names the next page. If it names none, pages are counted until one brings nothing new, since a host may
        put fewer items on a page than it was asked to.
        """
        address: str | None = _with_page(path, 1)
        last: object = None
        is_linked, count = False, 0
        for page in range(1, MOST_PAGES + 1):
            assert address is not None
            reply = self.get(address)
            is_member = key is not None and isinstance(reply.data, dict)
            items = reply.data.get(key) if is_member else reply.data
            if not isinstance(items, list):
                raise SyncengineError(
                    f"{self._name} answered GET {path} with JSON that is not a list", code="publish-host"
                )
            if items == last:
                return
            yield from items
            last, count = items, count + len(items)
            is_linked = is_linked or "link" in reply.headers or "x-next-page" in reply.headers
            is_whole = is_linked or not items or (is_member and count == reply.data.get("total_count"))
            address = self._next(path, reply) or (None if is_whole else _with_page(path, page + 1))
            if address is None:
                return
        raise SyncengineError(f"{self._name}: {path} has more than {MOST_PAGES} pages", code="publish-host")

    def _next(self, path: str, reply: HostReply) -> str | None:
        """Return the address of the next page, if the host names one on itself; only it gets the token."""
        links = map(_NEXT.match, _LINK.split(reply.headers.get("link", "")))
        if match := next(filter(None, links), None):
            address: str = urljoin(f"{self._url}/", match[1])
            if _origin(address) != _origin(self._url):
                raise SyncengineError(
                    f"{self._name} names a next page on another host, which must not get the token", code="publish-host"
                )
            return address
        named = reply.headers.get("x-next-page", "")
        return _with_page(path, int(named)) if named.isascii() and named.isdigit() else None

    def persist(self, step: Callable[[], T]) -> T:
        """Repeat `step` while it raises `Transient`, and return its result. Raise `Unreachable` when time runs out."""
        retrying = Retrying(
            retry=retry_if_exception_type(Transient), stop=self._enough, wait=_wait, sleep=time.sleep, reraise=True
        )
        try:
            return retrying(step)
        except Transient as trouble:
            due = f" (the next attempt is due in {trouble.delay:.0f} s)" if trouble.delay else ""
            raise Unreachable(
                f"{self._name} at {self._url}: {trouble.words}{due}; repeat the command unchanged"
            ) from None

    def _enough(self, state: RetryCallState) -> bool:
        return state.attempt_number >= ATTEMPTS or time.monotonic() + state.upcoming_sleep >= self._until

    def _once(self, method: str, path: str, body: object = None) -> HostReply:
        headers = {"content-type": "application/json"} if body is not None else {}
        content = None if body is None else orjson.dumps(body)
        return self._read(method, path, self._exchange(method, path, headers, content))

    def _exchange(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        content: bytes | None = None,
        *,
        anonymous: bool = False,
    ) -> Reply:
        """Send one request, `anonymous` without the token. Raise `Transient` when no answer arrives.

        A redirect on the same host is followed: hosts redirect requests for a repository that was renamed. The method
        stays, as GitHub's documentation asks, except that 303 asks for GET.
        """
        url = path if "://" in path else f"{self._url}{path}"
        try:
            for _ in range(MOST_REDIRECTS):
                seconds = min(TIMEOUT_SECONDS, max(0.1, self._until - time.monotonic()))
                request = self._client.build_request(method, url, headers=dict(headers), content=content)
                if anonymous:
                    request.headers = httpx.Headers({**HEADERS, "host": request.headers["host"]})
                reply = self._runner.run(exchange(self._client, request, seconds=seconds, most=LARGEST))
                address = urljoin(url, reply.headers.get("location", ""))
                is_elsewhere = anonymous or _origin(address) != _origin(self._url)
                if reply.status not in REDIRECTS or address == url or is_elsewhere:
                    break
                url = address
                if reply.status == 303:
                    method, headers, content = "GET", {}, None
            return reply
        except Misconfigured as error:
            raise Usage(str(error), code="network-settings") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Transient(f"no answer to {method}: {cause_of(error)}") from None

    def _read(self, method: str, path: str, reply: Reply) -> HostReply:
        if 200 <= reply.status < 300:
            return HostReply(self._json(reply), reply.headers)
        words = f"{reply.status} to {method} {urlsplit(path).path}: {self._words(reply)}"
        delay = asked_wait(reply.status, reply.headers, words, time.time())
        if reply.status in RETRIABLE or delay is not None:
            raise Transient(words, delay)
        match reply.status:
            case 401:
                raise AuthFailed(
                    f"{self._name} rejects the token ({words}): check whether it has expired or was revoked"
                )
            case 403:
                raise NotAllowed(words)
            case 404 | 410:
                raise NotThere(words)
            case 422 if "No commit found" in words:  # GitHub's answer about a commit that was not pushed
                raise NotThere(words)
            case status if 300 <= status < 400:
                raise SyncengineError(
                    f"{self._name} answered {words}: its API has another address", code="publish-host"
                )
        raise SyncengineError(f"{self._name} rejected the request: {words}", code="publish-host")

    def _json(self, reply: Reply) -> Any:
        """Return the JSON of an answer, or `None` without content. Raise `Transient` for other text (a gateway's)."""
        if not reply.content:
            return None
        try:
            return orjson.loads(reply.content)
        except orjson.JSONDecodeError:
            raise Transient(f"{reply.status} with an answer that is not JSON") from None

    def _words(self, reply: Reply) -> str:
        """Return the host's own error messages, without the token."""
        try:
            data = orjson.loads(reply.content or b"null")
        except orjson.JSONDecodeError:
            data = None
        if not isinstance(data, dict):
            return "no message"
        message = next((data[k] for k in ("message", "error") if data.get(k)), None)
        details = [*_listed(data.get("errors")), *_listed(data.get("error_description"))]
        words = [message, *(d.get("message") or d.get("code") if isinstance(d, dict) else d for d in details)]
        texts = (word if isinstance(word, str) else orjson.dumps(word).decode() for word in words if word)
        return self._shown(": ".join(dict.fromkeys(texts)) or "no message")

    def _shown(self, text: str) -> str:
        return tidy(without(self._token, text))


def _wait(state: RetryCallState) -> float:
    trouble = state.outcome.exception() if state.outcome else None
    if isinstance(trouble, Transient) and trouble.delay is not None:
        return trouble.delay
    backoff = wait_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT) + wait_random(0, FIRST_WAIT)
    return float(backoff(state))


def asked_wait(status: int, headers: Mapping[str, str], words: str, now: float) -> float | None:
    """Return the seconds to wait before the request is repeated; `None` if the answer asks for no wait. Pure.

    The hosts say the end of a spent quota as a time, GitHub also with status 403. GitHub's limits on writing may come
    without any header and are known by their `words` alone.
    """
    words = words.casefold()
    is_too_quick = status == 422 and "submitted too quickly" in words
    if not (is_too_quick or status in (403, 429) or status >= 500):
        return None
    if (delay := retry_after(headers.get("retry-after"), now)) is not None:
        return delay
    for prefix in ("x-ratelimit", "ratelimit"):
        reset = headers.get(f"{prefix}-reset", "")
        if headers.get(f"{prefix}-remaining") == "0" and reset.isascii() and reset.isdigit():
            return max(0.0, int(reset) - now)
    if is_too_quick:
        return TOO_QUICK_SECONDS
    is_secondary = status in (403, 429) and any(each in words for each in ("rate limit", "abuse detection"))
    return SECONDARY_SECONDS if is_secondary else None


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def _with_page(path: str, page: int) -> str:
    return f"{path}{'&' if '?' in path else '?'}per_page={PER_PAGE}&page={page}"


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:  # no number
        port = -1
    return parts.scheme, parts.hostname, port or _PORTS.get(parts.scheme)
