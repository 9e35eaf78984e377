"""The sandbox as tests use it: set faults, read the requests it got and the resources it holds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from syncengine.sandbox.app import running_sandbox
from tests.support import loopback

Json = dict[str, Any]

KEY = "marker-5e1f-never-to-be-seen"
"""The API key of every test. Output that contains it leaks a secret."""

AT_ONCE = {"Retry-After": "0"}
"""Makes the client retry without waiting."""

MINTED = {"id", "tagCategoryId", "touched"}
"""Fields whose values the service chooses, different in each run."""

PATIENCE_SECONDS = 30.0
"""How long `wait_for` waits for a request."""


@dataclass(frozen=True)
class Service:
    url: str
    control: httpx.Client

    def fault(self, operation: str, **fault: Any) -> None:
        """Make an operation fail. `times` defaults to 1; None means every time."""
        self._say("/faults", [{"operation": operation, **fault}])

    def heal(self) -> None:
        assert self.control.delete("/faults").status_code == 200

    def choose(self, **settings: Any) -> None:
        self._say("/settings", settings)

    def post(self, **group: Any) -> None:
        """Register a fetch client and post a time group."""
        key = {"x-api-key": KEY}
        assert loopback.post(f"{self.url}/postedtime/registerfetchclient", json={}, headers=key).status_code == 200
        self._say("/posted-time", group)

    def _say(self, path: str, body: Any) -> None:
        response = self.control.post(path, json=body)
        assert response.status_code == 200, response.text

    def land(self) -> None:
        """Execute every call that is waiting to be executed."""
        self._say("/late/execute", {})

    def waiting(self) -> list[str]:
        """The operations of the calls that are waiting to be executed."""
        return [entry["operation"] for entry in self.control.get("/late").json()["late"]]

    def holds(self) -> Json:
        """All resources, without the fields that the service chooses."""
        state = self.control.get("/state").json()
        sections = ("tags", "categories", "activityTypes")
        return {section: [_without_minted(held) for held in state[section]] for section in sections}

    def tags(self) -> list[str]:
        return [tag["name"] for tag in self.holds()["tags"]]

    def activity_types(self) -> set[str]:
        """The codes of those that are not deleted."""
        return {each["code"] for each in self.holds()["activityTypes"] if not each["deleted"]}

    def places(self) -> dict[str, str | None]:
        """The category of each tag."""
        return {tag["name"]: tag["category"] for tag in self.holds()["tags"]}

    def person_deletes(self, kind: str, name: str) -> None:
        """Delete something as a person does in the console."""
        self._say("/delete", {"kind": kind, "name": name})

    def category_ids(self) -> dict[str, str]:
        """The service's id of each category."""
        return {each["externalId"]: each["id"] for each in self.control.get("/state").json()["categories"]}

    def sessions(self) -> list[str]:
        """The states of the sync sessions, in the order in which they were started."""
        return [session["state"] for session in self.control.get("/state").json()["sessions"]]

    def asked(self) -> list[str]:
        """The operations of all requests so far."""
        return [request["operation"] for request in self.control.get("/requests").json()["requests"]]

    def wait_for(self, operation: str, count: int = 1) -> None:
        """Wait until the service got `count` requests for `operation`."""
        until = time.monotonic() + PATIENCE_SECONDS
        while self.asked().count(operation) < count:
            assert time.monotonic() < until, f"{operation} was never asked: {self.asked()}"
            time.sleep(0.01)


def _without_minted(held: Json) -> Json:
    return {name: value for name, value in held.items() if name not in MINTED}


@contextmanager
def serving(data: Path | None = None) -> Iterator[Service]:
    with running_sandbox(data, api_key=KEY) as running, loopback.client(base_url=running.control_url) as control:
        yield Service(running.url, control)
