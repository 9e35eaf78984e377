"""Registration, whose secrets are stored nowhere, and reports of health, each sent once (docs/service.md §2)."""

import asyncio
import math
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from syncengine import __version__
from syncengine.connector.registration import ErrorType, HealthReporter, register, renewal
from syncengine.errors import AuthFailed, SyncengineError, TroubleKind
from syncengine.posted_time.events import SinkTrouble
from syncengine.service.client import Client
from syncengine.state.database import StateDatabase, open_database
from tests.cli.program import Project, tag
from tests.cli.service import Service
from tests.service.scripted import Reply, Scripted, saying
from tests.service.talking import talk

pytestmark = pytest.mark.slow

NOON = 1_700_000_000.25
SERVICE_KEY, SESSION_TOKEN = "sk-1d2c-never-to-be-seen", "st-77ab-never-to-be-seen"
ANSWER = {
    "serviceId": "s-1",
    "serviceKey": SERVICE_KEY,
    "serviceIdExpiry": "2027-01-01T00:00:00Z",
    "serviceSessionToken": SESSION_TOKEN,
    "groupName": "group",
    "regionName": "region",
    "connectorConfiguration": {"ADD_SUMMARY_TO_NARRATIVE": True},
    "newField": {"serviceKey": SERVICE_KEY},
}


def registered(*script: Reply) -> Any:
    async def scene(server: Scripted, caller: Client) -> Any:
        return await register(caller, NOON, "ledger"), msgspec.json.decode(server.heard[0].body)

    return talk(script, scene)


def test_the_request_describes_this_runtime_and_secrets_of_the_answer_are_dropped() -> None:
    """The request has every field of docs/interface.md 2.6 in its type. Unknown fields of the answer go, too."""
    kept, body = registered(saying(ANSWER))
    environment = body.pop("environment")
    assert {type(value) for value in environment.values()} == {str}
    assert {"clientOs", "pythonVersion"} <= set(environment)
    assert re.fullmatch(r"[+-]\d\d:\d\d", body.pop("clientTimeZoneOffset"))
    assert body == {
        "connectorType": "ledger",
        "connectorVersion": __version__,
        "connectorLibraryVersion": __version__,
        "clientTimestamp": 1_700_000_000_250,
    }
    assert (kept.service_id, kept.group, kept.region) == ("s-1", "group", "region")
    assert kept.configuration == {"ADD_SUMMARY_TO_NARRATIVE": True}
    assert SERVICE_KEY not in repr(kept)
    assert SESSION_TOKEN not in repr(kept)
    for configuration in (None, [], "text", 7):
        kept, _ = registered(saying({**ANSWER, "connectorConfiguration": configuration}))
        assert kept.configuration == {}


def test_an_answer_that_is_not_understood_is_not_shown() -> None:
    """The error does not quote the answer, which may contain the secrets. A refused key has an error of its own."""
    text = f"serviceKey={SERVICE_KEY}".encode()
    for reply in (Reply(200, text), saying([SERVICE_KEY])):
        with pytest.raises(SyncengineError) as refused:
            registered(reply)
        assert SERVICE_KEY not in refused.value.message
    with pytest.raises(AuthFailed):
        registered(saying("who?", 401))


@pytest.mark.parametrize(
    ("expires", "seconds"),
    [
        ("2023-11-14T23:13:20.25Z", 3240),
        ("2023-11-14T23:13:20.25", 3240),
        ("2023-11-15T01:13:20.25+02:00", 3240),
        ("2023-11-14T22:14:00Z", 60),
        ("2001-01-01T00:00:00Z", 60),
        ("soon", math.inf),
        (None, math.inf),
    ],
)
def test_it_is_renewed_before_the_id_expires(expires: str | None, seconds: float) -> None:
    """Renewal is due a tenth of the lifetime before expiry, at most once a minute, and never without an expiry."""
    kept, _ = registered(saying({**ANSWER, "serviceIdExpiry": expires}))
    assert renewal(kept, NOON, 60.0) - NOON == pytest.approx(seconds)


def test_the_command_shows_the_settings_and_no_secret(tmp_path: Path) -> None:
    """Neither the text, nor the JSON, nor any file contains the service's secrets."""

    async def scene(server: Scripted, caller: Client) -> list[Any]:
        command = partial(Project(tmp_path / "project", server.url).run, "connector", "register")
        return [await asyncio.to_thread(command, *more) for more in ((), ("--format", "json"))]

    text, document = talk((saying(ANSWER),), scene)
    assert (text.code, document.code) == (0, 0)
    assert "ADD_SUMMARY_TO_NARRATIVE: True" in text.out
    assert document.document["connectorConfiguration"] == {"ADD_SUMMARY_TO_NARRATIVE": True}
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for secret in (SERVICE_KEY, SESSION_TOKEN):
        assert secret not in text.out + text.err + document.out + document.err
        assert secret.encode() not in written


def test_the_check_names_the_team(service: Service, project: Project) -> None:
    """A wrong key, or another team than the project's or the state's, exits with 7. Every registration sends
    `service.connectorType`."""
    for lines, expected in (((), "syncengine"), (("connectorType: Ledger 7",), "Ledger 7")):
        project.settings(service=lines)
        assert project.run("connector", "register").code == 0
        assert service.state()["connection"]["connector"]["connectorType"] == expected
    service.choose(teamName="Patents EU")
    found = project.run("connector", "check", "--format", "json").document
    assert found == {"format": "syncengine.connector/v1", "team": "Patents EU"}
    assert project.run("connector", "check", environ={"SYNCENGINE_API_KEY": "another"}).code == 7
    project.settings(service=("team: Others",))
    refused = project.run("connector", "check", "--format", "json")
    assert (refused.code, refused.codes) == (7, ["wrong-team"])
    project.settings()
    project.settle(tags=[tag("A")])
    assert project.run("connector", "check").code == 0
    service.choose(teamName="Litigation")
    refused = project.run("connector", "check")
    assert (refused.code, "'Litigation', but the state to 'Patents EU'" in refused.err) == (7, True)


# --- health


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
