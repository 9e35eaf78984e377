"""plan: show what an apply would change; nothing is sent."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from syncengine.cli.completion import files
from syncengine.cli.data_output import output_format
from syncengine.cli.options import Globals, with_globals
from syncengine.cli.output import Output, as_argument
from syncengine.cli.output_files import OutputFiles, ReportingCommand, ReportKind, Reports, takes_stdout
from syncengine.cli.selection import selected, selection
from syncengine.document.gc_pause import leave_to_exit, no_collection
from syncengine.errors import ExitCode, SyncengineError
from syncengine.render.registry import DIAGNOSTIC_FORMATS, PLAN_FORMATS, PLAN_REPORTS

if TYPE_CHECKING:
    from syncengine.plan.model import Plan
    from syncengine.plan.request import PlanRequest
    from syncengine.plan.review import ReviewedPlan
    from syncengine.project.model import Project


REPORTS = ReportKind(PLAN_REPORTS, DIAGNOSTIC_FORMATS, lambda error: error.diagnostics())


class PlanCommand(ReportingCommand):
    kind = REPORTS


@click.command(
    cls=PlanCommand,
    epilog="syncengine plan --target 'tag/ACME-*' --out plan.json\n# plan some tags, and save the plan",
)
@click.argument("paths", nargs=-1, shell_complete=files)
@click.option(
    "--base", "revision", metavar="REV", help="Mark the changes that a plan of this Git revision would also make."
)
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
@no_collection()
def plan(
    options: Globals,
    paths: Sequence[str],
    revision: str | None,
    no_state: bool,
    undo: str | None,
    force: bool,
    out: str | None,
    format: str,
    reports: Sequence[str],
    since: str | None,
    detailed_exitcode: bool,
    **chosen: Any,
) -> int:
    """Show what would change. PATHS select changes; all manifests are always loaded."""
    chosen |= {"undo": undo, "force": force, "format": format}
    files = OutputFiles(options.folder, [] if since is None else [since])
    reporting = Reports(REPORTS, Output(options, options.folder), files.valid_reports(reports, PLAN_REPORTS, out))
    try:
        with reporting.on_every_path():
            targets = files.reports(reports, PLAN_REPORTS)
            if out is not None:
                _refuse_output(out, [file for _, file in targets], files)
            result = _planned(options, reporting, paths, out, revision, since, chosen, uses_state=not no_state)
            leave_to_exit(result)
            reporting.write(result)
    except SyncengineError as error:
        return reporting.output.refusal(error, "text" if takes_stdout(reporting.targets) else format)
    output = reporting.output
    if not takes_stdout(targets):
        output.data(PLAN_FORMATS[format](result, output.look()))
    if out is not None:
        output.say(f"Saved to {out}; {_next_step(result, _apply_command(out, options))}.")
    if not detailed_exitcode:
        return ExitCode.DONE
    from syncengine.plan.origins import whose

    is_closed = result.gate.is_closed and (result.base is None or whose(result.gate, result.base).fails)
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


def _apply_command(file: str, options: Globals) -> str:
    """Return the command line that applies a saved plan to the same project, environment and service."""
    return f"syncengine apply {as_argument(file)}{options.place()}"


def _next_step(plan: Plan, command: str) -> str:
    """Return how to apply a saved plan, or why it cannot be applied."""
    from syncengine.render.gate import asks_about_removals_alone

    if plan.is_denied:
        return "it cannot be applied, because rules of this project deny it"
    if plan.is_undone:
        return f"`{command} --redo` applies it"
    if plan.gate.is_closed:
        what = "its removals are" if asks_about_removals_alone(plan.gate) else "it is"
        return f"once {what} approved, `{command}` applies it"
    return f"`{command}` applies it"


def _planned(
    options: Globals,
    reporting: Reports,
    paths: Sequence[str],
    out: str | None,
    revision: str | None,
    since: str | None,
    chosen: Mapping[str, Any],
    *,
    uses_state: bool,
) -> Plan:
    """Make the plan, and save it if `out` is given."""
    from syncengine.cli.plan_options import announce, refuse_undo_with

    if not uses_state and (revision is None or out is not None):
        needs = "needs --base REV" if revision is None else "cannot be combined with --out"
        raise click.UsageError(f"--no-state {needs}: it compares Git with Git, and such a plan cannot be applied")
    refuse_undo_with(paths, {"--base": revision, "--no-state": not uses_state}, chosen)
    project = options.project()
    selects = selected(paths, chosen, is_saved=out is not None or chosen["undo"] is not None)
    reporting.output = Output(options, project.root, project.blob, out or "", selects)
    announce(project, reporting.output)
    reviewed = _read(since, options.folder) if since is not None else None
    request = _request(project, options, paths, out, chosen)
    if chosen["undo"] is not None:
        result = _undoing(chosen["undo"], project, request, forced=chosen["force"])
    elif revision is not None:
        result = _of_sides(project, options, request, revision, uses_state=uses_state)
    else:
        result = _of_manifests(project, request)
    result = _saved(result, project, request, options.folder / out if out is not None else None)
    return _compared(result, reviewed, project) if reviewed is not None else result


def _request(
    project: Project, options: Globals, paths: Sequence[str], out: str | None, chosen: Mapping[str, Any]
) -> PlanRequest:
    from syncengine.cli.plan_options import request_of

    return request_of("plan", project, options, paths, chosen, saves=out is not None, new_state=chosen["new_state"])


def _of_manifests(project: Project, request: PlanRequest) -> Plan:
    from syncengine.plan.planner import make_plan
    from syncengine.plan.request import Runtime

    return make_plan(project, request, Runtime(os.environ))


def _saved(plan: Plan, project: Project, request: PlanRequest, file: Path | None) -> Plan:
    """Save the plan if a file is given, and judge it by every approval."""
    from syncengine.plan.planner import with_approvals

    if file is not None:
        from syncengine.plan.saved import save
        from syncengine.render.json import SHOWN

        plan = save(plan, SHOWN, file)
    return with_approvals(plan, project, request)


def _undoing(run: str, project: Project, request: PlanRequest, *, forced: bool) -> Plan:
    from syncengine.plan.request import Runtime
    from syncengine.plan.undo_planner import make_undo_plan

    return make_undo_plan(run, project, request, Runtime(os.environ), forced=forced)


def _of_sides(project: Project, options: Globals, request: PlanRequest, revision: str, *, uses_state: bool) -> Plan:
    from syncengine.plan.request import Runtime
    from syncengine.plan.two_sides import plan_two_sides

    return plan_two_sides(revision, project, options.project_at, request, Runtime(os.environ), uses_state=uses_state)


def _read(file: str, folder: Path) -> ReviewedPlan:
    from syncengine.render.reviewed import read_reviewed

    return read_reviewed(folder / file, file)


def _compared(plan: Plan, reviewed: ReviewedPlan, project: Project) -> Plan:
    from syncengine.apply.reviewed import compared
    from syncengine.state.store import open_state

    with open_state(project.state, write=False) as state:
        return structs.replace(plan, since=compared(plan, [reviewed], state, project))
