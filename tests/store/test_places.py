"""What stands where a state should be: nothing is taken for a state that is none, and damage is told in a sentence."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import pytest

from syncengine.effects import Effect
from syncengine.errors import SyncengineError
from syncengine.resource import Key, Kind
from syncengine.state.holder import Holder
from syncengine.state.store import open_state

from .estate import applied, applying, tag, whole

SEED = 20260101


def _clock() -> float:
    return 1.0


def refusal(path: Path, *, write: bool) -> SyncengineError:
    """Why no state is opened there, however it is opened."""
    with pytest.raises(SyncengineError) as plain:
        open_state(str(path), write=write).close()
    with pytest.raises(SyncengineError) as glanced, open_state(str(path), write=False, now=_clock):
        pass
    assert glanced.value.code == plain.value.code
    return plain.value


@pytest.mark.parametrize("write", [True, False])
def test_what_can_be_no_state_is_not_taken_for_one(path: Path, write: bool) -> None:
    """An empty file, a link that leads nowhere, a pipe: neither a new state nor a wait for ever."""
    path.write_bytes(b"")
    assert "empty" in refusal(path, write=write).message
    assert path.read_bytes() == b""
    path.unlink()
    path.symlink_to("nowhere.db")
    assert "link" in refusal(path, write=write).message
    assert not (path.parent / "nowhere.db").exists()
    path.unlink()
    os.mkfifo(path)
    assert "regular" in refusal(path, write=write).message


@pytest.mark.parametrize("write", [True, False])
def test_a_state_under_git_is_not_believed(path: Path, write: bool) -> None:
    """Who proposes a change could bring one along; one that Git does not know is as good as ever."""
    open_state(str(path), write=True).close()
    subprocess.run(["git", "init", "-q", str(path.parent)], check=True)
    open_state(str(path), write=write).close()
    subprocess.run(["git", "-C", str(path.parent), "add", path.name], check=True)
    refused = refusal(path, write=write)
    assert (refused.code, "git rm --cached" in refused.message) == ("state-in-git", True)


def test_a_state_with_damaged_bytes_is_refused_in_a_sentence(path: Path) -> None:
    """Wherever the bytes are: what can be read is read, what cannot is told, and nothing else is ever raised."""
    with applying(str(path)) as state:
        for number in range(40):
            applied(state, f"c{number}", whole(tag(f"T-{number}"), description="words " * 9, url="https://a.example"))
        state.record([Effect(key=Key(Kind.TAG, "T-1"), protect=True)])
    whole_file, dice = path.read_bytes(), random.Random(SEED)
    refused = 0
    for number in range(300):
        spoilt = bytearray(whole_file)
        for _ in range(dice.choice((1, 4, 40))):
            spoilt[dice.randrange(len(spoilt))] = dice.randrange(256)
        victim = path.with_name(f"v{number}.db")
        victim.write_bytes(spoilt)
        try:
            with open_state(str(victim), write=False, now=_clock) as glance:
                glance.facts(), list(glance.rows()), glance.get([Key(Kind.TAG, "T-1")])
            with open_state(str(victim), write=False) as state:
                state.facts(), list(state.rows()), state.runs(9), state.history(Key(Kind.TAG, "T-1"))
                state.current_lock(), state.members(["c"])
        except SyncengineError as error:
            refused += 1
            assert "\n" not in error.message
        finally:
            for suffix in ("", "-wal", "-shm", "-journal"):
                with suppress(FileNotFoundError):
                    Path(f"{victim}{suffix}").unlink()
    assert refused > 20


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE state_lock SET lock_id = 'x', holder = '{}', acquired = 1, released = NULL",
        "UPDATE state_lock SET lock_id = 'x', holder = '[]', acquired = 1, released = NULL",
        "UPDATE state_lock SET lock_id = 'x', acquired = 'soon', released = NULL",
        "UPDATE state_lock SET lock_id = 'x', acquired = 1, expires = 'soon', released = NULL",
        "UPDATE state_lock SET seconds = 'many'",
    ],
)
def test_a_lock_that_makes_no_sense_is_told_in_a_sentence(path: Path, damage: str) -> None:
    """By whoever wants to take it."""
    with applying(str(path)):
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(damage)
    with open_state(str(path), write=True) as state, pytest.raises(SyncengineError) as refused:
        state.lock(Holder.here("apply", {}), wait=0, request_timeout=1)
    assert refused.value.code == "state-damaged"


def test_a_run_that_began_at_no_time_is_told_in_a_sentence(path: Path) -> None:
    """By whoever looks at the history."""
    with applying(str(path)):
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("UPDATE state_runs SET started = 'soon'").rowcount
    with open_state(str(path), write=False) as state, pytest.raises(SyncengineError) as refused:
        state.runs(9)
    assert refused.value.code == "state-damaged"


def test_a_state_is_whole_from_its_first_instant(path: Path) -> None:
    """It gets its name when it is made: whoever dies before that leaves nothing that could be taken for one."""
    open_state(str(path), write=True).close()
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o777 == 0o600
    shutil.copyfile(path, path.with_name("copy.db"))
    with open_state(str(path.with_name("copy.db")), write=False) as copy, open_state(str(path), write=False) as state:
        assert copy.facts() == state.facts()
