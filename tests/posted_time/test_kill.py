"""SIGKILL at any instant: every group is in every sink, and in those that can tell, once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from syncengine.store.inbox import open_inbox
from tests.posted_time.projects import LOOKUPS, SQL_SINK, ledger, project, rows
from tests.posted_time.receiver import receiving
from tests.posted_time.test_sinks import JSONL, http_sink, lines

ROOT = Path(__file__).parents[2]
GROUPS = 25
KILLS = 6


def _worker(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.posted_time.worker", str(folder), str(GROUPS)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def _killed_after(folder: Path, heard: int, pause: float) -> None:
    """A worker that dies a moment after it said so many things."""
    with _worker(folder) as worker:
        assert worker.stdout is not None
        for _ in range(heard):
            worker.stdout.readline()
        time.sleep(pause)
        worker.kill()


@pytest.mark.parametrize("seed", range(2))
def test_killed_again_and_again_each_group_is_delivered_once(seed: int, tmp_path: Path) -> None:
    """To a database, a file, and a receiver that honours the key; the next process takes the lease at once."""
    chance = random.Random(seed)
    ledger(tmp_path)
    with receiving() as receiver:
        deliver = "".join(f"  {line}\n" for line in (JSONL + http_sink(receiver.url) + SQL_SINK).splitlines())
        project(tmp_path, f"{LOOKUPS}deliver:\n{deliver}")
        for _ in range(KILLS):
            _killed_after(tmp_path, chance.randrange(GROUPS), chance.random() * 0.02)
        with _worker(tmp_path) as last:
            assert last.stdout is not None
            said = last.stdout.read().splitlines()
        assert said == [*(f"{number} SUCCESS" for number in range(GROUPS)), "done"]
        expected = {f"g{number}" for number in range(GROUPS)}
        assert Counter(row[0] for row in rows(tmp_path)) == Counter(expected)
        assert Counter(line["groupId"] for line in lines(tmp_path)) == Counter(expected)
        assert receiver.kept.keys() == {f"{id}/pms" for id in expected}
    with open_inbox(str(tmp_path / ".syncengine/state.db"), write=False) as inbox:
        assert {w.group_id for w in inbox.waiting()} == expected
