"""What befalls a state: its runner is killed at a push, its ref is set back, or a copy or the state is damaged."""

import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import pytest

from syncengine.errors import SyncengineError
from syncengine.project.runner import Holder
from syncengine.resource import Body, Key, Recorded
from syncengine.state.database import LockLost
from syncengine.state.removal import trim
from syncengine.state.store import State, open_state
from tests.cli.program import Project, category, ended, tag
from tests.cli.service import Service
from tests.support import warm
from tests.support.git import bare, git
from tests.support.waiting import eventually

from .conftest import ONE, TWO, Clone, applies, fails, offered, rests, succeeds, versions
from .places import REF, place_of
from .test_store import forge, hook

pytestmark = pytest.mark.slow

BEFORE = {"tagCategories": [category("c")], "tags": [tag("ACME-1", category="c"), tag("ACME-2", keywords=["k"])]}
AFTER = {"tagCategories": [category("c")], "tags": [tag("ACME-1", description="two"), tag("ACME-3", category="c")]}
KILLS = (*(("post-receive", number) for number in (1, 2, 3, 4)), ("pre-receive", 3))
"""A push of an apply (lock, intent, end, release), and whether the ref has moved. Calls are sent before the third."""


@pytest.fixture
def settled(clone: Clone) -> Project:
    project = clone("one")
    project.wants(**BEFORE)
    succeeds(project, "apply", "-y", "--new-state")
    project.wants(**AFTER)
    return project


@pytest.mark.parametrize(("when", "number"), KILLS)
def test_a_runner_that_is_killed_at_a_push_is_taken_over(
    settled: Project, clone: Clone, remote: Path, service: Service, number: int, when: str
) -> None:
    waits = f"while [ ! -s {remote}/victim ]; do sleep 0.02; done"
    kill = (waits, f'kill -9 "$(cat {remote}/victim)"', "sleep 0.2", "exit 1" if when == "pre-receive" else "exit 0")
    counting = f'echo >> {remote}/pushes; [ "$(wc -l < {remote}/pushes)" = {number} ] || exit 0'
    hook(remote, when, counting, *kill)
    words, log = ["apply", "-y", *settled.approvals()], Path(os.devnull)
    process = warm.Started(words, folder=settled.folder, environ=settled.surroundings(), log=log)
    (remote / "victim").write_text(str(process.pid))
    assert process.wait(60) == -signal.SIGKILL
    (remote / "hooks" / when).unlink()
    applies(clone("two"), **AFTER)
    assert service.tags() == ["ACME-1", "ACME-2", "ACME-3"]
    assert next(each.get("description") for each in service.holds()["tags"]) == "two"


def opened(place: str, host: str) -> tuple[State, Holder]:
    state = open_state(place, write=True, create=True)
    return state, replace(Holder.here(f"on {host}", {}), host=host)


def publish(state: State, address: str) -> None:
    state.put([Recorded(Key.parse(address), Body({}, (), {}))])
    state._publish_rest()


def published(place: str) -> list[str]:
    with open_state(place, write=False) as looked:
        return [str(row.key) for row in looked.rows()]


def test_another_host_waits_until_the_heartbeat_has_stopped(tmp_path: Path) -> None:
    """Then the former holder cannot write any more."""
    remote = bare(tmp_path / "remote.git")
    first, holder = opened(place_of(remote, tmp_path / "one"), "first")
    lease = first.lock(holder, wait=0, request_timeout=0.5, lease_seconds=2.0)
    second, taker = opened(place_of(remote, tmp_path / "two"), "second")
    with pytest.raises(SyncengineError, match="on first"):  # the heartbeat goes on for longer than the lease
        second.lock(taker, wait=3.0, request_timeout=0.5)
    lease.abandon()
    began = time.monotonic()
    second.lock(taker, wait=30, request_timeout=0.5, lease_seconds=2.0)
    assert time.monotonic() - began > 2.0, "the lease and a request's time"
    with pytest.raises(LockLost):
        publish(first, "tag/A")
    second.close()
    first.database.close()
    assert published(place_of(remote, tmp_path / "three")) == []


def test_no_call_is_sent_whose_intent_could_not_be_published(settled: Project, remote: Path, service: Service) -> None:
    before = len(service.asked())
    counting = f'echo >> {remote}/pushes; [ "$(wc -l < {remote}/pushes)" = 2 ] || exit 0'
    hook(remote, "pre-receive", counting, "echo 'disk quota' >&2", "exit 1")
    approval = settled.approvals()
    fails(settled, "apply", "-y", *approval, says="disk quota")
    assert set(service.asked()[before:]) <= {"teamInfo"}
    (remote / "hooks" / "pre-receive").unlink()
    succeeds(settled, "apply", "-y", *approval)


def test_leftovers_of_a_killed_process_are_no_obstacle(settled: Project) -> None:
    kept = next((settled.folder / ".syncengine" / "git-state").iterdir())
    for name in ("work-dead", ".repository-dead"):
        (kept / name).mkdir()
    (kept / "work-dead" / "owner").touch()
    (kept / "repository.git" / "refs" / "heads" / "seen.lock").touch()
    succeeds(settled, "state", "lock")
    assert not (kept / "work-dead").exists()


def test_a_run_publishes_all_rows_that_it_will_touch_as_doubtful(settled: Project, clone: Clone, remote: Path) -> None:
    """Before its first request (docs/state.md)."""
    begun = git(remote, "rev-parse", f"{REF}^2")
    git(remote, "update-ref", REF, begun)
    doubtful = {name: row["doubtful"] for name, row in clone("fresh").rows().items()}
    assert doubtful == {"category/c": True, "tag/ACME-1": True, "tag/ACME-2": True}


# --- the ref is rewound while an apply runs


def sending(project: Project, service: Service) -> warm.Started:
    """Start an apply of TWO whose request takes a while, and wait until it is sent."""
    project.wants(**TWO)
    asked = service.asked().count("upsertTags")
    service.fault("upsertTags", delay=2.0)
    process = project.fork("apply", "-y")
    service.wait_for("upsertTags", asked + 1)
    return process


def test_a_rewind_to_before_the_lock_is_not_taken_for_the_state(begun: Project, remote: Path, service: Service) -> None:
    before = git(remote, "rev-parse", REF)
    process = sending(begun, service)
    git(remote, "update-ref", REF, before)
    done = ended(process)
    assert (done.code, "error[state-rewound]" in done.out) == (4, True), done.out
    assert "is recorded" not in done.out
    planned = fails(begun, "plan", code=4, says="error[state-rewound]")
    succeeds(begun, "state", "restore", "-y", offered(planned))
    assert {name: row["doubtful"] for name, row in begun.rows().items()} == {"tag/ACME-1": True, "tag/ACME-2": True}
    succeeds(begun, "apply", "-y")


def test_a_ref_that_is_deleted_meanwhile_is_not_recreated(begun: Project, remote: Path, service: Service) -> None:
    process = sending(begun, service)
    git(remote, "update-ref", "-d", REF)
    done = ended(process)
    assert (done.code, "error[new-state]" in done.out) == (4, True), done.out
    assert "is recorded" not in done.out
    succeeds(begun, "state", "restore", "-y", offered(done))
    succeeds(begun, "apply", "-y")


def test_a_rewind_within_a_run_is_overwritten(begun: Project, clone: Clone, remote: Path, service: Service) -> None:
    """The lock of the run is still valid."""
    hook(remote, "post-receive", "read old new ref", f"echo $new >> {remote}/pushed")
    process = sending(begun, service)
    (remote / "hooks" / "post-receive").unlink()
    colleague = clone("two")
    colleague.wants(**TWO)
    succeeds(colleague, "plan")
    git(remote, "update-ref", REF, (remote / "pushed").read_text().split()[0])
    done = ended(process)
    assert done.code == 0, done.out
    rests(colleague)


def test_a_heartbeat_after_a_rewind_keeps_the_published_rows(remote: Path, tmp_path: Path) -> None:
    state, holder = opened(place_of(remote, tmp_path / "one"), "first")
    lease = state.lock(holder, wait=0, request_timeout=0.5, lease_seconds=2.0)
    locked = git(remote, "rev-parse", REF)
    publish(state, "tag/A")
    git(remote, "update-ref", REF, locked)
    eventually(lambda: git(remote, "rev-parse", REF) != locked)
    lease.abandon()
    state.abandon()
    assert published(place_of(remote, tmp_path / "two")) == ["tag/A"]


def test_a_lock_with_the_same_epoch_that_another_took_after_a_rewind_is_not_ours(remote: Path, tmp_path: Path) -> None:
    begun, _ = opened(place_of(remote, tmp_path / "one"), "first")
    begun.force_unlock(begun.hold(Holder.here("x", {}), None).id)
    begun.close()
    before = git(remote, "rev-parse", REF)
    first, holder = opened(place_of(remote, tmp_path / "one"), "first")
    first.lock(holder, wait=0, request_timeout=0.5)
    git(remote, "update-ref", REF, before)
    second, taker = opened(place_of(remote, tmp_path / "two"), "second")
    lease = second.lock(taker, wait=0, request_timeout=0.5)
    assert first.lease is not None
    assert lease.epoch == first.lease.epoch
    with pytest.raises(LockLost):
        publish(first, "tag/A")
    first.abandon()
    publish(second, "tag/B")
    second.close()
    assert published(place_of(remote, tmp_path / "three")) == ["tag/B"]


# --- damage


BREAKAGES = {
    "empty objects": "for file in objects/??/*; do chmod +w $file; : > $file; done",
    "no rows": "git ls-tree refs/heads/seen | grep state_ | cut -c 13-52 | sed 's,..,rm -f objects/&/,' | sh",
    "no head": ": > HEAD",
    "seen is garbage": "printf '\\0\\0' > refs/heads/seen",
}
"""Commands of a shell in the local repository: what a power cut leaves."""


@pytest.mark.parametrize("breakage", BREAKAGES.values(), ids=BREAKAGES)
def test_a_damaged_local_repository_is_fetched_again(begun: Project, remote: Path, breakage: str) -> None:
    (kept,) = begun.folder.glob(".syncengine/git-state/*/repository.git")
    subprocess.run(["sh", "-ec", breakage], cwd=kept, check=True)
    rests(begun)
    applies(begun, **TWO)
    assert git(remote, "rev-list", "--count", REF) == "6"


def test_a_damaged_remote_is_restored_from_a_clone(begun: Project, remote: Path) -> None:
    version = versions(begun)[0]["id"]
    git(remote, "update-ref", REF, git(remote, "rev-parse", f"{REF}^{{tree}}"))
    assert "error[state-damaged]" in fails(begun, "plan", says="delete the ref").err
    git(remote, "update-ref", "-d", REF)
    git(remote, "gc", "--quiet", "--prune=now")
    succeeds(begun, "state", "restore", "-y", version)
    assert list(begun.rows()) == ["tag/ACME-1"]


def test_a_full_disk_is_reported(begun: Project) -> None:
    """Not as damage; the state stays unchanged."""
    before = versions(begun)
    for words in (("plan",), ("apply", "-y"), ("state", "history"), ("state", "restore", "-y", before[0]["id"])):
        for most in (0, 4096, 65536):
            shutil.rmtree(begun.folder / ".syncengine")
            code, said = limited(begun, words, most)
            assert code == 1, (words, most)
            assert re.search(r"error\[state-(io|full|unreachable)\]: state git\+ref:", said), said
        assert versions(begun) == before
    applies(begun, **TWO)


def limited(project: Project, words: Sequence[str], most: int) -> tuple[int, str]:
    """Run the program where no file may grow beyond `most` bytes, and return its exit code and output."""
    pipe = project.folder / "said"  # what is written to a pipe does not count
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most))
    environ = project.surroundings()
    code = warm.Started(words, folder=project.folder, environ=environ, log=pipe, first=limit).wait(60)
    said = os.read(reading, 65536).decode()
    os.close(reading)
    pipe.unlink()
    return code, said


# --- damaged or forged snapshots

ROW = "state_rows.0000"
Damage = Callable[[bytes], bytes]


def line(place: int, value: object) -> Damage:
    """Return a change that replaces the value at a place of the first row."""

    def changed(data: bytes) -> bytes:
        row = msgspec.json.decode(data.splitlines()[0])
        row[place] = value
        return msgspec.json.encode(row) + b"\n"

    return changed


DAMAGED: dict[str, tuple[str, Damage]] = {
    "no JSON": (ROW, lambda data: b"{"),
    "cut": (ROW, lambda data: data[:-9]),
    "bytes": (ROW, lambda data: b"\xff\x00"),
    "an object": (ROW, lambda data: b'{"a": 1}\n'),
    "a value too many": (ROW, lambda data: data.replace(b"]\n", b",1]\n")),
    "twice": (ROW, lambda data: data + data),
    "a list for a name": (ROW, line(1, ["x"])),
    "an unknown status": (ROW, line(3, "wonderful")),
    "a huge number": (ROW, line(4, 1e300)),
    "broken base64": ("state_calls.0000", line(8, "%")),
    "an unknown table": ("sqlite_master.0000", lambda data: b"[1]\n"),
    **{
        f"a lock of {text[:30]!r}": ("lock.json", lambda data, text=text: text)  # type: ignore[misc] # a default
        for text in (b"x", b"[]", b"[" * 100_000, b'[{"id": 1, "epoch": "x"}]', b'[{"id": 1, "epoch": 1, "x": 1}]')
    },
}


def test_a_damaged_snapshot_is_an_error(begun: Project, clone: Clone, remote: Path) -> None:
    head = git(remote, "rev-parse", REF)
    for number, damage in enumerate(DAMAGED.values()):
        forge(remote, *damage)
        other = clone(f"clone-{number}")
        for words in (("state", "list"), ("apply", "-y")):
            fails(other, *words, says="error[state-damaged]")
        git(remote, "update-ref", REF, head)


def test_a_damaged_snapshot_is_replaced_by_a_version(begun: Project, remote: Path) -> None:
    forge(remote, *DAMAGED["cut"])
    succeeds(begun, "state", "restore", "-y", versions(begun)[0]["id"])
    assert begun.rows()["tag/ACME-1"]["doubtful"] is True
    applies(begun, **ONE)


@pytest.mark.parametrize("bound", [{"runs": 2}, {"changes": 2}], ids=str)
def test_the_history_is_kept_for_the_last_runs(clone: Clone, bound: dict[str, int]) -> None:
    """Only the last runs keep their calls; all rows stay, and undoing an older run is refused."""
    project = clone("one")
    project.settings()
    for number in range(5):
        project.wants(tags=[tag("ACME-1", description=str(number)), tag("ACME-2")])
        succeeds(project, "apply", "-y")
    with open_state(project.loaded().state, write=True) as state, state.database.transaction() as connection:
        trim(connection, 1e12, **bound)
    assert list(project.rows()) == ["tag/ACME-1", "tag/ACME-2"]
    shown = succeeds(project, "state", "history", "tag/ACME-1").out
    assert ('"4"' in shown, '"0"' in shown) == (True, False), shown
    runs = project.run("state", "history", "--format", "json").document["runs"]
    assert len(runs) == 5
    fails(project, "plan", "--undo", runs[-1]["id"], code=64, says="is no longer kept")
