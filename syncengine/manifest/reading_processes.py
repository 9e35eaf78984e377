"""Call a function in forked processes, each with a connection of its own.

If one is killed, even in the middle of an answer, its connection ends, so that nobody waits for the rest of it.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from threading import Thread
from typing import Any, Generic, TypeVar

from syncengine.errors import SyncengineError, as_bug

T = TypeVar("T")
_STOPPING = frozenset({signal.SIGINT, signal.SIGTERM})
PATIENCE = 0.0005
"""The seconds after which a thread that receives results may interrupt another one of this process.

A result comes in several pieces. With the usual 5 ms for each, processes would wait until it is received.
"""


class _Worker(Generic[T]):
    """A forked process that calls `work` for one number after the other, until its connection ends."""

    def __init__(self, work: Callable[[int], T], others: Iterable[_Worker[T]]) -> None:
        fork = get_context("fork")
        self._connection, theirs = fork.Pipe()
        inherited = [self._connection, *(other._connection for other in others)]
        self._process = fork.Process(target=_serve, args=(work, theirs, inherited), daemon=True)
        self._process.start()
        theirs.close()  # or other processes would inherit it, and it would not end with this one

    def supply(self, numbers: Iterator[int], results: list[Future[T]]) -> None:
        """Have the process work on numbers, which other workers share, until none is left or one fails. Then end it."""
        for number in numbers:
            result = results[number]
            try:
                result.set_result(self._result_of(number))
            except BaseException as error:
                result.set_exception(error)
                break
        self._connection.close()
        self._process.join()

    def kill(self) -> None:
        """End the process, which has nothing to lose, at once."""
        self._process.kill()

    def _result_of(self, number: int) -> T:
        try:
            self._connection.send(number)
            result, error = self._connection.recv()
        except (EOFError, OSError):
            message = "a process that read manifests was ended from outside: is there enough memory?"
            raise SyncengineError(message, code="reading") from None
        if error is not None:
            raise error
        answer: T = result
        return answer


@contextmanager
def in_processes(work: Callable[[int], T], count: int, processes: int) -> Iterator[Iterator[T]]:
    """Call `work` for each number below `count` in forked processes. Yield an iterator of the results, in order.

    It raises what `work` raises, and `SyncengineError` (`reading`) when a process ended. A process ends when no number
    is left for it, and with the context at the latest. Where none can be started, `work` is called in this one.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    workers: list[_Worker[T]] = []
    numbers, results = iter(range(count)), [Future[T]() for _ in range(count)]
    threads: list[Thread] = []
    interval = sys.getswitchinterval()
    try:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)  # until a new process ignores them
            with suppress(OSError):
                for _ in range(processes):
                    workers.append(_Worker(work, workers))
            with suppress(RuntimeError):  # there is no room for another thread
                for worker in workers:  # after all processes, since a fork copies no threads
                    thread = Thread(target=worker.supply, args=(numbers, results), daemon=True)
                    thread.start()
                    threads.append(thread)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        sys.setswitchinterval(PATIENCE)
        yield _in_order(results) if threads else map(work, numbers)
    finally:
        try:  # which raises an interrupt that is there already; later ones would leave the processes alone
            signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        finally:
            sys.setswitchinterval(interval)
            for worker in workers:
                worker.kill()
            for thread in threads:
                thread.join()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_order(results: list[Future[T]]) -> Iterator[T]:
    """Yield each result as soon as it is there, and keep it no longer."""
    for number in range(len(results)):
        yield results[number].result()
        results[number] = Future()


def _serve(work: Callable[[int], Any], connection: Connection, inherited: Iterable[Connection]) -> None:
    """Answer each number with its result or error. Ctrl-C goes to all processes of a terminal; the parent ends this."""
    for number in _STOPPING:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
    for other in inherited:  # or they would not end with the parent
        other.close()
    with suppress(EOFError, OSError):
        while True:
            connection.send_bytes(_answer(work, connection.recv()))


def _answer(work: Callable[[int], Any], number: int) -> memoryview:
    """Return the result of `work`, or its error, as `Connection.recv` reads it."""
    try:
        return ForkingPickler.dumps((work(number), None))
    except BaseException as error:
        with suppress(Exception):
            return ForkingPickler.dumps((None, error))
        return ForkingPickler.dumps((None, SyncengineError(as_bug(error), code="internal")))
