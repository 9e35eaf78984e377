"""States of version 6, whose journal has a line for each key: read as they are, and brought up to date."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import sqlalchemy as sa

from syncengine.effects import Effect
from syncengine.errors import SyncengineError
from syncengine.resource import Key, Status
from syncengine.state.database import open_database
from syncengine.state.history import HistoryEntry
from syncengine.state.info import VERSION
from syncengine.state.store import State, open_state
from syncengine.state.tables import FACTS
from tests.contract.program import DATABASES, ROOT, restore

from .before import NAMES, REMOVED, STOPPED, UNDER_WAY, record
from .estate import applied, applying, run, tag, whole

MANY = 20_000
STATEMENTS = 8
"""More than the migration has before its last."""


def version(url: str) -> int:
    engine = sa.create_engine(url if "://" in url else f"sqlite:///{url}")
    with engine.connect() as connection:
        found = connection.execute(sa.select(FACTS.c.version)).scalar_one()
    engine.dispose()
    return int(found)


def told(url: str, keys: Iterable[Key]) -> dict[Key, list[HistoryEntry]]:
    """What is told of these keys, without migrating."""
    with open_state(url, write=False) as state:
        return {key: state.history(key) for key in keys}


def doubtful(state: State) -> set[str]:
    return {row.key.name for row in state.rows() if row.doubtful}


def test_a_state_of_before_is_read_as_it_is(url: str) -> None:
    """By a plan, which never migrates: rows with the doubt of what is under way, history, and recent losses."""
    record(url, 50)
    with open_state(url, write=False) as state:
        assert doubtful(state) == {UNDER_WAY}
        found = (*state.get([tag(UNDER_WAY), tag(NAMES[1])]).values(), *state.members(["gone"]))
        assert (len(found), {row.key.name for row in found if row.doubtful}) == (52, {UNDER_WAY})
        outcomes = [[entry.outcome for entry in state.history(tag(name))] for name in (NAMES[1], STOPPED, UNDER_WAY)]
        assert outcomes == [["settled"], ["settled", "failed", "doubted"], ["settled", "intended"]]
        assert [(each.key.name, each.detail.status) for each in state.removals(0)] == [
            (REMOVED, (Status.ACTIVE, Status.RETIRED)),
            (UNDER_WAY, (Status.ACTIVE, Status.DELETED)),
        ]
    assert version(url) == 6


def test_a_reader_that_a_migration_overtakes_is_told_of_it(url: str) -> None:
    """The database can be reached, and the next reader has what it wants."""
    record(url, 5)
    with open_state(url, write=False) as state:
        open_state(url, write=True).close()
        with pytest.raises(SyncengineError) as refused:
            list(state.rows())
    assert refused.value.code == "state-changed"
    with open_state(url, write=False) as state:
        assert len(list(state.rows())) == 5


def test_a_large_state_is_brought_up_to_date_with_its_history(url: str) -> None:
    """All that was told is told as it was, what is new comes after it, and a resumed plan knows what had settled."""
    record(url, MANY)
    keys = [tag(name) for name in (*NAMES, f"T-{MANY - 1:05}")]
    before = told(url, keys)
    with open_state(url, write=True) as state:
        assert state.settled_calls("plan-1") == {"tags 0", "tags 1"}
        assert doubtful(state) == {UNDER_WAY}
        assert len(state.removals(0)) == 2
    assert (version(url), told(url, keys)) == (VERSION, before)
    with applying(url, run(3, started=3.0)) as state:
        assert doubtful(state) == {UNDER_WAY}
        applied(state, "c", *(Effect(key=key, keywords_dropped=(key.name,)) for key in keys))
        assert len(state.removals(0)) == 2 + len(keys)
    for key, entries in told(url, keys).items():
        assert entries[:-1] == before[key]
        assert (entries[-1].outcome, entries[-1].detail.keywords_deleted) == ("settled", (key.name,))


def test_a_migration_that_is_killed_has_not_begun(url: str) -> None:
    """Before each of its statements, and before its commit: the next program finds version 6 whole, and migrates it."""
    record(url, 50)
    keys = [tag(name) for name in NAMES]
    before = told(url, keys)
    for number in range(STATEMENTS):
        command = [sys.executable, "-m", "tests.store.before", url, str(number)]
        done = subprocess.run(command, cwd=ROOT, check=False)
        assert done.returncode == -signal.SIGKILL
        assert (version(url), told(url, keys)) == (6, before)
    open_state(url, write=True).close()
    assert (version(url), told(url, keys)) == (VERSION, before)


@pytest.mark.parametrize("situation", ["planned", "interrupted"])
def test_states_of_an_earlier_day_tell_what_they_told(situation: str, tmp_path: Path) -> None:
    """Of every resource, and each is in doubt that was."""
    path = str(restore(tmp_path, situation) / DATABASES["state.sql"])
    with open_state(path, write=False) as state:
        rows = {row.key: row for row in state.rows()}
    before = told(path, rows)
    open_database(path, write=True, new_lineage=lambda: "never").close()
    assert (version(path), told(path, rows)) == (VERSION, before)
    with open_state(path, write=False) as state:
        assert {row.key: row for row in state.rows()} == rows


def test_what_is_forgotten_and_comes_again_has_one_history(url: str) -> None:
    """Of lines for one key, packed ones, and those of a row that is gone."""
    record(url, 50)
    key = tag(NAMES[1])
    for number in (3, 4):
        with applying(url, run(number)) as state:
            applied(state, "c", whole(key, description=str(number)))
            state.forget([key])
    with applying(url, run(5)) as state:
        applied(state, "c", whole(key))
        outcomes = [(entry.run, entry.outcome) for entry in state.history(key)]
    again = [(f"run-{number}", outcome) for number in (3, 4) for outcome in ("settled", "forgotten")]
    assert outcomes == [("run-1", "settled"), *again, ("run-5", "settled")]
