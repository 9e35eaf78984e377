"""After SIGKILL at any instant every group is in every sink, exactly once in each sink that can recognize it."""

from __future__ import annotations

import csv
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from syncengine.posted_time.durations import suffixes
from syncengine.state.inbox import open_inbox
from tests.posted_time.forgetful import FIND, finding_sink, forgetting
from tests.posted_time.projects import JSONL, SQL_SINK, http_sink, ids, lines, project_into, rows
from tests.posted_time.receiver import Receiver
from tests.posted_time.worker import TAGS, delivered, killed, work
from tests.support.warm import working

pytestmark = pytest.mark.slow

GROUPS = 25
TABLE = """\
- name: table
  csv: {path: out/time.csv, columns: {Id: "{{ group.groupId }}", Note: "'\\"{{ group.groupId }}\\"\\n{{ tag.name }}'"}}
"""
EXPECTED = Counter(f"g{number}" for number in range(GROUPS))
MATTERS = {7: "ACME-0042", 8: "ACME-0043"}


@pytest.mark.parametrize("seed", range(2))
def test_killed_again_and_again_each_tag_of_a_group_is_delivered_once(
    seed: int, tmp_path: Path, receiver: Receiver
) -> None:
    """To a database, to files of both forms, and to a receiver that honours the Idempotency-Key.

    Whatever order the tags have in each process. The CSV file has a single header, and records with line breaks and
    quotes.
    """
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
def test_killed_while_many_come_at_once_each_group_is_delivered_once(
    seed: int, tmp_path: Path, receiver: Receiver
) -> None:
    """Killed at any instant of a batch, for example between the commit of the ledger and that of the inbox.

    Half of the groups have the same line, so only the memos of the inbox tell whose line it is.
    """
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
