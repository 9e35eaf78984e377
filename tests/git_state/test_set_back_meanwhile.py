"""The ref of the state is rewound while an apply runs."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from syncengine.resource import Body, Key, Recorded
from syncengine.state.database import LockLost
from syncengine.state.holder import Holder
from syncengine.state.store import open_state
from tests.cli.program import Project, ended, tag
from tests.cli.service import Service

from .conftest import Clone
from .places import REF, git, place_of
from .test_kills import opened
from .test_store import hook

pytestmark = pytest.mark.slow

ONE = {"tags": [tag("ACME-1", description="one")]}
TWO = {"tags": [tag("ACME-1", description="two"), tag("ACME-2")]}
PATIENCE = 20.0


@pytest.fixture
def settled(clone: Clone) -> Project:
    project = clone("one")
    project.wants(**ONE)
    assert project.run("apply", "-y", "--new-state").code == 0
    project.wants(**TWO)
    return project


def sending(project: Project, service: Service) -> subprocess.Popen[str]:
    """Start an apply whose request takes a while, and wait until it is sent."""
    asked = service.asked().count("upsertTags")
    service.fault("upsertTags", delay=2.0)
    process = project.start("apply", "-y")
    service.wait_for("upsertTags", asked + 1)
    return process


def test_a_rewind_to_before_the_lock_is_not_taken_for_the_state(
    settled: Project, remote: Path, service: Service
) -> None:
    """If the ref is rewound to before the lock, the apply and the next command exit with 4 as rewound."""
    before = git(remote, "rev-parse", REF)
    process = sending(settled, service)
    git(remote, "update-ref", REF, before)
    done = ended(process)
    assert (done.code, "error[state-rewound]" in done.out) == (4, True), done.out
    assert "is recorded" not in done.out
    planned = settled.run("plan")
    assert (planned.code, "error[state-rewound]" in planned.err) == (4, True), planned.err
    assert (
        settled.run("state", "restore", "-y", planned.err.split("`syncengine state restore ")[1].split("`")[0]).code
        == 0
    )
    assert {name: row["doubtful"] for name, row in settled.rows().items()} == {"tag/ACME-1": True, "tag/ACME-2": True}
    assert settled.run("apply", "-y").code == 0


def test_a_ref_that_is_deleted_meanwhile_is_not_recreated(settled: Project, remote: Path, service: Service) -> None:
    """If the ref is deleted, the apply exits with 4, does not recreate it, and names `state restore`."""
    process = sending(settled, service)
    git(remote, "update-ref", "-d", REF)
    done = ended(process)
    assert (done.code, "error[new-state]" in done.out) == (4, True), done.out
    assert "is recorded" not in done.out
    assert (
        settled.run("state", "restore", "-y", done.out.split("`syncengine state restore ")[1].split("`")[0]).code == 0
    )
    assert settled.run("apply", "-y").code == 0


def test_a_rewind_within_a_run_is_overwritten(settled: Project, clone: Clone, remote: Path, service: Service) -> None:
    """If the ref is rewound within the run, whose lock is still valid, the run overwrites it."""
    hook(remote, "post-receive", "read old new ref", f"echo $new >> {remote}/pushed")
    process = sending(settled, service)
    (remote / "hooks" / "post-receive").unlink()
    colleague = clone("two")
    colleague.wants(**TWO)
    assert colleague.run("plan").code == 0
    git(remote, "update-ref", REF, (remote / "pushed").read_text().split()[0])
    done = ended(process)
    assert done.code == 0, done.out
    assert colleague.run("plan", "--detailed-exitcode").code == 0


def test_a_heartbeat_after_a_rewind_keeps_the_published_rows(remote: Path, tmp_path: Path) -> None:
    """A heartbeat after a rewind keeps the rows that were published before, not those of the rewound ref."""
    state, holder = opened(place_of(remote, tmp_path / "one"), "first")
    lease = state.lock(holder, wait=0, request_timeout=0.5, lease_seconds=2.0)
    locked = git(remote, "rev-parse", REF)
    state.put([Recorded(Key.parse("tag/A"), Body({}, (), {}))])
    state._publish_rest()
    git(remote, "update-ref", REF, locked)
    until = time.monotonic() + PATIENCE
    while git(remote, "rev-parse", REF) == locked:
        assert time.monotonic() < until, "there is no heartbeat"
        time.sleep(0.05)
    lease.abandon()
    state.abandon()
    with open_state(place_of(remote, tmp_path / "two"), write=False) as looked:
        assert [str(row.key) for row in looked.rows()] == ["tag/A"]


def test_a_lock_with_the_same_epoch_that_another_took_after_a_rewind_is_not_ours(remote: Path, tmp_path: Path) -> None:
    """If a rewind gives two holders the same epoch, the one whose lock is gone cannot write."""
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
    first.put([Recorded(Key.parse("tag/A"), Body({}, (), {}))])
    with pytest.raises(LockLost):
        first._publish_rest()
    first.abandon()
    second.put([Recorded(Key.parse("tag/B"), Body({}, (), {}))])
    second._publish_rest()
    second.close()
    with open_state(place_of(remote, tmp_path / "three"), write=False) as looked:
        assert [str(row.key) for row in looked.rows()] == ["tag/B"]
