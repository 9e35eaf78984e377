"""Snapshots in a bare repository: compare and swap, lost answers, forged versions; and the crash model over them."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from msgspec.json import decode, encode

from syncengine.errors import SyncengineError
from syncengine.plan.model import Plan
from syncengine.project.runner import Holder
from syncengine.state.git_repository import BareRepository, Remote, Superseded
from syncengine.state.git_store import FORMAT, Content, GitPlace, GitStore, Snapshot, VersionInfo
from syncengine.state.store import State, open_state
from syncengine.state.tables import VERSION
from syncengine.state.working_copy import open_to_write
from tests.applying.crash_model import Clockwork, Ending, House, Time
from tests.applying.test_crashes import HISTORY, OFTEN, RENAMES, Step, walk
from tests.support import warm
from tests.support.git import bare, git
from tests.support.once import MEMORY
from tests.support.profiles import tried

from .places import REF, MemoryPlace, MemoryStore, place_of

pytestmark = pytest.mark.slow

RACES = int(os.environ.get("SYNCENGINE_TEST_RACES", "20"))
LOCK = encode([{"id": 1, "epoch": 1, "released": None}])


def store_of(repository: Path, folder: Path) -> GitStore:
    folder.mkdir(exist_ok=True)
    return GitStore(BareRepository(folder / "repository.git", Remote(f"file://{repository}"), REF, "test"), "test")


def content(number: int, **files: bytes) -> Content:
    info = VersionInfo(
        format=FORMAT, schema=VERSION, lineage="l", serial=number, when=float(number), who="w", command="c", rows=number
    )
    return Content(info, {f"{name}.0000": data for name, data in files.items()})


def current(store: GitStore) -> Snapshot:
    id = store.current()
    assert id is not None
    return store.head(id)


@pytest.fixture
def store(remote: Path, tmp_path: Path) -> GitStore:
    return store_of(remote, tmp_path / "one")


@pytest.fixture
def other(remote: Path, tmp_path: Path) -> GitStore:
    return store_of(remote, tmp_path / "two")


def test_a_version_is_read_as_it_was_written_by_another(store: GitStore, other: GitStore) -> None:
    assert store.current() is None
    written = store.write(None, LOCK, content(1, tag=b"a\n", category=b"b\n"))
    read = current(other)
    assert (read.id, read.version, read.version_ids) == (written.id, written.version, (written.version,))
    assert (other.files(read), read.lock) == ({"tag.0000": b"a\n", "category.0000": b"b\n"}, LOCK)


@pytest.mark.parametrize("begins", [True, False])
def test_of_two_writers_over_one_version_one_wins(store: GitStore, other: GitStore, *, begins: bool) -> None:
    over = None if begins else store.write(None, LOCK, content(1, n=b"0"))
    theirs = None if begins else current(other)
    mine = store.write(over, LOCK, content(2, n=b"1"))
    with pytest.raises(Superseded):
        other.write(theirs, LOCK, content(2, n=b"2"))
    assert current(other).id == mine.id


def test_a_heartbeat_carries_no_rows(store: GitStore, remote: Path) -> None:
    first = store.write(None, LOCK, content(1, rows=b"x" * 100_000))
    objects = git(remote, "count-objects", "-v").splitlines()[0]
    beat = store.write(first, LOCK + b" ", None)
    assert beat.version_ids == first.version_ids
    assert {name for name in beat.blobs if beat.blobs[name] != first.blobs[name]} == {"lock.json"}
    new = int(git(remote, "count-objects", "-v").splitlines()[0].split()[1]) - int(objects.split()[1])
    assert new == 3, "a commit, its tree, the lock"


def count(remote: Path, folder: Path, wins: int) -> None:
    """Write the next number so many times, and say whenever another was faster."""
    store = store_of(remote, folder)
    while wins:
        try:
            head = current(store)
            number = int(store.files(head)["n.0000"]) + 1
            store.write(head, LOCK, content(number, n=str(number).encode()))
            wins -= 1
        except Superseded:
            print("lost", flush=True)  # noqa: T201 - the test reads it


def test_two_processes_race_and_no_write_is_lost(store: GitStore, remote: Path, tmp_path: Path) -> None:
    store.write(None, LOCK, content(0, n=b"0"))
    one, two = (warm.working(count, remote, tmp_path / name, RACES // 2) for name in ("racer-1", "racer-2"))
    with one as first, two as second:
        lost = first.stdout.read() + second.stdout.read()
    assert store.files(current(store))["n.0000"] == str(RACES // 2 * 2).encode()
    assert lost, "no writes were concurrent"


def hook(remote: Path, name: str, *lines: str) -> Path:
    file = remote / "hooks" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(("#!/bin/sh", *lines)) + "\n")
    file.chmod(0o755)
    return file


def test_a_push_whose_answer_is_lost_is_read_back_and_one_that_is_cut_before_can_be_repeated(
    store: GitStore, remote: Path
) -> None:
    first = store.write(None, LOCK, content(1, n=b"1"))
    cut = hook(remote, "post-receive", "kill -9 $PPID")
    second = store.write(first, LOCK, content(2, n=b"2"))
    assert git(remote, "rev-parse", REF) == second.id
    cut.unlink()
    cut = hook(remote, "pre-receive", "kill -9 $PPID")
    with pytest.raises(SyncengineError) as refused:
        store.write(second, LOCK, content(3, n=b"3"))
    assert refused.value.code in ("state-unreachable", "state-refused")
    cut.unlink()
    assert store.write(second, LOCK, content(3, n=b"3")).version_ids[1:] == (second.version, first.version)


def test_a_lock_that_a_server_left_is_named(store: GitStore, remote: Path) -> None:
    store.write(None, LOCK, content(1, n=b"1"))
    (remote / f"{REF}.lock").touch()
    with pytest.raises(Superseded) as busy:
        store.write(current(store), LOCK, content(2, n=b"2"))
    assert "cannot lock ref" in str(busy.value)


def test_a_hundred_versions_are_kept_and_none_more(store: GitStore, remote: Path) -> None:
    """Here three: older ones are unreachable for Git's garbage collection."""
    assert content(0).keeps == 100
    head, ids = None, []
    for number in range(5):
        head = store.write(head, LOCK, replace(content(number, n=str(number).encode()), keeps=3))
        ids.append(head.version)
    assert head is not None
    assert list(head.version_ids) == ids[:1:-1]
    assert [version.info.serial for version in store.versions(head)] == [4, 3, 2]
    git(remote, "gc", "--quiet", "--prune=now")
    reachable = git(remote, "rev-list", "--all").split()
    assert (len(reachable), ids[0] in reachable) == (4, False)


def test_a_version_that_was_read_before_a_newer_one_is_not_the_last_seen(
    store: GitStore, remote: Path, tmp_path: Path
) -> None:
    """A plan may end after an apply that it saw under way: the apply's version is the one to bring back."""
    place = GitPlace(place_of(remote, tmp_path / "project"))
    heads: list[Snapshot] = []
    for epoch in (1, 2):
        lock = encode([{"id": 1, "epoch": epoch, "released": None}])
        heads.append(store.write(heads[-1] if heads else None, lock, content(epoch)))
        place.look()
    place.remember(heads[0])
    seen = place.store.seen()
    assert seen is not None
    assert seen.id == heads[1].id


def forge(remote: Path, path: str, change: Callable[[bytes], bytes]) -> None:
    """Move the ref to a commit in which one file is changed."""
    environ = {**os.environ, "GIT_INDEX_FILE": str(remote / "forging"), "GIT_DIR": str(remote)}

    def run(*words: str, data: bytes = b"") -> str:
        done = subprocess.run(["git", *words], input=data, env=environ, capture_output=True, check=True)
        return done.stdout.decode().strip()

    (remote / "forging").unlink(missing_ok=True)
    run("read-tree", REF)
    before = subprocess.run(["git", "cat-file", "blob", f"{REF}:{path}"], env=environ, capture_output=True).stdout
    blob = run("hash-object", "-w", "--stdin", data=change(before))
    run("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
    parents = [word for id in run("rev-parse", f"{REF}^@").split() for word in ("-p", id)]
    who = ("-c", "user.name=x", "-c", "user.email=x@x")
    run("update-ref", REF, run(*who, "commit-tree", run("write-tree"), *parents, "-m", "forged"))


def test_another_version_is_refused_by_name_and_an_invalid_description_is_damage(
    store: GitStore, other: GitStore, remote: Path
) -> None:
    """Which suggests `state restore`."""
    head = store.write(None, LOCK, content(1, n=b"1"))
    described = decode(git(remote, "cat-file", "blob", f"{REF}:state.json"))
    formats = [{"format": f"syncengine.git-state/v{number}"} for number in (1, 5)]
    others = [encode({**described, **newer}) for newer in ({"schema": 99}, {"schema": 1}, *formats)]
    invalid = [b"", b"[]", b"{", b'{"format": "x"}', b"\xff\xfe", b"null"]
    for text in (*others, *invalid):
        forge(remote, "state.json", lambda _, it=text: it)  # type: ignore[misc] # a default
        words, code = ("restore", "state-damaged") if text in invalid else ("another version", "state-version")
        assert refusal(other, words).code == code, text
        git(remote, "update-ref", REF, head.id)


def refusal(store: GitStore, words: str) -> SyncengineError:
    with pytest.raises(SyncengineError, match=words) as refused:
        current(store)
    return refused.value


@pytest.mark.parametrize("has_commit", [True, False])
def test_a_repository_of_sha256_is_refused(tmp_path: Path, has_commit: bool) -> None:
    """Whether or not it is empty."""
    remote = bare(tmp_path / "remote.git", "--object-format=sha256")
    if has_commit:
        tree = git(remote, "hash-object", "-t", "tree", "-w", os.devnull)
        commit = git(remote, "-c", "user.name=x", "-c", "user.email=x@x", "commit-tree", tree, "-m", "first")
        git(remote, "update-ref", "refs/heads/main", commit)
    with pytest.raises(SyncengineError, match="SHA-256"):
        store_of(remote, tmp_path / "one").write(None, LOCK, content(1, n=b"1"))


def test_the_local_repository_has_refs_in_files(
    store: GitStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The local repository stores refs in files, even if Git's default is reftable; one ref is written directly."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    called = f'echo "$* $GIT_DEFAULT_REF_FORMAT" >> {tmp_path}/called'
    program.write_text(f'#!/bin/sh\n{called}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_DEFAULT_REF_FORMAT", "reftable")
    store.write(None, LOCK, content(1, n=b"1"))
    lines = (tmp_path / "called").read_text().splitlines()
    assert [line.split()[-1] for line in lines if " init " in line] == ["files"]


def test_variables_and_settings_of_another_repository_have_no_effect(
    store: GitStore, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = bare(tmp_path / "elsewhere.git")
    config = tmp_path / "gitconfig"
    hook(elsewhere, "pre-push", "exit 1")
    config.write_text(
        f"[core]\n hooksPath = {elsewhere}/hooks\n[push]\n gpgSign = true\n followTags = true\n pushOption = x\n"
        '[remote "state"]\n url = /nowhere\n'
    )
    objects = [*(elsewhere / "objects").rglob("*")]
    with monkeypatch.context() as hook_of_elsewhere:
        hook_of_elsewhere.setenv("GIT_CONFIG_GLOBAL", str(config))
        for name in ("GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"):
            hook_of_elsewhere.setenv(name, str(elsewhere / "objects" if "OBJECT" in name else elsewhere))
        written = store.write(None, LOCK, content(1, n=b"1"))
    assert git(remote, "rev-parse", REF) == written.id
    assert [*(elsewhere / "objects").rglob("*")] == objects


# --- the crash model, where the next process knows only what was published (docs/state.md)


HISTORIES = int(os.environ.get("SYNCENGINE_TEST_HISTORIES", "20"))

Opening = Callable[[Time], State]


class PublishingHouse(House):
    """A house whose process loses its private copy when it dies; the next one begins with what was published."""

    def __init__(self, opening: Opening, time: Time) -> None:
        self._opening = opening
        super().__init__(self._opened(time), time)

    def _opened(self, time: Time) -> State:
        state = self._opening(time)
        lease = state.lock(
            replace(Holder.here("test", {}), host="elsewhere", boot="another"),
            wait=1000,
            request_timeout=0,
            lease_seconds=60,
            sleep=lambda seconds: self._pass(time, seconds),
        )
        assert lease.epoch
        return state

    def _pass(self, time: Time, seconds: float) -> None:
        """Let time pass while a process waits for the lock: delayed requests whose limit is over arrive now."""
        time.at += max(seconds, 1.0)
        while any(late.until <= time.at for late in getattr(self, "in_flight", [])):
            self.land()

    def _perform(self, planned: Plan, clockwork: Clockwork, reviewed: tuple[str, ...] = ()) -> Ending:
        ending = super()._perform(planned, clockwork, reviewed)
        if ending.died:
            self.state.abandon()
            self.state = self._opened(self._time)
        return ending


@contextmanager
def house_in(opening: Opening) -> Iterator[House]:
    home = PublishingHouse(opening, Time())
    try:
        yield home
    finally:
        home.state.close()


@contextmanager
def in_memory() -> Iterator[Opening]:
    store = MemoryStore()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:

        def opening(time: Time) -> State:
            place: GitPlace = MemoryPlace(store, Path(folder))
            return State(open_to_write(place, lambda: time.at), lambda: time.at, seconds=time.seconds)

        yield opening


@contextmanager
def in_git() -> Iterator[Opening]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = place_of(bare(folder / "remote.git"), folder / "project")
        yield lambda time: open_state(place, write=True, now=lambda: time.at, seconds=time.seconds, create=True)


@settings(OFTEN, max_examples=tried(2 * HISTORIES))
@given(HISTORY | RENAMES)
def test_after_any_crash_applies_elsewhere_reach_the_declared_state(history: list[Step]) -> None:
    """The same holds for categories with tags that are renamed again and again."""
    with in_memory() as opening:
        walk(history, lambda: house_in(opening))


@settings(OFTEN, max_examples=tried(max(3, HISTORIES // 20)))
@given(HISTORY)
def test_applies_reach_the_declared_state_in_a_real_repository(history: list[Step]) -> None:
    with in_git() as opening:
        walk(history, lambda: house_in(opening))
