"""plan: show the changes; nothing is sent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syncengine.cli.completion import files
from syncengine.cli.help import Command
from syncengine.cli.options import Globals, with_globals
from syncengine.cli.output import Output, report_targets, takes_stdout, write_reports
from syncengine.cli.selection import selection
from syncengine.document.gc_pause import no_collection
from syncengine.errors import ExitCode, SyncengineError, Usage
from syncengine.render.registry import PLAN_FORMATS, TROUBLE_FORMATS

if TYPE_CHECKING:
    from syncengine.plan.model import Plan
    from syncengine.plan.request import PlanRequest
    from syncengine.project.model import Project


@click.command(cls=Command)
@click.argument("paths", nargs=-1, shell_complete=files)
@click.option("--base", "revision", metavar="REV", help="Say which changes the plan of this Git revision makes too.")
@click.option("--no-state", is_flag=True, help="With --base: compare Git with Git, without state, key and secrets.")
@click.option("--out", metavar="FILE", shell_complete=files, help="Save the plan for `apply FILE`.")
@click.option("--format", "format", type=click.Choice(list(PLAN_FORMATS)), default="text", show_default=True)
@click.option(
    "--report",
    "reports",
    metavar="FORMAT=FILE",
    multiple=True,
    help="Also write the plan in this format (- is stdout).",
)
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 if there are changes, 4 if they need approval.")
@selection
@with_globals
@no_collection()
def plan(
    options: Globals,
    paths: Sequence[str],
    revision: str | None,
    no_state: bool,
    out: str | None,
    format: str,
    reports: Sequence[str],
    detailed_exitcode: bool,
    **chosen: Any,
) -> int:
    """Show what would change. PATHS select changes; all manifests are always loaded."""
    from syncengine.cli.plan_options import announce, request_of
    from syncengine.plan import saved
    from syncengine.plan.planner import with_approvals
    from syncengine.render.json import SHOWN

    targets = report_targets(reports, list(PLAN_FORMATS))
    output = Output(options, options.folder)
    try:
        if no_state and (revision is None or out is not None):
            wrong = "--no-state needs --base" if revision is None else "a plan without a state cannot be saved"
            raise click.UsageError(f"{wrong}: it compares Git with Git, and nothing can be applied by it")
        project = options.project()
        output = Output(options, project.root)
        announce(project, output)
        request = request_of("plan", project, options, paths, chosen)
        result = _planned(project, options, request, revision, uses_state=not no_state)
        if out is not None:
            result = saved.save(result, SHOWN, Path(out))
        result = with_approvals(result, project, request)
    except click.UsageError as error:
        _report_trouble(output, Usage(error.format_message()), targets)
        raise
    except SyncengineError as error:
        _report_trouble(output, error, targets)
        return output.refusal(error, "text" if takes_stdout(targets) else format)
    if not takes_stdout(targets):
        output.data(PLAN_FORMATS[format](result, output.look()))
    plain = replace(output.look(), colour=False)
    write_reports(output, [(name, PLAN_FORMATS[name](result, plain), file) for name, file in targets])
    if out is not None:
        output.say(f"Saved to {out}; `syncengine apply {out}` applies it.")
    from syncengine.plan.rule_units import asks_by_rules

    if not detailed_exitcode:
        return ExitCode.DONE
    if result.is_denied or asks_by_rules(result.gate):
        return ExitCode.GATE
    if result.gate.is_closed and (result.base is None or result.base.asks):
        return ExitCode.GATE
    return ExitCode.CHANGES if result.changes_something_itself else ExitCode.DONE


def _planned(
    project: Project, options: Globals, request: PlanRequest, revision: str | None, *, uses_state: bool
) -> Plan:
    from syncengine.plan.planner import make_plan
    from syncengine.plan.request import Runtime

    around = Runtime(os.environ)
    if revision is None:
        return make_plan(project, request, around)
    from syncengine.plan.two_sides import plan_two_sides

    return plan_two_sides(revision, project, options.project_at, request, around, uses_state=uses_state)


def _report_trouble(output: Output, error: SyncengineError, targets: Sequence[tuple[str, str]]) -> None:
    """Write the reports of a plan that could not be made, so that none of an earlier one stays."""
    diagnostics, plain = error.diagnostics(), replace(output.look(), colour=False, lines=None)
    write_reports(output, [(name, TROUBLE_FORMATS[name](diagnostics, plain), file) for name, file in targets])
