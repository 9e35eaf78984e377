"""Health reports: their content, their type, and that each is sent once (docs/service.md §2)."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from syncengine.connector.registration import ErrorType, HealthReporter
from syncengine.errors import TroubleKind
from syncengine.posted_time.events import SinkTrouble
from syncengine.service.client import Client
from syncengine.state.database import StateDatabase, open_database
from tests.cli.program import Project
from tests.cli.service import Service
from tests.service.scripted import Reply, Scripted
from tests.service.talking import talk

DOWN = SinkTrouble("ledger", TroubleKind.UNREACHABLE, "The ledger cannot be reached.")
LOCKED_OUT = SinkTrouble("pms", TroubleKind.AUTHENTICATION, "The PMS refuses our credentials.")
WORDED_ANEW = SinkTrouble("ledger", TroubleKind.UNREACHABLE, "The ledger cannot be reached since 10:00.")
ACCEPTED, REFUSED = Reply(204, b""), Reply(400, b"no")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDatabase]:
    with closing(open_database(str(tmp_path / "state.db"), write=True)) as database:
        yield database


def said(state: StateDatabase, checks: Sequence[tuple[SinkTrouble, ...]], *script: Reply) -> list[str]:
    """The requests that the service got over these checks, when the reporter sends only news."""

    async def scene(server: Scripted, caller: Client) -> list[str]:
        reporter = HealthReporter(caller, state, time.time)
        for troubles in checks:
            if await reporter.is_news(troubles):
                await reporter.tell(troubles)
        return [heard.path.rpartition("/")[2] for heard in server.heard]

    return talk(script, scene)  # type: ignore[no-any-return] # the script's result


@pytest.mark.parametrize(
    ("checks", "heard"),
    [
        ([(), (), ()], []),
        ([(), (DOWN,), (DOWN,), (), ()], ["notify", "rescind"]),
        ([(DOWN,), (WORDED_ANEW,)], ["notify"]),
        ([(DOWN,), (DOWN, LOCKED_OUT), (LOCKED_OUT,), ()], ["notify", "notify", "notify", "rescind"]),
    ],
    ids=["well", "down and up", "only other words", "another sink"],
)
def test_only_changes_are_reported(
    checks: Sequence[tuple[SinkTrouble, ...]], heard: list[str], state: StateDatabase
) -> None:
    """A good check at the start is no change: a failure at the service is not ours then."""
    assert said(state, checks, ACCEPTED) == heard


@pytest.mark.parametrize("answer", [ACCEPTED, REFUSED], ids=["accepted", "of unknown effect"])
def test_a_process_rescinds_what_an_earlier_one_reported(answer: Reply, state: StateDatabase) -> None:
    """After a kill, the next process rescinds the report, and a third one has nothing to rescind."""
    assert said(state, [(DOWN,)], answer) == ["notify"]
    assert said(state, [(), ()], ACCEPTED) == ["rescind"]
    assert said(state, [()], ACCEPTED) == []


def test_a_report_is_repeated_until_the_service_accepts_it_and_rescinded_all_the_same(state: StateDatabase) -> None:
    """The service may have taken a report that it did not accept, and users would see it for ever."""
    assert said(state, [(), (DOWN,), (), ()], REFUSED, ACCEPTED) == ["notify", "rescind"]
    assert said(state, [(DOWN,)] * 4, REFUSED, REFUSED, ACCEPTED) == ["notify"] * 3


def test_two_sinks_are_one_failure_with_both_sentences(state: StateDatabase) -> None:
    """A team has one failure: it has the type of the first sink and the messages of all."""

    async def scene(server: Scripted, caller: Client) -> Any:
        for troubles in ((DOWN, LOCKED_OUT), ()):
            await HealthReporter(caller, state, time.time).tell(troubles)
        return [msgspec.json.decode(heard.body) for heard in server.heard]

    message = f"{DOWN.message} {LOCKED_OUT.message}"
    assert talk((ACCEPTED,), scene) == [{"errorType": "TARGET_UNREACHABLE", "userErrorMessage": message}, {}]


def test_a_failure_is_reported_and_cleared_by_hand(service: Service, project: Project) -> None:
    """`health report` takes a word for each type, or the type's own name; another word is a usage error."""
    assert {kind.name for kind in TroubleKind} == set(ErrorType.__members__)
    types = {
        "unknown": "UNKNOWN",
        "unreachable": "TARGET_UNREACHABLE",
        "authentication": "TARGET_AUTH_FAILURE",
        "permissions": "TARGET_PERMISSIONS_FAILURE",
        "subscription": "TARGET_SUBSCRIPTION_FAILURE",
        "target_auth_failure": "TARGET_AUTH_FAILURE",
    }
    assert {*types.values()} == {each.value for each in ErrorType}
    for word, type in types.items():
        assert project.run("health", "report", word, "--message", "Closed for moving.").code == 0
        assert reported(service) == {"errorType": type, "userErrorMessage": "Closed for moving."}
    cleared = project.run("health", "clear", "--format", "json")
    assert cleared.document == {"format": "syncengine.health/v1", "reported": None}
    assert reported(service) is None
    assert project.run("health", "report", "sleepy").code == 64


def reported(service: Service) -> Any:
    health = service.state()["connection"]["health"]
    return health and {name: health[name] for name in ("errorType", "userErrorMessage")}


def test_a_failure_that_a_person_reported_stays(service: Service, project: Project) -> None:
    """A person's report replaces ours, and neither the running process nor a later one rescinds it."""
    service.choose(holdSeconds=0)
    project.settings("postedTime: {deliver: [{name: a, jsonl: {path: o.jsonl}}]}")
    assert project.run("time", "pull").code == 0
    with closing(open_database(project.loaded().state, write=True)) as state:

        async def scene(server: Scripted, caller: Client) -> list[str]:
            reporter = HealthReporter(caller, state, time.time)
            await reporter.tell((DOWN,))
            said = ("health", "report", "subscription", "--message", "Closed for moving.")
            assert (await asyncio.to_thread(project.run, *said)).code == 0
            assert not await reporter.is_news(())
            assert await reporter.is_news((DOWN,))
            return [heard.path for heard in server.heard]

        assert len(talk((ACCEPTED,), scene)) == 1
    assert project.run("time", "pull").code == 0
    assert reported(service)["userErrorMessage"] == "Closed for moving."
