"""A function is called in forked processes, and whatever ends one of them ends the work, too."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time

import pytest

from syncengine.errors import SyncengineError
from syncengine.manifest.reading_processes import in_processes

LARGE = 100 << 20
"""Bytes that take longer to send than some of the instants of a death."""


def test_results_come_in_order() -> None:
    """Whichever process is the first to answer."""

    def work(number: int) -> tuple[int, int]:
        time.sleep(0.05 if number == 0 else 0)
        return number, os.getpid()

    with in_processes(work, 50, 2) as results:
        found = list(results)
    assert [number for number, _ in found] == list(range(50))
    assert len({process for _, process in found} - {os.getpid()}) == 2


def test_an_error_is_raised_where_its_result_would_be() -> None:
    """Those before it are results nevertheless."""

    def work(number: int) -> int:
        if number == 2:
            raise ValueError("two")
        return number

    with in_processes(work, 4, 2) as results:
        assert [next(results), next(results)] == [0, 1]
        with pytest.raises(ValueError, match="two"):
            next(results)


def test_an_error_that_cannot_be_sent_is_called_a_bug() -> None:
    """It is named by its class alone."""

    class Local(Exception):
        """A class that the parent would have to import."""

    def work(number: int) -> int:
        raise Local("secret")

    with in_processes(work, 1, 1) as results, pytest.raises(SyncengineError, match="Local in syncengine") as found:
        next(results)
    assert found.value.code == "internal"


@pytest.mark.parametrize("instant", [0.0, 0.01, 0.03, 0.06, 0.1, 0.2])
def test_a_process_that_is_killed_is_reported(instant: float) -> None:
    """Also in the middle of its answer, of which the rest never comes."""

    def work(number: int) -> bytes:
        if number == 1:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, instant or 1e-6)
            return bytes(LARGE)
        time.sleep(0.05)  # so that the work lasts longer than the last instant
        return b""

    with in_processes(work, 20, 2) as results, pytest.raises(SyncengineError, match="was ended from outside") as found:
        assert {len(result) for result in results} <= {0, LARGE}
    assert found.value.code == "reading"


def test_a_process_ends_when_nothing_is_left_for_it() -> None:
    """Though another one, which inherited its connection, still works."""

    def work(number: int) -> int:
        time.sleep(0.3 if number == 0 else 5)
        return os.getpid()

    with in_processes(work, 2, 2) as results:
        process, deadline = next(results), time.monotonic() + 3
        with pytest.raises(ProcessLookupError):
            while time.monotonic() < deadline:
                os.kill(process, 0)
                time.sleep(0.01)


def test_a_second_interrupt_does_not_leave_processes_alone() -> None:
    """It arrives as soon as the first has ended the use of the processes, and is raised once they are gone."""

    def work(number: int) -> int:
        time.sleep(5)
        return number

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), in_processes(work, 4, 2) as results:
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            next(results)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
    assert time.monotonic() - began < 4


def test_without_room_for_a_process_the_work_is_done_here() -> None:
    """As in a container that limits open files or processes."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, allowed[1]))
    try:
        with in_processes(lambda number: (number, os.getpid()), 3, 2) as results:
            found = list(results)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, allowed)
    assert found == [(number, os.getpid()) for number in range(3)]


def test_no_process_outlives_its_use() -> None:
    """Whether it was waiting, working or sending at the end."""

    def work(number: int) -> tuple[int, bytes]:
        time.sleep(number)
        return os.getpid(), bytes(1 << 20)

    with in_processes(work, 40, 2) as results:
        process, _ = next(results)
        os.kill(process, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
