"""A service whose answers drip for ever: `apply` ends all the same, by itself or as soon as somebody wants it to."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dripping import BODY, Dripping
from tests.dripping import dripping as running

from .program import Project, ended, tag
from .service import Service

pytestmark = pytest.mark.slow

TEAM = b'HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{"teamName":"T"}'


@pytest.fixture
def dripping() -> Iterator[Dripping]:
    with running(BODY, whole={b"/team/info": TEAM}) as server:
        yield server


def started(dripping: Dripping, folder: Path, timeout: str) -> tuple[Project, subprocess.Popen[str]]:
    """A project, and its apply in the middle of a call that does not end."""
    project = Project(folder / "project", dripping.url)
    file = project.folder / "syncengine.yaml"
    file.write_text(file.read_text().replace("timeout: 10s", f"timeout: {timeout}"))
    project.wants(tags=[tag("T-1")])
    process = project.start_apply()
    assert dripping.asked.wait(30)
    return project, process


def test_an_interrupt_is_obeyed_within_the_deadline_of_the_call(dripping: Dripping, tmp_path: Path) -> None:
    """Ctrl-C waits for the answer under way, and no answer takes longer than the configured time-out."""
    project, process = started(dripping, tmp_path, "2s")
    process.send_signal(signal.SIGINT)
    done = ended(process)
    assert (done.code, done.outcomes()) == (130, {"tag/T-1": "unknown"}), done.err
    assert "stopping" in done.err
    assert not project.is_locked()
    assert project.rows()["tag/T-1"]["doubtful"]


def test_a_second_interrupt_ends_at_once(dripping: Dripping, tmp_path: Path) -> None:
    """Whatever the time-out: the state is saved with the doubt, the report is written, the lock is free."""
    project, process = started(dripping, tmp_path, "60m")
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    said = iter(process.stderr.readline, "")
    assert any("interrupt again to stop at once" in line for line in said)
    process.send_signal(signal.SIGINT)
    done = ended(process)
    assert (done.code, done.outcomes()) == (130, {"tag/T-1": "unknown"}), done.err
    assert not project.is_locked()
    assert project.rows()["tag/T-1"]["doubtful"]


def test_an_apply_that_nobody_interrupts_ends_too(dripping: Dripping, tmp_path: Path) -> None:
    """Every attempt has its deadline, and so has the call: the outcome is unknown, exit 3."""
    project, process = started(dripping, tmp_path, "0.1s")
    done = ended(process)
    assert (done.code, done.outcomes()) == (3, {"tag/T-1": "unknown"}), done.err
    assert project.rows()["tag/T-1"]["doubtful"]


def test_a_second_interrupt_ends_a_pull_at_once(project: Project, service: Service) -> None:
    """A target whose answer drips is not waited for: the group is in the inbox, and nothing was told of it yet."""
    with running(BODY) as target:
        url = f"http: {{url: '{target.url}', timeout: 60m, json: {{}}}}"
        project.settings(f"postedTime: {{mode: fetch, deliver: [{{name: pms, {url}}}]}}")
        service.post()
        process = project.start("time", "pull")
        assert target.asked.wait(30)
        process.send_signal(signal.SIGINT)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            target.over.wait(0.2)
        done = ended(process)
    assert done.code == 130, done.err
    assert "updatePostedTimeStatus" not in service.asked()


def test_an_interrupt_at_the_first_call_is_an_interrupt(tmp_path: Path) -> None:
    """Not a service that cannot be reached: exit 130, and nothing was sent."""
    with running(BODY) as silent:
        project, process = started(silent, tmp_path, "2s")
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert (done.code, done.codes) == (130, ["no-state", "interrupted"]), done.err
    assert (project.rows(), project.is_locked()) == ({}, False)
