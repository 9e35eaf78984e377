"""A process is killed, interrupted or made to wait at some moment; the next apply ends as an undisturbed one does."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from syncengine.project.runner import Holder
from syncengine.state.store import open_state
from tests.dripping import BODY, Dripping
from tests.dripping import dripping as running
from tests.support.waiting import eventually
from tests.support.warm import Started

from .conftest import Estate
from .estate import DELETES_TAGS
from .program import PROGRAM, REPOSITORY, Project, category, ended, read_until, tag
from .service import Json, Service

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("operation", "fault"), [("upsertTags", {}), ("completeSyncSession", {"status": 503}), ("deleteTagCategory", {})]
)
def test_the_apply_after_a_killed_one_converges(estate: Estate, operation: str, fault: dict[str, Any]) -> None:
    """It takes over the lock of the killed process at once, and nothing is lost (docs/planning.md 4.10, 1.5). With a
    real process; the crash model of tests/applying tries every instant."""
    estate.service.fault(operation, delay=60, **fault)
    process = estate.project.fork_apply()
    estate.wait_for(operation)
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
    estate.wait_for(operation)
    process.send_signal(number)
    done = ended(process)
    assert (done.code, done.document["status"]) == (130, "incomplete"), done.err
    assert estate.service.asked()[-1] == operation
    assert not estate.project.is_locked()
    estate.assert_converges()


def test_an_ignored_interrupt_does_not_stop_an_apply(estate: Estate) -> None:
    """A script's background job (`&`) ignores SIGINT, and so does `apply` there."""
    estate.service.fault("upsertTags", delay=0.5)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = estate.project.start("apply", "-y", *estate.project.approvals())
    finally:
        signal.signal(signal.SIGINT, before)
    estate.wait_for("upsertTags")
    process.send_signal(signal.SIGINT)
    assert ended(process).code == 0


READING = [
    ("validate", signal.SIGTERM, None),
    *(("plan --sandbox", signal.SIGINT, pause) for pause in (None, 0, 0.003, 0.02)),
]
"""A command that reads many tags, the signal, and the seconds until the signal comes again."""


@pytest.mark.parametrize(("command", "number", "pause"), READING)
def test_reading_is_interrupted(tmp_path: Path, command: str, number: signal.Signals, pause: float | None) -> None:
    """The command exits with 130 without a traceback, also after a second Ctrl-C, and its child processes end."""
    (tmp_path / "manifests").mkdir()
    items = "".join(f'  - name: a matter of number {n}\n    keywords: [Kw {n}, "Word {n}"]\n' for n in range(6000))
    for part in "abcdefgh":
        text = items.replace(" number", f" {part} number").replace("w ", f"w {part}").replace("rd ", f"rd {part}")
        (tmp_path / "manifests" / f"{part}.yaml").write_text(f"tags:\n{text}")
    process = subprocess.Popen(
        [*PROGRAM, *command.split()],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    stat, ticks = Path(f"/proc/{process.pid}/stat"), os.sysconf("SC_CLK_TCK")
    # After 0.8 s of CPU time, it has finished its imports and reads manifests.
    eventually(lambda: sum(map(int, stat.read_text().rpartition(")")[2].split()[11:13])) >= 0.8 * ticks)
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
def test_an_interrupt_adds_no_second_document(project: Project, tmp_path: Path, words: str, number: str) -> None:
    """Stdout is one document, and stderr says "interrupted"."""
    project.wants(tags=[tag("NEW-1")])
    environ = started_with(tmp_path, INTERRUPTS_AFTER_PRINTING.format(number=number))
    done = project.run(*words.split(), environ=environ)
    assert (done.code, done.err.splitlines()[-1]) == (130, "interrupted")
    assert "syncengine.diagnostics" not in json.dumps(done.document)


# --- commands that wait: for the lock, for a late call, or for an answer that drips endlessly


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
def test_a_wait_for_the_lock_can_be_interrupted(project: Project, service: Service, number: signal.Signals) -> None:
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
    project.begin_git(".syncengine/")
    project.commit(tags=[tag("FIRST")])
    project.settle(tags=[tag("FIRST")])
    with locked(project):
        process = project.fork("state", "rebuild", "--from-git", "HEAD", "--replace", "-y")
        time.sleep(1)
        project.commit(tags=[tag("FIRST"), tag("SECOND")])
    done = ended(process)
    assert done.code == 5 or "tag/SECOND" in project.rows(), done.err


# --- late calls, which a killed run left at the service


CATEGORIES = [category("acme"), category("other")]
WANTED = {"tagCategories": CATEGORIES, "tags": [tag("inside", category="acme"), tag("edited", category="other")]}
WITHOUT = {"tagCategories": CATEGORIES[1:], "tags": WANTED["tags"][1:]}


def left_behind(project: Project, service: Service, landing: str) -> None:
    """Kill an apply while it deletes a category, and restore the earlier manifests."""
    project.settings(service=(f"landing: {landing}", *DELETES_TAGS))
    project.settle(**WANTED)
    service.fault("deleteTagCategory", late={})
    project.wants(**WITHOUT)
    process = project.fork_apply()
    eventually(lambda: service.waiting() == ["deleteTagCategory"])
    process.kill()
    assert ended(process).code == -signal.SIGKILL
    project.wants(**WANTED)


def test_the_next_apply_waits_for_the_call_of_a_killed_run(project: Project, service: Service) -> None:
    """It names the call and ends with what the manifests declare. tests/applying/test_landing.py has all calls."""
    left_behind(project, service, "3s")
    held = service.holds()
    process = project.fork_apply()
    assert "an earlier deleteTagCategory of " in read_until(process, "waiting")
    service.land()
    assert ended(process).code == 0
    assert service.holds() == held
    assert project.plan().changes == ()


def test_an_apply_that_cannot_wait_names_the_time_to_repeat(project: Project, service: Service) -> None:
    """It exits with 3 and the code `landing`, and gives the reason for each change. Nothing is sent, so that a saved
    plan is not used up. Neither are rows forgotten or exported."""
    left_behind(project, service, "60s")
    held = service.holds()
    assert project.run("plan", "--out", "saved.plan").code == 0
    new = [tag("new", category="acme"), tag("apart", category="other")]
    project.wants(**{**WANTED, "tags": [*WANTED["tags"], *new]})
    done = project.apply("--lock-timeout", "5s")
    assert (done.code, done.document["status"], {*done.outcomes().values()}) == (3, "refused", {"skipped"})
    assert "landing" in done.codes
    why = "nothing was sent: an earlier deleteTagCategory of category/acme may still be executed; repeat after "
    assert why in done.out
    assert project.run("apply", "saved.plan", "--lock-timeout", "0s").code == 3
    assert service.holds() == held
    refused = project.run("state", "forget", "-y", "category/acme")
    assert (refused.code, "may still be executed" in refused.err) == (3, True)
    exported = project.run("state", "export")
    assert (exported.code, exported.out, "error[landing]" in exported.err) == (3, "", True)
    service.land()
    project.settings(service=("landing: 0s", *DELETES_TAGS))
    assert project.run("apply", "saved.plan").code == 0


def test_an_apply_that_waits_for_a_late_call_is_interrupted_with_a_report(project: Project, service: Service) -> None:
    left_behind(project, service, "60s")
    process = project.fork("apply", "-y", *REPORT)
    read_until(process, "may still be executed")
    process.send_signal(signal.SIGINT)
    assert ended(process).code == 130
    assert {each["outcome"] for each in reported(project)["results"]} == {"skipped"}


# --- an answer that never ends: the program ends at its time-out or when it is interrupted


TEAM = b'HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{"teamName":"T"}'


@pytest.fixture
def dripping() -> Iterator[Dripping]:
    with running(BODY, whole={b"/team/info": TEAM}) as server:
        yield server


def started(dripping: Dripping, folder: Path, timeout: str) -> tuple[Project, Started]:
    """A project, and its `apply` process waiting for an answer that never ends."""
    project = Project(folder / "project", dripping.url)
    project.settings(service=(f"timeout: {timeout}",))
    project.wants(tags=[tag("T-1")])
    process = project.fork_apply()
    assert dripping.asked.wait(30)
    return project, process


@pytest.mark.parametrize("timeout", ["2s", "60m"])
def test_an_interrupt_waits_for_a_call_and_a_second_for_none(dripping: Dripping, tmp_path: Path, timeout: str) -> None:
    """The row is in doubt, the report is written and the lock is released."""
    project, process = started(dripping, tmp_path, timeout)
    process.send_signal(signal.SIGINT)
    if timeout == "60m":
        read_until(process, "interrupt again to stop at once")
        process.send_signal(signal.SIGINT)
    done = ended(process)
    assert (done.code, done.outcomes(), "stopping" in done.err) == (130, {"tag/T-1": "unknown"}, True), done.err
    assert (project.is_locked(), project.rows()["tag/T-1"]["doubtful"]) == (False, True)


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
