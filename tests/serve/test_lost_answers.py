"""However the answer of any operation is lost, no posted time is lost and none is delivered twice."""

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cli.service import KEY
from tests.support.ports import unused_port
from tests.support.waiting import eventually

from .in_process import work
from .test_webhook import HOOK
from .world import LEDGER, World

pytestmark = pytest.mark.slow

WORDS = "somebody's words"
FILE = '    - {name: file, jsonl: {path: out.jsonl, json: {id: "{{ group.groupId }}"}}}\n'

WAYS: dict[str, dict[str, Any]] = {
    "never-arrived": {"drop": "before", "times": 2},
    "answer-lost": {"drop": "after", "times": 2},
    "too-late": {"delay": 3},
    "500": {"status": 500, "body": f"{WORDS} {KEY}", "times": 2},
    "400": {"status": 400, "body": f"{WORDS} {KEY}", "times": 2},
    "odd": {"status": 200, "body": f"{WORDS} {KEY}", "apply": True},
}
"""The faults that spoil an answer; the client's timeout is one second."""


@dataclass
class Scene:
    """A service that spoils the answers to some operations, two sinks that count groups, and the log of `serve`."""

    estate: World
    operations: tuple[str, ...]
    fault: dict[str, Any]
    log: str = ""
    posted: list[str] = field(default_factory=list)

    def uses(self, posted: str = "") -> None:
        self.estate.settings(sinks=LEDGER + FILE, posted=posted, service=("timeout: 1s",))

    def serves(self, watch: Callable[[], object]) -> None:
        self.log += work(self.estate, watch)

    def spoils(self) -> Callable[[], None]:
        """Spoil the operations' answers from now on; the returned function waits until all of them were spoilt."""
        times = self.fault.get("times", 1)
        wanted = {operation: self.estate.told(operation) + times for operation in self.operations}
        for operation in self.operations:
            self.estate.service.fault(operation, **self.fault)

        def over() -> None:
            for operation, count in wanted.items():
                eventually(lambda: self.estate.told(operation) >= count)  # noqa: B023 -- it is called at once

        return over

    def has(self, mechanism: str) -> None:
        eventually(lambda: self.estate.connection()["mechanism"] == mechanism)

    def posts(self, *ids: str) -> None:
        """Post groups as users do, and wait until the service has all of them as successful."""
        self.posted += ids
        self.estate.post(*ids)
        self.estate.all_succeed()

    def lines(self) -> list[str]:
        """The ids in the file of the second sink."""
        text = (self.estate.project.folder / "out.jsonl").read_text(encoding="utf-8")
        return [json.loads(line)["id"] for line in text.splitlines()]


# --- how each operation is brought about


def at_the_start(scene: Scene) -> None:
    over = scene.spoils()

    def watch() -> None:
        over()
        scene.has("fetch")
        scene.posts("a", "b")

    scene.serves(watch)


def in_between(scene: Scene) -> None:
    def watch() -> None:
        scene.has("fetch")
        scene.posts("a")
        over = scene.spoils()
        scene.posts("b", "c")
        over()
        scene.posts("d")

    scene.serves(watch)


def to_webhook_and_back(scene: Scene) -> None:
    def fetched(*ids: str, over: Callable[[], None] = lambda: None) -> None:
        over()
        scene.has("fetch")
        scene.posts(*ids)

    def called() -> None:
        scene.has("webhook")
        scene.posts("b", "c")

    scene.serves(lambda: fetched("a"))
    scene.uses(HOOK.format(port=unused_port()))
    over = scene.spoils()
    scene.serves(called)
    scene.uses()
    scene.serves(lambda: fetched("d", "e", over=over))


def in_an_outage(scene: Scene) -> None:
    """The ledger fails, so that a failure is reported and later rescinded."""

    def watch() -> None:
        scene.has("fetch")
        over = scene.spoils()
        with closing(sqlite3.connect(scene.estate.project.folder / "ledger.db", timeout=30)) as database:
            database.execute("ALTER TABLE time RENAME TO away")
            scene.estate.post("a")
            eventually(scene.estate.health)
            database.execute("ALTER TABLE away RENAME TO time")
        over()
        eventually(lambda: scene.estate.health() is None)
        scene.posts("b")

    scene.posted.append("a")
    scene.serves(watch)


ASKED: dict[Callable[[Scene], None], tuple[str, ...]] = {
    at_the_start: ("teamInfo", "registerConnector", "registerFetchClient"),
    in_between: ("fetchPostedTime", "updatePostedTimeStatus"),
    to_webhook_and_back: ("unregisterFetchClient", "registerWebhook", "unregisterWebhook"),
    in_an_outage: ("reportHealthFailure", "rescindHealthFailure"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("play", ASKED)
def test_a_lost_answer_loses_and_repeats_no_group(estate: World, play: Callable[[Scene], None], way: str) -> None:
    """Every group is in both sinks once and acknowledged; the log tells a failed registration once, and repeats no
    outside text and no secret."""
    estate.service.choose(holdSeconds=0.3, reofferSeconds=0.3, retrySeconds=0.2)
    scene = Scene(estate, ASKED[play], WAYS[way])
    scene.uses()
    play(scene)
    assert estate.ledger() == sorted(scene.lines()) == sorted(scene.posted)
    assert WORDS not in scene.log
    assert scene.log.count("could not be registered") <= 1
    (estate.project.folder / "serve.log").write_text(scene.log, encoding="utf-8")
    assert re.search(rb"(key|token)-[0-9a-f]{8}-", estate.files()) is None


CALLS: dict[str, dict[str, Any]] = {
    "never-arrived": {"drop": "before"},
    "answer-lost": {"drop": "after"},
    "taken-for-500": {"status": 500, "apply": True},
}


@pytest.mark.parametrize("way", CALLS)
def test_no_call_of_the_webhook_is_missed(estate: World, way: str) -> None:
    """The service repeats the call, and a group that was already delivered is not delivered again."""
    estate.service.choose(retrySeconds=0.2)
    scene = Scene(estate, ("webhookCall",), CALLS[way] | {"times": 4})
    scene.uses(HOOK.format(port=unused_port()))

    def watch() -> None:
        scene.has("webhook")
        estate.service.fault("webhookCall", **scene.fault)
        scene.posts("a", "b", "c")

    scene.serves(watch)
    assert estate.ledger() == sorted(scene.lines()) == ["a", "b", "c"]


def test_a_service_that_does_not_wait_for_our_answer_calls_again_and_nothing_is_there_twice(estate: World) -> None:
    """The service gives up after a millisecond several times, and each group is still delivered once."""
    estate.service.choose(retrySeconds=0.1, webhookTimeoutSeconds=0.001)
    scene = Scene(estate, (), {})
    scene.uses(HOOK.format(port=unused_port()))

    def watch() -> None:
        scene.has("webhook")
        estate.post("a")
        eventually(lambda: len(estate.posted()["a"]["told"]) >= 3)
        estate.service.choose(webhookTimeoutSeconds=10)
        scene.posts("b")

    scene.serves(watch)
    assert estate.ledger() == sorted(scene.lines()) == ["a", "b"]
