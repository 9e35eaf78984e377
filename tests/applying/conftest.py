"""Fixtures: one sandbox for the whole run, reset before each test, and a project for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.service import Service, serving

from .bench import Bench
from .picky import Picky
from .picky import picky as running_picky


@pytest.fixture(scope="session")
def _started() -> Iterator[Service]:
    with serving() as started:
        yield started


@pytest.fixture
def sandbox(_started: Service) -> Service:
    _started.reset()
    return _started


@pytest.fixture
def bench(sandbox: Service, tmp_path: Path) -> Bench:
    return Bench(tmp_path, sandbox)


@pytest.fixture
def picky(bench: Bench) -> Iterator[Picky]:
    """A service that misbehaves as the test says, in place of the sandbox."""
    with running_picky() as service:
        bench.settings(url=service.url)
        yield service
