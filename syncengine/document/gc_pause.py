"""Control when the cyclic garbage collector runs, and what is freed at all."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause the garbage collector. It can take 40 % of the time, although nodes, resources and plans form no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def keep_imports() -> None:
    """Start a collector that was off during imports, and exempt all imported objects from its searches."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def keep_all() -> None:
    """Exempt all present objects from the collector's searches. They are still freed when no reference is left."""
    gc.freeze()


def leave_to_exit(value: object) -> None:
    """Keep a large value until the process ends, which is faster than to free all of its parts before."""
    _LEFT.append(value)


_LEFT: list[object] = []
"""The values of `leave_to_exit`."""

RARELY = (50_000, 20, 20)
"""The collector's thresholds, one for each generation: allocations, then collections of the next younger generation."""


def rare_collection() -> None:
    """Collect garbage rarely from now on, because an apply makes few cycles among very many long-lived values."""
    gc.set_threshold(*RARELY)
