"""Odd or unreadable posted time does not keep other groups from being delivered, and users and operators see it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from syncengine.posted_time.delivery import UNREADABLE
from syncengine.posted_time.events import Acknowledged, Event, RetryLater, Taken, Unusable
from syncengine.posted_time.loops import Acknowledging, Fetching
from syncengine.service.client import Client, Conduct
from syncengine.service.posted_time import fetch, id_in, items_in
from syncengine.state.inbox import open_inbox
from syncengine.state.inbox_model import PostedTimeStatus
from tests.posted_time.desk import REFUSED, SUCCESS
from tests.service.scripted import Reply, saying, serving
from tests.service.talking import key

from .line import SWIFT, Line, group, line, until

pytestmark = pytest.mark.slow

SECRET = "what-the-client-told-us"


def fetched(posted: Line, *bodies: bytes, last: str) -> tuple[list[Event], list[Any]]:
    """Fetch, deliver and acknowledge these answers until `last` is acknowledged; return the events and the statuses
    sent."""

    async def play() -> tuple[list[Event], list[Any]]:
        told: list[Event] = []
        stop, quiet = asyncio.Event(), Conduct(attempts=1, breaks=False)
        async with (
            serving(*(Reply(200, body) for body in bodies), saying([])) as server,
            serving() as updates,
            Client(server.url, key, conduct=quiet) as client,
            Client(updates.url, key, conduct=quiet) as other,
            posted.delivery() as delivery,
        ):
            fetching = Fetching(client, delivery, lambda: None, tell=told.append, stop=stop, pace=SWIFT)
            acknowledging = Acknowledging(other, delivery.writer, told.append, stop, pace=SWIFT)
            loops = [asyncio.ensure_future(loop.run()) for loop in (fetching, acknowledging)]
            while not any(isinstance(event, Acknowledged) and event.group_id == last for event in told):
                acknowledging.ring()
                await until(told, lambda seen: bool(seen))
                await asyncio.sleep(0.01)
            stop.set()
            await asyncio.gather(*loops)
            return told, [msgspec.json.decode(heard.body) for heard in updates.heard]

    return asyncio.run(asyncio.wait_for(play(), 60))


def outcomes(told: list[Event]) -> dict[str, PostedTimeStatus]:
    return {event.group_id: event.verdict.outcome for event in told if isinstance(event, Taken)}


def listing(*groups: bytes) -> bytes:
    return b"[" + b",".join(groups) + b"]"


def written(id: str, **given: Any) -> bytes:
    return msgspec.json.encode(group(id, **given))


@pytest.mark.parametrize(
    "odd",
    [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"9" * 5000, b'"\xff\xfe"', b'"a\tb"', b'"\\ud83d"'],
    ids=["nan", "infinity", "minus-infinity", "too-large", "many-digits", "no-utf8", "tab", "half-a-surrogate-pair"],
)
def test_an_invalid_value_is_ignored_and_its_group_delivered(odd: bytes, tmp_path: Path) -> None:
    """The value is no valid JSON, but the answer is read all the same."""
    posted = line(tmp_path)
    body = listing(written("a"), written("odd").replace(b'"timeRows":[]', b'"timestamp":' + odd), written("b"))
    told, _ = fetched(posted, body, last="b")
    assert outcomes(told) == dict.fromkeys(("a", "odd", "b"), SUCCESS)
    assert not any(isinstance(event, RetryLater) for event in told)


@pytest.mark.parametrize("levels", [100, 400, 900])
def test_a_deeply_nested_unknown_field_is_ignored(levels: int, tmp_path: Path) -> None:
    posted = line(tmp_path)
    deep = written("deep").replace(b'"timeRows":[]', b'"x":' + b"[" * levels + b"]" * levels)
    told, _ = fetched(posted, listing(written("a"), deep, written("b")), last="b")
    assert outcomes(told) == dict.fromkeys(("a", "deep", "b"), SUCCESS)


@pytest.mark.parametrize("odd", [b"NaN", b"1" + b"0" * 400, b'"1h"', b"true"])
def test_a_group_with_an_invalid_duration_is_refused(odd: bytes, tmp_path: Path) -> None:
    """The sum of its rows is not used instead, and the other groups are delivered."""
    posted = line(tmp_path)
    body = listing(written("a"), written("odd", totalDurationSecs=7).replace(b":7,", b":" + odd + b","), written("b"))
    told, _ = fetched(posted, body, last="b")
    assert outcomes(told) == {"a": SUCCESS, "odd": REFUSED, "b": SUCCESS}
    assert sorted(posted.rows()) == ["a", "b"]


DEEP = b"[" * 50_000 + b"]" * 50_000


@pytest.mark.parametrize(
    "broken",
    [
        b'{"groupId":"bad","description":"%s",,}' % SECRET.encode(),
        b'{"description":"%s \\" ] } [","tags":%s,"groupId":"b\\u0061d"}' % (SECRET.encode(), DEEP),
        b'{"groupId":"bad" "description":"%s"}' % SECRET.encode(),
    ],
    ids=["commas", "deep", "no-comma"],
)
def test_an_unreadable_group_is_refused_and_others_are_delivered(broken: bytes, tmp_path: Path) -> None:
    """The user gets FAILURE, the inbox shows the group, and nothing of its text is stored or reported."""
    posted = line(tmp_path)
    body = listing(written("a"), broken, written("b"))
    told, statuses = fetched(posted, body, listing(broken, written("c")), last="c")
    assert outcomes(told) == {"a": SUCCESS, "bad": REFUSED, "b": SUCCESS, "c": SUCCESS}
    assert {"timeGroupId": "bad", "status": "FAILURE", "message": UNREADABLE} in statuses
    with open_inbox(posted.project().state, write=False) as inbox:
        (entry,) = [entry for entry in inbox.entries() if entry.group_id == "bad"]
    assert (entry.state, entry.body, entry.revision, entry.offers) == ("acknowledged", None, 1, 2)
    assert "only the groupId" in (entry.note or "")
    assert SECRET not in repr(told) + repr(statuses)
    assert SECRET.encode() not in posted.files()


def test_a_refused_unreadable_group_is_delivered_once_it_is_readable(tmp_path: Path) -> None:
    """As its next revision, since no sink has it."""
    posted = line(tmp_path)
    fetched(posted, listing(b'{"groupId":"bad",,}', written("a")), last="a")
    told, _ = fetched(posted, listing(written("bad")), last="bad")
    assert outcomes(told) == {"bad": SUCCESS}
    assert posted.rows() == ["a", "bad"]


def test_a_group_that_the_inbox_cannot_store_does_not_affect_others(tmp_path: Path) -> None:
    """The other groups of the answer are delivered, and this one is offered again."""
    posted = line(tmp_path)
    with open_inbox(posted.project().state, write=True), closing(sqlite3.connect(posted.project().state)) as state:
        state.execute(
            "CREATE TRIGGER odd BEFORE INSERT ON inbox_groups WHEN NEW.group_id = 'odd'"
            " BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    told, _ = fetched(posted, listing(written("odd"), written("a")), last="a")
    assert outcomes(told) == {"a": SUCCESS}
    assert any(isinstance(event, RetryLater) and event.what == "take" for event in told)


def test_a_delivered_group_that_comes_back_unreadable_is_a_conflict(tmp_path: Path) -> None:
    """It may have changed: a person decides, and the row stays as it is."""
    posted = line(tmp_path)
    fetched(posted, listing(written("a")), last="a")
    told, _ = fetched(posted, listing(b'{"groupId":"a",,}'), last="a")
    assert outcomes(told) == {"a": REFUSED}
    assert posted.states() == {"a": "conflict"}


@pytest.mark.parametrize("item", [b"null", b'"text"', b"[]", b"{,}", b"7", b'{"groupId": 7}'])
def test_an_item_without_an_id_is_reported_and_skipped(item: bytes, tmp_path: Path) -> None:
    told, _ = fetched(line(tmp_path), listing(item, written("a")), last="a")
    assert outcomes(told) == {"a": SUCCESS}
    assert any(isinstance(event, Unusable) for event in told)


@pytest.mark.parametrize(
    "answer",
    [
        Reply(200, SECRET.encode(), {"Content-Type": "text/html; charset=utf-8"}),
        saying({"groups": [{"description": SECRET}]}),
        Reply(200, b'[{"groupId": "a", "description": "%s' % SECRET.encode()),
        Reply(500, SECRET.encode()),
        saying({"detail": SECRET}, 500),
        saying([{"message": SECRET}], 502),
    ],
    ids=["html", "object", "cut", "text", "no-message", "list"],
)
def test_trouble_shows_status_and_length_of_an_answer_but_not_its_text(answer: Reply, tmp_path: Path) -> None:
    """The text may be what users wrote about their work."""

    async def play() -> list[Event]:
        told: list[Event] = []
        stop = asyncio.Event()
        async with (
            serving(answer) as server,
            Client(server.url, key, conduct=Conduct(attempts=1)) as client,
            line(tmp_path).delivery() as delivery,
        ):
            await Fetching(client, delivery, lambda: 1, tell=told.append, stop=stop, pace=SWIFT).round()
        return told

    (waiting,) = asyncio.run(play())
    assert isinstance(waiting, RetryLater)
    assert SECRET not in waiting.why
    assert f"{answer.status} (" in waiting.why
    assert f"{len(answer.body)} bytes" in waiting.why


def test_the_message_of_an_error_of_the_service_is_shown() -> None:
    """It is the field `message` of the JSON."""

    answer = saying({"message": "maintenance until 10:00"}, 503)

    async def play() -> str:
        conduct = Conduct(attempts=1)
        async with serving(answer) as server, Client(server.url, key, conduct=conduct) as client:
            return (await fetch(client, None, 5)).summary

    assert asyncio.run(play()) == "503: maintenance until 10:00"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'[{"a": [1, 2]}, "x, y", {,}]', [b'{"a": [1, 2]}', b' "x, y"', b" {,}"]),
        (b'{"a": [1]}', None),
        (b"[1, 2", None),
        (b"[1] [2]", None),
        (b"x [1]", None),
        (b"<html>", None),
        (b"", None),
    ],
)
def test_an_array_is_split_at_its_own_commas(content: bytes, expected: list[bytes] | None) -> None:
    """Not at commas of strings or nested values. Any other content has no items."""
    assert items_in(content) == expected


def test_the_id_is_read_from_the_groups_own_field() -> None:
    """Not from a nested object or from a string."""
    assert id_in(rb'{"tags": [{"groupId": "x"}], "description": "\"groupId\": \"y\"", "groupId" : "\u00e4",,}') == "ä"
    assert id_in(b'{"tags": [{"groupId": "x"}],,}') is None
