"""What tests of several rooms share."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import postgresql
from tests.support import memory, rewriting, slow
from tests.support.profiles import FULL

# A machine with much else to do is slow, which says nothing of what is tested.
_UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", _UNHURRIED, max_examples=FULL, derandomize=True)
settings.register_profile("dev", _UNHURRIED, max_examples=FULL // 10)
settings.register_profile("search", _UNHURRIED, max_examples=FULL)
settings.load_profile("ci")

if sys.dont_write_bytecode and sys.pycache_prefix is None:
    # Nothing beside the sources, then; but each worker would rewrite the assertions of all modules anew.
    sys.pycache_prefix, sys.dont_write_bytecode = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode"), False

if memory.is_roomy():
    # Where pytest makes its folders, unless somebody said so: a commit to a disk is waited for.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory.MEMORY))

for _signal in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    # A shell ignores some of them for what it runs in the background, and children would inherit that.
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, signal.default_int_handler if _signal is signal.SIGINT else signal.SIG_DFL)


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: more than one worker a core where there are few, since many tests wait for a process or a server."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(cores, min(4 * cores, 8))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return slow.is_left_out(collection_path, config.option.markexpr) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect without garbage collections: nothing of what is collected goes before the end, and none walks over it."""
    gc.disable()
    _share_rewriting(session.config)
    collected = yield
    gc.enable()
    gc.collect()
    gc.freeze()
    return collected


def _share_rewriting(config: pytest.Config) -> None:
    """Rewrite a part of all test modules, where other workers rewrite the others."""
    worker = getattr(config, "workerinput", None)
    if worker is not None and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        paths = [path for path in rewriting.modules() if not slow.is_left_out(path, config.option.markexpr)]
        rewriting.import_share(paths, int(worker["workerid"].removeprefix("gw")), worker["workercount"])


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
