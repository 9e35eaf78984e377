"""Files that cannot be a state, or are a damaged one, are refused with a clear error."""

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


def refusal(path: Path, *, write: bool) -> SyncengineError:
    with pytest.raises(SyncengineError) as refused:
        open_state(str(path), write=write).close()
    return refused.value


@pytest.mark.parametrize("write", [True, False])
def test_an_empty_file_a_dangling_link_and_a_pipe_are_refused(path: Path, write: bool) -> None:
    """They are neither replaced by a new state nor waited for."""
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
def test_a_state_tracked_by_git_is_refused(path: Path, write: bool) -> None:
    """A proposed change could bring a forged state. An untracked state in the same repository is accepted."""
    open_state(str(path), write=True).close()
    subprocess.run(["git", "init", "-q", str(path.parent)], check=True)
    open_state(str(path), write=write).close()
    subprocess.run(["git", "-C", str(path.parent), "add", path.name], check=True)
    refused = refusal(path, write=write)
    assert (refused.code, "git rm --cached" in refused.message) == ("state-in-git", True)


def test_damaged_bytes_raise_only_the_programs_own_error(path: Path) -> None:
    """Wherever they are: the state can be read or the error is a single line."""
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
            with open_state(str(victim), write=False) as state:
                state.facts(), list(state.rows()), state.runs(9), state.history(Key(Kind.TAG, "T-1"))
                state.get([Key(Kind.TAG, "T-1")])
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
def test_a_damaged_lock_row_is_reported_as_damage(path: Path, damage: str) -> None:
    """When somebody tries to take the lock."""
    with applying(str(path)):
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(damage)
    with open_state(str(path), write=True) as state, pytest.raises(SyncengineError) as refused:
        state.lock(Holder.here("apply", {}), wait=0, request_timeout=1)
    assert refused.value.code == "state-damaged"


def test_a_run_with_an_invalid_start_is_reported_as_damage(path: Path) -> None:
    """When somebody reads the history."""
    with applying(str(path)):
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("UPDATE state_runs SET started = 'soon'").rowcount
    with open_state(str(path), write=False) as state, pytest.raises(SyncengineError) as refused:
        state.runs(9)
    assert refused.value.code == "state-damaged"


def test_a_new_state_appears_complete(path: Path) -> None:
    """It gets its name last, so a process that dies earlier leaves no partial state."""
    open_state(str(path), write=True).close()
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o777 == 0o600
    shutil.copyfile(path, path.with_name("copy.db"))
    with open_state(str(path.with_name("copy.db")), write=False) as copy, open_state(str(path), write=False) as state:
        assert copy.facts() == state.facts()
