"""Whatever is offered, refused, lost or killed: every sink has a group before the service gets its SUCCESS."""

import asyncio
import csv
import random
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from syncengine.posted_time.build_route import BuiltRoute
from syncengine.posted_time.databases import Databases
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.durations import suffixes
from syncengine.posted_time.events import Verdict
from syncengine.posted_time.route import SinkRule
from syncengine.project.runner import Holder
from syncengine.state.database import LockLost, open_database
from syncengine.state.inbox import Inbox, InboxTransaction, open_inbox
from tests.posted_time.desk import SUCCESS, TROUBLE
from tests.posted_time.forgetful import FIND, finding_sink, forgetting
from tests.posted_time.mortal import Fate, Moody, lives
from tests.posted_time.projects import JSONL, SQL_SINK, bare_route, http_sink, ids, lines, project_into, rows
from tests.posted_time.receiver import Receiver
from tests.posted_time.samples import raw
from tests.posted_time.worker import TAGS, delivered, killed, work
from tests.support.once import MEMORY
from tests.support.profiles import tried
from tests.support.warm import working

pytestmark = pytest.mark.slow

IDS = st.sampled_from(["a", "b"])
CONTENTS = st.sampled_from([100, 200])
MOODS = st.lists(st.sampled_from(["take", "take", "refuse", "trouble", "lost"]), max_size=2)
DEATHS = st.none() | st.integers(0, 14)
OFFERS = st.tuples(st.just("offer"), IDS, CONTENTS, MOODS, MOODS, DEATHS)
ANSWERS = st.tuples(st.just("acknowledge"), st.booleans(), DEATHS)
HISTORIES = st.lists(OFFERS | OFFERS | ANSWERS, max_size=9)


class World:
    """The file of a state, two sinks, and the statuses that the service got."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "state.db")
        self.fate = Fate()
        self.sinks = (Moody("one", self.fate), Moody("two", self.fate))
        self.told: dict[str, str] = {}
        open_inbox(self.path, write=True).close()

    def live(self, work: Callable[[Delivery], Awaitable[Verdict | None]], deaths: int | None) -> Verdict | None:
        """Run one process; None if it died."""
        route = replace(bare_route(), sink_rules=tuple(SinkRule(sink, None) for sink in self.sinks))
        self.fate.left = deaths
        return lives(self.path, self.fate, BuiltRoute(route, Databases()), work, lambda: 1.0)

    def offer(self, group: str, content: int, deaths: int | None = None) -> Verdict | None:
        verdict = self.live(
            lambda delivery: delivery.take(raw(group, totalDurationSecs=content), mechanism="fetch"), deaths
        )
        if verdict is not None and verdict.outcome is SUCCESS:
            self.check_taken(group)
        return verdict

    def acknowledge(self, *, is_heard: bool, deaths: int | None = None) -> None:
        """Send the waiting statuses; with `is_heard` false the answers of the service are lost."""

        async def telling(delivery: Delivery) -> None:
            for update in delivery.inbox.waiting():
                if update.status == "SUCCESS":
                    self.check_taken(update.group_id)
                self.told[update.group_id] = update.status
                if is_heard:
                    delivery.inbox.write(lambda tx, told=update: tx.acknowledge(told.group_id, told.status))

        self.live(telling, deaths)

    def check_taken(self, group: str) -> None:
        """Every sink has the group before its SUCCESS is sent."""
        assert all(group in sink.took for sink in self.sinks)

    def check(self) -> None:
        """No sink holds two contents of one group, and every group with SUCCESS is in every sink."""
        for sink in self.sinks:
            assert all(len(contents) == 1 for contents in sink.took.values()), sink.took
        for group, status in self.told.items():
            if status == "SUCCESS":
                self.check_taken(group)


def _then_changed(first: str, *then: str, deaths: int | None = None) -> list[tuple[object, ...]]:
    """A sink answers so, then so or the process dies after so many instants, and then the user changes the group."""
    return [
        ("offer", "a", 100, [first], [], None),
        ("offer", "a", 100, [*then], [], deaths),
        ("offer", "a", 200, [], [], None),
    ]


@example(_then_changed("lost", "refuse"))
@example(_then_changed("lost", "trouble"))
@example(_then_changed("trouble", deaths=4))
@example(_then_changed("trouble", deaths=5))
@example(_then_changed("trouble", deaths=6))
@settings(max_examples=tried(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(HISTORIES)
def test_sinks_have_a_group_before_the_service_gets_success(history: list[tuple[object, ...]]) -> None:
    """Each sink gets one content only, and in the end every deliverable group is delivered."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        world = World(Path(folder))
        offered: dict[str, int] = {}
        for event in history:
            match event:
                case ("offer", str(group), int(content), list(first), list(second), deaths):
                    world.sinks[0].moods[:], world.sinks[1].moods[:] = first, second
                    world.offer(group, content, deaths if isinstance(deaths, int) else None)
                    offered[group] = content
                case ("acknowledge", bool(is_heard), deaths):
                    world.acknowledge(is_heard=is_heard, deaths=deaths if isinstance(deaths, int) else None)
            world.check()
        _come_to_rest(world, offered)


def _come_to_rest(world: World, offered: dict[str, int]) -> None:
    """Offer every group until it has a final verdict: FAILURE only if a sink holds another content."""
    for sink in world.sinks:
        sink.moods.clear()
    for group, content in offered.items():
        verdict = world.offer(group, content)
        assert verdict is not None
        assert verdict.outcome is not TROUBLE
        held = {text for sink in world.sinks for text in sink.took.get(group, ())}
        assert (verdict.outcome is SUCCESS) == (held == {str(content)})
        before = [list(sink.calls) for sink in world.sinks]
        assert world.offer(group, content) == verdict
        assert [sink.calls for sink in world.sinks] == before
    world.acknowledge(is_heard=True)
    world.check()
    assert world.told.keys() >= offered.keys()


def test_a_process_that_slept_through_its_lease_delivers_nothing(tmp_path: Path) -> None:
    """The delivery that had begun stays in doubt for the next process."""
    now, sink = 1_700_000_000.0, Moody("one", Fate())

    class Sleeper(Inbox):
        """An inbox whose clock passes the end of its lease once a delivery has begun."""

        def write(self, work: Callable[[InboxTransaction], Any]) -> Any:
            nonlocal now
            done = super().write(work)
            now += 61 * any(entry.deliveries for entry in self.entries())
            return done

    inbox = Sleeper(open_database(str(tmp_path / "state.db"), write=True), lambda: now)
    route = replace(bare_route(), sink_rules=(SinkRule(sink, None),))
    delivery = Delivery(BuiltRoute(route, Databases()), inbox, keep=1e9, now=lambda: now)
    with inbox, inbox.lease(Holder.here("serve", {}), wait=0):
        with pytest.raises(LockLost):
            asyncio.run(delivery.take(raw("g1"), mechanism="fetch"))
        assert sink.calls == []


# --- after SIGKILL


GROUPS = 25
TABLE = """\
- name: table
  csv: {path: out/time.csv, columns: {Id: "{{ group.groupId }}", Note: "'\\"{{ group.groupId }}\\"\\n{{ tag.name }}'"}}
"""
EXPECTED = Counter(f"g{number}" for number in range(GROUPS))
MATTERS = {7: "ACME-0042", 8: "ACME-0043"}


@pytest.mark.parametrize("seed", range(2))
def test_killed_again_and_again_each_tag_is_delivered_once(seed: int, tmp_path: Path, receiver: Receiver) -> None:
    """To a database, to files of both forms, and to a receiver that honours keys, whatever order the tags have."""
    tags = ("ACME-0043", "ACME-0042")
    archive = JSONL.replace("{name: archive,", "{name: archive, each: tag,")
    sinks = (TABLE, http_sink(receiver.url), SQL_SINK)
    project_into(tmp_path, archive + "".join(f"{sink}  each: tag\n" for sink in sinks))
    killed(tmp_path, GROUPS, random.Random(seed), tags)
    assert delivered(tmp_path, GROUPS, tags) == [*(f"{number} SUCCESS" for number in range(GROUPS)), "done"]
    expected = Counter((id, tag, 1800) for id in EXPECTED for tag in tags)
    assert Counter((id, MATTERS[matter], secs) for id, matter, secs in rows(tmp_path)) == expected
    assert Counter((line["groupId"], line["tag"]["name"], line["seconds"]) for line in lines(tmp_path)) == expected
    second = suffixes(tags)["ACME-0043"]
    assert receiver.kept.keys() == {f"{id}/pms{suffix}" for id in EXPECTED for suffix in ("", second)}
    asked = {got.headers["idempotency-key"]: (got.path, got.body["secs"]) for got in receiver.got}
    assert {asked[f"{id}/pms"] for id in EXPECTED} == {("/api/time/ACME-0042", 1800)}
    with (tmp_path / "out/time.csv").open(encoding="utf-8", newline="") as file:
        header, *found = csv.reader(file)
    notes = Counter((id, f"'\"{id}\"\n{tag}'") for id, tag, _ in expected)
    assert (header, Counter((id, note) for id, note in found)) == (["Id", "Note"], notes)
    with open_inbox(str(tmp_path / ".syncengine/state.db"), write=False) as inbox:
        assert {w.group_id for w in inbox.waiting()} == EXPECTED.keys()


MANY = 120


@pytest.mark.parametrize("seed", range(2))
def test_killed_while_many_come_at_once_each_group_is_there_once(seed: int, tmp_path: Path, receiver: Receiver) -> None:
    """Half of the groups have the same line, so only the memos of the inbox tell whose line it is."""
    chance = random.Random(seed)
    same = '{s: \'{{ group.groupId if group.groupId[-1] in "02468" else "same" }}\'}'
    archive = f"- {{name: archive, jsonl: {{path: out/time.jsonl, json: {same}}}}}\n"
    project_into(tmp_path, archive + http_sink(receiver.url) + SQL_SINK)
    file = tmp_path / "out/time.jsonl"
    for _ in range(6):
        size = file.stat().st_size if file.exists() else 0
        with working(work, tmp_path, MANY, TAGS, True) as worker:
            while (file.stat().st_size if file.exists() else 0) == size and worker.is_alive():
                time.sleep(0.001)
            time.sleep(chance.random() * 0.15)
            worker.kill()
    every = [f"g{number}" for number in range(MANY)]
    assert sorted(delivered(tmp_path, MANY, at_once=True)) == sorted([*(f"{id[1:]} SUCCESS" for id in every), "done"])
    assert Counter(ids(tmp_path)) == Counter(every)
    texts = Counter(id if int(id[1:]) % 2 == 0 else "same" for id in every)
    assert Counter(line["s"] for line in lines(tmp_path)) == texts
    assert receiver.kept.keys() == {f"{id}/pms" for id in every}


def test_killed_with_a_receiver_without_keys_each_group_is_there_once(tmp_path: Path) -> None:
    """It executes late, cuts connections and answers 504 after it executed; groups wait until `find` may ask."""
    usual = ("take", "take", "take", "cut", "lost", "gateway", "late")
    find = FIND.replace("after: 60s", "after: 1s")
    with forgetting(time.time, 1, usual=usual, latest=0.3, listing=0.3) as pms:
        project_into(tmp_path, finding_sink(pms.receiver.url, find), "")
        killed(tmp_path, GROUPS, random.Random(1))
        pms.usual = ("take",)
        end = time.monotonic() + 60
        said = [""]
        while not all(line.endswith(("SUCCESS", "done")) for line in said):
            assert time.monotonic() < end, said
            time.sleep(0.5)
            said = delivered(tmp_path, GROUPS, at_once=True)
        assert Counter(one.reference for one in pms.entries) == EXPECTED
