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
from syncengine.service.causes import Misconfigured, cause_of
from syncengine.service.exchange import HEADERS, Reply, exchange
from syncengine.service.network import http_client

T = TypeVar("T")

ATTEMPTS = 6
PATIENCE_SECONDS = 180.0
"""The time limit for a whole publication, including the waits that the host asks for."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 20.0
TIMEOUT_SECONDS = 20.0
LARGEST = 64 * 1024 * 1024
MOST_PAGES = 1_000
PER_PAGE = 100
_NEXT = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next"?')


class Transient(Exception):
    """An error that a repeat may cure. `delay` is the wait in seconds that the host asks for, if any."""

    def __init__(self, words: str, delay: float | None = None) -> None:
        super().__init__(words)
        self.words = words
        self.delay = delay


class NotAllowed(Exception):
    """A 403 answer: the token lacks a right. The message is the host's."""


class NotThere(Exception):
    """A 404 or 410 answer. The message is the host's."""


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
        if reply.status in (301, 302, 303, 307, 308) and (address := reply.headers.get("location")):
            address = urljoin(f"{self._url}{path}", address)
            if not address.startswith(("https://", "http://")):
                raise SyncengineError(f"{self._name} redirects to an address that is not HTTP", code="publish-host")
            reply = self._exchange("GET", address, {}, anonymous=True)
        if not 200 <= reply.status < 300:
            self._read("GET", path, reply)
        if reply.content is None:
            raise SyncengineError(f"{self._name}: the file is larger than {LARGEST >> 20} MB", code="publish-host")
        return reply.content

    def pages(self, path: str) -> Iterator[Any]:
        """Yield the items of all pages of a list. The host names the next page, or pages are counted."""
        address: str | None = _with_page(path, 1)
        for page in range(1, MOST_PAGES + 1):
            assert address is not None
            reply = self.get(address)
            if not isinstance(reply.data, list):
                raise SyncengineError(
                    f"{self._name} answered GET {path} with JSON that is not a list", code="publish-host"
                )
            yield from reply.data
            address = self._next(path, page, reply)
            if address is None:
                return
        raise SyncengineError(f"{self._name}: {path} has more than {MOST_PAGES} pages", code="publish-host")

    def _next(self, path: str, page: int, reply: HostReply) -> str | None:
        """Return the address of the next page, or `None`. It must be on the same host, which gets the token."""
        if links := reply.headers.get("link"):
            match = _NEXT.search(links)
            if match is None:
                return None
            address: str = urljoin(f"{self._url}/", match[1])
            if _origin(address) != _origin(self._url):
                raise SyncengineError(
                    f"{self._name} names a next page on another host, which must not get the token", code="publish-host"
                )
            return address
        if "x-next-page" in reply.headers:
            named = reply.headers["x-next-page"]
            return _with_page(path, int(named)) if named.isascii() and named.isdigit() else None
        return _with_page(path, page + 1) if len(reply.data) >= PER_PAGE else None

    def persist(self, step: Callable[[], T]) -> T:
        """Repeat `step` while it raises `Transient`, and return its result. Raise `Unreachable` when time runs out."""
        retrying = Retrying(
            retry=retry_if_exception_type(Transient), stop=self._enough, wait=_wait, sleep=time.sleep, reraise=True
        )
        try:
            return retrying(step)
        except Transient as trouble:
            asks = f" (it asks to wait {trouble.delay:.0f} s)" if trouble.delay else ""
            raise Unreachable(
                f"{self._name} at {self._url}: {trouble.words}{asks}; repeat the command unchanged"
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
        """Send one request, `anonymous` without the token. Raise `Transient` when no answer arrives."""
        url = path if "://" in path else f"{self._url}{path}"
        seconds = min(TIMEOUT_SECONDS, max(0.1, self._until - time.monotonic()))
        try:
            request = self._client.build_request(method, url, headers=dict(headers), content=content)
            if anonymous:
                request.headers = httpx.Headers({**HEADERS, "host": request.headers["host"]})
            return self._runner.run(exchange(self._client, request, seconds=seconds, most=LARGEST))
        except Misconfigured as error:
            raise Usage(str(error), code="network-settings") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Transient(f"no answer to {method}: {cause_of(error)}") from None

    def _read(self, method: str, path: str, reply: Reply) -> HostReply:
        if 200 <= reply.status < 300:
            return HostReply(self._json(reply), reply.headers)
        words = f"{reply.status} to {method} {urlsplit(path).path}: {self._words(reply)}"
        delay = _delay(reply)
        if reply.status in RETRIABLE or (reply.status == 403 and (delay is not None or "rate limit" in words)):
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
        """Return the host's own error message, without the token."""
        try:
            data = orjson.loads(reply.content or b"null")
        except orjson.JSONDecodeError:
            data = None
        message = next((data[k] for k in ("message", "error") if k in data), None) if isinstance(data, dict) else None
        text = message if isinstance(message, str) else orjson.dumps(message).decode() if message else "no message"
        return self._shown(text)

    def _shown(self, text: str) -> str:
        return tidy(without(self._token, text))


def _wait(state: RetryCallState) -> float:
    trouble = state.outcome.exception() if state.outcome else None
    if isinstance(trouble, Transient) and trouble.delay is not None:
        return trouble.delay
    backoff = wait_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT) + wait_random(0, FIRST_WAIT)
    return float(backoff(state))


def _delay(reply: Reply) -> float | None:
    """Return the seconds that the host asks to wait, or `None`. GitHub gives the time when a spent quota is reset."""
    if (delay := retry_after(reply.headers.get("retry-after"), time.time())) is not None:
        return delay
    reset = reply.headers.get("x-ratelimit-reset", "")
    if reply.headers.get("x-ratelimit-remaining") == "0" and reset.isascii() and reset.isdigit():
        return max(0.0, int(reset) - time.time())
    return None


def _with_page(path: str, page: int) -> str:
    return f"{path}{'&' if '?' in path else '?'}per_page={PER_PAGE}&page={page}"


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()
