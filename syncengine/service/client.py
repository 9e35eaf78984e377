"""The client: one operation, one answer, with retries, one breaker for all calls, and a key that is never shown."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import httpx
import orjson
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_result,
    wait_exponential,
    wait_random,
)

from syncengine.clock import machine_seconds
from syncengine.service.answers import Answer, read_json, retry_after, tidy, without, words_without
from syncengine.service.departure import Departures, Trace
from syncengine.service.operations import TEAM_INFO, Operation

__all__ = ["Answer", "Client", "Conduct", "Endpoint", "KeySource", "Traffic", "retry_after"]

ATTEMPTS = 6
PATIENCE_SECONDS = 300.0
LONGEST_WAIT = 30.0

NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
"""Failures that happen before a byte of the request leaves."""


class KeySource(Protocol):
    """Gives the API key; `fresh` reads it again (engine.md 4.6: a key in a file is read again on 401)."""

    def __call__(self, *, fresh: bool = False) -> str: ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str


@dataclass(slots=True)
class Traffic:
    """What a run has sent, teamInfo aside: requests and repeats; for each operation the statuses that came.

    `reached`: some request may have reached the service.
    """

    requests: int = 0
    retries: int = 0
    reached: bool = False
    statuses: dict[str, set[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a client behaves. `timeout` and `first_wait` are seconds.

    `attempts` 1: nothing is repeated, which is left to the caller. `breaks` False: trouble of one call is no reason not
    to make the next, as in a process that outlives an outage.
    Once `stop` is set nothing is repeated (engine.md 4.10). `before_send` is asked before each attempt and raises
    when nothing may be sent (engine.md 1.5). `on_retry` hears the operation, why, and the seconds until the repeat.
    """

    timeout: float = 30.0
    concurrency: int = 8
    first_wait: float = 0.25
    attempts: int = ATTEMPTS
    breaks: bool = True
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    before_send: Callable[[], None] = lambda: None
    on_retry: Callable[[str, str, float], None] = lambda operation, why, wait: None


@dataclass(frozen=True, slots=True)
class _Request:
    """What goes out, at every attempt the same."""

    operation: Operation
    content: bytes | None = None
    query: Mapping[str, int] | None = None
    timeout: float | None = None


class Client:
    """Calls operations; use as an async context manager.

    `down` is the breaker: once the service answers nothing at all, no further call is sent.
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
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._endpoints = endpoints or {}
        self._conduct = conduct or Conduct()
        self._now = now
        self._answers = 0
        self._probing = asyncio.Lock()
        self._free = asyncio.Semaphore(self._conduct.concurrency)
        self._departures = Departures()
        self._tls = httpx.create_ssl_context()
        self._connections: list[httpx.AsyncClient] = []
        self._resting: list[httpx.AsyncClient] = []
        self._urls: dict[str, httpx.URL] = {}
        self._headers: list[tuple[str, str]] = []
        self._timeout = httpx.Timeout(self._conduct.timeout, pool=None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for connection in self._connections:
            await connection.aclose()

    def path(self, operation: Operation) -> str:
        """The path that `operation` is called at, below the base URL."""
        return self._endpoint(operation).path

    async def departed(self) -> None:
        """Return once no large body is on its way out."""
        await self._departures.over()

    async def call(
        self,
        operation: Operation,
        body: object = None,
        *,
        query: Mapping[str, int] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 -- of each attempt's answer, and the attempts are ours
    ) -> Answer:
        """Send one operation, repeating what may be repeated; what the service or the network does never raises.

        `timeout`: seconds that an answer may take, where that is not what every other call's may; that none came in
        that time is an answer then, and nothing is repeated.
        """
        if self.down:
            return Answer(None, text="the service is down", reached=False)
        answers_before = self._answers
        request = _Request(operation, None if body is None else orjson.dumps(body), query, timeout)
        answer = await self._persist(request)
        if answer.status == 401 and self._key() != self._key(fresh=True):
            refused, answer = answer, await self._persist(request)
            answer = replace(answer, given_up=answer.given_up or refused.given_up)
        if not answer.exhausted:
            self._answers += 1
        elif self._conduct.breaks and self._answers == answers_before:
            await self._find_out_whether_down(operation)
        return answer

    async def _find_out_whether_down(self, operation: Operation) -> None:
        """One call's trouble is the whole service's when teamInfo does not get through either (engine.md 4.5)."""
        if operation is TEAM_INFO:
            self.down = True
        elif not self._conduct.stop.is_set():
            async with self._probing:
                if not self.down:
                    self.down = (await self._send(_Request(TEAM_INFO), [])).exhausted

    async def _persist(self, request: _Request) -> Answer:
        """Attempts until an answer that a repeat cannot mend; the last answer otherwise."""
        earlier: list[Answer] = []
        started = time.monotonic()
        first = await self._send(request, earlier)
        if not first.exhausted:  # nearly always, and then nothing about repeating is set up
            return first
        waiting = [first]

        async def attempt() -> Answer:
            return waiting.pop() if waiting else await self._send(request, earlier)

        retrying = AsyncRetrying(
            retry=retry_if_result(lambda answer: answer.exhausted and not (answer.timed_out and request.timeout)),
            stop=lambda state: self._enough(state, started) or self._quiet(state),
            wait=self._wait,
            sleep=self._sleep,
            before_sleep=lambda state: self._tell_retry(request.operation, state),
            retry_error_callback=_last_answer,
        )
        answer: Answer = await retrying(attempt)
        given_up = max((a.given_up for a in earlier if a.given_up is not None), default=None)
        return replace(answer, reached=any(a.reached for a in earlier), given_up=given_up)

    async def _send(self, request: _Request, earlier: list[Answer]) -> Answer:
        if earlier and self._quiet(None):
            return earlier[-1]
        self._conduct.before_send()
        answer = await self._exchange(request)
        if answer.may_land:
            answer = replace(answer, given_up=machine_seconds())
        earlier.append(answer)
        operation = request.operation
        if operation is not TEAM_INFO:
            self.traffic.requests += 1
            self.traffic.reached |= answer.reached
            if answer.status is not None:
                self.traffic.statuses.setdefault(operation.id, set()).add(answer.status)
        return answer

    async def _exchange(self, request: _Request) -> Answer:
        try:
            async with self._connection() as connection:
                with self._departures.of(request.content) as extensions:
                    response = await connection.send(self._built(connection, request, extensions))
        except NOT_SENT as error:
            return Answer(None, text=self.shown(f"cannot connect: {str(error) or 'no connection'}"), reached=False)
        except httpx.LocalProtocolError:
            return Answer(None, text="the request cannot be sent: is the API key one line of ASCII?", reached=False)
        except httpx.ReadTimeout:
            return Answer(None, text=f"no answer within {request.timeout or self._conduct.timeout:g} s", timed_out=True)
        except httpx.HTTPError as error:
            return Answer(None, text=self.shown(f"no answer: {str(error) or 'the connection broke'}"))
        return self._read(response)

    def _built(self, connection: httpx.AsyncClient, request: _Request, extensions: dict[str, Trace]) -> httpx.Request:
        """A request as httpx builds it, save that what is the same for every call is not built again for each."""
        endpoint = self._endpoint(request.operation)
        url = self._urls.get(request.operation.id)
        if url is None:
            url = self._urls[request.operation.id] = httpx.URL(self._base_url + endpoint.path)
        headers = [*self._headers, ("x-api-key", self._key())]
        if request.content is not None:
            headers.append(("content-type", "application/json"))
        timeout = httpx.Timeout(request.timeout, pool=None) if request.timeout else self._timeout
        return httpx.Request(
            endpoint.method,
            url.copy_merge_params(request.query) if request.query else url,
            headers=headers,
            cookies=connection.cookies,
            content=request.content,
            extensions={"timeout": timeout.as_dict(), **extensions},
        )

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[httpx.AsyncClient]:
        """The connection that rested last; httpx's own pool looks at all of them for each call."""
        async with self._free:
            connection = self._resting.pop() if self._resting else self._connect()
            try:
                yield connection
            finally:
                self._resting.append(connection)

    def _connect(self) -> httpx.AsyncClient:
        connection = httpx.AsyncClient(
            timeout=self._timeout,
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=60.0),
            verify=self._tls,
        )
        common = ((name, value) for name, value in connection.headers.multi_items() if name != "accept")
        self._headers = [*common, ("accept", "application/json")]
        self._connections.append(connection)
        return connection

    def _read(self, response: httpx.Response) -> Answer:
        """The key is hidden in words alone: what is delivered, matched or sent back is as it came."""
        data: object = None
        content = response.content
        with contextlib.suppress(orjson.JSONDecodeError):
            data = read_json(content)
        understood = data is not None or not content.strip()
        return Answer(
            response.status_code,
            data=words_without(self._key(), data, is_refusal=not response.is_success),
            text=self.shown(content.decode("utf-8", "replace")),
            understood=understood,
            retry_after=retry_after(response.headers.get("retry-after"), self._now()),
            unread=b"" if understood else content,
            kind=self.shown(response.headers.get("content-type", "").partition(";")[0]),
            size=len(content),
        )

    def shown(self, text: str) -> str:
        """What came as it may be shown, without the key (engine.md 4.11)."""
        return tidy(without(self._key(), text))

    def _enough(self, state: RetryCallState, started: float) -> bool:
        """Whether no further attempt is due, seen from the first one's start."""
        late = time.monotonic() - started + state.upcoming_sleep >= PATIENCE_SECONDS
        return state.attempt_number >= self._conduct.attempts or late

    def _quiet(self, _: RetryCallState | None) -> bool:
        return self._conduct.stop.is_set() or self.down

    def _wait(self, state: RetryCallState) -> float:
        asked = _last_answer(state).retry_after
        first = self._conduct.first_wait
        backoff = wait_exponential(multiplier=first, max=LONGEST_WAIT) + wait_random(0, first)
        return backoff(state) if asked is None else asked

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._conduct.stop.wait(), seconds)

    def _tell_retry(self, operation: Operation, state: RetryCallState) -> None:
        answer = _last_answer(state)
        self.traffic.retries += operation is not TEAM_INFO
        why = f"{answer.status}: {answer.text}" if answer.status else answer.text
        self._conduct.on_retry(operation.id, why, state.next_action.sleep if state.next_action else 0.0)

    def _endpoint(self, operation: Operation) -> Endpoint:
        return self._endpoints.get(operation.id) or Endpoint(operation.method, operation.path)


def _last_answer(state: RetryCallState) -> Answer:
    assert state.outcome is not None
    answer: Answer = state.outcome.result()
    return answer
