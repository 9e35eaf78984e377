"""What tests of several rooms share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import postgresql
from tests.support import slow
from tests.support.profiles import FULL

# A machine with much else to do is slow, which says nothing of what is tested.
_UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", _UNHURRIED, max_examples=FULL, derandomize=True)
settings.register_profile("dev", _UNHURRIED, max_examples=FULL // 10)
settings.register_profile("search", _UNHURRIED, max_examples=FULL)
settings.load_profile("ci")

for _signal in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    # A shell ignores some of them for what it runs in the background, and children would inherit that.
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, signal.default_int_handler if _signal is signal.SIGINT else signal.SIG_DFL)


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: more than one worker a core where there are few, since many tests wait for a process or a server."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(cores, min(2 * cores, 8))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow.mark(items)


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """A database that may be emptied."""
    if postgresql.OFFERED:
        yield postgresql.OFFERED
        return
    with postgresql.running() as server:
        yield server.url()
