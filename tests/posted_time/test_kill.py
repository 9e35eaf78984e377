"""After SIGKILL at any instant every group is in every sink, exactly once in each sink that can recognize it."""

from __future__ import annotations

import csv
import random
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from syncengine.posted_time.durations import suffixes
from syncengine.state.inbox import open_inbox
from tests.posted_time.forgetful import FIND, finding_sink, forgetting
from tests.posted_time.projects import JSONL, SQL_SINK, http_sink, ledger, lines, project_into, rows
from tests.posted_time.receiver import Receiver
from tests.posted_time.worker import work
from tests.support.warm import working

pytestmark = pytest.mark.slow

GROUPS = 25
KILLS = 6


def _killed_after(folder: Path, tags: tuple[str, ...], heard: int, pause: float) -> None:
    """Run a worker and kill it shortly after it printed that many lines."""
    with working(work, folder, GROUPS, tags) as worker:
        for _ in range(heard):
            worker.stdout.readline()
        time.sleep(pause)
        worker.kill()


def _killed_and_finished(folder: Path, deliver: str, tags: tuple[str, ...], seed: int) -> None:
    chance = random.Random(seed)
    ledger(folder)
    project_into(folder, deliver)
    for _ in range(KILLS):
        _killed_after(folder, tags, chance.randrange(GROUPS), chance.random() * 0.02)
    with working(work, folder, GROUPS, tags) as last:
        said = last.stdout.read().splitlines()
    assert said == [*(f"{number} SUCCESS" for number in range(GROUPS)), "done"]


TABLE = """\
- name: table
  csv: {path: out/time.csv, columns: {Id: "{{ group.groupId }}", Note: "'\\"{{ group.groupId }}\\"\\n{{ tag.name }}'"}}
"""
EXPECTED = Counter(f"g{number}" for number in range(GROUPS))


@pytest.mark.parametrize("seed", range(2))
def test_killed_again_and_again_each_group_is_delivered_once(seed: int, tmp_path: Path, receiver: Receiver) -> None:
    """To a database, to files of both forms, and to a receiver that honours the Idempotency-Key.

    The CSV file has a single header, and records with line breaks and quotes.
    """
    _killed_and_finished(tmp_path, TABLE + JSONL + http_sink(receiver.url) + SQL_SINK, ("ACME-0042",), seed)
    assert Counter(row[0] for row in rows(tmp_path)) == EXPECTED
    assert Counter(line["groupId"] for line in lines(tmp_path)) == EXPECTED
    assert receiver.kept.keys() == {f"{id}/pms" for id in EXPECTED}
    with (tmp_path / "out/time.csv").open(encoding="utf-8", newline="") as file:
        header, *found = csv.reader(file)
    assert (header, Counter(id for id, _ in found)) == (["Id", "Note"], EXPECTED)
    with open_inbox(str(tmp_path / ".syncengine/state.db"), write=False) as inbox:
        assert {w.group_id for w in inbox.waiting()} == EXPECTED.keys()


def test_killed_again_and_again_each_tag_of_a_group_is_delivered_once(tmp_path: Path, receiver: Receiver) -> None:
    """Whatever order the tags have in each process; the seconds of the tags add up to the total."""
    archive = JSONL.replace("{name: archive,", "{name: archive, each: tag,")
    deliver = archive + http_sink(receiver.url) + "  each: tag\n" + SQL_SINK + "  each: tag\n"
    _killed_and_finished(tmp_path, deliver, ("ACME-0043", "ACME-0042"), seed=0)
    expected = Counter((id, tag, 1800) for id in EXPECTED for tag in ("ACME-0042", "ACME-0043"))
    matters = {7: "ACME-0042", 8: "ACME-0043"}
    assert Counter((id, matters[matter], secs) for id, matter, secs in rows(tmp_path)) == expected
    assert Counter((line["groupId"], line["tag"]["name"], line["seconds"]) for line in lines(tmp_path)) == expected
    second = suffixes(matters.values())["ACME-0043"]
    assert receiver.kept.keys() == {f"{id}/pms{suffix}" for id in EXPECTED for suffix in ("", second)}
    asked = {got.headers["idempotency-key"]: (got.path, got.body["secs"]) for got in receiver.got}
    assert {asked[f"{id}/pms"] for id in EXPECTED} == {("/api/time/ACME-0042", 1800)}


MANY = 120


@pytest.mark.parametrize("seed", range(2))
def test_killed_while_many_come_at_once_each_group_is_delivered_once(
    seed: int, tmp_path: Path, receiver: Receiver
) -> None:
    """Killed at any instant of a batch, for example between the commit of the ledger and that of the inbox.

    Half of the groups have the same line, so only the memos of the inbox tell whose line it is.
    """
    chance = random.Random(seed)
    ledger(tmp_path)
    same = '{s: \'{{ group.groupId if group.groupId[-1] in "02468" else "same" }}\'}'
    archive = f"- {{name: archive, jsonl: {{path: out/time.jsonl, json: {same}}}}}\n"
    deliver = archive + http_sink(receiver.url) + SQL_SINK
    project_into(tmp_path, deliver)
    for _ in range(KILLS):
        _killed_at_work(tmp_path, chance)
    with working(partial(work, at_once=True), tmp_path, MANY) as last:
        said = last.stdout.read().splitlines()
    assert sorted(said) == sorted([*(f"{number} SUCCESS" for number in range(MANY)), "done"])
    ids = [f"g{number}" for number in range(MANY)]
    assert Counter(row[0] for row in rows(tmp_path)) == Counter(ids)
    texts = Counter(id if int(id[1:]) % 2 == 0 else "same" for id in ids)
    assert Counter(line["s"] for line in lines(tmp_path)) == texts
    assert receiver.kept.keys() == {f"{id}/pms" for id in ids}


def _killed_at_work(folder: Path, chance: random.Random) -> None:
    """Run a worker and kill it once the file has grown, or a little later."""
    file = folder / "out/time.jsonl"
    size = file.stat().st_size if file.exists() else 0
    with working(partial(work, at_once=True), folder, MANY) as worker:
        end = time.monotonic() + 20
        while (file.stat().st_size if file.exists() else 0) == size and worker.is_alive():
            if time.monotonic() > end:
                break
            time.sleep(0.001)
        time.sleep(chance.random() * 0.15)
        worker.kill()


def test_killed_with_a_receiver_without_keys_each_group_is_there_once(tmp_path: Path) -> None:
    """It executes late, cuts connections and answers 504 after it executed; groups wait until `find` may ask."""
    chance = random.Random(1)
    usual = ("take", "take", "take", "cut", "lost", "gateway", "late")
    find = FIND.replace("after: 60s", "after: 1s")
    with forgetting(time.time, 1, usual=usual, latest=0.3, listing=0.3) as pms:
        project_into(tmp_path, finding_sink(pms.receiver.url, find), "")
        for _ in range(KILLS):
            _killed_after(tmp_path, ("ACME-0042",), chance.randrange(GROUPS), chance.random() * 0.02)
        pms.usual = ("take",)
        end = time.monotonic() + 60
        said = [""]
        while not all(line.endswith(("SUCCESS", "done")) for line in said):
            assert time.monotonic() < end, said
            time.sleep(0.5)
            with working(partial(work, at_once=True), tmp_path, GROUPS) as last:
                said = last.stdout.read().splitlines()
        assert Counter(one.reference for one in pms.entries) == EXPECTED
