"""The question of `apply` on a real terminal, its refusal without one, and the use of stdout and stderr."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from .program import PROGRAM, Ended, Project, tag
from .service import KEY, PATIENCE_SECONDS, Service

pytestmark = pytest.mark.slow

ON_A_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Makes stdin the controlling terminal of the process, so that Ctrl-C becomes a signal."""

QUESTION = "Apply this plan?"


@dataclass
class Terminal:
    """A user at a terminal that shows stderr; stdout is a pipe."""

    master: int
    process: subprocess.Popen[str]
    shown: str = ""
    typed: str = ""

    def wait_for(self, text: str) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while text not in self.shown:
            assert time.monotonic() < until, self.shown
            self.shown += self._read()

    def type(self, text: str) -> None:
        self.typed = text
        os.write(self.master, text.encode())

    def ended(self) -> Ended:
        """Wait for the process. The terminal may drop input while a prompt is being set up, so it is typed again."""
        while True:
            if not select.select([self.master], [], [], 2)[0]:
                self.type(self.typed)
            elif more := self._read():
                self.shown += more
            else:
                break
        out, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert KEY not in out + self.shown
        assert "Traceback" not in out + self.shown
        return Ended(self.process.returncode, out, self.shown)

    def _read(self) -> str:
        try:
            return os.read(self.master, 65536).decode(errors="replace")
        except OSError:  # Linux raises this once the other end is closed
            return ""


@contextmanager
def terminal(project: Project, *arguments: str) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, *PROGRAM, *arguments],
        cwd=project.folder,
        env=project.surroundings({"TERM": "xterm"}),
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=slave,
        encoding="utf-8",
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def test_without_a_terminal_and_without_y_nothing_is_begun(project: Project, service: Service) -> None:
    """A pipeline must not wait for an answer, so `apply` exits with 64 and creates no state."""
    project.wants(tags=[tag("NEW-1")])
    done = project.run("apply")
    assert (done.code, done.out) == (64, "")
    assert "review what `syncengine plan` shows, and repeat with -y" in done.err
    elsewhere = project.run("-C", "project", "apply", cwd=project.folder.parent)
    assert "review what `syncengine plan -C project` shows" in elsewhere.err
    assert not (project.folder / ".syncengine").exists()
    assert service.asked() == []


@pytest.mark.parametrize(
    ("answer", "code", "held"), [("y\n", 0, ["NEW-1"]), ("n\n", 1, []), ("\n", 1, []), ("\x03", 130, [])]
)
def test_a_person_is_asked(project: Project, service: Service, answer: str, code: int, held: list[str]) -> None:
    """Only a yes applies; any other answer sends nothing. The report says so, also after Ctrl-C."""
    project.wants(tags=[tag("NEW-1")])
    with terminal(project, "apply", "--report", "json=report.json") as person:
        person.wait_for(QUESTION)
        person.type(answer)
        done = person.ended()
    assert (done.code, service.tags()) == (code, held), done.err
    assert "Plan: 1 to create" in done.out
    assert ('"interrupted"' in (project.folder / "report.json").read_text()) == (code == 130)
    assert (project.run("plan", "--format", "json").codes == ["no-state"]) == (code != 0)
    assert not project.is_locked()


def test_an_invalid_answer_repeats_the_question(project: Project, service: Service) -> None:
    """It says that y (yes) or n (no) is expected."""
    project.wants(tags=[tag("NEW-1")])
    with terminal(project, "apply") as person:
        person.wait_for(QUESTION)
        person.type("maybe\n")
        person.wait_for("Please answer y (yes) or n (no).")
        person.type("Yes\n")
        done = person.ended()
    assert (done.code, service.tags(), "Error" in done.err) == (0, ["NEW-1"], False)


def test_the_plan_is_shown_before_the_question_even_if_the_output_is_json(project: Project) -> None:
    """The plan and its notes go to the terminal, and stdout is still one JSON document."""
    project.wants(tags=[tag("NEW-1")])
    with terminal(project, "apply", "--format", "json") as person:
        person.wait_for(QUESTION)
        assert "no-state" in person.shown.partition("NEW-1")[0]
        person.type("y\n")
        done = person.ended()
    assert (done.code, done.document["status"]) == (0, "complete")


def test_progress_and_remarks_go_to_standard_error(project: Project, service: Service) -> None:
    """Stdout is for data only."""
    service.fault("upsertTags", status=503, headers={"Retry-After": "0"})
    project.wants(tags=[tag("NEW-1")])
    with terminal(project, "apply", "-y", "-v") as person:
        done = person.ended()
    assert (done.code, "upsertTags: 503" in done.err, "Applied 1 change" in done.out) == (0, True, True)
    assert "503" not in done.out
    assert "\x1b" not in done.out


def test_a_warning_is_said_once_and_the_result_last(project: Project) -> None:
    """The plan shows the warning, so the report of `apply` does not repeat it in text; in JSON it does."""
    project.wants(tags=[tag("Alpha", keywords=["same word"]), tag("Beta", keywords=["same word"])])
    done = project.run("apply", "-y")
    assert (done.code, (done.out + done.err).count("warning[same-keyword]")) == (0, 1)
    assert done.out.rstrip().splitlines()[-1].startswith("Applied 2 changes.")
    assert project.apply("--reassert").codes == ["same-keyword"]
    project.wants(tags=[tag("Alpha", category="nowhere")])
    done = project.run("apply", "-y")
    assert (done.code, "No problems found" in done.out + done.err) == (8, False)
