"""The ref of the state is rewound while an apply runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncengine.project.runner import Holder
from syncengine.state.database import LockLost
from tests.cli.program import Project, ended
from tests.cli.service import Service
from tests.support import warm
from tests.support.git import git
from tests.support.waiting import eventually

from .conftest import TWO, Clone, fails, offered, rests, succeeds
from .places import REF, place_of
from .test_kills import opened, publish, published
from .test_store import hook

pytestmark = pytest.mark.slow


def sending(project: Project, service: Service) -> warm.Started:
    """Start an apply of TWO whose request takes a while, and wait until it is sent."""
    project.wants(**TWO)
    asked = service.asked().count("upsertTags")
    service.fault("upsertTags", delay=2.0)
    process = project.fork("apply", "-y")
    service.wait_for("upsertTags", asked + 1)
    return process


def test_a_rewind_to_before_the_lock_is_not_taken_for_the_state(begun: Project, remote: Path, service: Service) -> None:
    """The apply and the next command exit with 4 as rewound."""
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
    """The apply exits with 4, and names `state restore`."""
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
