"""Acknowledging fetched groups: every verdict in the inbox is sent to the service until the service accepts it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from syncengine.posted_time.events import Acknowledged, Event, GivenUp, RetryLater
from syncengine.posted_time.loops import SIDE_BY_SIDE, Acknowledging
from syncengine.render.posted_time import story_text
from syncengine.service.client import Client, Conduct
from syncengine.state.database import LockLost
from syncengine.state.inbox import InboxWriter, Work
from syncengine.state.inbox_model import Offer, PostedTimeStatus
from tests.service.scripted import CUT, OK, Reply, saying, serving
from tests.service.talking import KEY, key
from tests.support.inbox import open_inbox

from .line import SWIFT, until

Verdict = tuple[str, PostedTimeStatus, str | None, str | None]
POSTED: Verdict = ("a", PostedTimeStatus.SUCCESS, None, "4711")
REFUSED: Verdict = ("b", PostedTimeStatus.REFUSED, "Assign a tag.", None)
TROUBLED: Verdict = ("c", PostedTimeStatus.TROUBLE, "The ledger cannot be reached.", None)


def decided(state: str, verdicts: Sequence[Verdict]) -> None:
    """Store groups with these verdicts in an inbox."""
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
    """Run the loop until `ends` is true; return its events, the requests that the service got, and the final states."""
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
                return told, [msgspec.json.decode(heard.body) for heard in server.heard]

    told, heard = asyncio.run(play())
    with open_inbox(state, write=False) as inbox:
        assert list(inbox.waiting()) == []
        return told, heard, {entry.group_id: entry.state for entry in inbox.entries()}


def ended(count: int) -> Any:
    return lambda told: sum(isinstance(event, Acknowledged | GivenUp) for event in told) >= count


def test_each_verdict_is_sent_once_with_its_reference_or_message(tmp_path: Path) -> None:
    """SUCCESS with the sink's reference, FAILURE and RETRIABLE_FAILURE with their messages."""
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
    ids=["no answer", "500", "400", "401", "409", "429"],
)
def test_a_status_that_was_not_accepted_is_sent_again_unchanged(tmp_path: Path, lost: Reply) -> None:
    """Three attempts fail and the fourth is accepted."""
    told, heard, states = acknowledge(tmp_path, (lost, lost, lost, OK), POSTED, ends=ended(1))
    assert heard == [{"timeGroupId": "a", "status": "SUCCESS", "externalId": "4711"}] * 4
    assert sum(isinstance(event, RetryLater) for event in told) == 3
    assert states == {"a": "acknowledged"}


def test_rejected_status_updates_are_in_the_groups_story(tmp_path: Path) -> None:
    """Equal rejections in a row are one entry with a count, and bodies other than a message are not repeated."""
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
    """If the service's error repeats the API key, it is masked; a group id that holds the key is sent unchanged."""
    script = (saying({"message": f"{KEY} may not"}, 400), Reply(500, f"{KEY} at {KEY}".encode()), OK)
    told, heard, _ = acknowledge(tmp_path, script, (f"{KEY}-1", *POSTED[1:]), ends=ended(1))
    assert {body["timeGroupId"] for body in heard} == {f"{KEY}-1"}
    words = [event.why for event in told if isinstance(event, RetryLater)]
    assert (words[0], KEY in "".join(words)) == ("400: *** may not", False)
    with open_inbox(str(tmp_path / "state.db"), write=False) as inbox:
        assert KEY not in "".join(event.message or "" for event in inbox.story(f"{KEY}-1"))


def test_an_unknown_group_is_given_up_and_stays_visible(tmp_path: Path) -> None:
    """After a 404 the status is not sent again, and the inbox shows the group as given up."""
    told, heard, states = acknowledge(tmp_path, (saying("who?", 404), OK), POSTED, REFUSED, ends=ended(2))
    assert [type(event) for event in told] == [GivenUp, Acknowledged]
    assert len(heard) == 2
    assert states == {"a": "given-up", "b": "acknowledged"}


def test_a_rejected_status_does_not_delay_others(tmp_path: Path) -> None:
    """The second status is accepted while the first is still rejected."""
    script = (saying("no", 400), OK, saying("no", 400), OK)
    told, heard, _ = acknowledge(tmp_path, script, POSTED, REFUSED, ends=ended(2))
    assert [event.group_id for event in told if isinstance(event, Acknowledged)] == ["b", "a"]
    assert [body["timeGroupId"] for body in heard] == ["a", "b", "a", "a"]


def sent_for(heard: Sequence[Any]) -> str:
    """The ids of the groups whose status was sent, in order."""
    return "".join(body["timeGroupId"] for body in heard)


@pytest.mark.parametrize("trouble", [Reply(until=asyncio.Event()), saying({}, 401), saying({}, 403)])
def test_a_status_that_met_trouble_is_repeated_after_the_waiting_ones(trouble: Reply, tmp_path: Path) -> None:
    """After a timeout, 401 or 403 the second status is sent before the first is repeated."""
    _, heard, _ = acknowledge(tmp_path, (trouble, OK), POSTED, REFUSED, ends=ended(2), timeout=0.5)
    assert sent_for(heard) == "aba"


def test_a_second_timeout_ends_the_round(tmp_path: Path) -> None:
    """Two timeouts mean that the service is in trouble; the next round begins with the statuses that were not sent
    yet."""
    never = Reply(until=asyncio.Event())
    told, heard, _ = acknowledge(tmp_path, (never, never, OK), POSTED, REFUSED, TROUBLED, ends=ended(3), timeout=0.5)
    assert sent_for(heard)[:3] == "abc"
    assert [event.what for event in told if isinstance(event, RetryLater)] == ["acknowledge a", "acknowledge"]


def test_an_acceptance_is_recorded_while_other_requests_are_open(tmp_path: Path) -> None:
    """A process that dies while it waits for one answer does not repeat the accepted status later."""
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

    assert asyncio.run(play()) in (["b"], ["a"])  # whichever request arrived second


def test_a_service_in_trouble_is_sent_no_further_status(tmp_path: Path) -> None:
    """With a rejected API key, only the requests that were already open are sent in this round."""
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
    """An acceptance could not be recorded, so only requests that were about to be sent still are."""
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


def test_concurrent_rounds_run_one_after_the_other(tmp_path: Path) -> None:
    """A round by hand during a round of the loop sends no status twice."""
    state = str(tmp_path / "state.db")
    decided(state, [POSTED, REFUSED])

    async def play() -> list[Any]:
        said = asyncio.Event()
        with open_inbox(state, write=True) as inbox:
            async with serving(Reply(until=said)) as server, Client(server.url, key) as client:
                server.on_request = lambda: asyncio.get_running_loop().call_later(0.1, said.set) and None
                loop = Acknowledging(client, InboxWriter(inbox), lambda event: None, asyncio.Event(), pace=SWIFT)
                await asyncio.gather(loop.round(), loop.round())
                return [msgspec.json.decode(heard.body) for heard in server.heard]

    assert sent_for(asyncio.run(play())) == "ab"


def test_fetched_groups_are_given_up_once_the_project_has_a_webhook(tmp_path: Path) -> None:
    """The service answers 409 and takes no status for them any more; the inbox shows them as given up."""
    told, heard, states = acknowledge(tmp_path, (saying({}, 409),), POSTED, ends=ended(1), has_webhook=True)
    assert isinstance(told[0], GivenUp)
    assert (len(heard), states) == (1, {"a": "given-up"})
