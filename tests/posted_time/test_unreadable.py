"""Odd or unreadable posted time does not keep other groups from being delivered, and users and operators see it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from syncengine.posted_time.delivery import UNREADABLE
from syncengine.posted_time.events import Acknowledged, Event, RetryLater, Taken, Unusable
from syncengine.posted_time.loops import Acknowledging, Fetching
from syncengine.service.client import Client, Conduct
from syncengine.state.inbox_model import PostedTimeStatus
from tests.posted_time.desk import REFUSED, SUCCESS
from tests.posted_time.projects import BARE_SINK, delivering, entries, files, ids
from tests.posted_time.samples import raw
from tests.posted_time.test_loops import Desk, told_until
from tests.service.scripted import Reply, saying, serving
from tests.service.talking import key

from .line import SWIFT, until

pytestmark = pytest.mark.slow

SECRET = "what-the-client-told-us"


def fetched(folder: Path, *bodies: bytes, last: str) -> tuple[list[Event], list[Any]]:
    """The events and the statuses sent, once these answers are fetched and delivered and `last` is acknowledged."""

    async def play() -> tuple[list[Event], list[Any]]:
        told: list[Event] = []
        stop, quiet = asyncio.Event(), Conduct(attempts=1, breaks=False)
        async with (
            serving(*(Reply(200, body) for body in bodies), saying([])) as server,
            serving() as updates,
            Client(server.url, key, conduct=quiet) as client,
            Client(updates.url, key, conduct=quiet) as other,
            delivering(folder, BARE_SINK, "") as delivery,
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
    return msgspec.json.encode(raw(id, **given))


INVALID = [b"NaN", b"-Infinity", b"1e400", b"9" * 5000, b'"\xff\xfe"', b'"a\tb"', b'"\\ud83d"', b"[" * 900 + b"]" * 900]


def test_an_invalid_value_is_ignored_and_its_group_delivered(tmp_path: Path) -> None:
    """The value is no valid JSON, or nested too deeply, but the answer is read all the same."""
    odd = [written(f"{n}", timestamp=None).replace(b"null", value) for n, value in enumerate(INVALID)]
    told, _ = fetched(tmp_path, *(listing(written(f"{n}a"), item) for n, item in enumerate(odd)), last="7")
    assert outcomes(told) == dict.fromkeys([*"01234567", *(f"{n}a" for n in range(8))], SUCCESS)
    assert not any(isinstance(event, RetryLater) for event in told)


def test_a_group_with_an_invalid_duration_is_refused(tmp_path: Path) -> None:
    """The sum of its rows is not used instead, and the other groups are delivered."""
    values = (b"NaN", b"1" + b"0" * 400, b'"1h"', b"true")
    odd = [written(f"{n}", totalDurationSecs=7).replace(b":7,", b":" + value + b",") for n, value in enumerate(values)]
    told, _ = fetched(tmp_path, listing(written("a"), *odd, written("b")), last="b")
    assert outcomes(told) == {"a": SUCCESS, "b": SUCCESS, **dict.fromkeys("0123", REFUSED)}
    assert sorted(ids(tmp_path)) == ["a", "b"]


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
    body = listing(written("a"), broken, written("b"))
    told, statuses = fetched(tmp_path, body, listing(broken, written("c")), last="c")
    assert outcomes(told) == {"a": SUCCESS, "bad": REFUSED, "b": SUCCESS, "c": SUCCESS}
    assert {"timeGroupId": "bad", "status": "FAILURE", "message": UNREADABLE} in statuses
    entry = entries(tmp_path)["bad"]
    assert (entry.state, entry.body, entry.revision, entry.offers) == ("acknowledged", None, 1, 2)
    assert "only the groupId" in (entry.note or "")
    assert SECRET not in repr(told) + repr(statuses)
    assert SECRET.encode() not in files(tmp_path)


def test_a_refused_unreadable_group_is_delivered_once_it_is_readable(tmp_path: Path) -> None:
    """As its next revision. A delivered one that comes back unreadable is a conflict: it may have changed."""
    fetched(tmp_path, listing(b'{"groupId":"bad",,}', written("a")), last="a")
    told, _ = fetched(tmp_path, listing(written("bad"), b'{"groupId":"a",,}'), last="bad")
    assert outcomes(told) == {"bad": SUCCESS, "a": REFUSED}
    assert (ids(tmp_path), entries(tmp_path)["a"].state) == (["a", "bad"], "conflict")


def test_an_item_without_an_id_is_reported_and_skipped(tmp_path: Path) -> None:
    items = [b"null", b'"text"', b"[]", b"{,}", b"7", b'{"groupId": 7}']
    told, _ = fetched(tmp_path, listing(*items, written("a")), last="a")
    assert outcomes(told) == {"a": SUCCESS}
    assert sum(isinstance(event, Unusable) for event in told) == len(items)


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
def test_trouble_shows_status_and_length_of_an_answer_but_not_its_text(answer: Reply) -> None:
    """The text may be what users wrote about their work. Only the field `message` of an error is shown."""
    answers = (saying({"message": "until 10:00"}, 503), answer)
    told = told_until(answers, Desk(), lambda told: len(told) > 1)
    spoken, silent = [event.why for event in told if isinstance(event, RetryLater)][:2]
    assert (spoken, SECRET in silent) == ("503: until 10:00", False)
    assert f"{answer.status} (" in silent
    assert f"{len(answer.body)} bytes" in silent
