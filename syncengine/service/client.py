"""Call the service: one operation, one answer, with retries, one circuit breaker, and a key that is never shown."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import orjson

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
                    self.down = (await self._send(Request(TEAM_INFO))).exhausted

    async def _persist(self, request: Request, until: float) -> Answer:
        """Repeat attempts until the deadline, or an answer that repeating would not change; return the last answer."""
        answer = await self._send(request)
        earlier = [answer]
        while answer.exhausted and not answer.diverted and not (answer.timed_out and request.timeout):
            wait = self._wait(answer, len(earlier))
            if len(earlier) >= self._conduct.attempts or time.monotonic() + wait >= until or self._is_quiet:
                break
            self.traffic.retries += request.operation is not TEAM_INFO
            self._conduct.on_retry(request.operation.id, answer.explained, wait)
            await self._sleep(wait)
            if self._is_quiet or (remaining := until - time.monotonic()) <= 0:
                break
            answer = await self._send(request, remaining)
            earlier.append(answer)
        note = answer.note + self._note(answer, len(earlier), until - time.monotonic())
        given_up = max((a.given_up for a in earlier if a.given_up is not None), default=None)
        return replace(answer, reached=any(a.reached for a in earlier), note=note, given_up=given_up)

    def _note(self, answer: Answer, attempts: int, remaining: float) -> str:
        """Return a remark if the call was given up because the service asked for a longer wait than a call may take."""
        delay = answer.retry_after
        if not answer.exhausted or delay is None or delay < remaining or attempts >= self._conduct.attempts:
            return ""
        return f" (it asks for a retry in {delay:.0f} s, but a call may take {self._conduct.patience:.0f} s in all)"

    async def _send(self, request: Request, remaining: float = math.inf) -> Answer:
        """Make one attempt, which takes no longer than the time that remains for all attempts."""
        self._conduct.before_send()
        answer = await self._attempts.make(request, min(remaining, request.seconds(self._conduct.timeout)))
        if answer.may_land:
            answer = replace(answer, given_up=machine_seconds())
        operation = request.operation
        if operation is not TEAM_INFO:
            self.traffic.requests += 1
            self.traffic.reached |= answer.reached
            if answer.status is not None:
                self.traffic.statuses.setdefault(operation.id, set()).add(answer.status)
        return answer

    @property
    def _is_quiet(self) -> bool:
        """Whether nothing more may be sent."""
        return self._conduct.stop.is_set() or self.down

    def _wait(self, answer: Answer, attempts: int) -> float:
        """Return the seconds until the next attempt: what the service asks for, or exponentially more with jitter."""
        if answer.retry_after is not None:
            return answer.retry_after
        first = self._conduct.first_wait
        return min(first * 2.0 ** (attempts - 1), LONGEST_WAIT) + random.uniform(0, first)  # noqa: S311 - no secret

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._conduct.stop.wait(), seconds)


def _count(operation: Operation, body: object) -> int | None:
    """Return the number of items in the body of a batch call, or `None`."""
    items = body.get(operation.items) if operation.items and isinstance(body, dict) else None
    return len(items) if isinstance(items, list) else None
