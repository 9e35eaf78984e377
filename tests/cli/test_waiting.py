"""Commands that wait for the lock or a late call, and are interrupted or find changed files afterwards."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from syncengine.state.holder import Holder
from syncengine.state.store import open_state
from tests.support.git import git

from .program import Project, ended, read_until, tag
from .service import Json, Service
from .test_state_rebuild import commit

REPORT = ("--report", "json=report.json")


@contextmanager
def locked(project: Project) -> Iterator[None]:
    """Hold the lock of the state as another run."""
    holder = Holder.here("apply", {})
    with open_state(project.loaded().state, write=True) as state, state.lock(holder, wait=5, request_timeout=1):
        yield


def reported(project: Project) -> Json:
    document: Json = json.loads((project.folder / "report.json").read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_apply_that_waits_for_the_lock_is_interrupted_with_a_report(
    project: Project, service: Service, number: signal.Signals
) -> None:
    """The other run keeps its lock."""
    project.settle(tags=[tag("FIRST")])
    project.wants(tags=[tag("FIRST"), tag("SECOND")])
    with locked(project):
        process = project.fork("apply", "-y", *REPORT)
        read_until(process, "locked")
        process.send_signal(number)
        done = ended(process)
        assert done.code == 130, done.err
        assert project.is_locked()
    assert [each["code"] for each in reported(project)["diagnostics"]] == ["interrupted"]
    assert service.tags() == ["FIRST"]


def test_an_apply_that_waits_for_a_late_call_is_interrupted_with_a_report(project: Project, service: Service) -> None:
    """The report lists the pending change as skipped."""
    project.settle(tags=[tag("FIRST")])
    project.settings(service=("landing: 60s",))
    project.wants(tags=[tag("FIRST", description="one")])
    project.kill_during(service, "upsertTags", "apply", "-y")
    project.wants(tags=[tag("FIRST", description="two")])
    process = project.fork("apply", "-y", *REPORT)
    read_until(process, "may still be executed")
    process.send_signal(signal.SIGINT)
    assert ended(process).code == 130
    assert [each["outcome"] for each in reported(project)["results"]] == ["skipped"]


def test_a_signal_during_the_last_call_ends_with_0_if_all_is_applied(project: Project, service: Service) -> None:
    """The report says "complete", as nothing was left to stop."""
    project.settle(tags=[tag("FIRST")])
    project.wants(tags=[tag("FIRST"), tag("SECOND")])
    service.fault("upsertTags", delay=1)
    calls = service.asked().count("upsertTags")
    process = project.fork("apply", "-y", *REPORT)
    service.wait_for("upsertTags", calls + 1)
    process.send_signal(signal.SIGINT)
    assert ended(process).code == 0
    assert reported(project)["status"] == "complete"


def test_a_list_that_changes_while_adopt_waits_is_read_again(project: Project) -> None:
    """`adopt` records what the file contains once it has the lock."""
    project.settle(tags=[tag("FIRST")])
    (project.folder / "list.csv").write_text("name\nBEFORE\n", encoding="utf-8")
    with locked(project):
        process = project.fork("adopt", "list.csv")
        time.sleep(1)
        (project.folder / "list.csv").write_text("name\nAFTER\n", encoding="utf-8")
    assert ended(process).code == 0
    assert project.rows().keys() == {"tag/FIRST", "tag/AFTER"}


def test_a_branch_that_moves_while_a_rebuild_waits_is_noticed(project: Project) -> None:
    """`state rebuild` does not record the older commit: it is refused, or began after the newer one."""
    git(project.folder, "init", "-q", "-b", "main", ".")
    (project.folder / ".gitignore").write_text(".syncengine/\n", encoding="utf-8")
    commit(project, tags=[tag("FIRST")])
    project.settle(tags=[tag("FIRST")])
    with locked(project):
        process = project.fork("state", "rebuild", "--from-git", "HEAD", "--replace", "-y")
        time.sleep(1)
        commit(project, tags=[tag("FIRST"), tag("SECOND")])
    done = ended(process)
    assert done.code == 5 or "tag/SECOND" in project.rows(), done.err
