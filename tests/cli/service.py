"""The sandbox as tests use it: set faults, read the requests it got and the resources it holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from syncengine.sandbox.app import running_sandbox
from tests.support import loopback
from tests.support.waiting import eventually

Json = dict[str, Any]

KEY = "marker-5e1f-never-to-be-seen"
"""The API key of every test. Output that contains it leaks a secret."""

AT_ONCE = {"Retry-After": "0"}
"""Makes the client retry without waiting."""

MINTED = {"id", "tagCategoryId", "touched"}
"""Fields whose values the service chooses, different in each run."""


@dataclass(frozen=True)
class Service:
    url: str
    control: httpx.Client

    def fault(self, operation: str, **fault: Any) -> None:
        """Make an operation fail. `times` defaults to 1; None means every time."""
        self.say("/faults", [{"operation": operation, **fault}])

    def unavailable(self, operation: str, *, times: int | None = 6, processed: bool = False, **fault: Any) -> None:
        """Answer 503 until the client gives up; with `processed`, the requests are processed nevertheless."""
        self.fault(operation, status=503, headers=AT_ONCE, times=times, apply=processed, **fault)

    def heal(self) -> None:
        assert self.control.delete("/faults").status_code == 200

    def choose(self, **settings: Any) -> None:
        self.say("/settings", settings)

    def post(self, **group: Any) -> None:
        """Register a fetch client and post a time group."""
        key = {"x-api-key": KEY}
        assert loopback.post(f"{self.url}/postedtime/registerfetchclient", json={}, headers=key).status_code == 200
        self.say("/posted-time", group)

    def say(self, path: str, body: Any = None) -> None:
        response = self.control.post(path, json=body)
        assert response.status_code == 200, response.text

    def reset(self) -> None:
        self.say("/reset")

    def land(self) -> None:
        """Execute every call that is waiting to be executed."""
        self.say("/late/execute", {})

    def waiting(self) -> list[str]:
        """The operations of the calls that are waiting to be executed."""
        return [entry["operation"] for entry in self.control.get("/late").json()["late"]]

    def state(self) -> Json:
        """Everything, as the service stores it."""
        state: Json = self.control.get("/state").json()
        return state

    def holds(self) -> Json:
        """All resources, without the fields that the service chooses."""
        state = self.state()
        sections = ("tags", "categories", "activityTypes")
        return {
            section: [{name: value for name, value in held.items() if name not in MINTED} for held in state[section]]
            for section in sections
        }

    def tags(self) -> list[str]:
        return [tag["name"] for tag in self.holds()["tags"]]

    def tag(self, name: str) -> Json:
        """A tag with all fields."""
        return next(tag for tag in self.state()["tags"] if tag["name"] == name)

    def types(self) -> set[str]:
        """The codes of the activity types that are not deleted."""
        return {each["code"] for each in self.holds()["activityTypes"] if not each["deleted"]}

    def places(self) -> dict[str, str | None]:
        """The category of each tag."""
        return {tag["name"]: tag["category"] for tag in self.holds()["tags"]}

    def person_deletes(self, kind: str, name: str, **more: str) -> None:
        """Delete something as a person does in the console."""
        self.say("/delete", {"kind": kind, "name": name, **more})

    def category_ids(self) -> dict[str, str]:
        """The service's id of each category."""
        return {each["externalId"]: each["id"] for each in self.state()["categories"]}

    def sessions(self) -> list[str]:
        """The states of the sync sessions, in the order in which they were started."""
        return [session["state"] for session in self.state()["sessions"]]

    def requests(self, since: int = 0) -> list[Json]:
        """The requests after the one with the number `since`."""
        found: list[Json] = self.control.get("/requests", params={"since": since}).json()["requests"]
        return found

    def last_request(self) -> int:
        return max((request["seq"] for request in self.requests()), default=0)

    def asked(self) -> list[str]:
        """The operations of all requests so far."""
        return [request["operation"] for request in self.requests()]

    def wait_for(self, operation: str, count: int = 1) -> None:
        """Wait until the service got `count` requests for `operation`."""
        eventually(lambda: self.asked().count(operation) >= count, self.asked)


@contextmanager
def serving(data: Path | None = None) -> Iterator[Service]:
    with running_sandbox(data, api_key=KEY) as running, loopback.client(base_url=running.control_url) as control:
        yield Service(running.url, control)
