"""What happens to a state while a runner holds it: the runner is killed at a push, or the ref is set back."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from syncengine.errors import SyncengineError
from syncengine.project.runner import Holder
from syncengine.resource import Body, Key, Recorded
from syncengine.state.database import LockLost
from syncengine.state.store import State, open_state
from tests.cli.program import Project, category, ended, tag
from tests.cli.service import Service
from tests.support import warm
from tests.support.git import bare, git
from tests.support.waiting import eventually

from .conftest import TWO, Clone, applies, fails, offered, rests, succeeds
from .places import REF, place_of
from .test_store import hook

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
