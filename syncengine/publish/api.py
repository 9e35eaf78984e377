"""Call the HTTP interface of GitHub or GitLab: request → JSON, pages → items. The token is never shown.

Requests that only read are repeated here. Requests that write are not: they may have been executed, or another job may
have written meanwhile, so that their caller looks again first (`Transient`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx

from syncengine.document.json_text import InvalidJson, decode_json, encode_json
from syncengine.errors import AuthFailed, SyncengineError, Unreachable, Usage
from syncengine.http.exchange import (
    RETRIABLE,
    BlockingClient,
    Misconfigured,
    Reply,
    cause_of,
    retry_after,
    tidy,
    without,
)
from syncengine.http.list_pages import linked, origin
from syncengine.service.client import ATTEMPTS, wait_before

T = TypeVar("T")

PATIENCE_SECONDS = 180.0
"""The time limit for a whole publication, including the waits that the host asks for."""
FIRST_WAIT = 0.5  # a gateway that restarts is often back by then
TIMEOUT_SECONDS = 20.0  # GitHub itself gives up after 10
LARGEST = 64 * 1024 * 1024  # a packed plan of a million changes
MOST_PAGES = 1_000
"""A list of 100,000 comments is no list, but a host that names the same page again and again."""
MOST_REDIRECTS = 5  # a repository that was renamed again and again
OF_PAGES = frozenset({"first", "prev", "last"})
"""The relations of links that a last page has."""
PER_PAGE = 100  # the most that both hosts allow
SECONDARY_SECONDS = 60.0
"""The least wait that GitHub's documentation asks for after a secondary rate limit, whose answer may name none."""
TOO_QUICK_SECONDS = 15.0
"""The wait after a comment that came too soon. All attempts together take longer than GitHub's minute for comments."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})


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
    """A client for the paths below one URL, with one token, for one thread. `close` ends its connections."""

    def __init__(self, name: str, url: str, headers: Mapping[str, str], token: str) -> None:
        self._name = name
        self._url = url
        self._token = token
        self._until = time.monotonic() + PATIENCE_SECONDS
        self._client = BlockingClient({"accept": "application/json", **headers})
        self._anonymous = BlockingClient({})

    def close(self) -> None:
        self._client.close()
        self._anonymous.close()

    def get(self, path: str) -> HostReply:
        """Return the answer to a GET request, repeated while a repeat may help."""
        return self.persist(lambda: self._read("GET", path, self._exchange("GET", path)))

    def write(self, method: str, path: str, body: object = None) -> Any:
        """Send one request and return its JSON. Raise `Transient` when a repeat may help."""
        content = None if body is None else encode_json(body)
        return self._read(method, path, self._exchange(method, path, content)).data

    def download(self, path: str) -> bytes:
        """Return the content of a file. A redirect to another address is followed without the token."""

        def file() -> bytes:
            reply = self._exchange("GET", path)
            if reply.status in REDIRECTS and (address := reply.headers.get("location")):
                if not address.startswith(("https://", "http://")):
                    raise self._trouble(" redirects to an address that is not HTTP")
                reply = self._ask(self._anonymous, "GET", address)
            if not reply.ok:
                self._read("GET", path, reply)
            if reply.content is None:
                raise self._trouble(f": the file is larger than {LARGEST >> 20} MB")
            return reply.content

        return self.persist(file)

    def pages(self, path: str, key: str | None = None) -> Iterator[Any]:
        """Yield the items of all pages of a list, which is in the member `key` of an object, if given.

        The host names the next page as a link or a number. Only a page on itself gets the token.
        """
        full: list[Any] | None = None
        address = first = f"{path}{'&' if '?' in path else '?'}per_page={PER_PAGE}"
        for turn in range(1, MOST_PAGES + 1):
            data, headers = self.get(address)
            items = data.get(key) if key is not None and isinstance(data, dict) else data
            if not isinstance(items, list):
                raise self._trouble(f" answered GET {path} with JSON that is not a list")
            if items == full:  # the host does not read the number of a page
                return
            yield from items
            links, number = linked(headers), headers.get("x-next-page", "")
            if link := links.get("next"):
                address = urljoin(f"{self._url}/", link)
                if origin(address) != origin(self._url):
                    raise self._trouble(" names a next page on another host, which must not get the token")
            elif number.isascii() and number.isdigit():
                address = f"{first}&page={number}"
            elif len(items) == PER_PAGE and "x-next-page" not in headers and links.keys().isdisjoint(OF_PAGES):
                # The only page of a list, or a proxy keeps such headers: a further page tells.
                full, address = items, f"{first}&page={turn + 1}"
            else:
                return
        raise self._trouble(f": {path} has more than {MOST_PAGES} pages")

    def persist(self, step: Callable[[], T]) -> T:
        """Repeat `step` while it raises `Transient`, and return its result. Raise `Unreachable` when time runs out."""
        for attempt in count(1):
            try:
                return step()
            except Transient as trouble:
                wait = wait_before(attempt + 1, FIRST_WAIT) if trouble.delay is None else trouble.delay
                if attempt >= ATTEMPTS or time.monotonic() + wait >= self._until:
                    due = f" (the next attempt is due in {trouble.delay:.0f} s)" if trouble.delay else ""
                    where = f"{self._name} at {self._url}"
                    raise Unreachable(f"{where}: {trouble.words}{due}; repeat the command unchanged") from None
            time.sleep(wait)
        raise AssertionError

    def _exchange(self, method: str, path: str, content: bytes | None = None) -> Reply:
        """Send one request. Raise `Transient` when no answer arrives.

        A redirect on the same host is followed: hosts redirect requests for a repository that was renamed. The method
        stays, as GitHub's documentation asks, except that 303 asks for GET.
        """
        url = path if "://" in path else f"{self._url}{path}"
        for _ in range(MOST_REDIRECTS):
            reply = self._ask(self._client, method, url, content)
            address = urljoin(url, reply.headers.get("location", ""))
            if reply.status not in REDIRECTS or address == url or origin(address) != origin(self._url):
                break
            url = address
            if reply.status == 303:
                method, content = "GET", None
        return reply

    def _ask(self, client: BlockingClient, method: str, url: str, content: bytes | None = None) -> Reply:
        seconds = min(TIMEOUT_SECONDS, max(0.1, self._until - time.monotonic()))
        try:
            return client.exchange(method, url, seconds=seconds, most=LARGEST, json=content)
        except Misconfigured as error:
            raise Usage(str(error), code="network-settings") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Transient(f"no answer to {method}: {cause_of(error)}") from None

    def _read(self, method: str, path: str, reply: Reply) -> HostReply:
        """Return the JSON of an answer, `None` without content. Raise `Transient` for another text, as a gateway's.

        The words of an error are the host's own, without the token.
        """
        try:
            data = decode_json(reply.content) if reply.content else None
        except InvalidJson:
            if reply.ok:
                raise Transient(f"{reply.status} with an answer that is not JSON") from None
            data = None
        if reply.ok:
            return HostReply(data, reply.headers)
        said = list[Any]()
        if isinstance(data, dict):
            said = [next((data[k] for k in ("message", "error") if data.get(k)), None)]
            for details in (data.get("errors"), data.get("error_description")):
                each = details if isinstance(details, list) else [details]
                said += [d.get("message") or d.get("code") if isinstance(d, dict) else d for d in each]
        texts = (word if isinstance(word, str) else encode_json(word).decode() for word in said if word)
        message = tidy(without(self._token, ": ".join(dict.fromkeys(texts)) or "no message"))
        words = f"{reply.status} to {method} {urlsplit(path).path}: {message}"
        delay = asked_wait(reply.status, reply.headers, words, time.time())
        if reply.status in RETRIABLE or delay is not None:
            raise Transient(words, delay)
        if reply.status == 401:
            raise AuthFailed(f"{self._name} rejects the token ({words}): check whether it has expired or was revoked")
        if reply.status == 403:
            raise NotAllowed(words)
        # 422 is GitHub's answer about a commit that was not pushed.
        if reply.status in (404, 410) or (reply.status == 422 and "No commit found" in words):
            raise NotThere(words)
        if 300 <= reply.status < 400:
            raise self._trouble(f" answered {words}: its API has another address")
        raise self._trouble(f" rejected the request: {words}")

    def _trouble(self, words: str) -> SyncengineError:
        return SyncengineError(f"{self._name}{words}", code="publish-host")


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
