"""apply: confirm a plan, show progress on stderr (bars on a terminal, occasional lines elsewhere), print the report."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from syncengine.apply.guards import DENIED, refuse_missing
from syncengine.apply.report import (
    Event,
    ItemEnded,
    Outcome,
    Retrying,
    RunStatus,
    Session,
    SessionOpened,
    StageStarted,
    Stopping,
    Waiting,
)
from syncengine.cli.option_types import Seconds, WholeNumber
from syncengine.cli.option_types import files as complete_files
from syncengine.cli.options import Globals, collect_rarely, with_globals
from syncengine.cli.output import Output, as_argument, output_format
from syncengine.cli.output_files import OutputFiles, ReportingCommand, ReportKind, Reports
from syncengine.cli.plan import PlanOptions, selection
from syncengine.cli.service import address_file, serving
from syncengine.cli.streams import OutputFailed, agreed, discard, is_answered, tell, trouble_of
from syncengine.engine import NOT_CONFIRMED, Application, Applied
from syncengine.errors import REFUSALS, Diagnostic, ExitCode, Severity, SyncengineError, Usage
from syncengine.plan.gate import CODES
from syncengine.plan.model import DOUBTS_OF_STATE as SAID_FIRST
from syncengine.plan.model import Plan
from syncengine.plan.request import PlanRequest, Review, Runtime
from syncengine.project.model import Project
from syncengine.render import PLAN_FORMATS, REPORT_FORMATS
from syncengine.render.documents import plan_document, report_document
from syncengine.render.report import report_of
from syncengine.render.view import asks_about_removals_alone
from syncengine.render.words import number

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

REPORTS = ReportKind(REPORT_FORMATS, REPORT_FORMATS, lambda error: report_document(report_of(error)))


class ApplyCommand(ReportingCommand):
    kind = REPORTS


@click.command(
    cls=ApplyCommand,
    epilog="syncengine apply plan.json --report junit=report.xml\n# apply the reviewed plan, with a report",
)
@click.argument("paths", metavar="[PLAN | PATHS]", nargs=-1, shell_complete=complete_files)
@click.option("-y", "--auto-approve", is_flag=True, help="Apply without asking.")
@output_format("text", "json")
@click.option(
    "--report",
    "reports",
    metavar="FORMAT=FILE",
    multiple=True,
    help="Also write the report to this file (- is stdout).",
)
@click.option("--max-errors", type=WholeNumber(1), help="Stop after this many failed resources.")
@click.option(
    "--lock-timeout",
    type=Seconds(),
    metavar="DURATION",
    help="How long to wait for the lock, and for earlier calls to end (default: lease + timeout + landing).",
)
@click.option(
    "--reviewed",
    metavar="FILE",
    multiple=True,
    shell_complete=complete_files,
    help="Refuse changes beyond this reviewed plan (repeatable).",
)
@click.option("--allow-unmerged", is_flag=True, help="Apply a saved plan of a Git tree other than the one checked out.")
@click.option("--allow-older", is_flag=True, help="Allow a commit that is older than the last applied one.")
@click.option("--new-state", is_flag=True, help="Create a missing state, also in a CI job, in Git, or after a loss.")
@selection
@with_globals
def apply(options: Globals, auto_approve: bool, format: str, reports: Sequence[str], **chosen: Any) -> int:
    """Execute a saved plan, or plan and apply. PATHS select changes; all manifests are always loaded."""
    collect_rarely()
    wanted = PlanOptions(**chosen)
    applying = _Applying(options, auto_approve, format)
    files = OutputFiles(options.folder, (*wanted.paths, *wanted.reviewed))
    reporting = Reports(REPORTS, applying.output, files, reports)
    with reporting.on_every_path():
        reporting.refuse_unwritable()
        applying.shows = not reporting.take_stdout
        try:
            done = applying.apply(wanted)
        except (Exception, KeyboardInterrupt) as error:
            trouble = trouble_of(error, "interrupted: nothing was sent")
            if not isinstance(error, SyncengineError | click.UsageError) and trouble.exit_code is ExitCode.ERROR:
                raise  # a defect, which the program reports
            done = Applied(None, report_of(trouble), trouble.exit_code)
        try:
            applying.show(done)
        except BrokenPipeError:  # the reader is gone, but the apply is done
            discard(sys.stdout)
        except OutputFailed as error:
            applying.unshown = error
        reporting.output = applying.output
        reporting.write(report_document(done.report))
    if applying.unshown and not done.exit_code:
        raise applying.unshown
    return done.exit_code


REPORTED = frozenset({DENIED})
"""The codes of remarks that are left to the report, unless a person is asked to confirm the plan first."""


class _Applying:
    """One run of the `apply` command: its question, progress and output."""

    def __init__(self, options: Globals, auto_approve: bool, format: str) -> None:
        self._options = options
        self._auto_approve = auto_approve
        self._format = format
        self.shows = True
        self._has_shown = False
        self._project: Project | None = None
        self.unshown: OutputFailed | None = None
        self.output = Output(options, options.folder)

    def apply(self, wanted: PlanOptions) -> Applied:
        """Plan and apply. Raise `SyncengineError` for errors before the project is loaded."""
        from syncengine.render.plan_files import file_content, reviewed_in

        project = self._project = self._options.project()
        self.output = Output(self._options, project.root, project.blob, selection=wanted.words(is_saved=False))
        try:
            saved = _saved_plan(self._options, wanted)
            if saved is not None:
                self.output = replace(self.output, plan_file=wanted.paths[0], selection=wanted.words(is_saved=True))
            named = {name: self._options.folder / name for name in dict.fromkeys(wanted.reviewed)}
            refuse_missing([name for name, path in named.items() if not os.path.lexists(path)])
            plans = tuple(reviewed_in(file_content(path, name), name) for name, path in named.items())
            review = Review(plans) if plans else None
            request = wanted.request("apply", project, self._options, is_saved=saved is not None, review=review)
        except SyncengineError as error:
            bare = PlanRequest("apply")
            Application(project, bare, Runtime(os.environ), lambda: serving(project)).record_refusal(error)
            raise
        if saved is None and not self._auto_approve and not is_answered():
            raise Usage(
                "not applied: there is no terminal to ask for confirmation;"
                " review what `syncengine plan` shows, and repeat with -y"
            )
        self.output.announce(project)
        # Further reasons of a refusal are told with its error.
        hides = REFUSALS.keys() | (REPORTED if self._auto_approve else ())
        shortest = AT_ONCE if project.is_sandbox else 0.0
        with closing(Progress(self.output, hides=hides, shortest=shortest)) as progress:
            runtime = Runtime(os.environ, tell=progress.tell, confirm=lambda plan: self._confirm(plan, progress))
            application = Application(project, request, runtime, lambda: serving(project))
            if saved is not None:
                self._auto_approve = True
            done = application.execute(saved)
        return replace(done, plan=None) if self._format == "json" else done  # JSON shows the report alone

    def _confirm(self, plan: Plan, progress: Progress) -> bool:
        """Show the plan, and return whether it is approved: by the option, or by the person at the terminal."""
        self._has_shown = True
        if self._format == "text" and self.shows:
            try:
                self.output.data(PLAN_FORMATS["text"](plan_document(plan), self.output.look()) + "\n")
            except OutputFailed as error:  # as under a daemon that closes stdout
                if not self._auto_approve:
                    raise
                self.unshown = error
        elif not self._auto_approve:
            tell(PLAN_FORMATS["text"](plan_document(plan), self.output.look(sys.stderr)))
        if self._auto_approve:
            return True
        progress.close()
        try:
            return agreed("Apply this plan?")
        except click.Abort:
            tell("\n")  # Ctrl-C and Ctrl-D leave the cursor behind the question
            raise KeyboardInterrupt from None

    def show(self, done: Applied) -> None:
        """Print the report, preceded by the plan if that was not printed yet."""
        if not self.shows:
            return
        if self._format == "json":
            self.output.data(REPORT_FORMATS["json"](report_document(done.report), self.output.look()))
            return
        plan = done.plan
        if plan is not None:  # the plan above shows its own
            others = tuple(d for d in done.report.diagnostics if d not in plan.diagnostics)
            done = replace(done, report=replace(done.report, diagnostics=others))
        if plan is not None and not self._has_shown:
            self.output.data(PLAN_FORMATS["text"](plan_document(plan), self.output.look()))
            if not plan.changes_something and done.report.status is RunStatus.COMPLETE:
                return
        if done.report.began:
            self.output.data(REPORT_FORMATS["text"](report_document(done.report), self.output.look()))
            if done.report.status is RunStatus.COMPLETE:
                self._say_next()
            return
        self.output.diagnostics([d for d in done.report.diagnostics if d.severity is Severity.WARNING])
        errors = [d for d in done.report.diagnostics if d.severity is Severity.ERROR]
        stops = plan if plan is not None and done.exit_code is ExitCode.GATE else None
        if stops is not None and stops.is_denied:
            self.output.say("Not applied: this project's rules deny the plan, as shown above.", level="error")
        elif stops is not None and stops.is_undone:
            self.output.say("Not applied: the manifests still ask for undone changes, as shown above.", level="error")
        elif stops is not None and stops.gate.is_closed:
            kinds = (unit.kind for unit in stops.gate.units if unit.is_open)
            what = "removals above need" if asks_about_removals_alone(kinds) else "plan above needs"
            self.output.say(f"Not applied: the {what} an approval.", level="error")
        elif [error.code for error in errors] == [NOT_CONFIRMED]:
            self.output.say("Not applied.")
        else:
            self.output.diagnostics(errors)

    def _say_next(self) -> None:
        """Say what to do after an apply to the embedded sandbox, unless somebody is looking at that already."""
        project = self._project
        if project is None or not project.is_sandbox or address_file(project.sandbox_data).exists():
            return
        looking = replace(self._options, sandbox=False).place()
        if project.root.resolve() != self._options.folder.resolve():
            looking += f" --data {as_argument(str(project.sandbox_data))}"
        self.output.say(f"Next: `syncengine sandbox{looking}` shows the result in a browser.")
        own = "" if project.config else " In a new folder: `syncengine init`."
        self.output.say(f"After an edit: `syncengine plan{self._options.place()}`.{own}")


def _saved_plan(options: Globals, wanted: PlanOptions) -> Plan | None:
    """Return the saved plan that the only argument names, or `None` when the arguments are paths of manifests."""
    from syncengine.plan import saved as saved_plan
    from syncengine.render.documents import SHOWN

    plans = [path for path in wanted.paths if saved_plan.is_saved_plan(options.folder / path)]
    if plans and len(wanted.paths) > 1:
        raise Usage(f"{plans[0]} is a saved plan, which is applied alone: remove the other paths")
    if not plans:
        return None
    if wanted.selects:
        raise Usage("a saved plan is applied whole: select resources when you plan")
    if wanted.reviewed:
        raise Usage("a saved plan cannot be combined with --reviewed, which checks a fresh plan")
    plan = saved_plan.load(options.folder / plans[0], SHOWN)
    # Diagnostics of the state and of approvals are made anew.
    return structs.replace(plan, diagnostics=tuple(d for d in plan.diagnostics if d.code not in SAID_FIRST | CODES))


# --- progress


@dataclass
class _Stage:
    """The progress of one stage. `shown_at` is the time of its last line, first that of its start."""

    name: str
    items: int
    began_at: float
    shown_at: float
    ended: int = 0
    troubled: int = 0

    def __str__(self) -> str:
        trouble = f", {number(self.troubled)} not applied" if self.troubled else ""
        return f"{self.name}: {number(self.ended)} of {number(self.items)}{trouble}"


EVERY_SECONDS = 10.0  # between two lines about one stage where no bar is drawn: the log of a job stays short

AT_ONCE = 1.0  # no line tells of a shorter stage of the embedded sandbox, since the report counts it all


class Progress:
    """Progress with one bar for each stage on a terminal, and lines elsewhere. `close` ends it.

    `now` is a clock in seconds with any zero. `hides` has the codes of remarks that only the report shows. No line
    tells of stages shorter than `shortest` seconds in which all was applied.
    """

    def __init__(
        self,
        output: Output,
        now: Callable[[], float] = time.monotonic,
        hides: Collection[str] = (),
        shortest: float = 0.0,
    ) -> None:
        self._output = output
        self._now = now
        self._hides = hides
        self._shortest = shortest
        self._stage: _Stage | None = None
        self._bars: Bars | None = None
        self._task: TaskID | None = None
        self._draws = sys.stderr.isatty() and not (output.options.quiet or output.options.debug)

    def tell(self, event: Event) -> None:
        """Show one event."""
        match event:
            case StageStarted(name, items) if self._draws:
                self._draw(name, items)
            case StageStarted(name, items):
                self._end_stage()
                self._stage = _Stage(name, items, now := self._now(), now)
            case ItemEnded() if self._bars is not None and self._task is not None:
                self._bars.advance(self._task)
            case ItemEnded(outcome=outcome) if (stage := self._stage) is not None:
                stage.ended += 1
                stage.troubled += outcome is not Outcome.APPLIED
                if self._now() - stage.shown_at >= EVERY_SECONDS and stage.ended < stage.items:
                    stage.shown_at = self._now()
                    self._say(str(stage))
            case Retrying(operation, why, wait):
                self._say(f"{operation}: {why}; retrying in {wait:.1f} s")
            case Waiting(seconds, why):
                self._say(f"waiting up to {seconds:.0f} s: {why}")
            case Stopping(seconds):
                self._say(f"stopping: waiting up to {seconds:g} s for pending answers; interrupt again to stop at once")
            case SessionOpened(id):
                if self._output.options.verbose:
                    self._say(f"sync session {id} started")
            case Session(id, outcome, reason):
                if outcome != "completed":
                    end = "not completed" if outcome == "none" else outcome
                    self._say(f"sync session {id or '(none)'} {end}: {reason}")
            case Diagnostic(code=code, message=message):
                if code not in self._hides:
                    self._say(message)

    def close(self) -> None:
        """End the bars, or the last line. What follows begins anew, as after a question."""
        self._end_stage()
        if self._bars is not None:
            self._bars.stop()
            self._bars = self._task = None

    def _draw(self, name: str, items: int) -> None:
        """Add the bar of a stage."""
        if self._bars is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bars

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            console = Console(stderr=True, no_color=not self._output.look(sys.stderr).colour)
            self._bars = Bars(*columns, console=console, transient=True)
            self._bars.start()
        self._task = self._bars.add_task(name, total=items)

    def _end_stage(self) -> None:
        stage, self._stage = self._stage, None
        if stage is not None and (stage.troubled or self._now() - stage.began_at >= self._shortest):
            self._say(str(stage))

    def _say(self, text: str) -> None:
        if self._bars is not None:
            from rich.text import Text

            self._bars.console.print(Text(text))
        else:
            self._output.say(text)
