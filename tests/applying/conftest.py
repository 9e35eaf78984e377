"""Fixtures: one sandbox for the whole run, reset before each test, and a project for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from syncengine.sandbox.app import running_sandbox
from tests.support import loopback

from .bench import Bench, Sandbox
from .picky import Picky
from .picky import picky as running_picky


@pytest.fixture(scope="session")
def _started() -> Iterator[Sandbox]:
    with running_sandbox() as running, loopback.client(base_url=running.control_url) as control:
        yield Sandbox(running.url, control, running.api_key)


@pytest.fixture
def sandbox(_started: Sandbox) -> Sandbox:
    _started.reset()
    return _started


@pytest.fixture
def bench(sandbox: Sandbox, tmp_path: Path) -> Bench:
    return Bench(tmp_path, sandbox)


@pytest.fixture
def picky(bench: Bench) -> Iterator[Picky]:
    """A service that misbehaves as the test says, in place of the sandbox."""
    with running_picky() as service:
        bench.settings(url=service.url)
        yield service
