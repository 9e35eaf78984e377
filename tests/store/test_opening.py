"""Opening a state that exists, is missing, is read-only, or is something else."""

import os
import random
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event

from syncengine.effects import Effect
from syncengine.errors import SyncengineError
from syncengine.state.records import Attempt
from syncengine.state.store import open_state
from syncengine.state.tables import VERSION
from tests.support.git import git

from .estate import HERE, applied, applying, run, tag, whole

NOBODY = 65534


@contextmanager
def sealed(folder: Path) -> Iterator[None]:
    """A folder that is read-only to an ordinary user, who owns it and its files; root could write anywhere."""
    folder.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root:
        for path in (folder, *folder.iterdir()):
            os.chown(path, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can reach, unlike pytest's."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def names(path: Path) -> list[str]:
    with open_state(str(path), write=False) as state:
        return [row.key.name for row in state.rows()]


def refusal(path: Path | str, *, write: bool) -> SyncengineError:
    with pytest.raises(SyncengineError) as refused, open_state(str(path), write=write) as state:
        list(state.rows())
    assert "\n" not in refused.value.message
    return refused.value


def test_a_new_state_is_for_its_owner_and_keeps_its_lineage(path: Path) -> None:
    """Also while it is written to. Missing folders are created; a missing state reads as empty and stays missing.
    Concurrent first runs create one."""

    def lineage(_: int) -> str:
        with open_state(str(path), write=True) as state:
            return state.facts().lineage

    deep = path.parent / "a" / "b" / "state.db"
    with open_state(str(deep), write=False) as state:
        assert not state.exists
        assert list(state.rows()) == state.runs(1) == state.open_sessions() == state.members(["x"]) == []
        assert (state.facts().lineage, state.facts().commit, state.current_lock()) == ("", None, None)
    assert not list(path.parent.iterdir())
    with applying(str(deep)) as state:
        assert state.exists
        first = state.facts().lineage
        files = list(deep.parent.iterdir())
        assert len(files) == 3
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(deep.stat().st_mode) == 0o600
    with open_state(str(deep), write=True) as state:
        assert state.facts().lineage == first != ""
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lineage, range(8)))) == 1


def test_a_state_at_rest_is_one_file(folder: Path) -> None:
    """It can be copied and cached, and reading it adds no file, so that it can be read in a read-only folder, too."""
    path = folder / "state.db"
    with applying(str(path)) as state:
        applied(state, "c", whole(tag("a")))
    before = path.read_bytes()
    with sealed(folder):
        with pytest.raises(PermissionError):
            (folder / "other").touch()
        assert names(path) == ["a"]
    assert names(path) == ["a"]
    assert [file.name for file in folder.iterdir()] == ["state.db"]
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


def test_the_next_writer_recovers_a_crashed_state(path: Path, folder: Path) -> None:
    """No committed change is lost. In a read-only folder, where SQLite could not recover it, it is refused."""
    with applying(str(path)) as state:
        applied(state, "c", whole(tag("a")))
        assert state.lease is not None
        state.lease.release()  # this process is alive, and would hold the lock in the copy as well
        for file in path.parent.glob("state.db*"):
            shutil.copy(file, folder)
    assert (folder / "state.db-wal").stat().st_size > 0
    (folder / "state.db-shm").unlink()
    with sealed(folder):
        assert refusal(folder / "state.db", write=False).code in ("state-unreadable", "state-read-only")
    with applying(str(folder / "state.db"), run(2)) as state:
        assert [row.key.name for row in state.rows()] == ["a"]
        assert [r.outcome for r in state.runs(9)] == [None, "died"]


def with_sql(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("version", [1, VERSION + 1])
def test_a_state_of_another_version_is_refused_with_the_cure(path: Path, version: int, write: bool) -> None:
    """The message names `state export`, and the file is unchanged."""
    open_state(str(path), write=True).close()
    with_sql(path, f"UPDATE state_facts SET version = {version}")
    before = path.read_bytes()
    refused = refusal(path, write=write)
    assert "`syncengine state export` with that version" in refused.message
    assert (refused.code, refused.exit_code) == ("state-version", 1)
    assert path.read_bytes() == before


def _is_damaged(path: Path) -> None:
    open_state(str(path), write=True).close()
    whole_file = path.read_bytes()
    path.write_bytes(whole_file[:4096] + os.urandom(len(whole_file) - 4096))


def _is_tracked_by_git(path: Path) -> None:
    """An untracked state in the same repository is accepted."""
    git(path.parent, "init", "-q")
    open_state(str(path), write=True).close()
    open_state(str(path), write=True).close()
    git(path.parent, "add", path.name)


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize(
    ("spoil", "code", "words"),
    [
        (Path.mkdir, "state-unreadable", ""),
        (lambda path: path.write_text("tags:\n- name: a manifest and not a state\n" * 30), "state-foreign", ""),
        (lambda path: with_sql(path, "CREATE TABLE matters (id INTEGER)"), "state-foreign", ""),
        (Path.touch, "state-unreadable", "empty"),
        (lambda path: path.symlink_to("nowhere.db"), "state-unreadable", "link"),
        (os.mkfifo, "state-unreadable", "regular"),
        (_is_damaged, "state-damaged", ""),
        (_is_tracked_by_git, "state-in-git", "git rm --cached"),
    ],
    ids=["a folder", "text", "another database", "empty", "a dangling link", "a pipe", "damaged", "tracked by Git"],
)
def test_a_file_that_is_no_state_is_refused_and_unchanged(
    path: Path, spoil: Callable[[Path], object], code: str, words: str, write: bool
) -> None:
    """It is neither replaced nor waited for, and the message names it. A forged state could come with a commit."""
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""
    refused = refusal(path, write=write)
    assert (refused.code, str(path) in refused.message) == (code, True)
    assert words in refused.message
    assert before == (path.read_bytes() if path.is_file() else b"")
    assert not (path.parent / "nowhere.db").exists()


@pytest.mark.parametrize(
    ("mode", "write", "code", "words"),
    [(0, False, "state-unreadable", "permission is denied"), (0o400, True, "state-read-only", "")],
)
def test_a_state_without_the_rights_is_refused(folder: Path, mode: int, write: bool, code: str, words: str) -> None:
    """An apply learns it before it sends a request. So it does where a file has the name of the folder."""
    path = folder / "state.db"
    open_state(str(path), write=True).close()
    path.chmod(mode)
    with sealed(folder):
        refused = refusal(path, write=write)
    assert (refused.code, words in refused.message) == (code, True)
    assert refusal(path / "state.db", write=True).code == "state-io"


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
    refused = refusal(url, write=True)
    assert "s3cret" not in refused.message
    assert refused.code in ("state-url", "state-driver", "state-unreachable")


def test_a_full_disk_leaves_nothing_half_written(path: Path) -> None:
    """The intent fails before its call is sent, and earlier rows are intact. So does invalid Unicode."""

    def limit(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")

    with applying(str(path)) as state:
        applied(state, "c", whole(tag("a")))
        with pytest.raises(SyncengineError, match="invalid Unicode"):
            state.intend({"c": Attempt("upsertTags", (whole(tag("\ud800")),))})
        event.listen(state.database.engine, "checkout", limit)
        with pytest.raises(SyncengineError, match="disk is full") as refusal:
            state.intend({"d": Attempt("upsertTags", tuple(whole(tag(f"t{n}"), url="x" * 99) for n in range(2000)))})
        assert refusal.value.code == "state-full"
        assert [(row.key.name, row.doubtful) for row in state.rows()] == [("a", False)]
        assert state.history(tag("t0")) == []
    assert names(path) == ["a"]


def test_damaged_bytes_raise_only_the_programs_own_error(path: Path) -> None:
    """Wherever they are: the state can be read or the error is a single line."""
    with applying(str(path)) as state:
        for number in range(40):
            applied(state, f"c{number}", whole(tag(f"T-{number}"), description="words " * 9, url="https://a.example"))
        state.record([Effect(key=tag("T-1"), protect=True)])
    whole_file, dice = path.read_bytes(), random.Random(20260101)
    refused = 0
    for number in range(150):
        spoilt = bytearray(whole_file)
        for _ in range(dice.choice((1, 4, 40))):
            spoilt[dice.randrange(len(spoilt))] = dice.randrange(256)
        victim = path.with_name(f"v{number}.db")
        victim.write_bytes(spoilt)
        try:
            with open_state(str(victim), write=False) as state:
                state.facts(), list(state.rows()), state.runs(9), state.history(tag("T-1"))
                state.get([tag("T-1")])
                state.current_lock(), state.members(["c"])
        except SyncengineError as error:
            refused += 1
            assert "\n" not in error.message
    assert refused > 20


@pytest.mark.parametrize(
    "damage",
    [
        "state_lock SET lock_id = 'x', holder = '{}', acquired = 1, released = NULL",
        "state_lock SET lock_id = 'x', holder = '[]', acquired = 1, released = NULL",
        "state_lock SET lock_id = 'x', acquired = 'soon', released = NULL",
        "state_lock SET lock_id = 'x', acquired = 1, expires = 'soon', released = NULL",
        "state_lock SET seconds = 'many'",
        "state_runs SET started = 'soon'",
    ],
)
def test_a_damaged_lock_or_run_is_reported_as_damage(path: Path, damage: str) -> None:
    """When somebody tries to take the lock or reads the history."""
    with applying(str(path)):
        pass
    with_sql(path, f"UPDATE {damage}")
    with open_state(str(path), write=True) as state, pytest.raises(SyncengineError) as refused:
        state.lock(HERE, wait=0, request_timeout=1)
        state.runs(9)
    assert refused.value.code == "state-damaged"
