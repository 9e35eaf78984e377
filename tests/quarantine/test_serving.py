"""`serve` reconciles completely with a resource in quarantine, and counts it in its metrics."""

from __future__ import annotations

import asyncio
import io
import time

from syncengine.serve.log import Log
from syncengine.serve.probes import Readiness
from syncengine.serve.reconcile import Reconciling
from tests.cli.program import Project, tag

from .refusing import Refusing


def reconciled(project: Project, readiness: Readiness) -> str:
    """Reconcile once, and return the log."""
    stream = io.StringIO()

    async def once() -> None:
        stop = asyncio.Event()
        log, environ = Log(stream, time.time), project.surroundings()
        serving = Reconciling(project.loaded(), project.url, environ, log=log, readiness=readiness, stop=stop)
        readiness.reconciled = None
        running = asyncio.create_task(serving.run())
        await asyncio.to_thread(_wait_for, readiness)
        stop.set()
        await running

    asyncio.run(once())
    return stream.getvalue()


def _wait_for(readiness: Readiness) -> None:
    while readiness.reconciled is None:
        time.sleep(0.01)


def seen(readiness: Readiness) -> tuple[str | None, float | None, float | None]:
    """Return how the last round ended, and the numbers of resources that are refused and in quarantine."""
    names = ("syncengine_refused_resources", "syncengine_quarantined_resources")
    refused, quarantined = (readiness.metrics.registry.get_sample_value(name) for name in names)
    return readiness.reconciled, refused, quarantined


def test_a_quarantine_is_counted_and_logged_once(project: Project, service: Refusing) -> None:
    project.settle(tags=[tag("GOOD")])
    service.refuse("BAD")
    project.wants(tags=[tag("GOOD"), tag("BAD")])
    readiness = Readiness()
    log = reconciled(project, readiness)
    assert seen(readiness) == ("incomplete", 1, 0)
    assert "not-applied" in log
    assert project.run("state", "quarantine", "tag/BAD", "--reason", "ticket 4711").code == 0
    logs = [reconciled(project, readiness) for _ in range(2)]
    assert seen(readiness) == ("complete", 1, 1)
    assert ["tag/BAD is in quarantine" in each for each in logs] == [True, False]
    service.heal()
    assert project.run("state", "quarantine", "tag/BAD", "--end").code == 0
    reconciled(project, readiness)
    assert seen(readiness) == ("complete", 0, 0)
