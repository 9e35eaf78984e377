"""Pauses of the cyclic garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Nodes, resources and plans make no cycles; up to two fifths of the time would go into looking for some."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


RARELY = (50_000, 20, 20)
"""Allocations, and younger collections, before the collector looks at each generation."""


def rare_collection() -> None:
    """Collect rarely from now on: an apply makes few cycles, of its calls, among very many values that live on."""
    gc.set_threshold(*RARELY)
