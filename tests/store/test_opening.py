"""Opening a state that exists, is missing, is read-only, or is something else."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event

from syncengine.errors import SyncengineError
from syncengine.state.records import Attempt
from syncengine.state.store import State, open_state
from syncengine.state.tables import VERSION

from .estate import applied, applying, run, tag, whole

NOBODY = 65534


@contextmanager
def ordinary_user(*paths: Path) -> Iterator[None]:
    """Run as a user who owns these paths; root could write anywhere."""
    if os.geteuid() != 0:
        yield
        return
    for path in paths:
        os.chown(path, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def sealed(folder: Path) -> Iterator[None]:
    """Make the folder read-only."""
    folder.chmod(0o555)
    try:
        with ordinary_user(folder, *folder.iterdir()):
            yield
    finally:
        folder.chmod(0o755)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can reach, unlike pytest's."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def left_by_a_crash(path: Path, folder: Path) -> Path:
    """A copy of a state as a killed process leaves it: the last commits are only in its -wal file."""
    with applying(str(path)) as state:
        applied(state, "c", whole(tag("a")))
        assert state.lease is not None
        state.lease.release()  # this process is alive, and would hold the lock in the copy as well
        for file in path.parent.glob("state.db*"):
            shutil.copy(file, folder)
    assert (folder / "state.db-wal").stat().st_size > 0
    return folder / "state.db"


def _names(path: Path) -> list[str]:
    with open_state(str(path), write=False) as state:
        return [row.key.name for row in state.rows()]


def test_a_missing_state_reads_as_empty_and_stays_missing(path: Path) -> None:
    """A plan creates no file."""
    with open_state(str(path / "deeper" / "state.db"), write=False) as state:
        assert not state.exists
        assert list(state.rows()) == state.runs(1) == state.open_sessions() == state.members(["x"]) == []
        assert (state.facts().lineage, state.facts().commit, state.current_lock()) == ("", None, None)
    assert not list(path.parent.iterdir())


def test_only_the_owner_can_read_a_new_state(path: Path) -> None:
    """This holds for all files of SQLite. Missing folders are created."""
    deep = path.parent / "a" / "b" / "state.db"
    with applying(str(deep)) as state:
        assert state.exists
        files = list(deep.parent.iterdir())
        assert len(files) == 3
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_state_keeps_its_lineage(path: Path) -> None:
    """It is chosen when the state is created."""
    lineages = []
    for _ in range(2):
        with open_state(str(path), write=True) as state:
            lineages.append(state.facts().lineage)
    assert lineages[0] == lineages[1] != ""


def test_a_state_at_rest_is_one_file(path: Path) -> None:
    """It can be copied and cached, and reading it adds no file."""
    with applying(str(path)) as state:
        applied(state, "c", whole(tag("a")))
    before = path.read_bytes()
    assert _names(path) == ["a"]
    assert [file.name for file in path.parent.iterdir()] == ["state.db"]
    assert path.read_bytes() == before


def test_a_reader_sees_what_a_concurrent_writer_committed(path: Path) -> None:
    """For example a plan during an apply, but not in the middle of one reading."""
    with applying(str(path)) as writer, open_state(str(path), write=False) as reader:
        applied(writer, "c", whole(tag("a")), whole(tag("b")))
        rows = reader.rows()
        assert next(rows).key == tag("a")
        applied(writer, "d", whole(tag("aa")))
        assert [row.key.name for row in rows] == ["b"]
        assert [row.key.name for row in reader.rows()] == ["a", "aa", "b"]


def test_a_state_in_a_read_only_folder_can_be_read(folder: Path) -> None:
    """A state at rest needs no other file."""
    path = folder / "state.db"
    with applying(str(path)) as state:
        applied(state, "c", whole(tag("a")))
    with sealed(folder):
        with pytest.raises(PermissionError):
            (folder / "other").touch()
        assert _names(path) == ["a"]


def test_a_crashed_state_in_a_read_only_folder_is_refused(path: Path, folder: Path) -> None:
    """SQLite would have to recover it; the error says so."""
    copy = left_by_a_crash(path, folder)
    Path(f"{copy}-shm").unlink()
    with sealed(folder), pytest.raises(SyncengineError) as refused:
        _names(copy)
    assert refused.value.code in ("state-unreadable", "state-read-only")


def test_the_next_writer_recovers_a_crashed_state(path: Path, folder: Path) -> None:
    """No committed change is lost."""
    with applying(str(left_by_a_crash(path, folder)), run(2)) as state:
        assert [row.key.name for row in state.rows()] == ["a"]
        assert [r.outcome for r in state.runs(9)] == [None, "died"]


def _set_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE state_facts SET version = ?", (version,))
        connection.commit()


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("version", [1, VERSION + 1])
def test_a_state_of_another_version_is_refused_with_the_cure(path: Path, version: int, write: bool) -> None:
    """The message names `state export`, and the file is unchanged."""
    open_state(str(path), write=True).close()
    _set_version(path, version)
    before = path.read_bytes()
    with pytest.raises(SyncengineError, match="`syncengine state export` with that version") as refusal:
        open_state(str(path), write=write)
    assert (refusal.value.code, refusal.value.exit_code) == ("state-version", 1)
    assert path.read_bytes() == before


def _is_a_folder(path: Path) -> None:
    path.mkdir()


def _is_text(path: Path) -> None:
    path.write_text("tags:\n- name: this is a manifest and not a state\n" * 30)


def _is_another_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE matters (id INTEGER)")


def _is_damaged(path: Path) -> None:
    open_state(str(path), write=True).close()
    whole_file = path.read_bytes()
    path.write_bytes(whole_file[:4096] + os.urandom(len(whole_file) - 4096))


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (_is_a_folder, "state-unreadable"),
        (_is_text, "state-foreign"),
        (_is_another_database, "state-foreign"),
        (_is_damaged, "state-damaged"),
    ],
)
def test_a_file_that_is_no_state_is_refused_and_unchanged(path: Path, spoil: object, code: str, write: bool) -> None:
    """The message is one line and names the file."""
    assert callable(spoil)
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(SyncengineError) as refusal:
        open_state(str(path), write=write)
    assert refusal.value.code == code
    assert str(path) in refusal.value.message
    assert "\n" not in refusal.value.message
    assert before == (path.read_bytes() if path.is_file() else b"")


def test_an_unreadable_state_is_refused(folder: Path) -> None:
    """The message says that permission is denied."""
    path = folder / "state.db"
    open_state(str(path), write=True).close()
    path.chmod(0)
    with sealed(folder), pytest.raises(SyncengineError, match="permission is denied"):
        open_state(str(path), write=False)


def test_a_read_only_state_is_not_opened_for_writing(folder: Path) -> None:
    """An apply learns it before it sends a request."""
    path = folder / "state.db"
    open_state(str(path), write=True).close()
    path.chmod(0o400)
    with sealed(folder), pytest.raises(SyncengineError) as refusal:
        open_state(str(path), write=True)
    assert refusal.value.code == "state-read-only"


def test_a_folder_that_cannot_be_created_is_refused(path: Path) -> None:
    """A file has the name of the folder."""
    path.write_text("")
    with pytest.raises(SyncengineError) as refusal:
        open_state(str(path / "state.db"), write=True)
    assert refusal.value.code == "state-io"


@pytest.mark.parametrize(
    "url",
    [
        "mysql://jo:s3cret@db/state",
        "postgresql+nodriver://jo:s3cret@db/state",
        "postgresql://jo:s3cret@db:port/state",
        "postgresql+psycopg://jo:s3cret@127.0.0.1:1/state",
        "sqlite://",
    ],
)
def test_no_refusal_of_a_url_shows_a_password(url: str) -> None:
    """Whether the backend, the driver, the port or the server is wrong."""
    with pytest.raises(SyncengineError) as refusal:
        open_state(url, write=True)
    assert "s3cret" not in refusal.value.message
    assert refusal.value.code in ("state-url", "state-driver", "state-unreachable")


def _on_a_full_disk(state: State) -> None:
    """Do not let the file grow from now on."""

    def limit(connection: sqlite3.Connection, _record: object, _proxy: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")

    event.listen(state.database.engine, "checkout", limit)


def test_a_full_disk_leaves_nothing_half_written(path: Path) -> None:
    """The intent fails before its call is sent, and earlier rows are intact."""
    with applying(str(path)) as state:
        applied(state, "c", whole(tag("a")))
        _on_a_full_disk(state)
        with pytest.raises(SyncengineError, match="disk is full") as refusal:
            state.intend({"d": Attempt("upsertTags", tuple(whole(tag(f"t{n}"), url="x" * 99) for n in range(2000)))})
        assert refusal.value.code == "state-full"
        assert [(row.key.name, row.doubtful) for row in state.rows()] == [("a", False)]
        assert state.history(tag("t0")) == []
    assert _names(path) == ["a"]


def test_text_with_half_a_surrogate_pair_is_refused(path: Path) -> None:
    with applying(str(path)) as state, pytest.raises(SyncengineError, match="invalid Unicode"):
        state.intend({"c": Attempt("upsertTags", (whole(tag("\ud800")),))})


def test_concurrent_first_runs_create_one_state(path: Path) -> None:
    def lineage(_: int) -> str:
        with open_state(str(path), write=True) as state:
            return state.facts().lineage

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lineage, range(8)))) == 1
