"""Make one attempt of one call, over connections that are kept, without ever showing the API key."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial

import httpx
import orjson

from syncengine.service.answers import DIVERTED, Answer, read_json, retry_after, tidy, without, words_without
from syncengine.service.causes import cause_of
from syncengine.service.client_options import Conduct, Endpoint, KeySource
from syncengine.service.exchange import HEADERS, Reply, exchange
from syncengine.service.network import check, http_client, trust
from syncengine.service.operations import Operation
from syncengine.service.trace import TRACE, Traced

NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.ProxyError,
    httpx.InvalidURL,
)
"""Exceptions raised before any byte of the request reaches the service."""


PAGES = frozenset({"text/html", "application/xhtml+xml"})
PORTAL = ": a login page, a proxy or a portal answered instead of the service"
"""The remark on a web page where JSON was expected."""

KEPT_SECONDS = 60.0
"""The seconds for which an idle connection is kept."""

Decoder = Callable[[bytes], object]
"""A function from the content of a 2xx to its data, or `None` for unexpected content."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request, the same at every attempt. `decode`, if given, is the only reader of a 2xx answer's content."""

    operation: Operation
    content: bytes | None = None
    query: Mapping[str, int] | None = None
    timeout: float | None = None
    items: int | None = None
    decode: Decoder | None = None

    def seconds(self, usual: float) -> float:
        """Return the seconds that an attempt may take: `usual`, after the time for which an answer may be held back."""
        return usual if self.timeout is None else self.timeout + usual


class Attempts:
    """Sends requests, as many at a time as the conduct allows, and reads the answers. `close` ends the connections.

    Making it raises `Usage` if a variable of the environment prevents every request (`network`).
    """

    def __init__(
        self,
        base_url: str,
        key: KeySource,
        endpoints: Mapping[str, Endpoint],
        conduct: Conduct,
        now: Callable[[], float],
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._endpoints = endpoints
        self._conduct = conduct
        self._now = now
        tls = trust()
        if not conduct.is_local:
            check(base_url, tls)
        self._free = asyncio.Semaphore(conduct.concurrency)  # waiting for one's turn does not count as the call's time
        limits = httpx.Limits(max_keepalive_connections=conduct.concurrency, keepalive_expiry=KEPT_SECONDS)
        headers = {**HEADERS, "accept": "application/json"}
        self._client = http_client(None, headers, tls=tls, limits=limits, is_local=conduct.is_local)
        self._awaited: set[asyncio.Timeout] = set()

    async def close(self) -> None:
        await self._client.aclose()

    def endpoint(self, operation: Operation) -> Endpoint:
        return self._endpoints.get(operation.id) or Endpoint(operation.method, operation.path)

    async def make(self, request: Request, seconds: float) -> Answer:
        """Send a request and read its answer within `seconds`. Faults of the service or the network never raise."""
        began = time.monotonic()
        answer = await self._made(request, seconds)
        if TRACE.isEnabledFor(logging.DEBUG):
            TRACE.debug(self._traced(request, answer, time.monotonic() - began))
        return answer

    def _traced(self, request: Request, answer: Answer, seconds: float) -> Traced:
        endpoint = self.endpoint(request.operation)
        query = f"?{httpx.QueryParams(dict(request.query))}" if request.query else ""
        return Traced(
            operation=request.operation.id,
            method=endpoint.method,
            path=self.shown(endpoint.path + query),
            status=answer.status,
            trouble=None if answer.status else answer.text,
            seconds=round(seconds, 6),
            sent=len(request.content or b""),
            received=answer.size,
            items=len(answer.data) if isinstance(answer.data, list) else request.items,
        )

    async def _made(self, request: Request, seconds: float) -> Answer:
        largest = request.operation.largest
        try:
            async with self._free, self._abandonable():
                if self._conduct.abandon.is_set():
                    return Answer(None, text="interrupted", reached=False)
                reply = await exchange(self._client, self._built(request), seconds=seconds, most=largest)
                if reply.status in DIVERTED:
                    return Answer(None, text=self._diverted(request.operation, reply), reached=False, diverted=True)
                return self._read(reply, largest, request.decode)
        except TimeoutError:
            return Answer(None, text="interrupted before the answer came")
        except NOT_SENT as error:
            return Answer(None, text=f"cannot connect: {cause_of(error)}", reached=False)
        except httpx.LocalProtocolError:
            return Answer(None, text="cannot send the request: the API key must be a line of ASCII", reached=False)
        except httpx.ReadTimeout:
            waited = request.timeout or seconds
            return Answer(None, text=f"no answer within {waited:g} s", timed_out=True)
        except httpx.HTTPError as error:
            return Answer(None, text=f"no answer: {cause_of(error)}")

    @contextlib.asynccontextmanager
    async def _abandonable(self) -> AsyncIterator[None]:
        """Enter a block that ends with `TimeoutError` as soon as answers are no longer awaited."""
        async with asyncio.timeout(None) as awaited:
            self._awaited.add(awaited)
            try:
                yield
            finally:
                self._awaited.discard(awaited)

    async def abandoned(self) -> None:
        """Wait until answers are no longer wanted, then cancel the attempts in flight."""
        await self._conduct.abandon.wait()
        for awaited in self._awaited:
            awaited.reschedule(asyncio.get_running_loop().time())

    def _built(self, request: Request) -> httpx.Request:
        endpoint = self.endpoint(request.operation)
        url = httpx.URL(self._base_url + endpoint.path)
        headers = {"x-api-key": self._key()}
        if request.content is not None:
            headers["content-type"] = "application/json"
        return self._client.build_request(
            endpoint.method,
            url.copy_merge_params(request.query) if request.query else url,
            headers=headers,
            content=request.content,
            timeout=request.timeout,
        )

    def _diverted(self, operation: Operation, reply: Reply) -> str:
        """Return the sentence for an answer that is not the service's."""
        if reply.status == 407:
            return "a proxy on the way asks for a login (407): name it with user and password in HTTPS_PROXY"
        if reply.status == 511:
            return "the network asks for a login (511), as a portal for guests does"
        path = self.endpoint(operation).path
        try:
            place = httpx.URL(self._base_url + path).join(reply.headers.get("location", ""))
            moved = str(place.copy_with(userinfo=b"", query=None, fragment=None)).removesuffix(path)
        except httpx.InvalidURL:
            moved = ""
        if moved in ("", self._base_url):
            return f"{path} is redirected ({reply.status}): check `service.baseUrl`"
        return f"the service has moved to {self.shown(moved)} ({reply.status}): check `service.baseUrl`"

    def _read(self, reply: Reply, largest: int, decode: Decoder | None = None) -> Answer:
        """Return the answer. The key is hidden in messages only: data to deliver or to send back stays unchanged."""
        answer = partial(
            Answer,
            reply.status,
            retry_after=retry_after(reply.headers.get("retry-after"), self._now()),
            kind=(kind := self.shown(reply.headers.get("content-type", "").partition(";")[0])),
        )
        is_ok = 200 <= reply.status < 300
        note = PORTAL if is_ok and kind.lower() in PAGES else ""
        if reply.content is None:
            words = f"the answer is larger than {largest // 1024 // 1024} MB"
            return answer(text=words, understood=False, size=largest, too_large=True)
        if decode is not None and is_ok:
            data = decode(reply.content)
            return answer(data=data, understood=data is not None, size=len(reply.content), note=note)
        data = None
        with contextlib.suppress(orjson.JSONDecodeError):
            data = read_json(reply.content)
        understood = data is not None or not reply.content.strip()
        note = "" if understood else note
        return answer(
            data=words_without(self._key(), data, is_refusal=not is_ok),
            text="a web page" if note else self.shown(reply.content.decode("utf-8", "replace")),
            note=note,
            understood=understood,
            unread=b"" if understood else reply.content,
            size=len(reply.content),
        )

    def shown(self, text: str) -> str:
        """Return text from outside in a form that is safe to show, without the key (docs/planning.md 4.11)."""
        return tidy(without(self._key(), text))
