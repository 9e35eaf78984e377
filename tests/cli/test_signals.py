"""A process is killed or interrupted at chosen moments; the next apply ends where an undisturbed one does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from .conftest import Estate
from .program import PROGRAM, REPOSITORY, Project, ended, tag

pytestmark = pytest.mark.slow

DONE: dict[str, Any] = {"delay": 60}
NOT_DONE: dict[str, Any] = {"status": 503, "delay": 60}
"""The service executes the request (DONE) or does not (NOT_DONE), and does not answer while the test runs."""

INSTANTS = (("upsertTags", DONE), ("completeSyncSession", NOT_DONE), ("deleteTagCategory", DONE))
"""With a real process; the crash model of tests/applying tries every instant."""


@pytest.mark.parametrize(("operation", "fault"), INSTANTS)
def test_the_apply_after_a_killed_one_converges(estate: Estate, operation: str, fault: dict[str, Any]) -> None:
    """It takes over the lock of the killed process at once, and nothing is lost (docs/planning.md 4.10, 1.5)."""
    estate.service.fault(operation, **fault)
    process = estate.project.fork_apply()
    estate.service.wait_for(operation)
    process.kill()
    assert ended(process).code == -signal.SIGKILL
    assert estate.project.is_locked()
    estate.assert_converges()
    assert "open" not in estate.service.sessions()


@pytest.mark.parametrize(
    ("number", "operation"), [(signal.SIGINT, "upsertTags"), (signal.SIGTERM, "upsertTagCategories")]
)
def test_an_interrupted_apply_stops_cleanly(estate: Estate, number: signal.Signals, operation: str) -> None:
    """It waits for the pending answer, sends nothing new and releases the lock (docs/planning.md 4.10)."""
    estate.service.fault(operation, delay=0.5)
    process = estate.project.fork_apply()
    estate.service.wait_for(operation)
    process.send_signal(number)
    done = ended(process)
    assert (done.code, done.document["status"]) == (130, "incomplete"), done.err
    assert estate.service.asked()[-1] == operation
    assert not estate.project.is_locked()
    estate.assert_converges()


def test_an_interrupt_ends_the_wait_before_a_retry(estate: Estate) -> None:
    """`apply` does not wait out a long `Retry-After`."""
    estate.service.fault("upsertTags", status=503, headers={"Retry-After": "120"}, times=None)
    process = estate.project.fork_apply()
    estate.service.wait_for("upsertTags")
    process.send_signal(signal.SIGINT)
    assert ended(process).code == 130


def test_an_ignored_interrupt_does_not_stop_an_apply(estate: Estate) -> None:
    """A script's background job (`&`) ignores SIGINT, and so does `apply` there."""
    estate.service.fault("upsertTags", delay=0.5)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = estate.project.start("apply", "-y", *estate.project.approvals())
    finally:
        signal.signal(signal.SIGINT, before)
    estate.service.wait_for("upsertTags")
    process.send_signal(signal.SIGINT)
    assert ended(process).code == 0


READING = [
    ("validate", signal.SIGTERM, None),
    *(("plan --sandbox", signal.SIGINT, pause) for pause in (None, 0, 0.003, 0.02)),
]
"""A command that reads many tags, the signal, and the seconds until the signal comes again."""


@pytest.mark.parametrize(("command", "number", "pause"), READING)
def test_an_interrupt_while_many_tags_are_read_ends_with_one_word(
    tmp_path: Path, command: str, number: signal.Signals, pause: float | None
) -> None:
    """The command exits with 130 without a traceback, also after a second Ctrl-C, and its child processes end."""
    process = _start_reading(tmp_path, *command.split())
    os.killpg(process.pid, number)
    if pause is not None:
        time.sleep(pause)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, b"Traceback" in err) == (130, b"", False)
    if pause is None:
        assert err.splitlines()[-1] == b"interrupted"
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def _start_reading(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    """Start a command in its own session, and return it while it reads many tags."""
    (folder / "manifests").mkdir()
    items = "".join(f'  - name: a matter of number {n}\n    keywords: [Kw {n}, "Word {n}"]\n' for n in range(6000))
    for part in "abcdefgh":
        text = items.replace(" number", f" {part} number").replace("w ", f"w {part}").replace("rd ", f"rd {part}")
        (folder / "manifests" / f"{part}.yaml").write_text(f"tags:\n{text}")
    process = subprocess.Popen(
        [*PROGRAM, *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    _wait_for_work(process.pid)
    return process


def _wait_for_work(pid: int) -> None:
    """Wait until the process has used 0.8 s of CPU time: it has finished its imports and reads manifests."""
    deadline, ticks = time.monotonic() + 20, os.sysconf("SC_CLK_TCK")
    while sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])) < 0.8 * ticks:
        assert time.monotonic() < deadline
        time.sleep(0.005)


FINDER = """
import os, signal, sys

def interrupt():
    os.kill(os.getpid(), signal.{number})
    for _ in range(1000):
        pass

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
{act}

sys.meta_path.insert(0, Finder())
"""
"""Start-up code that acts while a module is imported."""

IN_NAMING = "type('Owner', (), {'field': type('Field', (), {'__set_name__': lambda *_: interrupt()})()})"
IN_A_MODEL = (
    "import pydantic_core; pydantic_core.SchemaValidator({'type': 'literal', 'expected':"
    " [type('Value', (), {'__repr__': lambda _: interrupt()})()]})"
)
IN_FREEING = "type('Trap', (), {'__del__': lambda _: interrupt()})()"
BUSY = """
import threading, time

_start = threading.Thread.start

def start(self):
    _start(self)
    time.sleep(0.05)

threading.Thread.start = start
"""
"""Start-up code: whoever starts a thread is held up afterwards, as on a busy machine."""

ARRIVALS: dict[str, tuple[str, str, str, str]] = {
    "before the program is imported": ("interrupt()", "msgspec", "SIGINT", ""),
    "while the command is imported": ("interrupt()", "syncengine.cli.plan", "SIGINT", ""),
    "while its work is imported": ("interrupt()", "syncengine.plan.build", "SIGINT", ""),
    # Python 3.11 turns it into a RuntimeError in `__set_name__`, and pydantic into an error of its own.
    "while a class is made, early": (IN_NAMING, "click", "SIGINT", ""),
    "while a class is made, late": (IN_NAMING, "syncengine.apply.run", "SIGINT", ""),
    "while a model is built": (IN_A_MODEL, "syncengine.apply.run", "SIGINT", ""),
    # In `__del__` Python prints the exception and goes on: `apply` would send everything.
    "while a value is freed, early": (IN_FREEING, "click", "SIGINT", ""),
    "while a value is freed, late": (IN_FREEING, "syncengine.apply.run", "SIGINT", ""),
    "SIGTERM while a value is freed": (IN_FREEING, "syncengine.apply.run", "SIGTERM", ""),
    "while a value is freed on a busy machine": (IN_FREEING, "syncengine.apply.run", "SIGINT", BUSY),
}


def started_with(folder: Path, code: str) -> dict[str, str]:
    """The environment in which Python runs this code as it starts."""
    (folder / "start").mkdir()
    (folder / "start" / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": os.pathsep.join((str(folder / "start"), str(REPOSITORY)))}


@pytest.mark.parametrize(("act", "module", "number", "before"), ARRIVALS.values(), ids=ARRIVALS)
def test_an_interrupt_that_arrives_anywhere_ends_with_one_word(
    project: Project, tmp_path: Path, act: str, module: str, number: str, before: str
) -> None:
    """The command exits with 130 and prints only "interrupted": no traceback, no bug, and no interrupt is lost."""
    project.wants(tags=[tag("NEW-1")])
    code = before + FINDER.format(module=module, number=number, act=f"            {act}")
    command = ("plan",) if ".plan" in module else ("apply", "-y")
    done = project.run(*command, environ=started_with(tmp_path, code))
    assert (done.code, done.out, done.err.strip()) == (130, "", "interrupted")


INTERRUPTS_AFTER_PRINTING = """
import io, os, signal, sys

class Interrupting(io.TextIOWrapper):
    has_text = False

    def write(self, text):
        self.has_text = True
        return super().write(text)

    def flush(self):
        super().flush()
        if self.has_text:
            self.has_text = False
            os.kill(os.getpid(), signal.{number})

sys.stdout = Interrupting(sys.stdout.detach(), encoding="utf-8")
"""
"""Start-up code: the signal arrives as soon as the first text has been printed."""


@pytest.mark.parametrize(
    ("words", "number"), [("plan --format json --report sarif=-", "SIGINT"), ("apply -y --format json", "SIGTERM")]
)
def test_an_interrupt_after_a_document_adds_no_second_one(
    project: Project, tmp_path: Path, words: str, number: str
) -> None:
    """Stdout is one document, and stderr says "interrupted"."""
    project.wants(tags=[tag("NEW-1")])
    environ = started_with(tmp_path, INTERRUPTS_AFTER_PRINTING.format(number=number))
    done = project.run(*words.split(), environ=environ)
    assert (done.code, done.err.splitlines()[-1]) == (130, "interrupted")
    assert "syncengine.diagnostics" not in json.dumps(done.document)
