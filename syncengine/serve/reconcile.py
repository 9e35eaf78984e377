"""Apply the manifests at an interval: an ordinary apply, with its lock and its gate, in a thread of its own.

Nothing is forced: a plan that the gate blocks, or an invalid manifest, is logged and retried at the next interval, and
does not keep anything else waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace

from syncengine.apply.report import Event, Outcome, Retrying, Waiting
from syncengine.engine import Application, Applied
from syncengine.errors import Diagnostic, ExitCode, Severity, SyncengineError, Undone
from syncengine.plan.inputs import InputsChanged, is_as_loaded
from syncengine.plan.quarantine import CODES
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.posted_time.pace import slept
from syncengine.project.model import MANIFESTS, Project
from syncengine.project.signals import RunStopper
from syncengine.render.diagnostics import message, where
from syncengine.render.documents import report_document
from syncengine.render.report import not_applied
from syncengine.serve.log import Log
from syncengine.serve.probes import Readiness
from syncengine.state.database import StateReplaced
from syncengine.state.store import open_state

LOCK_PATIENCE = 30.0
"""The maximum number of seconds to wait for the lock of another run, before the apply is left to the next interval."""

OUTCOMES: Mapping[ExitCode, str] = {
    ExitCode.DONE: "complete",
    ExitCode.INCOMPLETE: "incomplete",
    ExitCode.GATE: "gate",
    ExitCode.STALE: "older",
    ExitCode.LOCKED: "locked",
    ExitCode.AUTH: "unauthorized",
    ExitCode.INVALID: "invalid",
    ExitCode.UNREACHABLE: "unreachable",
    ExitCode.INTERRUPTED: "interrupted",
}
"""The names of an apply's outcomes in the metric; every other outcome is `error`."""
CHANGED = "changed"
"""The outcome of an apply that ended because files changed while it read them."""
CONFIGURATION = "configuration"
"""The outcome of an interval without an apply, because the project file is not the one that was loaded."""


class Reconciling:
    """The loop that applies the project's manifests every `project.serve.every` seconds until `stop` is set."""

    def __init__(
        self,
        project: Project,
        base_url: str,
        environ: Mapping[str, str],
        *,
        log: Log,
        readiness: Readiness,
        stop: asyncio.Event,
    ) -> None:
        # A project that only delivers time may get manifests while this runs.
        manifests = project.manifests or (project.root / MANIFESTS,)
        self._project = replace(project, manifests=manifests, again=_not_loaded)
        self._base_url = base_url
        self._environ = environ
        self._log = log
        self._readiness = readiness
        self._stop = stop
        self._stopper = RunStopper()

    async def run(self) -> None:
        """Wait for the first manifest, then apply at each interval, even if all manifests are deleted later."""

        def has_manifests() -> bool:
            return any(path.exists() for path in self._project.manifests)

        if not has_manifests():
            self._log.info("no-manifests", "nothing to reconcile: there are no manifests yet")
        while not (self._stop.is_set() or has_manifests()):
            await slept(self._project.serve.every, self._stop)
        while not self._stop.is_set():
            if await asyncio.to_thread(is_as_loaded, self._project):
                await self._reconcile_once()
            else:
                self._count(CONFIGURATION)
            await slept(self._project.serve.every, self._stop)

    async def _reconcile_once(self) -> None:
        """Apply once, and wait for the thread. `stop` makes the apply end early."""
        applying = asyncio.ensure_future(asyncio.to_thread(self._apply))
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait([applying, stopped], return_when=asyncio.FIRST_COMPLETED)
            if not applying.done():
                await asyncio.to_thread(self._stopper.stop)
            self._tell(await applying)
        finally:
            stopped.cancel()

    def _apply(self) -> Applied:
        """Apply in a thread, and set the gauges of quarantined and refused resources."""
        self._stopper.watch()
        runtime = Runtime(self._environ, now=self._log.now, tell=self._hear, stopping=self._stopping)
        request = PlanRequest("serve", lock_timeout=min(LOCK_PATIENCE, self._project.serve.every))
        done = Application(self._project, request, runtime, lambda: nullcontext(self._base_url)).execute()
        for each in done.report.diagnostics:
            if each.code == StateReplaced.code:
                raise StateReplaced(each.message)
        metrics = self._readiness.metrics
        if done.plan is not None:
            metrics.quarantined.set(len(done.plan.set_aside))
        # A state that cannot be read now is skipped.
        with suppress(SyncengineError), open_state(self._project.state, write=False) as state:
            metrics.refused.set(len(state.refusals()))
        return done

    @contextmanager
    def _stopping(self, stop: asyncio.Event) -> Iterator[None]:
        """Have the engine's run end by its event `stop`, which lets calls under way end."""
        loop = asyncio.get_running_loop()
        with self._stopper.calling(lambda: loop.call_soon_threadsafe(stop.set)):
            yield

    def _hear(self, event: Event) -> None:
        match event:
            case Retrying(operation, why, wait):
                self._log.warning("retrying", f"{operation}: {why}; retrying in {wait:.1f} s")
            case Waiting(seconds, why):
                self._log.info("waiting", f"waiting up to {seconds:.0f} s: {why}")
            case Diagnostic(code=code, message=text) if self._readiness.is_first(code, text):
                self._log.warning("remark", text, code=code)

    def _tell(self, done: Applied) -> None:
        """Count and log an apply: a line for its outcome, and one for each error; what is known already, only once."""
        is_first, report = self._readiness.is_first, done.report
        errors = [each for each in report.diagnostics if each.severity is Severity.ERROR]
        are_changed = any(each.code == InputsChanged.code for each in errors)
        outcome = CHANGED if are_changed else OUTCOMES.get(done.exit_code, "error")
        is_new = self._readiness.reconciled != outcome
        self._count(outcome)
        if done.exit_code is ExitCode.DONE:
            self._readiness.metrics.reconciled.set(self._log.now())
        for each in report.diagnostics:
            if each.code in CODES and is_first(each.code, each.message):
                self._log.warning("quarantine", _line(each), code=each.code)
        counts = {name.value: sum(r.outcome is name for r in report.results) for name in Outcome}
        if done.exit_code is ExitCode.DONE and not any(counts.values()):
            if is_new:
                self._log.info("reconciled", "manifests reconciled: nothing to change", outcome=outcome)
            return
        are_undone = bool(errors) and all(each.code == Undone.code for each in errors)
        if are_undone and not any(is_first(each.code, each.message) for each in errors):
            return  # only a person can resolve undone changes
        summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing was changed"
        was_stopped = done.exit_code is ExitCode.INTERRUPTED
        is_meant = done.exit_code is ExitCode.DONE or (was_stopped and not (counts["failed"] or counts["unknown"]))
        say = self._log.info if is_meant else self._log.error
        then = "" if was_stopped or is_meant else f"; the next apply is in {self._project.serve.every:g} s"
        say("reconciled", f"manifests reconciled, {outcome}: {summary}{then}", outcome=outcome, **counts)
        if is_meant:
            return
        for result in not_applied(report_document(report)):
            if result.error is not None:
                self._log.error("not-applied", f"{result.address}: {result.error.message}", address=result.address)
        for each in errors:
            self._log.error("not-reconciled", _line(each), code=each.code)

    def _count(self, outcome: str) -> None:
        self._readiness.reconciled = outcome
        self._readiness.metrics.reconciles.labels(outcome).inc()


def _not_loaded() -> Project:
    raise InputsChanged("the project file changed meanwhile: nothing was sent, and it is loaded before the next apply")


def _line(diagnostic: Diagnostic) -> str:
    return f"{where(diagnostic)}{message(diagnostic)}"
