"""The stations, called in order: project → desired → plan → apply → report. Start reading here.

`planner.make_plan` needs no service and writes nothing to the state. `Application` is one `apply`: lock, plan or check
a saved plan, guards, team, calls, report. Everything that a run touches outside comes in with `Surroundings`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from syncengine import commits, guards
from syncengine.apply import applier
from syncengine.apply.events import Retrying
from syncengine.apply.run import Run as ApplyRun
from syncengine.chronicle import Chronicle
from syncengine.connection import check_team, client_of, prove_lease, stopping_on_signals, team_of
from syncengine.errors import AuthFailed, ExitCode, SyncengineError, Unreachable
from syncengine.plan import Plan
from syncengine.planner import approvals_of, checked, confirm_settled, options_of, plan_in
from syncengine.project import Project
from syncengine.report import Report, Status
from syncengine.request import Request, Surroundings
from syncengine.service.client import Answer, Client, Conduct
from syncengine.service.operations import OPERATIONS
from syncengine.store.history import Run
from syncengine.store.holder import Holder
from syncengine.store.state import State, open_state

NOT_CONFIRMED = "not-confirmed"
"""The code of a plan that nobody wanted applied."""

Serving = Callable[[], AbstractContextManager[str]]
"""Makes the service reachable for the time of a run, and yields its base URL."""


# --- applying


@dataclass(frozen=True, slots=True)
class Applied:
    """What an apply came to: the plan if there was one, the report, the exit code."""

    plan: Plan | None
    report: Report
    exit_code: ExitCode


class Application:
    """One apply. `execute` always ends in a report (engine.md 4.11)."""

    def __init__(self, project: Project, request: Request, around: Surroundings, serving: Serving) -> None:
        self._project = project
        self._request = request
        self._around = around
        self._serving = serving
        self._chronicle = Chronicle(around.tell, project.warnings)

    def execute(self, saved: Plan | None = None) -> Applied:
        """Apply `saved`, or plan and apply. What goes wrong is in the report, with its exit code."""
        self._chronicle.plan = saved
        try:
            exit_code = self._execute(saved)
        except SyncengineError as error:
            return Applied(self._chronicle.plan, self._chronicle.report(error), error.exit_code)
        return Applied(self._chronicle.plan, self._chronicle.report(), exit_code)

    def _execute(self, saved: Plan | None) -> ExitCode:
        project, request = self._project, self._request
        project.base_url()
        project.api_key()
        found = None if saved else checked(project, request, self._around)
        if self._around.environ.get("CI") and not (request.new_state or project.is_sandbox):
            guards.refuse_new_state(project.state)
        with open_state(project.state, write=True, now=self._around.now) as state:
            holder = Holder.here(request.command, self._around.environ)
            wait, timeout = request.lock_timeout, project.service.timeout
            with state.lock(holder, wait=wait, request_timeout=timeout, lease_seconds=max(60.0, 2 * timeout)):
                guards.refuse_other_service(state.facts(), project.base_url())
                if saved is not None:
                    guards.refuse_stale(saved, state, project.base_url())
                    options = options_of(project, request)
                    guards.refuse_inconsistent(saved, state, options.rules, options.limits)
                planned = saved or plan_in(
                    state, found or checked(project, request, self._around), project, request, self._around
                )
                self._chronicle.plan = planned
                self._guard(planned, state)
                before = state.facts()
                exit_code = self._apply(planned, state, holder)
                if exit_code is ExitCode.DONE and not state.doubted:
                    confirm_settled(project, planned, before, state.facts())
                return exit_code

    def _guard(self, planned: Plan, state: State) -> None:
        facts, root = state.facts(), self._project.root
        warning = guards.refuse_older(root, planned.basis.commit, facts, allowed=self._request.allow_older)
        if warning:
            self._chronicle.remark("unknown-ancestry", warning)
        guards.refuse_ungated(planned, approvals_of(self._project, self._request))
        if planned.changes_something and not self._around.confirm(planned):
            raise SyncengineError("not applied: it was not confirmed", code=NOT_CONFIRMED)

    def _apply(self, planned: Plan, state: State, holder: Holder) -> ExitCode:
        if not planned.sends_something:
            return asyncio.run(self._run_offline(planned, state, holder))
        with self._serving() as base_url:
            return asyncio.run(self._run_online(planned, state, holder, base_url))

    async def _run_offline(self, planned: Plan, state: State, holder: Holder) -> ExitCode:
        """A plan that sends nothing: only the state is written."""
        run = ApplyRun(_Silent(), state, self._chronicle.hear, asyncio.Event())
        with self._recorded_run(planned, state, holder, run):
            await applier.perform(run, planned)
        return ExitCode.DONE

    async def _run_online(self, planned: Plan, state: State, holder: Holder, base_url: str) -> ExitCode:
        service, stop = self._project.service, asyncio.Event()
        conduct = Conduct(
            timeout=service.timeout,
            concurrency=service.concurrency,
            stop=stop,
            before_send=lambda: prove_lease(state, service.timeout),
            on_retry=lambda operation, why, wait: self._chronicle.hear(Retrying(operation, why, wait)),
        )
        with (self._around.stopping or stopping_on_signals)(stop):
            async with client_of(self._project, base_url, conduct) as client:
                self._check_team(await team_of(client), state)
                self._chronicle.traffic = client.traffic
                run = ApplyRun(
                    client,
                    state,
                    self._chronicle.hear,
                    stop,
                    concurrency=service.concurrency,
                    max_errors=self._request.max_errors,
                )
                with self._recorded_run(planned, state, holder, run):
                    await applier.perform(run, planned)
                self._remark_missing_paths(client)
                return self._exit_code(run)

    def _check_team(self, team: str, state: State) -> None:
        """The key must belong to the team that is expected and that the state is of (engine.md 1.6)."""
        facts, base_url = state.facts(), self._project.base_url()
        check_team(team, self._project, facts.team)
        if (facts.team, facts.base_url) != (team, base_url):
            state.set_facts(base_url=base_url, team=team)

    @contextmanager
    def _recorded_run(self, planned: Plan, state: State, holder: Holder, run: ApplyRun) -> Iterator[None]:
        """A run in the history, ended with what became of it; one that is left by an exception counts as dead."""
        commit = commits.head(self._project.root)
        state.begin_run(
            Run(
                id=self._around.new_id(),
                started=self._around.now(),
                command=self._request.command,
                plan=planned.id,
                host=holder.host,
                user=holder.user,
                job_url=holder.job_url,
                commit=planned.basis.commit,
                clean=commit.clean if commit else None,
            ),
            planned.sources,
        )
        self._chronicle.began = True
        yield
        sources = planned.sources if planned.is_whole else None
        state.end_run(self._outcome(run), self._chronicle.counts(), sources)

    def _outcome(self, run: ApplyRun) -> str:
        """A plan is used up only by a run that came to its end (engine.md §6)."""
        if self._chronicle.status is Status.COMPLETE:
            return "complete"
        return "interrupted" if run.halt else "incomplete"

    def _exit_code(self, run: ApplyRun) -> ExitCode:
        if self._chronicle.status is Status.COMPLETE:
            return ExitCode.DONE
        if run.unauthorized:
            raise AuthFailed(run.halt or "authentication failed")
        if run.service.down and not self._chronicle.traffic.reached:
            raise Unreachable("the service cannot be reached and nothing was sent: repeat unchanged")
        return ExitCode.INTERRUPTED if run.stop.is_set() else ExitCode.INCOMPLETE

    def _remark_missing_paths(self, client: Client) -> None:
        """A path that is never found may be wrong, and its deletes were taken for done (engine.md 4.7)."""
        for operation, statuses in client.traffic.statuses.items():
            if statuses == {404}:
                message = f"{operation} only ever answered 404: is its path {client.path(OPERATIONS[operation])} right?"
                self._chronicle.remark("only-404", message)


class _Silent:
    """The service of a plan that sends nothing."""

    down = False

    def path(self, operation: object) -> str:
        raise AssertionError("a plan without requests asks for no path")

    async def call(self, operation: object, body: object = None) -> Answer:
        raise AssertionError("a plan without requests calls nothing")

    async def departed(self) -> None:
        raise AssertionError("a plan without requests waits for none")


# --- the state's team


def rebind_team(project: Project, around: Surroundings, serving: Serving) -> tuple[str | None, str]:
    """Remember the team that the key belongs to, whatever it was called before: the names before and now."""
    with open_state(project.state, write=True, now=around.now) as state:
        holder = Holder.here("state rebind", around.environ)
        with state.lock(holder, wait=90.0, request_timeout=project.service.timeout), serving() as base_url:
            before = state.facts().team
            team = asyncio.run(_ask_team(project, base_url))
            state.set_facts(base_url=project.base_url(), team=team)
    return before, team


async def _ask_team(project: Project, base_url: str) -> str:
    async with client_of(project, base_url) as client:
        return await team_of(client)
