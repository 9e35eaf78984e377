"""A service that sends its answer endlessly in small pieces: the program ends at its time-out or when interrupted."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dripping import BODY, Dripping
from tests.dripping import dripping as running
from tests.support.warm import Started

from .program import Ended, Project, ended, read_until, tag
from .service import Service

pytestmark = pytest.mark.slow

TEAM = b'HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{"teamName":"T"}'


@pytest.fixture
def dripping() -> Iterator[Dripping]:
    with running(BODY, whole={b"/team/info": TEAM}) as server:
        yield server


def started(dripping: Dripping, folder: Path, timeout: str) -> tuple[Project, Started]:
    """A project, and its `apply` process waiting for an answer that never ends."""
    project = Project(folder / "project", dripping.url)
    file = project.folder / "syncengine.yaml"
    file.write_text(file.read_text().replace("timeout: 10s", f"timeout: {timeout}"))
    project.wants(tags=[tag("T-1")])
    process = project.fork_apply()
    assert dripping.asked.wait(30)
    return project, process


def assert_in_doubt(project: Project, done: Ended, code: int) -> None:
    """The row is marked doubtful, the report is written and the lock is released."""
    assert (done.code, done.outcomes()) == (code, {"tag/T-1": "unknown"}), done.err
    assert not project.is_locked()
    assert project.rows()["tag/T-1"]["doubtful"]


def test_an_interrupt_is_obeyed_within_the_deadline_of_the_call(dripping: Dripping, tmp_path: Path) -> None:
    """Ctrl-C waits for the current answer, at most for the configured time-out."""
    project, process = started(dripping, tmp_path, "2s")
    process.send_signal(signal.SIGINT)
    done = ended(process)
    assert_in_doubt(project, done, 130)
    assert "stopping" in done.err


def test_a_second_interrupt_ends_at_once(dripping: Dripping, tmp_path: Path) -> None:
    """Whatever the time-out."""
    project, process = started(dripping, tmp_path, "60m")
    process.send_signal(signal.SIGINT)
    read_until(process, "interrupt again to stop at once")
    process.send_signal(signal.SIGINT)
    assert_in_doubt(project, ended(process), 130)


def test_an_apply_that_nobody_interrupts_ends_too(dripping: Dripping, tmp_path: Path) -> None:
    """The call ends at its time-out; its outcome is unknown and the exit code is 3."""
    project, process = started(dripping, tmp_path, "0.1s")
    assert_in_doubt(project, ended(process), 3)


def test_a_second_interrupt_ends_a_pull_at_once(project: Project, service: Service) -> None:
    """`time pull` does not wait for the target's answer, and does not report a status for the group."""
    with running(BODY) as target:
        url = f"http: {{url: '{target.url}', timeout: 60m, json: {{}}}}"
        project.settings(f"postedTime: {{mode: fetch, deliver: [{{name: pms, {url}}}]}}")
        service.post()
        process = project.fork("time", "pull")
        assert target.asked.wait(30)
        process.send_signal(signal.SIGINT)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            target.over.wait(0.2)
        done = ended(process)
    assert done.code == 130, done.err
    assert "updatePostedTimeStatus" not in service.asked()


def test_an_interrupt_at_the_first_call_is_an_interrupt(tmp_path: Path) -> None:
    """An interrupt during the first call exits with 130, not as an unreachable service, and nothing was sent."""
    with running(BODY) as silent:
        project, process = started(silent, tmp_path, "2s")
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert (done.code, done.codes) == (130, ["no-state", "interrupted"]), done.err
    assert (project.rows(), project.is_locked()) == ({}, False)
