"""Run one apply through its stations: project → desired → plan → apply → report. Start reading here.

`planner.make_plan` makes a plan without calling the service or writing to the state. `Application` is one `apply`:
lock, plan (or check a saved plan), guards, team, calls, report. Clock, environment and user come in with `Runtime`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial

from msgspec import structs

from syncengine.apply import applier, guards, landing
from syncengine.apply.landing import Patience
from syncengine.apply.report import (
    PLAN_USED,
    Chronicle,
    Circumstances,
    Report,
    Retrying,
    RunStatus,
    Stopping,
    Waiting,
)
from syncengine.apply.run import ApplyRun, PlannedContent
from syncengine.connector.connection import (
    check_team,
    client_of,
    prove_lease,
    stopping_on_signals,
    team_of,
    unproven_paths,
)
from syncengine.errors import (
    AuthFailed,
    ExitCode,
    Interrupted,
    Problems,
    Severity,
    StalePlan,
    SyncengineError,
    Unreachable,
)
from syncengine.instants import machine_seconds
from syncengine.manifest.desired import ManifestSet, manifest_set
from syncengine.plan.gate import approved_of
from syncengine.plan.inputs import (
    REPEAT,
    Inputs,
    InputsChanged,
    commit_of,
    consistent,
    demand_of,
    first_contact,
    is_as_loaded,
    older_commits,
)
from syncengine.plan.model import ANCESTRY, Plan
from syncengine.plan.planner import (
    check_manifests,
    options_of,
    plan_in,
    remember_applied,
    warnings_of_approvals,
    with_approvals,
)
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.plan.saved import INCONSISTENT
from syncengine.plan.undo import record_of, record_of_undo, undo_plan
from syncengine.project import git
from syncengine.project.model import Project
from syncengine.project.runner import Holder, actor, is_ci, job_url
from syncengine.project.signals import is_interrupt, pause
from syncengine.resource import Key
from syncengine.service.answers import Answer
from syncengine.service.client import Client, Conduct
from syncengine.service.operations import CANCEL_SYNC_SESSION, OPERATIONS
from syncengine.state.folder_memory import memory_of
from syncengine.state.history import Run
from syncengine.state.lock import Lease
from syncengine.state.store import State, open_state

NOT_CONFIRMED = "not-confirmed"
"""The error code of an apply that the user did not confirm."""

# AUTH for the sake of another team, or another service: a rejected API key has the same exit code.
RECORDED = frozenset({ExitCode.GATE, ExitCode.STALE, ExitCode.LOCKED, ExitCode.AUTH, ExitCode.INVALID})
"""The exit codes of refused runs that the history shows (docs/state.md)."""

LONGEST_REASON = 300  # a line of `state history` that a terminal can show

Serving = Callable[[], AbstractContextManager[str]]
"""A function whose context makes the service reachable for a run, and yields its base URL."""


# --- applying


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of an apply: the plan (`None` if none was made), the report and the exit code."""

    plan: Plan | None
    report: Report
    exit_code: ExitCode


def reason_of(error: SyncengineError) -> str:
    """Return the first reason for refusing a run, in one line of at most `LONGEST_REASON` characters.

    Errors may come after warnings, which are no reasons.
    """
    first = next((each for each in error.diagnostics() if each.severity is Severity.ERROR), None)
    return f"{first.code}: {first.message}"[:LONGEST_REASON] if first else error.message[:LONGEST_REASON]


class Application:
    """One apply. `execute` returns a report in every case (docs/planning.md 4.11)."""

    def __init__(self, project: Project, request: PlanRequest, runtime: Runtime, serving: Serving) -> None:
        self._project = project
        self._request = request
        self._runtime = runtime
        self._serving = serving
        self._chronicle = Chronicle(runtime.tell, project.warnings)
        self._patience = 0.0
        self._started = runtime.now()
        self._team_name = project.service.team
        self._redoes: tuple[Key, ...] = ()
        self._early: ManifestSet | None = None
        self._inputs: Inputs | None = None
        self._is_saved = False

    def execute(self, saved: Plan | None = None) -> Applied:
        """Apply `saved`, or plan and apply. Errors are returned in the report, with their exit code."""
        self._chronicle.plan = saved and with_approvals(saved, self._project, self._request)
        self._is_saved = saved is not None
        try:
            try:
                exit_code = self._execute(saved)
            except (Exception, KeyboardInterrupt) as error:  # while nothing is under way, as in a wait for the lock
                if not is_interrupt(error):
                    raise
                is_begun = self._chronicle.began
                raise Interrupted("interrupted" if is_begun else "interrupted: nothing was sent") from None
        except SyncengineError as error:
            self.record_refusal(error)
            return Applied(self._chronicle.plan, self._chronicle.report(self._circumstances(), error), error.exit_code)
        return Applied(self._chronicle.plan, self._chronicle.report(self._circumstances()), exit_code)

    def _execute(self, saved: Plan | None) -> ExitCode:
        project, request = self._project, self._request
        if saved:
            guards.refuse_sandbox(saved, project)
        project.base_url()
        project.api_key()
        generation = None
        if project.sources:
            with open_state(project.state, write=False) as looked:  # before the manifests and their sources are read
                generation = looked.facts().generation
        if saved is None:
            self._early = self._checked()
        if is_ci(self._runtime.environ) and not (request.new_state or project.is_sandbox):
            guards.refuse_new_state(project.state)
        memory = memory_of(project)
        with open_state(
            project.state, write=True, now=self._runtime.now, create=request.new_state, memory=memory
        ) as state:
            holder = Holder.here(request.command, self._runtime.environ)
            guards.refuse_other_service(state.facts(), project.base_url())
            with self._locked(state, holder):
                guards.refuse_other_service(state.facts(), project.base_url())
                if project.sources and state.facts().generation != generation:
                    self._early = None  # with rows from before another run, which that run's may have replaced
                if not is_as_loaded(self._project):  # its files have changed while the run waited
                    self._use(self._project.again())
                plan, stale = self._proven(saved, state) if saved else (self._planned(state), None)
                self._chronicle.plan = plan
                for file in request.review.denied if request.review else ():
                    self._chronicle.remark(guards.DENIED, f"rules deny the plan in {file}, so it approves nothing")
                self._judge(plan, state, [stale] if stale else [], is_saved=saved is not None)
                if plan.changes_something and not self._runtime.confirm(plan):
                    raise SyncengineError("not applied: the plan was not confirmed", code=NOT_CONFIRMED)
                exit_code = self._apply(plan, state, holder)
                if exit_code is ExitCode.DONE and not state.doubted:
                    remember_applied(self._project, plan, state.facts())
                return exit_code

    @cached_property
    def _commit(self) -> git.Commit | None:
        return git.head(self._project.root)

    def _commit_of(self, plan: Plan) -> str | None:
        return commit_of(plan, self._commit, self._project.root)

    def _circumstances(self) -> Circumstances:
        plan, environ = self._chronicle.plan, self._runtime.environ
        commit = self._commit
        tree = plan.basis.tree if plan else None
        opened = (plan.gate.approved, *(unit.approved for unit in plan.gate.shown)) if plan else ()
        return Circumstances(
            started=self._started,
            ended=self._runtime.now(),
            team=self._team_name or (plan.basis.team if plan else None),
            environment=self._project.environment,
            commit=plan.basis.commit if plan else (commit.id if commit else None),
            tree=tree.id if tree else (commit.tree if commit and not plan else None),
            actor=actor(environ),
            job=job_url(environ),
            approvals=tuple(dict.fromkeys(filter(None, opened))) if plan and self._chronicle.began else (),
        )

    def _locked(self, state: State, holder: Holder) -> Lease:
        service, timeout = self._project.service, self._request.lock_timeout
        wait = service.lock_timeout if timeout is None else timeout
        began = machine_seconds()
        lease = state.lock(
            holder,
            wait=wait,
            request_timeout=service.timeout,
            sleep=pause,
            lease_seconds=service.lease,
            on_wait=lambda info: self._chronicle.hear(Waiting(wait, f"the state is locked by {info}")),
        )
        self._patience = max(0.0, wait - (machine_seconds() - began))
        return lease

    def _proven(self, saved: Plan, state: State) -> tuple[Plan, StalePlan | None]:
        """Return the saved plan, made again from what it holds; or as it was saved, and why it is stale."""
        project, request, now = self._project, self._request, self._runtime.now()
        options = options_of(project, request, state.facts())
        guards.refuse_elsewhere(saved, state, project.base_url())
        try:
            guards.refuse_changed(saved, state)
            if saved.undo:
                undo = undo_plan(saved.undo, state, project, request, self._runtime, saved=saved)
                plan = guards.undone_again(saved, undo, state)
            else:
                again = guards.planned_again(saved, state, deletes_tags=options.rules.deletes_tags)
                plan = guards.with_gate_of_today(saved, again, state, options, now)
            guards.refuse_more_than_rest(saved, plan, state)
            guards.refuse_quarantined(plan, state, project, now)
        except StalePlan as stale:
            if stale.code == INCONSISTENT:  # what such a file shows of its gate means nothing
                raise
            return with_approvals(saved, project, request), stale
        return self._approved(plan, state), None

    def _judge(
        self, plan: Plan, state: State, found: Sequence[SyncengineError] = (), *, is_saved: bool = False
    ) -> None:
        """Refuse a plan for the first of its problems, which include those `found` before."""
        commit, repeated = self._commit_of(plan), guards.repeated_by(plan, state)
        self._redoes = tuple(dict.fromkeys(each.key for each in repeated))
        more = guards.problems_of(plan, repeated, commit, state, self._project, self._request, is_saved=is_saved)
        if warning := guards.unknown_ancestry(self._project.root, commit, state.facts()):
            self._chronicle.remark(ANCESTRY, warning)
        guards.refuse([*found, *more], plan.diagnostics, self._chronicle.remark)

    def _checked(self) -> ManifestSet | None:
        """Check the manifests before the state is opened. Return `None` where they changed, to be planned later."""
        inputs = Inputs.of(self._project, manifest_set(self._project))
        try:
            return check_manifests(self._project, inputs.manifests)
        except Problems:
            if inputs.change():
                return None
            raise

    def _use(self, project: Project) -> None:
        """Go on with the settings of today. Raise `InputsChanged` when they name another service or state."""
        before = self._project
        if project is before:
            return
        if (project.base_url(), project.state) != (before.base_url(), before.state):
            raise InputsChanged(f"{project.config_name} names another service or state than before: {REPEAT}")
        self._project, self._early = project, None

    def _planned(self, state: State) -> Plan:
        """Plan from what stands there now that this run has the lock. Plan again while that changes."""

        def made(project: Project) -> Plan:
            self._use(project)
            manifests, self._early = self._early or manifest_set(project), None
            self._inputs = Inputs.of(project, manifests)
            plan = partial(plan_in, state, manifests, project, self._request, self._runtime)
            return self._inputs.planned(plan)

        plan = consistent(self._project, made)
        noted = structs.replace(plan, diagnostics=(*first_contact(self._project, state), *plan.diagnostics))
        return self._approved(noted, state)

    def _refuse_changed(self, plan: Plan, state: State) -> None:
        """Raise `InputsChanged` if the inputs have changed since they were read and no longer ask for this plan."""
        if self._inputs is None or not (plan.changes_something or plan.records):
            return
        if why := self._inputs.change():
            again = self._planned(state)
            self._judge(again, state)
            if demand_of(again) != demand_of(plan):
                raise InputsChanged(why)

    def _approved(self, plan: Plan, state: State) -> Plan:
        """Return the plan judged with all given approvals, and with warnings about approvals that approve nothing."""
        warnings = warnings_of_approvals(plan, state, self._project, self._request)
        judged = with_approvals(plan, self._project, self._request)
        return structs.replace(judged, diagnostics=(*judged.diagnostics, *warnings))

    def record_refusal(self, error: SyncengineError) -> None:
        """Record a refused run in the history if the state exists and can be written. Do nothing otherwise."""
        if error.exit_code not in RECORDED or self._chronicle.began:
            return
        with suppress(SyncengineError):
            with open_state(self._project.state, write=False) as looked:
                if not looked.exists:
                    return
                last = next(iter(looked.runs(1)), None)
                command, reason = self._request.command, reason_of(error)
                if command == "serve" and last and (last.command, last.reason) == (command, reason):
                    return  # the same in each of its rounds
            commit, plan = self._commit, self._chronicle.plan
            refused = replace(
                self._run_of(Holder.here(command, self._runtime.environ)),
                ended=self._runtime.now(),
                plan=plan.id if plan else None,
                commit=self._commit_of(plan) if plan else (commit.id if commit else None),
                clean=commit.clean if commit else None,
                exit_code=int(error.exit_code),
                reason=reason,
            )
            with open_state(self._project.state, write=True, now=self._runtime.now) as state:
                state.record_refusal(refused)

    def _run_of(self, holder: Holder) -> Run:
        return Run.here(self._runtime.new_id(), self._runtime.now(), holder, self._runtime.environ)

    def _apply(self, plan: Plan, state: State, holder: Holder) -> ExitCode:
        if plan.sends_something:
            with self._serving() as base_url:
                return asyncio.run(self._run_online(plan, state, holder, base_url))
        self._refuse_changed(plan, state)
        run = ApplyRun(_Silent(), state, self._chronicle.hear, asyncio.Event())
        with self._recorded_run(plan, state, holder, run):
            asyncio.run(applier.perform(run, plan))  # which writes only to the state
        return ExitCode.DONE

    async def _run_online(self, plan: Plan, state: State, holder: Holder, base_url: str) -> ExitCode:
        service, stop, abandon = self._project.service, asyncio.Event(), asyncio.Event()
        tell = self._runtime.tell  # not the chronicle's: a reference cycle with the client would keep the plan alive
        conduct = Conduct(
            timeout=service.timeout,
            concurrency=service.concurrency,
            stop=stop,
            abandon=abandon,
            before_send=lambda: prove_lease(state, service.timeout),
            on_retry=lambda operation, why, wait: tell(Retrying(operation, why, wait)),
        )
        stopping = partial(
            stopping_on_signals,
            tell=lambda: self._chronicle.hear(Stopping(service.timeout)),
            at_once=abandon.set,
        )
        with (self._runtime.stopping or stopping)(stop):
            async with client_of(self._project, base_url, conduct) as client:
                try:
                    team = await team_of(client)
                except Unreachable:
                    if stop.is_set():
                        raise Interrupted("interrupted: nothing was sent") from None
                    raise
                check_team(team, self._project, (facts := state.facts()).team)  # docs/planning.md 1.6
                self._team_name = team
                if (facts.team, facts.base_url) != (team, self._project.base_url()):
                    state.set_facts(base_url=self._project.base_url(), team=team)
                patience = Patience(service.landing, machine_seconds() + self._patience, now=self._runtime.now)
                await landing.wait(plan.effects, state, patience, stop, self._chronicle.hear)
                self._refuse_changed(plan, state)
                self._chronicle.traffic = client.traffic
                run = ApplyRun(
                    client,
                    state,
                    self._chronicle.hear,
                    stop,
                    concurrency=service.concurrency,
                    max_errors=self._request.max_errors,
                    window=service.landing,
                    content=PlannedContent(plan),
                    set_aside=frozenset(plan.set_aside),
                    unproven=unproven_paths(self._project, state),
                )
                with self._recorded_run(plan, state, holder, run):
                    await applier.perform(run, plan)
                self._remark_missing_paths(client)
                return self._exit_code(run)

    @contextmanager
    def _recorded_run(self, plan: Plan, state: State, holder: Holder, run: ApplyRun) -> Iterator[None]:
        """Begin a run in the history, and end it with its outcome. An exception leaves it without an end."""
        checked_out, approved, new = self._commit, approved_of(plan), self._run_of(holder)
        commit = self._commit_of(plan)
        undo = plan.undo or None
        undone = record_of_undo(undo, state, new.id) if undo else record_of(plan, state.undone(), self._redoes)
        state.begin_run(
            replace(
                new,
                plan=plan.id,
                commit=commit,
                clean=checked_out.clean if checked_out else None,
                limits=self._project.policy.limits() if plan.is_whole else {},
                approvals=plan.gate.at_hand,
                reviewed=tuple(each.plan for each in self._request.review.plans) if self._request.review else (),
                undoes=undo.run if undo else None,
            ),
            plan.sources,
            approved,
            undone,
            older_commits(self._project.root, commit, state.facts()) if commit else (),
        )
        self._chronicle.began = True
        yield
        is_complete = self._chronicle.status is RunStatus.COMPLETE
        outcome = "complete" if is_complete else "interrupted" if run.halt else "incomplete"
        if outcome == "incomplete" and self._is_saved:  # only an interrupted one may be applied again
            self._chronicle.remark(PLAN_USED, f"plan {plan.id} was applied as far as possible, which uses it up")
        state.end_run(outcome, self._chronicle.counts(), plan.sources if plan.is_whole else None)

    def _exit_code(self, run: ApplyRun) -> ExitCode:
        if self._chronicle.status is RunStatus.COMPLETE:
            return ExitCode.DONE
        if run.unauthorized:
            raise AuthFailed(run.halt or "authentication failed")
        if run.service.down and not self._chronicle.traffic.reached:
            raise Unreachable(f"nothing was sent: {run.service.why_down}")
        return ExitCode.INTERRUPTED if run.stop.is_set() else ExitCode.INCOMPLETE

    def _remark_missing_paths(self, client: Client) -> None:
        """Warn about paths that only answered 404 (docs/planning.md 4.7). A cancel may: its session is over."""
        for operation, statuses in client.traffic.statuses.items():
            if statuses == {404} and operation != CANCEL_SYNC_SESSION.id:
                path = client.path(OPERATIONS[operation])
                message = f"{operation} always answered 404: check its path {path} (`service.endpoints`)"
                self._chronicle.remark("only-404", message)


class _Silent:
    """A stand-in for the service, for plans that send nothing. Every call is a bug."""

    down = False
    why_down = ""

    async def call(self, operation: object, body: object = None) -> Answer:
        raise AssertionError("a plan without requests calls nothing")
