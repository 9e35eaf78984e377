"""Signals that end a command: which of them this process listens to, and interrupts that Python would lose."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable
from threading import Thread
from typing import Any

AGAIN_SECONDS = 0.005
"""The seconds after which a lost interrupt is sent again: by then, the callback that lost it has returned."""


def not_ignored(numbers: Iterable[signal.Signals]) -> list[signal.Signals]:
    """Return those of the signals that are not ignored, as SIGINT is in a job that a shell started by `&`."""
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


def keep_interrupts() -> None:
    """Send an interrupt again that arrives in a callback of the garbage collector, where Python only prints it."""
    sys.unraisablehook = _unraisable


def _unraisable(lost: Any) -> None:
    try:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            Thread(target=_interrupt_again, daemon=True).start()
        else:
            sys.__unraisablehook__(lost)
    except KeyboardInterrupt:  # another one
        Thread(target=_interrupt_again, daemon=True).start()


def _interrupt_again() -> None:
    time.sleep(AGAIN_SECONDS)
    for number in not_ignored((signal.SIGINT, signal.SIGTERM))[:1]:
        os.kill(os.getpid(), number)


def is_interrupt(error: BaseException) -> bool:
    """Return whether an error is an interrupt, or what Python 3.11 makes of one that arrives in `__set_name__`."""
    return isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt)
