"""The early end of a run: by signals, some of which Python would lose, or by `RunStopper` in a thread of `serve`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Lock, Timer
from types import FrameType
from typing import Any, TypeVar

from syncengine.errors import SyncengineError

T = TypeVar("T")

AGAIN_SECONDS = 0.005
"""The seconds after which a lost interrupt is sent again: by then, the callback that lost it has returned."""
LOOK_SECONDS = 0.1
"""Seconds between two looks at a stop during a request."""


def not_ignored(numbers: Iterable[signal.Signals]) -> list[signal.Signals]:
    """Return those of the signals that are not ignored, as SIGINT is in a job that a shell started by `&`."""
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


class _Interrupts:
    """Whether an interrupt has arrived since `raise_interrupts`, and whether one that was lost is being noted."""

    have_arrived = False
    are_held = False


def raise_interrupts() -> None:
    """Have SIGINT and SIGTERM raise `KeyboardInterrupt`, and be remembered for `is_interrupt`."""
    _Interrupts.have_arrived = False
    for number in not_ignored((signal.SIGINT, signal.SIGTERM)):
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _Interrupts.have_arrived = True
    if not _Interrupts.are_held:
        raise KeyboardInterrupt


def keep_interrupts() -> None:
    """Send an interrupt again that arrives in a callback of the garbage collector, where Python only prints it.

    To start a thread takes as long as the machine is busy, and an interrupt during it would be lost as well.
    """

    def again() -> None:
        while _Interrupts.are_held:
            time.sleep(AGAIN_SECONDS)
        for number in not_ignored((signal.SIGINT, signal.SIGTERM))[:1]:
            os.kill(os.getpid(), number)

    def unraisable(lost: Any) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            _Interrupts.are_held = True
            try:
                Timer(AGAIN_SECONDS, again).start()
            finally:
                _Interrupts.are_held = False
        else:
            sys.__unraisablehook__(lost)

    sys.unraisablehook = unraisable


def is_interrupt(error: BaseException) -> bool:
    """Return whether an error is an interrupt, or what was made of one.

    Python 3.11 makes a RuntimeError of one that arrives in `__set_name__`, and pydantic a SchemaError, without a cause,
    of one that arrives while it builds a model. Errors of ours are no interrupts.
    """
    return isinstance(error, KeyboardInterrupt) or (_Interrupts.have_arrived and not isinstance(error, SyncengineError))


# --- a run in a thread of its own, which no signal reaches


class RunStopper:
    """A switch that ends the run of another thread as an interrupt would: where it waits, or by its callbacks."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stopped = Event()
        self._ends: list[Callable[[], object]] = []

    def watch(self) -> None:
        """Have the current thread be the one of the run."""
        _stopper.set(self)

    def stop(self) -> None:
        with self._lock:
            self._stopped.set()
            for end in self._ends:
                end()

    @contextmanager
    def calling(self, end: Callable[[], object]) -> Iterator[None]:
        """Have `stop` call `end` during the block, at once if it was called before."""
        with self._lock:
            self._ends.append(end)
            if self._stopped.is_set():
                end()
        try:
            yield
        finally:
            with self._lock:
                self._ends.remove(end)

    def wait(self, seconds: float) -> bool:
        """Return whether the run is stopped within so many seconds."""
        return self._stopped.wait(seconds)


_stopper: ContextVar[RunStopper | None] = ContextVar("stopper", default=None)
"""The switch of the run in this thread. A wait may be deep in a source, and must not depend on who reads it."""


def is_stopped() -> bool:
    stopper = _stopper.get()
    return stopper is not None and stopper.wait(0)


def pause(seconds: float) -> None:
    """Sleep. Raise `KeyboardInterrupt` if the run is stopped meanwhile."""
    stopper = _stopper.get()
    if stopper is None:
        time.sleep(seconds)
    elif stopper.wait(seconds):
        raise KeyboardInterrupt


async def unless_stopped(work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of `work`, or `None` if the run is stopped first."""
    if _stopper.get() is None:
        return await work
    task = asyncio.ensure_future(work)
    while not (await asyncio.wait([task], timeout=LOOK_SECONDS))[0]:
        if is_stopped():
            task.cancel()
            await asyncio.wait([task])
            return None
    return task.result()


@contextmanager
def when_stopped(end: Callable[[], object]) -> Iterator[None]:
    """Call `end` in another thread if the run is stopped during the block, which raises `KeyboardInterrupt` then."""
    stopper = _stopper.get()
    if stopper is None:
        yield
        return
    try:
        with stopper.calling(end):
            yield
    except Exception:
        if is_stopped():
            raise KeyboardInterrupt from None
        raise
