"""Call the registered webhook with each posted time group as it becomes due, a few at once."""

from __future__ import annotations

import asyncio

import httpx

from syncengine.sandbox.faults import WEBHOOK_CALL, Fault
from syncengine.sandbox.instance import Sandbox
from syncengine.sandbox.long_poll import Bell, seconds_until_due
from syncengine.sandbox.posted_time import WEBHOOK, answered, next_call
from syncengine.sandbox.store import Json
from syncengine.service.exchange import HEADERS, Unfinished, cause_of, exchange, http_client

AT_ONCE = 4
"""The maximum number of webhook calls at the same time."""

LARGEST = 1024 * 1024
"""The maximum number of bytes of a webhook's answer, whose text is shown to a user."""

_NO_FAULT = Fault(operation=WEBHOOK_CALL)


class WebhookCaller:
    def __init__(self, sandbox: Sandbox, bell: Bell) -> None:
        self._sandbox, self._bell = sandbox, bell

    async def run(self) -> None:
        """Call the registered webhook until cancelled."""
        while self._sandbox.store.connection["mechanism"] != WEBHOOK:
            await self._bell.wait(None)
        # The receiver is the developer's own, so that no proxy leads to it.
        async with http_client(None, {"accept-encoding": HEADERS["accept-encoding"]}, is_local=True) as http:
            await asyncio.gather(*(self._call_in_turn(http) for _ in range(AT_ONCE)))

    async def _call_in_turn(self, http: httpx.AsyncClient) -> None:
        while True:
            call = self._sandbox.do(next_call, {}).body
            if call is None:
                store = self._sandbox.store
                calls = store.connection["mechanism"] == WEBHOOK and not store.key_is_lost
                await self._bell.wait(seconds_until_due(self._sandbox) if calls else None)
                continue
            status, text = await self._called(http, call)
            record = {"groupId": call["payload"]["groupId"], "offer": call["offer"], "status": status, "text": text}
            self._sandbox.do(answered, record)

    async def _called(self, http: httpx.AsyncClient, call: Json) -> tuple[int | None, str]:
        """Make a call and return the status and text of its answer or fault. The status is `None` without an answer."""
        fault = self._sandbox.faults.take(WEBHOOK_CALL) or _NO_FAULT
        await asyncio.sleep(fault.delay)
        answer = await self._sent(http, call) if fault.processes else (None, "the call was dropped")
        if fault.drop:
            return None, "the call was dropped"
        return (fault.status or 200, "") if fault.answers else answer

    async def _sent(self, http: httpx.AsyncClient, call: Json) -> tuple[int | None, str]:
        seconds = self._sandbox.store.settings["webhookTimeoutSeconds"]
        try:
            request = http.build_request("POST", call["url"], json=call["payload"], timeout=seconds)
            reply = await exchange(http, request, seconds=seconds, most=LARGEST)
        except (httpx.TimeoutException, Unfinished):
            return None, f"no answer within {seconds:g} s"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return None, f"no answer: {cause_of(error)}"
        kind = {"content-type": reply.headers.get("content-type", "")}
        return reply.status, httpx.Response(reply.status, headers=kind, content=reply.content or b"").text
