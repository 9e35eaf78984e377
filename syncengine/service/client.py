"""Call the service: one operation, one answer, with retries, one circuit breaker, and a key that is never shown."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import orjson
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_result,
    wait_exponential,
    wait_random,
)

from syncengine.document.clock import machine_seconds
from syncengine.service.answers import Answer, retry_after
from syncengine.service.attempt import Attempts, Decoder, Request
from syncengine.service.client_options import ATTEMPTS, Conduct, Endpoint, KeySource
from syncengine.service.operations import TEAM_INFO, Operation

__all__ = ["ATTEMPTS", "Answer", "Client", "Conduct", "Endpoint", "Traffic", "retry_after"]

LONGEST_WAIT = 30.0


@dataclass(slots=True)
class Traffic:
    """The counted requests and retries of a run without `teamInfo`, and the status codes received for each operation.

    `reached`: whether a request may have reached the service.
    """

    requests: int = 0
    retries: int = 0
    reached: bool = False
    statuses: dict[str, set[int]] = field(default_factory=dict)


class Client:
    """Calls operations of the service; use it as an async context manager.

    `down` is the circuit breaker: once the service does not answer at all, no further call is sent. `why_down` is a
    sentence for people.
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
        self._key = key
        self._conduct = conduct or Conduct()
        self._attempts = Attempts(base_url, key, endpoints or {}, self._conduct, now)
        self._answers = 0
        self._probing = asyncio.Lock()
        self._abandoning: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._abandoning = asyncio.create_task(self._attempts.abandoned())
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._abandoning is not None:
            self._abandoning.cancel()
        await self._attempts.close()

    def path(self, operation: Operation) -> str:
        """Return the path at which `operation` is called, relative to the base URL."""
        return self._attempts.endpoint(operation).path

    async def departed(self) -> None:
        """Wait until no large body is being sent."""
        await self._attempts.departures.over()

    def shown(self, text: str) -> str:
        """Return text from outside in a form that is safe to show, without the key (docs/planning.md 4.11)."""
        return self._attempts.shown(text)

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
        content = None if body is None else orjson.dumps(body)
        request = Request(operation, content, query, timeout, _count(operation, body), decode)
        until = time.monotonic() + self._conduct.patience
        answer = await self._persist(request, until)
        if answer.status == 401 and self._key() != self._key(fresh=True):
            refused, answer = answer, await self._persist(request, until)
            answer = replace(answer, given_up=answer.given_up or refused.given_up)
        if answer.diverted and self._conduct.breaks:
            self.down, self.why_down = True, answer.text
        elif not answer.exhausted:
            self._answers += 1
        elif self._conduct.breaks and self._answers == answers_before:
            await self._find_out_whether_down(operation)
        return answer

    async def _find_out_whether_down(self, operation: Operation) -> None:
        """Open the breaker after a failed call if `teamInfo` cannot get through either (docs/planning.md 4.5)."""
        if operation is TEAM_INFO:
            self.down = True
        elif not self._conduct.stop.is_set():
            async with self._probing:
                if not self.down:
                    self.down = (await self._send(Request(TEAM_INFO), [])).exhausted

    async def _persist(self, request: Request, until: float) -> Answer:
        """Repeat attempts until the deadline, or an answer that repeating would not change; return the last answer."""
        earlier: list[Answer] = []
        first = await self._send(request, earlier)
        if not first.exhausted or first.diverted:  # nearly always, so skip setting up retries
            return first
        waiting = [first]

        async def attempt() -> Answer:
            return waiting.pop() if waiting else await self._send(request, earlier, until - time.monotonic())

        retrying = AsyncRetrying(
            retry=retry_if_result(lambda answer: _may_change(answer) and not (answer.timed_out and request.timeout)),
            stop=lambda state: self._enough(state, until) or self._quiet(state),
            wait=self._wait,
            sleep=self._sleep,
            before_sleep=lambda state: self._tell_retry(request.operation, state),
            retry_error_callback=_last_answer,
        )
        answer: Answer = await retrying(attempt)
        note = answer.note + self._note(answer, len(earlier), until - time.monotonic())
        given_up = max((a.given_up for a in earlier if a.given_up is not None), default=None)
        return replace(answer, reached=any(a.reached for a in earlier), note=note, given_up=given_up)

    def _note(self, answer: Answer, attempts: int, remaining: float) -> str:
        """Return a remark if the call was given up because the service asked for a longer wait than a call may take."""
        delay = answer.retry_after
        if not answer.exhausted or delay is None or delay < remaining or attempts >= self._conduct.attempts:
            return ""
        return f" (it asks for a retry in {delay:.0f} s, but a call may take {self._conduct.patience:.0f} s in all)"

    async def _send(self, request: Request, earlier: list[Answer], remaining: float = math.inf) -> Answer:
        """Make one attempt, which takes no longer than the time that remains for all attempts."""
        if earlier and (self._quiet(None) or remaining <= 0):
            return earlier[-1]
        self._conduct.before_send()
        answer = await self._attempts.make(request, min(remaining, request.seconds(self._conduct.timeout)))
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

    def _enough(self, state: RetryCallState, until: float) -> bool:
        """Return whether no further attempt is due."""
        late = time.monotonic() + state.upcoming_sleep >= until
        return state.attempt_number >= self._conduct.attempts or late

    def _quiet(self, _: RetryCallState | None) -> bool:
        return self._conduct.stop.is_set() or self.down

    def _wait(self, state: RetryCallState) -> float:
        delay = _last_answer(state).retry_after
        first = self._conduct.first_wait
        backoff = wait_exponential(multiplier=first, max=LONGEST_WAIT) + wait_random(0, first)
        return backoff(state) if delay is None else delay

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._conduct.stop.wait(), seconds)

    def _tell_retry(self, operation: Operation, state: RetryCallState) -> None:
        answer = _last_answer(state)
        self.traffic.retries += operation is not TEAM_INFO
        self._conduct.on_retry(operation.id, answer.explained, state.next_action.sleep if state.next_action else 0.0)


def _count(operation: Operation, body: object) -> int | None:
    """Return the number of items in the body of a batch call, or `None`."""
    items = body.get(operation.items) if operation.items and isinstance(body, dict) else None
    return len(items) if isinstance(items, list) else None


def _may_change(answer: Answer) -> bool:
    """Return whether a repeat may get another answer."""
    return answer.exhausted and not answer.diverted


def _last_answer(state: RetryCallState) -> Answer:
    assert state.outcome is not None
    answer: Answer = state.outcome.result()
    return answer
