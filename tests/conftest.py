"""Settings and fixtures for all tests."""

import gc
import os
import shutil
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import postgresql
from tests.cli.program import Project
from tests.cli.service import Service, serving
from tests.support import statements
from tests.support.once import MEMORY
from tests.support.profiles import FULL

# A busy machine is slow, which is no fault of the tested code.
_UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", _UNHURRIED, max_examples=FULL, derandomize=True)
settings.register_profile("dev", _UNHURRIED, max_examples=FULL // 10)
settings.register_profile("search", _UNHURRIED, max_examples=FULL)
settings.load_profile("ci")
statements.compile_once()

if sys.dont_write_bytecode and sys.pycache_prefix is None:
    # Bytecode must not be beside the sources, but without any, each worker would rewrite all assertions itself.
    sys.pycache_prefix, sys.dont_write_bytecode = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode"), False

if MEMORY and shutil.disk_usage(MEMORY).free >= 4 * 2**30:
    # pytest's temporary folders are in memory unless set otherwise, since commits to a disk take time. They need so
    # many bytes, while what a container gives is often a few megabytes.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

for _signal in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    # A shell makes background jobs ignore some signals, and child processes would inherit that.
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, signal.default_int_handler if _signal is signal.SIGINT else signal.SIG_DFL)


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: on few cores, two workers each, since many tests wait for a process or a server."""
    # No more: to collect all tests takes each worker ten seconds of processor time.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(cores, min(2 * cores, 8))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect with garbage collection off, since nothing that is collected can be freed before the end."""
    gc.disable()
    collected = yield
    gc.enable()
    gc.collect()
    gc.freeze()
    return collected


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """The URL of a database that tests may empty."""
    if postgresql.OFFERED:
        yield postgresql.OFFERED
        return
    with postgresql.running() as server:
        yield server.url()


@pytest.fixture(scope="session")
def server() -> Iterator[postgresql.Server]:
    """A PostgreSQL server that tests may stop, and whose databases they create and drop."""
    with postgresql.running() as running:
        yield running


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as started:
        yield started


@pytest.fixture
def project(service: Service, tmp_path: Path) -> Project:
    return Project(tmp_path / "project", service.url)
