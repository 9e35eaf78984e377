"""The loops that fetch and acknowledge: what they take and send, when they wait, and what ends them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from syncengine.errors import SyncengineError, TroubleKind
from syncengine.posted_time.delivery import UNREADABLE
from syncengine.posted_time.events import (
    Acknowledged,
    Event,
    GivenUp,
    Offered,
    RetryLater,
    SinkTrouble,
    Taken,
    Unusable,
    Verdict,
)
from syncengine.posted_time.loops import SIDE_BY_SIDE, Acknowledging, Fetching
from syncengine.posted_time.pace import WIDTH, Pace, each, side_by_side
from syncengine.render.posted_time import story_text
from syncengine.service.client import Client, Conduct
from syncengine.state.database import LockLost
from syncengine.state.inbox import InboxWriter, Work
from syncengine.state.inbox_model import Offer, PostedTimeStatus
from tests.posted_time.desk import REFUSED, SUCCESS, SWIFT, TROUBLE
from tests.posted_time.projects import BARE_SINK, delivering, entries, files, ids
from tests.posted_time.samples import raw
from tests.service.scripted import CUT, OK, Reply, Scripted, saying, serving
from tests.service.talking import KEY, key
from tests.support.inbox import open_inbox

pytestmark = pytest.mark.slow

NOTHING = saying([])
Scene = Callable[[Scripted, Any, list[Event]], Awaitable[Any]]


async def until(told: list[Event], there: Callable[[list[Event]], bool]) -> None:
    """Return as soon as `there` is true of the events in `told`."""
    async with asyncio.timeout(30):
        while not there(told):  # noqa: ASYNC110 -- the loops append to a list and set no event
            await asyncio.sleep(0.005)


def fetching(script: Sequence[Reply], delivery: Any, scene: Scene, pace: Pace = SWIFT) -> Any:
    """Play a scene with the loop and a scripted service, and return its result."""

    async def play() -> Any:
        told: list[Event] = []
        conduct = Conduct(attempts=1, breaks=False)
        async with serving(*script) as server, Client(server.url, key, conduct=conduct) as client:
            loop = Fetching(client, delivery, lambda: None, told.append, asyncio.Event(), pace=pace)
            async with asyncio.timeout(60):
                return await scene(server, loop, told)

    return asyncio.run(play())


async def run_until(loop: Any, told: list[Event], there: Callable[[list[Event]], bool]) -> list[Event]:
    """Run a loop until its events are `there`, and return them."""
    running = asyncio.ensure_future(loop.run())
    await until(told, there)
    loop.stop.set()
    await running
    return told


def told_until(script: Sequence[Reply], delivery: Any, there: Callable[[list[Event]], bool]) -> list[Event]:
    told: list[Event] = fetching(script, delivery, lambda _, loop, told: run_until(loop, told, there))
    return told


def has_taken(count: int) -> Callable[[list[Event]], bool]:
    return lambda told: len(taken(told)) == count


def taken(told: list[Event]) -> list[tuple[str, PostedTimeStatus]]:
    return [(event.group_id, event.verdict.outcome) for event in told if isinstance(event, Taken)]


@dataclass
class Desk:
    """A delivery that takes every group and stores nothing, for tests of the loop that need no sink."""

    raising: Exception | None = None
    troubles: Sequence[SinkTrouble] = ()
    took: list[str] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """The verdicts on groups that are not taken."""
    is_cautious: bool = False

    def width(self) -> int:
        return 0 if self.troubles else 1 if self.is_cautious else WIDTH

    async def resume(self, stop: asyncio.Event, deliver: Callable[[str], Awaitable[object]]) -> int:
        stored, self.stored = self.stored, []
        begun = await side_by_side(each(stored), deliver, lambda: 0 if stop.is_set() else self.width())
        self.stored = stored[begun:] + self.stored
        return begun

    async def store(self, raw: Any, *, mechanism: str) -> None:
        self.stored.append(raw["groupId"])

    async def again(self, id: str) -> Verdict:
        self.took.append(id)
        if self.raising is not None:
            raising, self.raising = self.raising, None
            raise raising
        return self.verdicts.get(id, Verdict(SUCCESS))


TROUBLES = [CUT, saying({}, 500), saying({}, 503), Reply(429, b"", {"Retry-After": "0"}), Reply(200, b"<html>")]


@pytest.mark.parametrize("trouble", [*TROUBLES, saying({}, 401)], ids=["no answer", "500", "503", "429", "html", "401"])
def test_the_loop_waits_and_goes_on_after_trouble(trouble: Reply) -> None:
    """Each failed fetch is reported as an event. An empty answer is no trouble."""
    desk = Desk()
    told = told_until((trouble, trouble, NOTHING, saying([raw("a")]), NOTHING), desk, has_taken(1))
    assert [type(event) for event in told][:5] == [RetryLater, RetryLater, Offered, Offered, Taken]
    assert desk.took == ["a"]


@pytest.mark.parametrize("ending", [None, Reply(504), Reply(408), CUT], ids=["never", "504", "408", "closed"])
def test_a_fetch_that_ends_without_an_answer_after_its_time_is_no_trouble(ending: Reply | None) -> None:
    """The service or a gateway ended a fetch that it held open for its whole time: the next fetch follows at once."""
    slow, pace = asyncio.Event(), replace(SWIFT, fetch=2.0)  # long enough to connect on a busy machine

    async def scene(server: Scripted, loop: Fetching, told: list[Event]) -> list[Event]:
        if ending is not None:
            server.on_request = lambda: asyncio.get_running_loop().call_later(0.85 * pace.fetch, slow.set)
        return await run_until(loop, told, has_taken(1))

    script = (replace(ending or Reply(), until=slow), saying([raw("a")]), NOTHING)
    assert [type(event) for event in fetching(script, Desk(), scene, pace=pace)][:2] == [Offered, Taken]


@pytest.mark.parametrize("error", [SyncengineError("the state is busy"), KeyError("secret-in-a-key")])
def test_the_loop_waits_for_an_inbox_that_cannot_store_a_group(error: Exception) -> None:
    """The rest of the answer is dropped, as it is offered again. No text of a foreign exception is repeated."""
    desk = Desk(raising=error)
    told = told_until((saying([raw("a"), raw("b")]), saying([raw("b")]), NOTHING), desk, has_taken(1))
    assert desk.took == ["a", "b"]
    waiting = next(event for event in told if isinstance(event, RetryLater))
    assert waiting.what == "take"
    assert "secret" not in waiting.why


def test_a_lost_lease_ends_the_loop() -> None:
    """Another process has the inbox: this one begins no further group."""
    desk = Desk(raising=LockLost("taken over"))

    async def scene(_: Scripted, loop: Fetching, __: list[Event]) -> None:
        with pytest.raises(LockLost):
            await loop.run()

    fetching((saying([raw(id) for id in MANY]),), desk, scene)
    assert desk.took == MANY[:WIDTH]


def test_a_stop_aborts_the_open_fetch() -> None:
    """The loop ends at once, although the service would hold the fetch open for a minute."""

    async def scene(server: Scripted, loop: Fetching, _: list[Event]) -> int:
        asked = asyncio.Event()
        server.on_request = asked.set
        running = asyncio.ensure_future(loop.run())
        await asked.wait()
        loop.stop.set()
        await asyncio.wait_for(running, 30)
        return len(server.heard)

    assert fetching((Reply(until=asyncio.Event()),), Desk(), scene) == 1


MANY = [f"g{number}" for number in range(WIDTH + 2)]


def test_groups_in_the_inbox_come_before_the_next_fetch() -> None:
    """Also after a sink went down meanwhile. A verdict that is not final is reported as an event, but not sent."""

    class Falling(Desk):
        async def again(self, id: str) -> Verdict:
            self.is_cautious = False
            if id == "left":
                self.troubles = (SinkTrouble("ledger", TroubleKind.UNREACHABLE, "No."),)
                asyncio.get_running_loop().call_later(0.05, setattr, self, "troubles", ())
            return await super().again(id)

    verdicts = {"held": Verdict(TROUBLE, "No.", is_final=False)}
    desk = Falling(stored=["held", "left", "rest"], verdicts=verdicts, is_cautious=True)
    told = told_until((saying([raw("a")]), NOTHING), desk, has_taken(3))
    assert taken(told) == [("left", SUCCESS), ("rest", SUCCESS), ("a", SUCCESS)]
    assert [type(event) for event in told][:5] == [RetryLater, Taken, Taken, Offered, Taken]


# --- acknowledging: every verdict in the inbox is sent to the service until the service accepts it


Decided = tuple[str, PostedTimeStatus, str | None, str | None]
POSTED: Decided = ("a", PostedTimeStatus.SUCCESS, None, "4711")
DECLINED: Decided = ("b", PostedTimeStatus.REFUSED, "Assign a tag.", None)
TROUBLED: Decided = ("c", PostedTimeStatus.TROUBLE, "The ledger cannot be reached.", None)


def acknowledging(
    folder: Path,
    script: Sequence[Reply],
    verdicts: Sequence[Decided],
    scene: Scene,
    writer: type[InboxWriter] = InboxWriter,
    has_webhook: bool = False,
    timeout: float = 30.0,
) -> Any:
    """Play a scene with the loop, a scripted service and an inbox that holds these verdicts."""

    async def play() -> Any:
        told: list[Event] = []
        conduct = Conduct(timeout=timeout, attempts=1, breaks=False)
        with open_inbox(str(folder / "state.db"), write=True) as inbox:
            for id, outcome, message, external_id in verdicts:
                inbox.decide(inbox.receive(Offer(id, "d", "{}", "fetch")), outcome, message, external_id, waits=True)
            async with serving(*script) as server, Client(server.url, key, conduct=conduct) as client:
                loop = Acknowledging(client, writer(inbox), told.append, asyncio.Event(), has_webhook, SWIFT)
                async with asyncio.timeout(30):
                    return await scene(server, loop, told)

    return asyncio.run(play())


def acknowledge(
    folder: Path, script: Sequence[Reply], *verdicts: Decided, **given: Any
) -> tuple[list[Event], list[Any], dict[str, str]]:
    """Run the loop until all are settled; return its events, what the service was asked, and the final states."""

    async def until_it_ends(server: Scripted, loop: Acknowledging, told: list[Event]) -> tuple[list[Event], list[Any]]:
        await run_until(loop, told, ended(len(verdicts)))
        return told, [msgspec.json.decode(heard.body) for heard in server.heard]

    told, heard = acknowledging(folder, script, verdicts, until_it_ends, **given)
    with open_inbox(str(folder / "state.db"), write=False) as inbox:
        assert list(inbox.waiting()) == []
        return told, heard, {entry.group_id: entry.state for entry in inbox.entries()}


def ended(count: int) -> Any:
    return lambda told: sum(isinstance(event, Acknowledged | GivenUp) for event in told) >= count


def test_each_verdict_is_sent_once_with_its_reference_or_message(tmp_path: Path) -> None:
    """SUCCESS with the sink's reference, FAILURE and RETRIABLE_FAILURE with their messages."""
    _, heard, states = acknowledge(tmp_path, (OK,), POSTED, DECLINED, TROUBLED)
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
    told, heard, states = acknowledge(tmp_path, (lost, lost, lost, OK), POSTED)
    assert heard == [{"timeGroupId": "a", "status": "SUCCESS", "externalId": "4711"}] * 4
    assert sum(isinstance(event, RetryLater) for event in told) == 3
    assert states == {"a": "acknowledged"}


def test_rejected_status_updates_are_in_the_groups_story(tmp_path: Path) -> None:
    """Equal rejections in a row are one entry with a count, and bodies other than a message are not repeated."""
    maintenance = saying({"message": "maintenance"}, 503)
    script = (maintenance, maintenance, maintenance, Reply(500, b"a narrative"), CUT, OK)
    acknowledge(tmp_path, script, POSTED)
    with open_inbox(str(tmp_path / "state.db"), write=False) as inbox:
        entry, story = inbox.entry("a"), inbox.story("a")
    assert entry is not None
    told = [(e.message, e.detail) for e in story if e.kind == "unaccepted" and e.outcome == "SUCCESS"]
    assert told[:2] == [("503: maintenance", "3"), ("500 (no content type, 11 bytes)", None)]
    assert [e.kind for e in story[-2:]] == ["unaccepted", "status"]
    text = story_text(entry, story)
    assert "the service did not accept the status SUCCESS: 503: maintenance; 3 times" in text


def test_an_echoed_key_is_in_no_story_and_no_event(tmp_path: Path) -> None:
    """If the service's error repeats the API key, it is masked; a group id that holds the key is sent unchanged."""
    script = (saying({"message": f"{KEY} may not"}, 400), Reply(500, f"{KEY} at {KEY}".encode()), OK)
    told, heard, _ = acknowledge(tmp_path, script, (f"{KEY}-1", *POSTED[1:]))
    assert {body["timeGroupId"] for body in heard} == {f"{KEY}-1"}
    words = [event.why for event in told if isinstance(event, RetryLater)]
    assert (words[0], KEY in "".join(words)) == ("400: *** may not", False)
    with open_inbox(str(tmp_path / "state.db"), write=False) as inbox:
        assert KEY not in "".join(event.message or "" for event in inbox.story(f"{KEY}-1"))


def sent_for(heard: Sequence[Any]) -> str:
    """The ids of the groups whose status was sent, in order."""
    return "".join(body["timeGroupId"] for body in heard)


UNACCEPTED = [Reply(until=asyncio.Event()), saying("no", 400), saying({}, 401), saying({}, 403)]


@pytest.mark.parametrize("trouble", UNACCEPTED, ids=["timeout", "400", "401", "403"])
def test_a_status_that_met_trouble_is_repeated_after_the_waiting_ones(trouble: Reply, tmp_path: Path) -> None:
    """It does not delay others."""
    _, heard, _ = acknowledge(tmp_path, (trouble, OK), POSTED, DECLINED, timeout=0.5)
    assert sent_for(heard) == "aba"


def test_a_second_timeout_ends_the_round(tmp_path: Path) -> None:
    """The service is in trouble; the next round begins with the statuses that were not sent yet."""
    never = Reply(until=asyncio.Event())
    told, heard, _ = acknowledge(tmp_path, (never, never, OK), POSTED, DECLINED, TROUBLED, timeout=0.5)
    assert sent_for(heard)[:3] == "abc"
    assert [event.what for event in told if isinstance(event, RetryLater)] == ["acknowledge a", "acknowledge"]


def test_an_acceptance_is_recorded_while_other_requests_are_open(tmp_path: Path) -> None:
    """A process that dies while it waits for one answer does not repeat the accepted status later."""
    said = asyncio.Event()

    async def scene(_: Scripted, loop: Acknowledging, told: list[Event]) -> list[str]:
        round = asyncio.ensure_future(loop.round())
        await until(told, ended(1))
        with open_inbox(str(tmp_path / "state.db"), write=False) as inbox:
            left = [verdict.group_id for verdict in inbox.waiting()]
        said.set()
        await round
        return left

    found = acknowledging(tmp_path, (OK, Reply(until=said)), [POSTED, DECLINED], scene)
    assert found in (["b"], ["a"])  # whichever request arrived second


@pytest.mark.parametrize(("answer", "most"), [(saying({}, 401), SIDE_BY_SIDE), (OK, 2 * SIDE_BY_SIDE)])
def test_nothing_more_is_sent_once_the_service_or_inbox_fails(answer: Reply, most: int, tmp_path: Path) -> None:
    """The service rejects the API key, or no acceptance can be recorded: only open requests still go on."""

    class Lost(InboxWriter):
        async def write(self, work: Work[Any]) -> Any:
            raise LockLost("another process has it")

    async def scene(server: Scripted, loop: Acknowledging, _: list[Event]) -> int:
        with pytest.raises(LockLost) if answer is OK else nullcontext():
            await loop.round()
        return len(server.heard)

    writer = Lost if answer is OK else InboxWriter
    sent = acknowledging(tmp_path, (answer,), [(f"g{n}", *POSTED[1:]) for n in range(5 * SIDE_BY_SIDE)], scene, writer)
    assert SIDE_BY_SIDE <= sent <= most


def test_concurrent_rounds_run_one_after_the_other(tmp_path: Path) -> None:
    """A round by hand during a round of the loop sends no status twice."""
    said = asyncio.Event()

    async def scene(server: Scripted, loop: Acknowledging, _: list[Event]) -> list[Any]:
        server.on_request = lambda: asyncio.get_running_loop().call_later(0.1, said.set) and None
        await asyncio.gather(loop.round(), loop.round())
        return [msgspec.json.decode(heard.body) for heard in server.heard]

    assert sent_for(acknowledging(tmp_path, (Reply(until=said),), [POSTED, DECLINED], scene)) == "ab"


@pytest.mark.parametrize(("answer", "has_webhook"), [(404, False), (409, True)])
def test_a_group_that_takes_no_status_is_given_up(answer: int, has_webhook: bool, tmp_path: Path) -> None:
    """After a 404, or a 409 of a fetched group once the project has a webhook; the inbox shows it as given up."""
    script = (saying({}, answer), OK)
    told, heard, states = acknowledge(tmp_path, script, POSTED, DECLINED, has_webhook=has_webhook)
    assert [type(event) for event in told] == [GivenUp, Acknowledged]
    assert (len(heard), states) == (2, {"a": "given-up", "b": "acknowledged"})


# --- odd or unreadable posted time keeps no other group from being delivered


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


DEEP = b"[" * 50_000 + b"]" * 50_000


@pytest.mark.parametrize(
    "broken",
    [
        b'{"groupId":"bad","description":"%s",,}' % SECRET.encode(),
        b'{"description":"%s \\"groupId\\":\\"y\\" ] } [","tags":[{"groupId":"x"},%s],"groupId":"b\\u0061d"}'
        % (SECRET.encode(), DEEP),
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
