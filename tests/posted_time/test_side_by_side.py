"""Groups that are delivered concurrently succeed or fail independently of each other."""

import asyncio
import errno
import fcntl
import json
import os
import resource
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from syncengine.errors import SyncengineError
from syncengine.posted_time.build_route import build
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import Verdict
from syncengine.posted_time.pace import WIDTH, Turns, each, side_by_side
from syncengine.service.posted_time import Unreadable
from syncengine.state.inbox import InboxTransaction, InboxWriter, open_inbox
from syncengine.state.inbox_model import InboxEntry, Offer, PostedTimeStatus
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE, Desk, at_work, outcomes, taking
from tests.posted_time.mortal import Dead, Fate, lives
from tests.posted_time.projects import BARE_SINK, JSONL, SQL_SINK, delivering, ids, lines, locked, project_into, rows
from tests.posted_time.samples import raw, some

pytestmark = pytest.mark.slow


def together(delivery: Delivery, *groups: dict[str, Any]) -> list[Verdict]:
    with at_work(delivery) as desk:
        return desk.together(*groups)


def test_side_by_side_waits_for_everything_it_began() -> None:
    """Even if one task fails. Never more tasks than `width` run at once, and none is begun once `width` is zero."""
    most, now, ended, width = 0, 0, list[int](), 3

    async def work(number: int) -> None:
        nonlocal most, now, width
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        width = 0 if number == 5 else width
        ended.append(number)
        if number == 4:
            raise ValueError("4")

    with pytest.raises(ValueError, match="4"):
        asyncio.run(side_by_side(each(range(100)), work, lambda: width))
    assert (most, now) == (3, 0)
    assert ended == list(range(len(ended)))
    assert len(ended) < 10


def test_who_waits_gives_up_once_as_many_turns_are_in_vain_as_there_are_at_once() -> None:
    async def play(vain: int) -> int:
        target, had = Turns(2), list[int]()

        async def caller(number: int) -> None:
            async with target.one(TimeoutError()):
                had.append(number)
                await asyncio.sleep(0)
                if number < vain:
                    target.give_up()

        await asyncio.gather(*map(caller, range(6)), return_exceptions=True)
        return len(had)

    assert [asyncio.run(play(vain)) for vain in range(3)] == [6, 6, 2]


def offered(id: str) -> Callable[[InboxTransaction], InboxEntry]:
    return lambda tx: tx.receive(Offer(id, "d", "{}", "fetch"))


def test_a_group_that_cannot_be_stored_does_not_affect_others(tmp_path: Path) -> None:
    """Its row was damaged by hand; the other groups of the batch are stored."""
    with open_inbox(str(tmp_path / "state.db"), write=True) as inbox:
        inbox.write(offered("bad"))
        with inbox.database.engine.begin() as connection:
            connection.execute(sa.text("UPDATE inbox_groups SET state = 'paused'"))

        async def play() -> list[Any]:
            writer = InboxWriter(inbox)
            writes = (writer.write(offered(id)) for id in ("a", "bad", "b"))
            return await asyncio.gather(*writes, return_exceptions=True)

        found = asyncio.run(play())
        assert [isinstance(one, SyncengineError) for one in found] == [False, True, False]
        assert [id for _, id in inbox.undecided(None, 10)] == ["a", "b"]


DEFERRED = """
DROP TABLE time;
CREATE TABLE time (
    id TEXT NOT NULL, matter INTEGER REFERENCES matter (id) DEFERRABLE INITIALLY DEFERRED, secs INTEGER, note TEXT
);
"""


def test_a_refused_commit_does_not_affect_other_groups(tmp_path: Path) -> None:
    """A deferred constraint fails at commit; the next group uses the same connection."""
    groups = [raw(f"g{number}", description="99" if number == 2 else "7") for number in range(4)]
    sink = SQL_SINK.replace("{{ lookup.matter.id }}", "{{ group.description }}")
    with at_work(delivering(tmp_path, sink, "")) as desk:
        with closing(sqlite3.connect(tmp_path / "ledger.db")) as ledger:
            ledger.executescript(DEFERRED)
        assert outcomes(desk.together(*groups)) == [SUCCESS, SUCCESS, REFUSED, SUCCESS]
        for id, matter, outcome in (("alone", "99", REFUSED), ("next", "8", SUCCESS)):
            assert desk.take(raw(id, description=matter)).outcome is outcome
    assert sorted(ids(tmp_path)) == ["g0", "g1", "g3", "next"]
    assert {*rows(tmp_path, "SELECT group_id FROM syncengine_receipts")} == {(id,) for id in ids(tmp_path)}


SIGNED_MEANWHILE = """
CREATE TRIGGER meanwhile AFTER INSERT ON time WHEN total_changes() < {most}
BEGIN INSERT INTO syncengine_receipts VALUES (NEW.id, 'ledger', 1, 'd', NULL, 1.0); END;
"""
"""A receipt that stands in the way of ours. `total_changes` of a connection also counts what was rolled back."""


@pytest.mark.parametrize(("most", "outcome", "there"), [(2, SUCCESS, 1), (100, REFUSED, 0)])
def test_a_receipt_in_the_way_is_read_again(tmp_path: Path, most: int, outcome: PostedTimeStatus, there: int) -> None:
    """Another process delivered the group meanwhile: the transaction is rolled back and made once more."""
    with at_work(delivering(tmp_path)) as desk:
        with closing(sqlite3.connect(tmp_path / "ledger.db")) as other:
            other.executescript(SIGNED_MEANWHILE.format(most=most))
        assert desk.take(raw("g")).outcome is outcome
    assert len(rows(tmp_path)) == len(rows(tmp_path, "SELECT * FROM syncengine_receipts")) == there


@pytest.mark.parametrize(("again", "description"), [("ac", "x"), ("ca", "x"), ("a", "another")])
def test_groups_with_equal_lines_have_one_line_each(again: str, description: str, tmp_path: Path) -> None:
    """The line of `a` was never written, and that of `c` is in its place: even another `a` may be posted."""
    same, file = "- {name: archive, jsonl: {path: out/time.jsonl, json: {note: same}}}\n", tmp_path / "out/time.jsonl"
    for id in "ac":
        taking(delivering(tmp_path, same, ""), raw(id, description="x"))
        if id == "a":
            file.write_bytes(b"")
        with closing(sqlite3.connect(tmp_path / ".syncengine/state.db")) as state, state:
            state.execute("UPDATE inbox_deliveries SET status = 'attempting' WHERE group_id = ?", id)
            state.execute("UPDATE inbox_groups SET state = 'delivering', outcome = NULL WHERE group_id = ?", id)
    verdicts = together(delivering(tmp_path, same, ""), *(raw(id, description=description) for id in again))
    assert {*outcomes(verdicts)} == {SUCCESS}
    assert lines(tmp_path) == [{"note": "same"}] * 2


def test_a_group_offered_again_while_its_status_is_sent_is_answered_again(tmp_path: Path) -> None:
    """The acceptance of the first status does not cover the second offer."""
    with at_work(delivering(tmp_path)) as desk:
        desk.take(raw())
        (sent,) = desk.inbox.waiting()
        desk.take(raw())
        desk.inbox.write(lambda tx: tx.acknowledge(sent.group_id, sent.status, sent.decided, sent.offers))
        (again,) = desk.inbox.waiting()
        desk.inbox.write(lambda tx: tx.acknowledge(again.group_id, again.status, again.decided, again.offers))
        assert list(desk.inbox.waiting()) == []


CALLS: dict[str, tuple[Callable[[Desk], object], int]] = {
    "again": (lambda desk: desk.wait(desk.again("g1")), 1),
    "store": (lambda desk: desk.store(raw("g1")), 1),
    "take": (lambda desk: desk.take(raw("g1", totalDurationSecs=7200)), 1),
    "an unreadable offer": (lambda desk: desk.store(Unreadable("g1", "unreadable")), 0),
}


@pytest.mark.parametrize(("other", "count"), CALLS.values(), ids=CALLS)
def test_a_group_of_another_call_is_checked_again(other: Callable[[Desk], object], count: int, tmp_path: Path) -> None:
    """No sink gets it twice, and a refusal is not overruled."""

    async def twice(opened: Delivery) -> None:
        await asyncio.gather(opened.resume(asyncio.Event()), opened.resume(asyncio.Event()))

    with at_work(delivering(tmp_path)) as desk:
        desk.store(raw("g1"))
        other(desk)
        desk.wait(twice(desk.delivery))
    assert len(rows(tmp_path)) == count


def test_groups_not_begun_when_a_sink_goes_down_stay_in_the_inbox(tmp_path: Path) -> None:
    """They are delivered once the sink is up, without another offer."""
    sink = BARE_SINK
    with at_work(delivering(tmp_path, sink, "", sources="ledger: {sql: 'sqlite:///ledger.db?timeout=0.05'}")) as desk:
        for group in some(3 * WIDTH):
            desk.store(group)
        with locked(tmp_path / "ledger.db"):
            assert len(desk.resume()) == WIDTH
        assert desk.inbox.counts() == {"received": 2 * WIDTH, "troubled": WIDTH}
        assert desk.check_sinks() == ()
        assert len(desk.resume()) == 2 * WIDTH
    assert len(rows(tmp_path)) == 2 * WIDTH


def test_a_group_is_never_in_two_deliveries_at_once(tmp_path: Path) -> None:
    """It is offered three times and retried by hand at once; a changed content does not overtake the first."""

    async def story(opened: Delivery) -> None:
        offers = [raw("g1"), raw("g1"), raw("g1", description="another")]
        takes = (opened.take(offer, mechanism="fetch") for offer in offers)
        found = await asyncio.gather(*takes, opened.again("g1"), opened.again("g1"))
        assert [verdict and verdict.outcome for verdict in found[:3]] == [SUCCESS, SUCCESS, REFUSED]

    with at_work(delivering(tmp_path, JSONL + SQL_SINK)) as desk:
        desk.wait(story(desk.delivery))
    assert (ids(tmp_path), [line["groupId"] for line in lines(tmp_path)]) == (["g1"], ["g1"])


def test_a_full_disk_in_the_middle_of_a_line_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Some lines are whole, one is torn and others are missing: the memo of each line tells which."""
    groups = [raw(f"g{number}", description="x" * 400) for number in range(12)]
    with at_work(delivering(tmp_path, JSONL, "")) as desk:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        state = sum(file.stat().st_size for file in (tmp_path / ".syncengine").iterdir())
        size = max(2_000_000, 2 * state)  # room for the inbox, and for about five lines of the file
        (tmp_path / "out").mkdir()
        (tmp_path / "out/time.jsonl").write_bytes(b'"' + b"x" * (size - 5_000 - 3) + b'"\n')
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
        try:
            first = outcomes([desk.take(group) for group in groups])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            signal.signal(signal.SIGXFSZ, handler)
        assert (set(first), set(outcomes(desk.together(*groups)))) == ({SUCCESS, TROUBLE}, {SUCCESS})
    written = (tmp_path / "out/time.jsonl").read_bytes().splitlines()[1:]
    assert sorted(json.loads(line)["groupId"] for line in written) == sorted(group["groupId"] for group in groups)


def test_a_line_is_no_success_before_its_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If fsync fails, the delivery is in doubt; the next attempt syncs the line before it counts."""
    errors, synced = [OSError(errno.EIO, "the disk")], list[int]()

    def fsync(file: int) -> None:
        if errors:
            raise errors.pop()
        synced.append(os.fstat(file).st_size)

    monkeypatch.setattr(os, "fsync", fsync)
    with at_work(delivering(tmp_path, JSONL, "")) as desk:
        assert desk.take(raw("g1")).outcome is TROUBLE
        (entry,) = desk.inbox.entries()
        assert (entry.deliveries[0].status, synced) == ("unknown", [])
        size = (tmp_path / "out/time.jsonl").stat().st_size
        assert desk.take(raw("g1")).outcome is SUCCESS
        assert synced == [size]
    assert [line["groupId"] for line in lines(tmp_path)] == ["g1"]


@pytest.mark.parametrize("instants", range(30))
def test_a_death_at_any_instant_of_a_batch_loses_and_doubles_nothing(instants: int, tmp_path: Path) -> None:
    """The process dies before or after any transaction of the inbox. Some groups have the same line."""
    same = "- {name: archive, jsonl: {path: out/time.jsonl, json: {note: '{{ group.description }}'}}}\n"
    groups = [raw(f"g{number}", description="one" if number % 3 else "two") for number in range(6)]
    found = project_into(tmp_path, same + SQL_SINK)
    open_inbox(found.state, write=True).close()

    async def dies(delivery: Delivery) -> bool:
        takes = (delivery.take(group, mechanism="fetch") for group in groups)
        return any(isinstance(one, Dead) for one in await asyncio.gather(*takes, return_exceptions=True))

    has_died = lives(found.state, Fate(instants), build(found, {}, now=time.time), dies, time.time)
    assert has_died is not False or instants >= 12  # how many transactions a batch makes depends on who comes when
    assert {*outcomes(together(delivering(tmp_path, same + SQL_SINK), *groups))} == {SUCCESS}
    assert sorted(ids(tmp_path)) == [f"g{number}" for number in range(6)]
    assert sorted(line["note"] for line in lines(tmp_path)) == ["one"] * 4 + ["two"] * 2


def test_a_group_is_not_begun_again_before_a_cancelled_attempt_has_ended(tmp_path: Path) -> None:
    """The caller is gone, but its thread still writes: the next attempt finds its line."""
    path = tmp_path / "out/time.jsonl"
    path.parent.mkdir()

    async def story(opened: Delivery) -> Verdict:
        with path.open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            first = asyncio.create_task(opened.take(raw("g1"), mechanism="webhook"))
            (sink,) = opened.route.sinks
            turns = sink._turns._free  # type: ignore[attr-defined] # no public attribute shows that it writes
            while not turns.locked():  # noqa: ASYNC110 # nothing signals it
                await asyncio.sleep(0.01)
            first.cancel()
            second = asyncio.create_task(opened.take(raw("g1"), mechanism="webhook"))
            await asyncio.sleep(0.2)
        await asyncio.wait([first])
        assert first.cancelled()
        return await second

    with at_work(delivering(tmp_path, JSONL, "")) as desk:
        assert desk.wait(story(desk.delivery)).outcome is SUCCESS
    assert [line["groupId"] for line in lines(tmp_path)] == ["g1"]
