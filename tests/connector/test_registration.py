"""Registration: what is sent about this connector, and that the answer's secrets are stored nowhere."""

import asyncio
import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from syncengine import __version__
from syncengine.connector.registration import register, renewal
from syncengine.errors import AuthFailed, SyncengineError
from syncengine.service.client import Client
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
