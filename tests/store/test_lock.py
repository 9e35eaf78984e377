"""Only one process writes to a state: with concurrent processes, after crashes and suspensions, and with locks by
hand."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from syncengine.database.open import open_engine
from syncengine.errors import ExitCode, LockHeld, SyncengineError
from syncengine.project.runner import Holder, job_url
from syncengine.state.lock import LockInfo
from syncengine.state.store import State, open_state
from syncengine.state.tables import LOCK, SESSIONS
from tests.support.waiting import eventually

from .estate import HERE, run

ELSEWHERE = replace(HERE, host="elsewhere", job_url="https://ci/7")


@dataclass
class Clock:
    """A clock that only moves when `sleep` is called."""

    at: float = 1_700_000_000.0
    naps: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.at += max(seconds, 0.001)


RIVAL = """
import sys
from syncengine.effects import Effect
from syncengine.errors import SyncengineError
from syncengine.state.records import Attempt
from syncengine.state.store import open_state
from tests.store.estate import HERE, run, tag
with open_state(sys.argv[1], write=True) as state:
    lease = state.lock(HERE, wait=20, request_timeout=0, lease_seconds=float(sys.argv[2]))
    state.begin_run(run(id="rival"))
    print("held", flush=True)
    for _ in sys.stdin:
        left = f"{lease.remaining():.0f}"
        try:
            state.intend({"rival": Attempt("upsertTags", (Effect(key=tag("rival")),))})
            print(left, "intended", flush=True)
        except SyncengineError as error:
            print(left, error.code, flush=True)
"""
"""For each line that it reads, it prints the seconds left of its lease, and how a write ended."""


@contextmanager
def rival(path: Path, lease_seconds: float = 60.0) -> Iterator[subprocess.Popen[str]]:
    """Another process, which has the lock."""
    command = [sys.executable, "-c", RIVAL, str(path), str(lease_seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def tried(process: subprocess.Popen[str]) -> str:
    """How a write of the other process ends."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def opened(path: Path, clock: Clock) -> State:
    """The state, opened on a machine with this clock."""
    return open_state(str(path), write=True, now=clock.now, seconds=clock.now)


@pytest.fixture
def state(path: Path) -> Iterator[State]:
    with open_state(str(path), write=True) as opened:
        yield opened


def test_a_refused_lock_names_its_holder_until_it_is_released(state: State, path: Path) -> None:
    """User, host, process, command, job, since and until when, and the id to unlock by. A second release does nothing,
    and does not release the lock of another process."""
    lease = state.lock(ELSEWHERE, wait=0, request_timeout=0, new_id=lambda: "abc123")
    with open_state(str(path), write=True) as other:
        with pytest.raises(LockHeld) as refusal:
            other.lock(HERE, wait=0, request_timeout=0)
        assert refusal.value.exit_code is ExitCode.LOCKED
        facts = (HERE.user, "elsewhere", str(HERE.pid), "apply", "https://ci/7", "abc123", "since 20", "lease until 20")
        assert [fact for fact in facts if fact not in refusal.value.message] == []
        assert state.current_lock() == lease.info
        lease.release()
        assert (state.current_lock(), lease.remaining()) == (None, 0)
        with other.lock(ELSEWHERE, wait=0, request_timeout=0) as second:
            lease.release()
            assert state.current_lock() == second.info


def test_a_lock_of_another_machine_is_taken_after_its_heartbeat_stopped(path: Path) -> None:
    """The waiting process measures 60 s of lease and 30 s of request timeout by its own clock. The wall clock ends a
    lease, too, as it goes on while a machine is suspended. A process whose lock was forced notices at its next renewal,
    so `quiet` is negative until its lease would have ended."""
    clock, its = Clock(), Clock()
    with open_state(str(path), write=True, now=its.now) as first, opened(path, clock) as other:
        held = first.lock(ELSEWHERE, wait=0, request_timeout=0)
        assert 50 < held.remaining() <= 60
        its.at += 61
        assert held.remaining() == 0
        with pytest.raises(LockHeld):
            other.lock(HERE, wait=89.0, request_timeout=30, sleep=clock.sleep)
        lease = other.lock(HERE, wait=91.0, request_timeout=30, sleep=clock.sleep)
        assert (lease.epoch, lease.quiet) == (2, pytest.approx(30, abs=0.3))
        assert first.force_unlock(lease.info.id)
        assert first.lock(HERE, wait=0, request_timeout=0).quiet == -60


def test_a_process_with_a_clock_ahead_does_not_take_a_live_lock(url: str) -> None:
    """The clock of a server decides whether a lease has ended, so an ended one is taken without watching it first."""
    clock = Clock(time.time() + 600)
    with open_state(url, write=True) as first, open_state(url, write=True, now=clock.now) as other:
        first.lock(ELSEWHERE, wait=0, request_timeout=0)
        with pytest.raises(LockHeld):
            other.lock(HERE, wait=0, request_timeout=30)
        if "://" in url:
            with first.database.transaction() as connection:
                connection.execute(sa.update(LOCK).values(expires=LOCK.c.expires - 100))
            with pytest.raises(LockHeld):
                other.lock(HERE, wait=0, request_timeout=50)
            assert other.lock(HERE, wait=0, request_timeout=30).quiet == pytest.approx(40, abs=5)


IDLE = "options=-c%20idle_in_transaction_session_timeout%3D"


def test_a_process_suspended_in_a_transaction_does_not_block_the_lock(database: str) -> None:
    """The server ends its transaction, and its next statement fails and says to run the command again."""
    open_state(database, write=True).close()  # creating the tables may take longer on a busy machine
    with open_state(f"{database}?{IDLE}500ms", write=True) as state, state.lock(HERE, wait=0, request_timeout=0):
        with (
            pytest.raises(SyncengineError, match=r"idle.*run the command again") as ended,
            state.database.transaction() as stopped,
        ):
            state.lease.prove(stopped)
            with open_state(database, write=True) as other, other.database.transaction() as waiting:
                waiting.execute(sa.update(LOCK).values(beats=LOCK.c.beats))
            state.lease.prove(stopped)
        assert ended.value.code == "state-busy"
        with state.database.transaction() as connection:
            state.lease.prove(connection)


class Slow(str):
    """A string whose dumper blocks."""


def test_a_process_suspended_between_two_rows_does_not_block_the_lock(database: str) -> None:
    """All rows of a statement are sent at once, so the server's limit applies while they are prepared."""
    begun, going_on = threading.Event(), threading.Event()

    class Stopping(pytest.importorskip("psycopg.types.string").StrDumper):  # type: ignore[misc] # a lambda with a default
        def dump(self, obj: str) -> Any:
            begun.set()
            going_on.wait(60)
            return super().dump(obj)

    def write(state: State) -> None:
        with state.database.transaction() as connection:
            state.lease.prove(connection)
            driver: Any = connection.connection.driver_connection
            driver.adapters.register_dumper(Slow, Stopping)
            connection.execute(sa.insert(SESSIONS), [{"id": id, "opened": 1.0} for id in ("a", Slow("b"), "c")])

    with (
        open_state(f"{database}?{IDLE}1s", write=True) as state,
        state.lock(HERE, wait=0, request_timeout=0),
        ThreadPoolExecutor(1) as threads,
    ):
        stopped = threads.submit(write, state)
        try:
            with open_state(database, write=True) as other, other.database.transaction() as waiting:
                waiting.exec_driver_sql("SET LOCAL lock_timeout = '20s'")
                assert begun.wait(10)
                waiting.execute(sa.update(LOCK).values(beats=LOCK.c.beats))
        finally:
            going_on.set()
        with pytest.raises(SyncengineError, match="idle"):
            stopped.result()


@pytest.mark.parametrize(("options", "limit"), [("", "30s"), (f"?{IDLE}7s", "7s")])
def test_a_transaction_may_be_idle_for_30_seconds_at_most(database: str, options: str, limit: str) -> None:
    """In states, sinks and sources, unless the URL sets another limit."""
    engine = open_engine(f"{database}{options}", "the ledger")
    with open_state(f"{database}{options}", write=True) as state:
        for each in (state.database.engine, engine):
            with each.connect() as connection:
                assert connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar() == limit
    engine.dispose()


def test_a_lock_is_waited_for_as_long_as_given(path: Path) -> None:
    """In short sleeps, so that a released lock is taken soon; the holder is reported once."""
    clock = Clock()
    waited_for: list[LockInfo] = []
    with open_state(str(path), write=True) as first, opened(path, clock) as state:
        lease = first.lock(ELSEWHERE, wait=0, request_timeout=0)
        with pytest.raises(LockHeld, match="elsewhere"):
            state.lock(HERE, wait=5, request_timeout=0, sleep=clock.sleep, on_wait=waited_for.append)
    assert sum(clock.naps) == pytest.approx(5, abs=0.01)
    assert max(clock.naps) <= 0.25
    assert [info.id for info in waited_for] == [lease.info.id]


def test_a_lock_by_hand_ends_only_by_its_id(path: Path) -> None:
    """Neither the end of its process nor time ends it, so nobody waits for it."""
    clock = Clock()
    with opened(path, clock) as state:
        info = state.hold(replace(HERE, pid=2**22 + 1), "maintenance")
        clock.at += 10**6
        with pytest.raises(LockHeld, match=r"(?s)maintenance.*by hand|by hand.*maintenance"):
            state.lock(HERE, wait=5, request_timeout=0, sleep=clock.sleep)
        assert clock.naps == []
        with pytest.raises(LockHeld):
            state.hold(HERE, "me too")
        assert not state.force_unlock("another")
        assert state.force_unlock(info.id)
        assert state.current_lock() is None
        assert not state.force_unlock(info.id)


def test_the_lock_of_a_killed_process_is_taken_at_once(state: State, path: Path) -> None:
    """Although its lease has not ended, which its heartbeat extends; the rows of its open calls are in doubt."""
    with rival(path, lease_seconds=2.0) as other:
        first = state.current_lock()
        assert first is not None and first.expires is not None
        eventually(lambda: state.current_lock() != first)
        now = state.current_lock()
        assert now is not None and now.expires is not None
        assert (now.epoch, now.expires > first.expires) == (first.epoch, True)
        assert tried(other).endswith("intended")
        other.send_signal(signal.SIGKILL)
        state.lock(HERE, wait=5, request_timeout=60)
        state.begin_run(run())
    assert [(row.key.name, row.doubtful) for row in state.rows()] == [("rival", True)]
    assert {each.id: each.outcome for each in state.runs(5)} == {"rival": "died", "run-1": None}


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no way to stop a process here")
def test_a_process_that_slept_through_its_lease_cannot_write(state: State, path: Path) -> None:
    """It wakes with no time left of its lease."""
    with rival(path, lease_seconds=1.0) as other:
        other.send_signal(signal.SIGSTOP)
        os.waitpid(other.pid, os.WUNTRACED)
        lease = state.lock(HERE, wait=20, request_timeout=0.1)
        state.begin_run(run())
        other.send_signal(signal.SIGCONT)
        assert tried(other) == "0 lock-lost"
        assert lease.remaining() > 0
    assert list(state.rows()) == []


def test_only_a_process_of_this_machine_can_be_known_to_have_ended() -> None:
    """One on another host, in another boot or container, may be alive. A reused id is another process."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    dead = replace(HERE, pid=ended.pid)
    assert not HERE.has_ended()
    assert dead.has_ended()
    elsewhere = (replace(dead, host="x"), replace(dead, boot="x"), replace(dead, space="x"))
    assert not any(other.has_ended() for other in elsewhere)
    if HERE.start is not None:  # where /proc tells when a process started
        assert replace(HERE, start="1").has_ended()


GITHUB = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "7"}


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        (GITHUB, "https://github.com/a/b/actions/runs/7"),
        ({"CI_JOB_URL": "https://gitlab/7"}, "https://gitlab/7"),
        ({"BUILD_URL": "https://jenkins/7"}, "https://jenkins/7"),
        ({"GITHUB_SERVER_URL": "https://github.com"}, None),
    ],
)
def test_the_url_of_a_ci_job_is_found_in_its_environment(environ: dict[str, str], url: str | None) -> None:
    """An incomplete set of variables gives no URL."""
    assert job_url(environ) == Holder.here("apply", environ).job_url == url
