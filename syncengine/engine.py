"""The stations, called in order: project → desired → plan → apply → report. Start reading here.

`make_plan` needs no service and writes nothing (engine.md 2.6). `Application` is one `apply`: lock, plan or check a
saved plan, guards, team, calls, report. Everything that a run touches outside comes in with `Surroundings`.
"""

from __future__ import annotations

import asyncio
import gc
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from syncengine import commits
from syncengine.apply import applier
from syncengine.apply.events import Event, ItemEnded, Remark, Retrying, SessionEnded
from syncengine.apply.run import Run as ApplyRun
from syncengine.desired import Desired, load
from syncengine.errors import (
    AuthFailed,
    Diagnostic,
    ExitCode,
    GateTripped,
    Severity,
    StalePlan,
    SyncengineError,
    Unreachable,
    WrongTeam,
)
from syncengine.plan import Basis, Options, Plan, mismatches, plan
from syncengine.policy import Rules, Scope, may_be_held
from syncengine.report import Outcome, Report, Result, Session, Status, Tally, status_of, totals
from syncengine.resource import Kind, Recorded
from syncengine.service.client import Answer, Client, Conduct, Endpoint
from syncengine.service.operations import DELETE_TAG, OPERATIONS, TEAM_INFO
from syncengine.settings import Project
from syncengine.store.history import Run
from syncengine.store.holder import Holder
from syncengine.store.lock import LockLost
from syncengine.store.state import Facts, State, open_state


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Time, ids, the environment, and how people are told and asked.

    `tell` hears every event; `confirm` is shown the plan and says whether to go on.
    """

    environ: Mapping[str, str]
    now: Callable[[], float] = time.time
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex[:12]
    tell: Callable[[Event], None] = lambda event: None
    confirm: Callable[[Plan], bool] = lambda plan: True


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asks of planning and applying. `lock_timeout` is in seconds."""

    command: str
    scope: Scope = field(default_factory=Scope)
    sweep: bool = False
    reassert: bool = False
    approvals: tuple[str, ...] = ()
    allow_older: bool = False
    new_state: bool = False
    max_errors: int | None = None
    lock_timeout: float = 90.0


Serving = Callable[[], AbstractContextManager[str]]
"""Makes the service reachable for the time of a run, and yields its base URL."""


# --- planning


def make_plan(project: Project, request: Request, around: Surroundings) -> Plan:
    """Plan from the manifests and the recorded state, which is only read."""
    desired = load(project)
    with open_state(project.state, write=False, now=around.now) as state:
        return _planned(project, desired, state, request, around)


def _planned(project: Project, desired: Desired, state: State, request: Request, around: Surroundings) -> Plan:
    facts = state.facts()
    commit = commits.head(project.root)
    basis = Basis(
        id=around.new_id(),
        created=datetime.fromtimestamp(around.now(), UTC).isoformat(timespec="seconds"),
        base_url=project.base_url(),
        team=facts.team,
        lineage=facts.lineage if facts.team else "",
        commit=commit.id if commit else None,
        swept_before=facts.owns_activity_types,
    )
    recorded = {row.key: row for row in state.rows()}
    return plan(desired, recorded, options_of(project, request), basis)


def options_of(project: Project, request: Request) -> Options:
    """How the project and the request want it planned."""
    policy = project.policy
    rules = Rules(
        tag_removal=policy.tag_removal,
        activity_types=policy.activity_types,
        deletes_tags=DELETE_TAG.id in project.service.endpoints,
    )
    return Options(
        rules,
        policy.max_deletes,
        request.scope,
        sweep=request.sweep,
        reassert=request.reassert,
        levels=policy.diagnostics,
    )


def approvals_of(project: Project, request: Request) -> tuple[str, ...]:
    """Every approval at hand: from the command line, the environment and the project file (engine.md §5)."""
    return (*request.approvals, *project.approvals)


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
        self._plan: Plan | None = None
        self._tally = Tally()
        self._session = Session()
        self._remarks: list[Diagnostic] = [*project.warnings]
        self._requests = 0
        self._retries = 0

    def execute(self, saved: Plan | None = None) -> Applied:
        """Apply `saved`, or plan and apply. What goes wrong is in the report, with its exit code."""
        try:
            exit_code = self._execute(saved)
        except SyncengineError as error:
            return Applied(self._plan, self._report(error), error.exit_code)
        return Applied(self._plan, self._report(None), exit_code)

    def _execute(self, saved: Plan | None) -> ExitCode:
        project, request = self._project, self._request
        self._plan = saved
        project.base_url()
        project.api_key()
        desired = load(project) if saved is None else None
        self._refuse_new_state()
        with open_state(project.state, write=True, now=self._around.now) as state:
            holder = Holder.here(request.command, self._around.environ)
            wait, timeout = request.lock_timeout, project.service.timeout
            with state.lock(holder, wait=wait, request_timeout=timeout, lease_seconds=max(60.0, 2 * timeout)):
                if desired is not None:
                    self._plan = _planned(project, desired, state, request, self._around)
                assert self._plan is not None
                self._guard(self._plan, state, saved is not None)
                gc.freeze()  # the plan lives as long as the process: a fifth of a large apply went into walking it
                if self._plan.changes_something and not self._around.confirm(self._plan):
                    raise SyncengineError("not applied: it was not confirmed", code="not-confirmed")
                return self._apply(self._plan, state, holder)

    # Guards: nothing was sent and nothing written.

    def _refuse_new_state(self) -> None:
        """In CI a state that is not there is a mistake more often than a beginning (engine.md §7)."""
        if self._request.new_state or self._project.is_sandbox or not self._around.environ.get("CI"):
            return
        with open_state(self._project.state, write=False) as state:
            if not state.exists:
                message = "there is no state yet, and this is a CI job: --new-state begins one"
                raise GateTripped(message, code="new-state")

    def _guard(self, planned: Plan, state: State, saved: bool) -> None:
        facts = state.facts()
        if saved:
            _refuse_stale(planned, state, facts, self._project)
        self._refuse_older(planned.basis.commit, facts)
        if planned.gate.refuses(approvals_of(self._project, self._request)):
            reasons = "; ".join(planned.gate.reasons)
            raise GateTripped(f"removals need an approval: {reasons} (--approve-deletes {planned.gate.approve})")

    def _refuse_older(self, commit: str | None, facts: Facts) -> None:
        """The older of two pipelines must not win (engine.md 1.7)."""
        if commit is None or facts.commit is None:
            return
        older = commits.is_older(self._project.root, commit, facts.commit)
        if older is None:
            message = f"whether {commit[:12]} is older than the last applied commit {facts.commit[:12]} is unknown"
            self._remark("unknown-ancestry", message)
        elif older and not self._request.allow_older:
            message = f"{commit[:12]} is older than the last applied commit {facts.commit[:12]} (--allow-older)"
            raise StalePlan(message, code="older-commit")

    # The run.

    def _apply(self, planned: Plan, state: State, holder: Holder) -> ExitCode:
        if not planned.sends_something:
            return asyncio.run(self._run_offline(planned, state, holder))
        with self._serving() as base_url:
            return asyncio.run(self._run_online(planned, state, holder, base_url))

    async def _run_offline(self, planned: Plan, state: State, holder: Holder) -> ExitCode:
        """A plan that sends nothing: only the state is written."""
        with self._recorded_run(planned, state, holder):
            run = ApplyRun(_Silent(), state, self._hear, asyncio.Event())
            await applier.perform(run, planned)
        return ExitCode.DONE

    async def _run_online(self, planned: Plan, state: State, holder: Holder, base_url: str) -> ExitCode:
        stop = asyncio.Event()
        service = self._project.service
        conduct = Conduct(
            timeout=service.timeout,
            concurrency=service.concurrency,
            stop=stop,
            before_send=lambda: _prove_lease(state, service.timeout),
            on_retry=lambda operation, why, wait: self._hear(Retrying(operation, why, wait)),
        )
        with _signals(stop):
            async with Client(
                base_url, _Key(self._project), endpoints=endpoints_of(self._project), conduct=conduct
            ) as client:
                await self._check_team(client, state)
                return await self._send(planned, state, holder, client, stop)

    async def _send(self, planned: Plan, state: State, holder: Holder, client: Client, stop: asyncio.Event) -> ExitCode:
        run = ApplyRun(
            client,
            state,
            self._hear,
            stop,
            concurrency=self._project.service.concurrency,
            max_errors=self._request.max_errors,
        )
        try:
            with self._recorded_run(planned, state, holder, run):
                await applier.perform(run, planned)
        finally:
            self._requests, self._retries = client.traffic.requests, client.traffic.retries
        self._remark_missing_paths(client)
        return self._exit_code(planned, run, client)

    def _exit_code(self, planned: Plan, run: ApplyRun, client: Client) -> ExitCode:
        if self._status(planned) is Status.COMPLETE:
            return ExitCode.DONE
        if run.unauthorized:
            raise AuthFailed(run.halt or "authentication failed")
        if client.down and not client.traffic.reached:
            raise Unreachable("the service cannot be reached and nothing was sent: repeat unchanged")
        return ExitCode.INTERRUPTED if run.stop.is_set() else ExitCode.INCOMPLETE

    @contextmanager
    def _recorded_run(self, planned: Plan, state: State, holder: Holder, run: ApplyRun | None = None) -> Iterator[None]:
        """A run in the history, ended with what became of it."""
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
            )
        )
        yield
        state.end_run(self._outcome(planned, run), self._counts(planned))

    def _outcome(self, planned: Plan, run: ApplyRun | None) -> str:
        if self._status(planned) is Status.COMPLETE:
            return "complete"
        return "interrupted" if run is not None and run.halt else "incomplete"

    def _counts(self, planned: Plan) -> dict[str, int]:
        results = self._results(planned)
        return {outcome.value: sum(r.outcome is outcome for r in results) for outcome in Outcome}

    async def _check_team(self, client: Client, state: State) -> None:
        """Ask which team the key belongs to, once, before the first write (engine.md 1.6)."""
        team = team_of(await client.call(TEAM_INFO), client.path(TEAM_INFO))
        facts = state.facts()
        base_url = self._project.base_url()
        for expected, where in ((self._project.service.team, "service.team"), (facts.team, "the state")):
            if expected is not None and expected != team:
                hint = "" if where == "service.team" else "; `state rebind` accepts a renamed team"
                raise WrongTeam(f"the key belongs to team {team!r}, and {where} to {expected!r}{hint}")
        if facts.base_url not in (None, base_url):
            self._remark("base-url-changed", f"the state was last applied to {facts.base_url}, now to {base_url}")
        if (facts.team, facts.base_url) != (team, base_url):
            state.set_facts(base_url=base_url, team=team)

    # What is told, and the report.

    def _hear(self, event: Event) -> None:
        match event:
            case ItemEnded():
                self._tally.add(event)
            case SessionEnded(id, outcome, reason):
                self._session = Session(id or None, outcome or "none", reason)
            case Remark(code, message):
                self._remark(code, message)
        self._around.tell(event)

    def _remark(self, code: str, message: str) -> None:
        self._remarks.append(Diagnostic(severity=Severity.WARNING, code=code, message=message))

    def _remark_missing_paths(self, client: Client) -> None:
        for operation, statuses in client.traffic.statuses.items():
            if statuses == {404}:
                path = client.path(OPERATIONS[operation])
                self._remark("only-404", f"{operation} only ever answered 404: is its path {path} right?")

    def _results(self, planned: Plan) -> tuple[Result, ...]:
        return self._tally.results(planned.changes, "not sent")

    def _status(self, planned: Plan) -> Status:
        return status_of(self._results(planned), sweep_wanted=planned.sweep is not None, session=self._session)

    def _report(self, error: SyncengineError | None) -> Report:
        planned = self._plan
        began = self._requests > 0 or (planned is not None and error is None)
        results = self._results(planned) if planned is not None and began else ()
        if error is None and planned is not None:
            status = self._status(planned)
        else:
            status = Status.INCOMPLETE if began else REFUSALS.get(type(error), Status.FAILED)
        found = (*(planned.diagnostics if planned else ()), *self._remarks, *(error.diagnostics() if error else ()))
        return Report(
            plan=planned.id if planned else None,
            status=status,
            totals=totals(results, self._requests, self._retries),
            session=self._session,
            results=results,
            diagnostics=found,
        )


REFUSALS: Mapping[type | None, Status] = {GateTripped: Status.REFUSED, StalePlan: Status.REFUSED}


class _Key:
    """The project's API key, looked up once, and anew when asked for a fresh one."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._key = project.api_key()

    def __call__(self, *, fresh: bool = False) -> str:
        if fresh:
            self._key = self._project.api_key()
        return self._key


def _prove_lease(state: State, timeout: float) -> None:
    """A call is sent only while the lease outlives it (engine.md 1.5)."""
    if state.lease is None or state.lease.remaining() <= timeout:
        raise LockLost("the lock was lost: another run may hold the state; nothing more is sent")


class _Silent:
    """The service of a plan that sends nothing."""

    down = False

    def path(self, operation: object) -> str:
        raise AssertionError("a plan without requests asks for no path")

    async def call(self, operation: object, body: object = None) -> Answer:
        raise AssertionError("a plan without requests calls nothing")


def team_of(answer: Answer, path: str) -> str:
    """The team's name in teamInfo's answer; AuthFailed or Unreachable with what came instead."""
    if answer.status in (401, 403):
        raise AuthFailed(f"the service refuses the API key ({answer.status}): {answer.text or 'no words'}")
    team = answer.data.get("teamName") if answer.ok and isinstance(answer.data, dict) else None
    if isinstance(team, str):
        return team
    if answer.status is None:
        raise Unreachable(f"the service cannot be reached, nothing was sent: {answer.text}")
    raise Unreachable(f"{path} does not name the team, nothing was sent: {answer.status}: {answer.text}")


def _refuse_stale(planned: Plan, state: State, facts: Facts, project: Project) -> None:
    """A saved plan fits one state, once (engine.md §6)."""
    if state.plan_ended(planned.id):
        raise StalePlan(f"plan {planned.id} was already applied", code="plan-used")
    lineage = facts.lineage if facts.team else ""
    if planned.basis.lineage not in ("", lineage) or planned.basis.base_url != project.base_url():
        raise StalePlan("the plan was made for another state or service")
    if planned.basis.team is not None and planned.basis.team != facts.team:
        raise StalePlan(f"the plan was made for team {planned.basis.team!r}, the state is {facts.team!r}'s")
    found = mismatches(planned, state.get(planned.prior), _grouped(planned, state))
    if found:
        shown = "; ".join(f"{m.key}: {m.why}" for m in found[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        raise StalePlan(f"the plan is stale: {shown}{more}")


def _grouped(planned: Plan, state: State) -> Iterable[Recorded]:
    """Rows that a plan must know all of: activity types of a sweep, members of categories that go."""
    if planned.sweep is not None:
        yield from (row for row in state.rows(Kind.ACTIVITY_TYPE) if may_be_held(row))
    going = [c.key.name for c in planned.changes if c.key.kind is Kind.CATEGORY and c.action.word == "delete"]
    if going:
        yield from state.members(going)


@contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    """SIGINT and SIGTERM end the run cleanly (engine.md 4.10)."""
    import signal

    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


# --- the state's team


def rebind_team(project: Project, around: Surroundings, serving: Serving) -> tuple[str | None, str]:
    """Remember the team that the key belongs to, whatever it was called before: the names before and now."""
    project.base_url()
    key = _Key(project)
    with open_state(project.state, write=True, now=around.now) as state:
        holder = Holder.here("state rebind", around.environ)
        with state.lock(holder, wait=90.0, request_timeout=project.service.timeout), serving() as base_url:
            before = state.facts().team
            team = asyncio.run(_ask_team(project, key, base_url))
            state.set_facts(base_url=project.base_url(), team=team)
    return before, team


async def _ask_team(project: Project, key: _Key, base_url: str) -> str:
    async with Client(base_url, key, endpoints=endpoints_of(project)) as client:
        return team_of(await client.call(TEAM_INFO), client.path(TEAM_INFO))


def endpoints_of(project: Project) -> dict[str, Endpoint]:
    """Where the project says that operations are, over the table."""
    return {
        id: Endpoint(given.method or OPERATIONS[id].method, given.path or OPERATIONS[id].path)
        for id, given in project.service.endpoints.items()
    }
