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


def keep_imports() -> None:
    """Let the collector begin, where it waits for the program to be imported, which it then never looks through."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def keep_all() -> None:
    """Look for garbage only among what comes from now on; what lives now is nevertheless freed once nobody uses it."""
    gc.freeze()


RARELY = (50_000, 20, 20)
"""Allocations, and younger collections, before the collector looks at each generation."""


def rare_collection() -> None:
    """Collect rarely from now on: an apply makes few cycles, of its calls, among very many values that live on."""
    gc.set_threshold(*RARELY)
