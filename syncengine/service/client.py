"""Call the service: one operation, one answer, with retries, one circuit breaker, and a key that is never shown."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Protocol, Self

import httpx

from syncengine.document.json_text import encode_json
from syncengine.http.exchange import (
    HEADERS,
    NOT_SENT,
    Reply,
    authorities,
    cause_of,
    check,
    exchange,
    http_client,
    tidy,
    without,
)
from syncengine.instants import machine_seconds
from syncengine.service.answers import Answer, Decoder, answer_in
from syncengine.service.operations import TEAM_INFO, Operation

ATTEMPTS = 6
"""The attempts of a call, as long as they are within the patience."""
PATIENCE_SECONDS = 300.0
"""The seconds for all attempts of a call: a service that asks for more patience has the run end, and be repeated."""
FIRST_WAIT = 0.25
"""The seconds before the first repeat. Six attempts then last 8 s, which outlives the restart of a service."""
LONGEST_WAIT = 30.0
"""The longest wait that we choose ourselves; one that the service asks for may be longer."""
KEPT_SECONDS = 60.0
"""The seconds for which an idle connection is kept: as long as most servers and proxies keep theirs."""

DIVERTED = frozenset({301, 302, 307, 308, 407, 511})
"""Statuses by which a server on the way says that the service did not get the request: moved, or a login is wanted."""

JSON = {"content-type": "application/json"}

TRACE = logging.getLogger("syncengine.requests")
"""The logger of every attempt of every call, at level DEBUG with a `Traced` as its argument."""


class KeySource(Protocol):
    """A source of the API key; `fresh` reads a key in a file again, after a 401 (docs/planning.md 4.6)."""

    def __call__(self, *, fresh: bool = False) -> str: ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str


@dataclass(frozen=True, slots=True)
class Conduct:
    """The behaviour of a client. `timeout` and `first_wait` are in seconds.

    `patience` is the limit in seconds for all attempts of a call, the first of which may take its own time. `attempts`
    1: nothing is retried, the caller does that. `breaks` `False`: a failed call does not prevent the next, as in a
    process that outlives an outage. `is_local`: the service is part of this process, and no proxy leads to it. Once
    `stop` is set nothing is retried (docs/planning.md 4.10); once `abandon` is set nothing is sent and no answer is
    awaited. `before_send` is called before each attempt and raises when nothing may be sent (docs/planning.md 1.5).
    `on_retry` receives the operation, the reason, and the seconds until the retry.
    """

    timeout: float = 30.0
    concurrency: int = 8
    first_wait: float = FIRST_WAIT
    attempts: int = ATTEMPTS
    patience: float = PATIENCE_SECONDS
    breaks: bool = True
    is_local: bool = False
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    abandon: asyncio.Event = field(default_factory=asyncio.Event)
    before_send: Callable[[], None] = lambda: None
    on_retry: Callable[[str, str, float], None] = lambda operation, why, wait: None


@dataclass(slots=True)
class Traffic:
    """The counted requests and retries of a run without `teamInfo`, and the status codes received for each operation.

    `reached`: whether a request may have reached the service.
    """

    requests: int = 0
    retries: int = 0
    reached: bool = False
    statuses: dict[str, set[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Traced:
    """One attempt of a call, without keys, headers or bodies. `trouble` is why `status` is `None`.

    Sizes are in bytes, unpacked. `items` is the number of items sent in a batch or received in a list, `None` for any
    other call.
    """

    operation: str
    method: str
    path: str
    status: int | None
    trouble: str | None
    seconds: float
    sent: int
    received: int
    items: int | None

    def __str__(self) -> str:
        outcome = self.status or self.trouble or "no answer"
        items = "" if self.items is None else f", {self.items} item{'' if self.items == 1 else 's'}"
        return (
            f"{self.method} {self.path} ({self.operation}): {outcome}, {self.seconds:.3f} s,"
            f" {self.sent} bytes sent, {self.received} received{items}"
        )


@dataclass(frozen=True, slots=True)
class _Request:
    """A request, the same at every attempt. `items` is the number of items in the body of a batch call."""

    operation: Operation
    content: bytes | None = None
    query: Mapping[str, int] | None = None
    timeout: float | None = None
    items: int | None = None
    decode: Decoder | None = None


def wait_before(attempt: int, first: float) -> float:
    """Return the seconds before an attempt from the second on: exponentially more each time, with jitter."""
    return min(first * 2.0 ** (attempt - 2), LONGEST_WAIT) + random.uniform(0, first)  # noqa: S311 - no secret


class Client:
    """Calls operations of the service; use it as an async context manager.

    `down` is the circuit breaker: once the service does not answer at all, no further call is sent. `why_down` is a
    sentence for people. Making it raises `Usage` if a variable of the environment prevents every request (`network`).
    """

    def __init__(
        self,
        base_url: str,
        key: KeySource,
        *,
        endpoints: Mapping[str, Endpoint] | None = None,
        conduct: Conduct | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.traffic = Traffic()
        self.down = False
        self.why_down = "the service is down: repeat unchanged once it answers"
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._endpoints = endpoints or {}
        self._conduct = conduct = conduct or Conduct()
        self._now = now
        tls = cache(authorities)
        if not conduct.is_local:
            check(base_url, tls)
        limits = httpx.Limits(max_keepalive_connections=conduct.concurrency, keepalive_expiry=KEPT_SECONDS)
        headers = {**HEADERS, "accept": "application/json"}
        self._http = http_client(headers, tls=tls, limits=limits, is_local=conduct.is_local)
        # Waiting for one's turn must not count as the call's time, as it would in the pool of httpx.
        self._free = asyncio.Semaphore(conduct.concurrency)
        self._answers = 0
        self._probing = asyncio.Lock()
        self._awaited: set[asyncio.Timeout] = set()
        self._abandoning: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._abandoning = asyncio.create_task(self._abandon())
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._abandoning is not None:
            self._abandoning.cancel()
        await self._http.aclose()

    def path(self, operation: Operation) -> str:
        """Return the path at which `operation` is called, relative to the base URL."""
        return self._endpoint(operation).path

    def shown(self, text: str) -> str:
        """Return text from outside in a form that is safe to show, without the key (docs/planning.md 4.11)."""
        return tidy(without(self._key(), text))

    def _endpoint(self, operation: Operation) -> Endpoint:
        return self._endpoints.get(operation.id) or Endpoint(operation.method, operation.path)

    async def call(
        self,
        operation: Operation,
        body: object = None,
        *,
        query: Mapping[str, int] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 -- it is for each attempt, and the attempts are made here
        decode: Decoder | None = None,
    ) -> Answer:
        """Call an operation, with retries where they are safe. Faults of the service or the network never raise.

        `timeout` is for an operation whose answer is held back on purpose: the seconds within which it must begin. If
        it does not, that counts as an answer, and nothing is retried. `decode` makes the data of a 2xx answer, of whose
        content nothing else is kept.
        """
        if self.down:
            return Answer(None, text=self.why_down, reached=False)
        answers_before = self._answers
        content = None if body is None else encode_json(body)
        batch = body.get(operation.items) if operation.items and isinstance(body, dict) else None
        items = len(batch) if isinstance(batch, list) else None
        answer = await self._persist(_Request(operation, content, query, timeout, items, decode))
        if answer.diverted and self._conduct.breaks:
            self.down, self.why_down = True, answer.text
        elif not answer.exhausted:
            self._answers += 1
        elif self._conduct.breaks and self._answers == answers_before:
            if operation is TEAM_INFO:
                self.down = True
            elif not self._conduct.stop.is_set():
                async with self._probing:  # the service is down if `teamInfo` fails as well (docs/planning.md 4.5)
                    self.down = self.down or (await self._send(_Request(TEAM_INFO))).exhausted
        return answer

    async def _persist(self, request: _Request) -> Answer:
        """Repeat attempts until the deadline, or an answer that repeating would not change; return the last answer."""
        conduct, until = self._conduct, time.monotonic() + self._conduct.patience
        tried, reached, given_up, note, renewed, remaining = 0, False, None, "", False, math.inf
        while True:
            answer = await self._send(request, remaining)
            reached, given_up = reached or answer.reached, answer.given_up or given_up
            if answer.status == 401 and not renewed and self._key() != self._key(fresh=True):
                renewed = True  # the key was replaced while this process ran, which is no failed attempt
                continue
            tried += 1
            is_final = not answer.exhausted or answer.diverted or (answer.timed_out and request.timeout)
            if is_final or tried >= conduct.attempts or self._is_quiet:
                break
            wait = wait_before(tried + 1, conduct.first_wait) if answer.retry_after is None else answer.retry_after
            if time.monotonic() + wait >= until:
                if answer.retry_after is not None:
                    note = (
                        f" (it asks for a retry in {wait:.0f} s, but a call may take {conduct.patience:.0f} s in all)"
                    )
                break
            self.traffic.retries += request.operation is not TEAM_INFO
            conduct.on_retry(request.operation.id, answer.explained, wait)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(conduct.stop.wait(), wait)
            remaining = until - time.monotonic()
            if self._is_quiet or remaining <= 0:
                break
        return replace(answer, reached=reached, given_up=given_up, note=answer.note + note)

    @property
    def _is_quiet(self) -> bool:
        """Whether nothing more may be sent."""
        return self._conduct.stop.is_set() or self.down

    async def _send(self, request: _Request, remaining: float = math.inf) -> Answer:
        """Make one attempt, which takes no longer than the time that remains for all attempts, and record it."""
        self._conduct.before_send()
        operation, began = request.operation, time.monotonic()
        # What is held back on purpose begins within its own time, and then takes no longer than others do.
        seconds = min(remaining, self._conduct.timeout + (request.timeout or 0.0))
        answer = await self._attempt(request, seconds)
        if TRACE.isEnabledFor(logging.DEBUG):
            endpoint = self._endpoint(operation)
            query = f"?{httpx.QueryParams(dict(request.query))}" if request.query else ""
            traced = Traced(
                operation=operation.id,
                method=endpoint.method,
                path=self.shown(endpoint.path + query),
                status=answer.status,
                trouble=None if answer.status else answer.text,
                seconds=round(time.monotonic() - began, 6),
                sent=len(request.content or b""),
                received=answer.size,
                items=len(answer.data) if isinstance(answer.data, list) else request.items,
            )
            TRACE.debug(traced)
        if answer.may_land:
            answer = replace(answer, given_up=machine_seconds())
        if operation is not TEAM_INFO:
            self.traffic.requests += 1
            self.traffic.reached |= answer.reached
            if answer.status is not None:
                self.traffic.statuses.setdefault(operation.id, set()).add(answer.status)
        return answer

    async def _attempt(self, request: _Request, seconds: float) -> Answer:
        """Send a request and read its answer within `seconds`. Faults of the service or the network never raise."""
        largest, endpoint = request.operation.largest, self._endpoint(request.operation)
        awaited = asyncio.timeout(None)  # which ends as soon as answers are no longer awaited
        try:
            async with self._free, awaited:
                if self._conduct.abandon.is_set():
                    return Answer(None, text="interrupted", reached=False)
                self._awaited.add(awaited)
                url = httpx.URL(self._base_url + endpoint.path)
                prepared = self._http.build_request(
                    endpoint.method,
                    url.copy_merge_params(request.query) if request.query else url,
                    headers={"x-api-key": self._key(), **(JSON if request.content else {})},
                    content=request.content,
                    timeout=request.timeout,
                )
                reply = await exchange(self._http, prepared, seconds=seconds, most=largest)
                if reply.status in DIVERTED:
                    text = self._sentence_on_diversion(request.operation, reply)
                    return Answer(None, text=text, reached=False, diverted=True)
                return answer_in(reply, self._key(), largest, self._now(), request.decode)
        except TimeoutError:
            return Answer(None, text="interrupted before the answer came")
        except httpx.LocalProtocolError:
            return Answer(None, text="cannot send the request: the API key must be a line of ASCII", reached=False)
        except NOT_SENT as error:
            return Answer(None, text=f"cannot connect: {cause_of(error)}", reached=False)
        except httpx.ReadTimeout:
            return Answer(None, text=f"no answer within {request.timeout or seconds:g} s", timed_out=True)
        except httpx.HTTPError as error:
            return Answer(None, text=f"no answer: {cause_of(error)}")
        finally:
            self._awaited.discard(awaited)

    async def _abandon(self) -> None:
        """Wait until answers are no longer wanted, then cancel the attempts in flight."""
        await self._conduct.abandon.wait()
        for awaited in self._awaited:
            awaited.reschedule(asyncio.get_running_loop().time())

    def _sentence_on_diversion(self, operation: Operation, reply: Reply) -> str:
        """Return the sentence for an answer that is not the service's."""
        if reply.status == 407:
            return "a proxy on the way asks for a login (407): name it with user and password in HTTPS_PROXY"
        if reply.status == 511:
            return "the network asks for a login (511), as a portal for guests does"
        path = self.path(operation)
        try:
            place = httpx.URL(self._base_url + path).join(reply.headers.get("location", ""))
            moved = str(place.copy_with(userinfo=b"", query=None, fragment=None)).removesuffix(path)
        except httpx.InvalidURL:
            moved = ""
        if moved in ("", self._base_url):
            return f"{path} is redirected ({reply.status}): check `service.baseUrl`"
        return f"the service has moved to {self.shown(moved)} ({reply.status}): check `service.baseUrl`"
