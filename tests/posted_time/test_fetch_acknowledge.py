"""Acknowledging what was fetched: each verdict of the inbox until the service has accepted it, whatever it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from syncengine.posted_time.acknowledge import SIDE_BY_SIDE, Acknowledging
from syncengine.posted_time.events import Acknowledged, Event, GivenUp, RetryLater
from syncengine.posted_time.inbox_writer import InboxWriter, Work
from syncengine.render.posted_time import story_text
from syncengine.service.client import Client, Conduct
from syncengine.state.inbox_model import Offer, PostedTimeStatus
from syncengine.state.lock import LockLost
from tests.service.scripted import CUT, OK, Reply, saying, serving
from tests.service.talking import KEY, key
from tests.support.inbox import open_inbox

from .line import SWIFT, until

Verdict = tuple[str, PostedTimeStatus, str | None, str | None]
POSTED: Verdict = ("a", PostedTimeStatus.SUCCESS, None, "4711")
REFUSED: Verdict = ("b", PostedTimeStatus.REFUSED, "Assign a tag.", None)
TROUBLED: Verdict = ("c", PostedTimeStatus.TROUBLE, "The ledger cannot be reached.", None)


def decided(state: str, verdicts: Sequence[Verdict]) -> None:
    """Groups in an inbox, with these verdicts."""
    with open_inbox(state, write=True) as inbox:
        for id, outcome, message, external_id in verdicts:
            entry = inbox.receive(Offer(id, "d", "{}", "fetch"))
            inbox.decide(entry, outcome, message, external_id, waits=True)


def acknowledge(
    folder: Path,
    script: Sequence[Reply],
    *verdicts: Verdict,
    ends: Any,
    has_webhook: bool = False,
    timeout: float = 30.0,
) -> tuple[list[Event], list[Any], dict[str, str]]:
    """Run the loop until `ends` holds: what it told, what the service heard, the states of the groups after it."""
    state = str(folder / "state.db")
    decided(state, verdicts)

    async def play() -> tuple[list[Event], list[Any]]:
        told: list[Event] = []
        stop = asyncio.Event()
        conduct = Conduct(timeout=timeout, attempts=1, breaks=False)
        with open_inbox(state, write=True) as inbox:
            async with serving(*script) as server, Client(server.url, key, conduct=conduct) as client:
                loop = Acknowledging(client, InboxWriter(inbox), told.append, stop, has_webhook, SWIFT)
                running = asyncio.ensure_future(loop.run())
                await until(told, ends)
                stop.set()
                await running
                return told, [orjson.loads(heard.body) for heard in server.heard]

    told, heard = asyncio.run(play())
    with open_inbox(state, write=False) as inbox:
        assert list(inbox.waiting()) == []
        return told, heard, {entry.group_id: entry.state for entry in inbox.entries()}


def ended(count: int) -> Any:
    return lambda told: sum(isinstance(event, Acknowledged | GivenUp) for event in told) >= count


def test_each_verdict_is_told_with_all_that_is_known(tmp_path: Path) -> None:
    """SUCCESS with the sink's reference, FAILURE and RETRIABLE_FAILURE with their sentences; each once."""
    _, heard, states = acknowledge(tmp_path, (OK,), POSTED, REFUSED, TROUBLED, ends=ended(3))
    assert heard == [
        {"timeGroupId": "a", "status": "SUCCESS", "externalId": "4711"},
        {"timeGroupId": "b", "status": "FAILURE", "message": "Assign a tag."},
        {"timeGroupId": "c", "status": "RETRIABLE_FAILURE", "message": "The ledger cannot be reached."},
    ]
    assert states == {"a": "acknowledged", "b": "acknowledged", "c": "troubled"}


@pytest.mark.parametrize(
    "lost",
    [CUT, saying({}, 500), saying("no", 400), saying({}, 401), saying({}, 409), Reply(429, b"", {"Retry-After": "0"})],
    ids=["lost", "500", "400", "401", "409", "429"],
)
def test_a_status_that_was_not_accepted_is_sent_again_as_it_was(tmp_path: Path, lost: Reply) -> None:
    """Lost, dropped or refused three times: the fourth is accepted, and every one said the same."""
    told, heard, states = acknowledge(tmp_path, (lost, lost, lost, OK), POSTED, ends=ended(1))
    assert heard == [{"timeGroupId": "a", "status": "SUCCESS", "externalId": "4711"}] * 4
    assert sum(isinstance(event, RetryLater) for event in told) == 3
    assert states == {"a": "acknowledged"}


def test_what_the_service_did_not_accept_is_in_the_groups_story(tmp_path: Path) -> None:
    """The same words again and again are one line, with a count; none of it is what else an answer may hold."""
    maintenance = saying({"message": "maintenance"}, 503)
    script = (maintenance, maintenance, maintenance, Reply(500, b"a narrative"), CUT, OK)
    acknowledge(tmp_path, script, POSTED, ends=ended(1))
    with open_inbox(str(tmp_path / "state.db"), write=False) as inbox:
        entry, story = inbox.entry("a"), inbox.story("a")
    assert entry is not None
    told = [(e.kind, e.outcome, e.message, e.detail) for e in story if e.kind in ("unaccepted", "status")]
    assert told[:2] == [
        ("unaccepted", "SUCCESS", "503: maintenance", "3"),
        ("unaccepted", "SUCCESS", "500 (no content type, 11 bytes)", None),
    ]
    assert [(kind, outcome) for kind, outcome, *_ in told[2:]] == [("unaccepted", "SUCCESS"), ("status", "SUCCESS")]
    text = story_text(entry, story)
    assert "the service did not accept the status SUCCESS: 503: maintenance; 3 times" in text


def test_an_echoed_key_is_in_no_story_and_no_event(tmp_path: Path) -> None:
    """Of what the service says when it accepts no status; the group's own id may hold it."""
    script = (saying({"message": f"{KEY} may not"}, 400), Reply(500, f"{KEY} at {KEY}".encode()), OK)
    told, heard, _ = acknowledge(tmp_path, script, (f"{KEY}-1", *POSTED[1:]), ends=ended(1))
    assert {body["timeGroupId"] for body in heard} == {f"{KEY}-1"}
    words = [event.why for event in told if isinstance(event, RetryLater)]
    assert (words[0], KEY in "".join(words)) == ("400: *** may not", False)
    with open_inbox(str(tmp_path / "state.db"), write=False) as inbox:
        assert KEY not in "".join(event.message or "" for event in inbox.story(f"{KEY}-1"))


def test_an_unknown_group_is_given_up_and_stays_visible(tmp_path: Path) -> None:
    """404: it is not asked for again, and the inbox shows it."""
    told, heard, states = acknowledge(tmp_path, (saying("who?", 404), OK), POSTED, REFUSED, ends=ended(2))
    assert [type(event) for event in told] == [GivenUp, Acknowledged]
    assert len(heard) == 2
    assert states == {"a": "given-up", "b": "acknowledged"}


def test_one_status_that_is_refused_keeps_no_other_waiting(tmp_path: Path) -> None:
    """The second is accepted while the first is still refused."""
    script = (saying("no", 400), OK, saying("no", 400), OK)
    told, heard, _ = acknowledge(tmp_path, script, POSTED, REFUSED, ends=ended(2))
    assert [event.group_id for event in told if isinstance(event, Acknowledged)] == ["b", "a"]
    assert [body["timeGroupId"] for body in heard] == ["a", "b", "a", "a"]


def sent_for(heard: Sequence[Any]) -> str:
    """The groups whose status was sent, in order."""
    return "".join(body["timeGroupId"] for body in heard)


@pytest.mark.parametrize("trouble", [Reply(until=asyncio.Event()), saying({}, 401), saying({}, 403)])
def test_a_status_that_ends_in_trouble_comes_after_those_that_wait(trouble: Reply, tmp_path: Path) -> None:
    """Time-out, 401, 403: the second is sent before the first is sent again."""
    _, heard, _ = acknowledge(tmp_path, (trouble, OK), POSTED, REFUSED, ends=ended(2), timeout=0.5)
    assert sent_for(heard) == "aba"


def test_two_statuses_without_an_answer_keep_a_third_waiting_no_longer_than_the_service(tmp_path: Path) -> None:
    """Silence for the second time is the service's: the round ends, and the next begins with what was not sent yet."""
    never = Reply(until=asyncio.Event())
    told, heard, _ = acknowledge(tmp_path, (never, never, OK), POSTED, REFUSED, TROUBLED, ends=ended(3), timeout=0.5)
    assert sent_for(heard)[:3] == "abc"
    assert [event.what for event in told if isinstance(event, RetryLater)] == ["acknowledge a", "acknowledge"]


def test_what_was_accepted_is_written_while_others_are_on_their_way(tmp_path: Path) -> None:
    """A process that dies while it waits for one answer tells the service nothing twice for it."""
    state = str(tmp_path / "state.db")
    decided(state, [POSTED, REFUSED])

    async def play() -> list[str]:
        said, told = asyncio.Event(), list[Event]()
        with open_inbox(state, write=True) as inbox:
            async with serving(OK, Reply(until=said)) as server, Client(server.url, key) as client:
                loop = Acknowledging(client, InboxWriter(inbox), told.append, asyncio.Event(), pace=SWIFT)
                round = asyncio.ensure_future(loop.round())
                async with asyncio.timeout(20):
                    await until(told, ended(1))
                left = [verdict.group_id for verdict in inbox.waiting()]
                said.set()
                await round
        return left

    assert asyncio.run(play()) in (["b"], ["a"])  # whichever of them the service heard first


def test_a_service_in_trouble_is_sent_no_further_status(tmp_path: Path) -> None:
    """A key that is not accepted: those that were on their way are all that it hears in this round."""
    state = str(tmp_path / "state.db")
    decided(state, [(f"g{number}", *POSTED[1:]) for number in range(SIDE_BY_SIDE + 4)])

    async def play() -> int:
        conduct = Conduct(attempts=1, breaks=False)
        with open_inbox(state, write=True) as inbox:
            async with serving(saying({}, 401)) as server, Client(server.url, key, conduct=conduct) as client:
                writer = InboxWriter(inbox)
                await Acknowledging(client, writer, lambda event: None, asyncio.Event(), pace=SWIFT).round()
                return len(server.heard)

    assert asyncio.run(play()) == SIDE_BY_SIDE


def test_no_further_status_is_sent_once_the_inbox_fails(tmp_path: Path) -> None:
    """But those that were about to be: nobody would know that the others were told."""
    state = str(tmp_path / "state.db")
    decided(state, [(f"g{number}", *POSTED[1:]) for number in range(5 * SIDE_BY_SIDE)])

    class Lost(InboxWriter):
        async def write(self, work: Work[Any]) -> Any:
            raise LockLost("another process has it")

    async def play() -> int:
        with open_inbox(state, write=True) as inbox:
            async with serving(OK) as server, Client(server.url, key, conduct=Conduct(attempts=1)) as client:
                with pytest.raises(LockLost):
                    await Acknowledging(client, Lost(inbox), lambda event: None, asyncio.Event(), pace=SWIFT).round()
                return len(server.heard)

    assert SIDE_BY_SIDE <= asyncio.run(play()) <= 2 * SIDE_BY_SIDE


def test_rounds_at_the_same_time_are_one_after_the_other(tmp_path: Path) -> None:
    """One by hand while the loop is in its own: each status is sent once, and neither round stumbles."""
    state = str(tmp_path / "state.db")
    decided(state, [POSTED, REFUSED])

    async def play() -> list[Any]:
        said = asyncio.Event()
        with open_inbox(state, write=True) as inbox:
            async with serving(Reply(until=said)) as server, Client(server.url, key) as client:
                server.on_request = lambda: asyncio.get_running_loop().call_later(0.1, said.set) and None
                loop = Acknowledging(client, InboxWriter(inbox), lambda event: None, asyncio.Event(), pace=SWIFT)
                await asyncio.gather(loop.round(), loop.round())
                return [orjson.loads(heard.body) for heard in server.heard]

    assert sent_for(asyncio.run(play())) == "ab"


def test_what_was_fetched_before_a_webhook_came_is_given_up(tmp_path: Path) -> None:
    """409 where this project has a webhook: the service takes no status any more, and the inbox says so."""
    told, heard, states = acknowledge(tmp_path, (saying({}, 409),), POSTED, ends=ended(1), has_webhook=True)
    assert isinstance(told[0], GivenUp)
    assert (len(heard), states) == (1, {"a": "given-up"})
