"""Fixtures: a sandbox that is called without HTTP, and one that runs and is called over loopback."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx
import pytest

from syncengine.sandbox import posting
from syncengine.sandbox.instance import Sandbox, everything
from syncengine.sandbox.rules import RULES
from tests.cli.service import KEY, Service, serving
from tests.support import loopback


@dataclass
class Clock:
    """A clock that moves on by `step` milliseconds each time it is read."""

    now: int = 999
    step: int = 1

    def __call__(self) -> int:
        self.now += self.step
        return self.now


@dataclass
class Asking:
    """Calls a sandbox's rules by operation id, and reads what the sandbox holds."""

    sandbox: Sandbox
    clock: Clock

    def ask(self, operation: str, **body: Any) -> tuple[int, Any]:
        return tuple(self.sandbox.do(RULES[operation], body))

    def get(self, operation: str, **query: Any) -> tuple[int, Any]:
        """Call an operation with a query instead of a body."""
        return tuple(self.sandbox.do(RULES[operation], {}, query={name: str(said) for name, said in query.items()}))

    def groups(self, operation: str, **query: Any) -> list[str]:
        """The ids of the groups that an operation which fetches or lists posted time answers."""
        status, answer = self.get(operation, **query)
        assert status == 200, answer
        return [group["groupId"] for group in answer]

    def post(self, *ids: str, **group: Any) -> None:
        """Post groups as a user does, in one operation."""
        self.sandbox.do(posting.post, {"groups": [{"groupId": id_, **group} for id_ in ids]})

    def posted(self, id_: str) -> dict[str, Any]:
        return next(posted for posted in self.state()["postedTime"] if posted["groupId"] == id_)

    def later(self, seconds: float) -> None:
        self.clock.now += int(seconds * 1000)

    def told(self, operation: str, **body: Any) -> Any:
        """The body of an answer, whose status must be 200."""
        status, answer = self.ask(operation, **body)
        assert status == 200, answer
        return answer

    def state(self) -> dict[str, Any]:
        return everything(self.sandbox.store)

    def tag(self, name: str) -> dict[str, Any]:
        return next(tag for tag in self.state()["tags"] if tag["name"] == name)

    def activity_types(self) -> dict[str, dict[str, Any]]:
        return {known["code"]: known for known in self.state()["activityTypes"]}

    def alive(self) -> set[str]:
        return {code for code, known in self.activity_types().items() if not known["deleted"]}


@pytest.fixture
def service() -> Iterator[Asking]:
    clock, ids = Clock(), count(1)
    with closing(Sandbox(clock=clock, new_id=lambda: f"id-{next(ids)}")) as sandbox:
        yield Asking(sandbox, clock)


@dataclass(frozen=True)
class Talking(Service):
    """A running sandbox, which is called as by a connector."""

    connector: httpx.Client

    def call(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self.connector.post(path, json=body, **options)


@pytest.fixture(scope="session")
def _started() -> Iterator[Talking]:
    with serving() as service, loopback.client(base_url=service.url, headers={"x-api-key": KEY}) as connector:
        yield Talking(service.url, service.control, connector)


@pytest.fixture
def running(_started: Talking) -> Talking:
    """One server for the whole run, reset before each test."""
    _started.reset()
    return _started
