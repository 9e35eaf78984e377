"""A client that talks to a scripted server."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any, NamedTuple

from syncengine.service.answers import Answer
from syncengine.service.client import Client, Conduct
from syncengine.service.operations import UPSERT_TAGS, Operation

from .scripted import Heard, Reply, Scripted, serving

KEY = "s3cret-key"
AT_ONCE = {"Retry-After": "0"}
BUSY = Reply(503, b"busy", AT_ONCE)

_CONDUCT = ("timeout", "concurrency", "stop", "abandon", "patience", "before_send", "on_retry")


def key(*, fresh: bool = False) -> str:
    return KEY


def client(server: Scripted | str, **given: Any) -> Client:
    conduct = {name: given.pop(name) for name in _CONDUCT if name in given}
    url = server if isinstance(server, str) else server.url
    return Client(url, given.pop("key", key), conduct=Conduct(first_wait=0.001, **conduct), **given)


class Talk(NamedTuple):
    """A scripted server and its client, which both run in the loop of `wait`."""

    server: Scripted
    caller: Client
    wait: Callable[[Any], Any]

    def call(self, operation: Operation = UPSERT_TAGS, body: object = (), **given: Any) -> Answer:
        """The answer to a call, whose body is an empty object if none is given."""
        answer: Answer = self.wait(self.caller.call(operation, {} if body == () else body, **given))
        return answer

    def heard(self, operation: Operation = UPSERT_TAGS, body: object = ()) -> Heard:
        self.call(operation, body)
        return self.server.heard[-1]


@contextmanager
def talking(*script: Reply, login: str = "", **given: Any) -> Iterator[Talk]:
    """`login` stands before the host in the address that the client is given."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            server = runner.run(stack.enter_async_context(serving(*script)))
            caller = client(server.url.replace("//", f"//{login}"), **given)
            yield Talk(server, runner.run(stack.enter_async_context(caller)), runner.run)
        finally:
            runner.run(stack.aclose())


def talk(script: tuple[Reply, ...], scene: Callable[[Scripted, Client], Awaitable[Any]], **given: Any) -> Any:

    async def play() -> Any:
        async with serving(*script) as server, client(server, **given) as caller:
            return await scene(server, caller)

    return asyncio.run(play())


async def once(server: Scripted, caller: Client) -> tuple[Answer, int]:
    """The answer to one call, and how many requests it took."""
    return await caller.call(UPSERT_TAGS, {"tags": []}), len(server.heard)


def answer_to(*script: Reply, **given: Any) -> Answer:
    """The answer to a call at whose attempts the server replies so."""
    answer: Answer = talk(script, once, **given)[0]
    return answer
