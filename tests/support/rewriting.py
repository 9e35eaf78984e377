"""Test modules, imported by workers that collect them all at the same time: each rewrites a part of their assertions.

pytest rewrites the assertions of a module where no earlier run has, which takes twice as long as all else of a
collection; without this every worker of a fresh clone would rewrite every module.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def modules() -> list[Path]:
    """All test modules, as pytest finds them."""
    return sorted((ROOT / "tests").rglob("test_*.py"))


def import_share(paths: Iterable[Path], number: int, workers: int) -> None:
    """Import each module that is this worker's to rewrite; one that cannot be imported is reported as it is collected.

    pytest's hook rewrites modules that are imported by their names, too, and keeps them as bytecode for the others.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in list(paths)[number::workers]:
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            try:
                importlib.import_module(name)
            except (Exception, pytest.skip.Exception):
                continue
