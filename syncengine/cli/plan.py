"""plan: show what an apply would change; nothing is sent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from syncengine.cli.completion import files
from syncengine.cli.options import Globals, with_globals
from syncengine.cli.output import Output, as_argument, output_format
from syncengine.cli.output_files import OutputFiles, ReportingCommand, ReportKind, Reports, takes_stdout
from syncengine.cli.plan_options import PlanOptions, announce, selection
from syncengine.errors import ExitCode, SyncengineError
from syncengine.render import DIAGNOSTIC_FORMATS, PLAN_FORMATS, PLAN_REPORTS

if TYPE_CHECKING:
    from syncengine.plan.model import Plan

REPORTS = ReportKind(PLAN_REPORTS, DIAGNOSTIC_FORMATS, lambda error: error.diagnostics())


class PlanCommand(ReportingCommand):
    kind = REPORTS


@click.command(
    cls=PlanCommand,
    epilog="syncengine plan --target 'tag/ACME-*' --out plan.json\n# plan some tags, and save the plan",
)
@click.argument("paths", nargs=-1, shell_complete=files)
@click.option("--base", metavar="REV", help="Mark the changes that a plan of this Git revision would also make.")
@click.option("--no-state", is_flag=True, help="With --base: compare Git with Git, without state, key or secrets.")
@click.option("--undo", metavar="RUN", help="Plan the undo of a run: its id in the history, or `last`.")
@click.option("--force", is_flag=True, help="With --undo: also revert resources that later runs changed.")
@click.option("--out", metavar="FILE", shell_complete=files, help="Save the plan for `apply FILE`.")
@output_format(*PLAN_FORMATS)
@click.option(
    "--report",
    "reports",
    metavar="FORMAT=FILE",
    multiple=True,
    help="Also write the plan, or its changes as annotations (github, gitlab, sarif), to a file (- is stdout).",
)
@click.option("--since", metavar="FILE", shell_complete=files, help="Compare with this reviewed plan.")
@click.option(
    "--detailed-exitcode",
    is_flag=True,
    help="Exit 2 if there are changes, 4 if they need approval, 5 if they exceed the plan of --since.",
)
@click.option("--new-state", is_flag=True, help="Plan for a missing state, also one in Git.")
@selection
@with_globals
def plan(options: Globals, format: str, reports: Sequence[str], detailed_exitcode: bool, **chosen: Any) -> int:
    """Show what would change. PATHS select changes; all manifests are always loaded."""
    wanted = PlanOptions(**chosen)
    files = OutputFiles(options.folder, [] if wanted.since is None else [wanted.since])
    targets = files.valid_reports(reports, PLAN_REPORTS, wanted.out)
    reporting = Reports(REPORTS, Output(options, options.folder), targets)
    try:
        with reporting.on_every_path():
            targets = files.reports(reports, PLAN_REPORTS)
            if wanted.out is not None:
                _refuse_output(wanted.out, [file for _, file in targets], files)
            result = _planned(options, reporting, wanted)
            reporting.write(result)
    except SyncengineError as error:
        return reporting.output.refusal(error, "text" if takes_stdout(reporting.targets) else format)
    output = reporting.output
    if not takes_stdout(targets):
        output.data(PLAN_FORMATS[format](result, output.look()))
    if wanted.out is not None:
        command = f"syncengine apply {as_argument(wanted.out)}{options.place()}"
        output.say(f"Saved to {wanted.out}; {_next_step(result, command)}.")
    if not detailed_exitcode:
        return ExitCode.DONE
    from syncengine.plan.model import whose

    is_closed = result.gate.is_closed and (result.base is None or whose(result.gate, result.base).own)
    if result.is_denied or result.is_undone or is_closed:
        return ExitCode.GATE
    if result.since and result.since.excess:
        return ExitCode.STALE
    return ExitCode.CHANGES if result.changes_something_itself else ExitCode.DONE


def _refuse_output(out: str, reports: Sequence[str], files: OutputFiles) -> None:
    """Raise a usage error for a plan that cannot be saved there, or that a report would overwrite."""
    if out == "-":
        raise click.UsageError("--out -: a plan is saved in a file; `--format json` prints it to stdout")
    files.refuse_unsuitable(out, f"--out {out}")
    if files.place(out) in files.named_twice([out, *reports]):
        raise click.UsageError(f"--out {out}: a report is written to the same file")


def _next_step(plan: Plan, command: str) -> str:
    """Return how to apply a saved plan, or why it cannot be applied."""
    from syncengine.render.view import asks_about_removals_alone

    if plan.is_denied:
        return "it cannot be applied, because rules of this project deny it"
    if plan.is_undone:
        return f"`{command} --redo` applies it"
    if plan.gate.is_closed:
        what = "its removals are" if asks_about_removals_alone(plan.gate) else "it is"
        return f"once {what} approved, `{command}` applies it"
    return f"`{command}` applies it"


def _planned(options: Globals, reporting: Reports, wanted: PlanOptions) -> Plan:
    """Make the plan, save it with `--out`, judge it by every approval, and compare it with `--since`."""
    wanted.refuse_contradictions()
    project = options.project()
    words = wanted.words(is_saved=wanted.out is not None or wanted.undo is not None)
    reporting.output = Output(options, project.root, project.blob, wanted.out or "", words)
    announce(project, reporting.output)
    reviewed = None
    if wanted.since is not None:
        from syncengine.render.documents import read_reviewed

        reviewed = read_reviewed(options.folder / wanted.since, wanted.since)
    request = wanted.request("plan", project, options)

    from syncengine.plan.planner import make_plan, with_approvals  # imported late: see `PlanOptions.request`
    from syncengine.plan.request import Runtime

    runtime = Runtime(os.environ)
    if wanted.undo is not None:
        from syncengine.plan.undo import make_undo_plan

        result = make_undo_plan(wanted.undo, project, request, runtime, forced=wanted.force)
    elif wanted.base is not None:
        from syncengine.plan.base import plan_two_sides

        uses_state = not wanted.no_state
        result = plan_two_sides(wanted.base, project, options.project_at, request, runtime, uses_state=uses_state)
    else:
        result = make_plan(project, request, runtime)
    if wanted.out is not None:
        from syncengine.plan.saved import save
        from syncengine.render.documents import SHOWN

        result = save(result, SHOWN, options.folder / wanted.out)
    result = with_approvals(result, project, request)
    if reviewed is None:
        return result
    from syncengine.apply.guards import compared
    from syncengine.state.store import open_state

    with open_state(project.state, write=False) as state:
        return structs.replace(result, since=compared(result, [reviewed], state, project))
