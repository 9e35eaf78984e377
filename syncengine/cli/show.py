"""show: print a saved plan in any format."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from syncengine.cli.completion import files
from syncengine.cli.help import Command
from syncengine.cli.options import Globals, with_globals
from syncengine.cli.output import Output, output_format
from syncengine.cli.plan_options import of_addresses
from syncengine.errors import Diagnostic, ExitCode, Severity, SyncengineError
from syncengine.render import PLAN_FORMATS

if TYPE_CHECKING:
    from syncengine.plan.model import Plan


@click.command(cls=Command, epilog="syncengine show plan.json --action delete\n# only what a saved plan deletes")
@click.argument("file", shell_complete=files)
@output_format(*PLAN_FORMATS)
@click.option("--action", "actions", multiple=True, help="Show only these actions (create, update, delete, …).")
@of_addresses("--target", "targets", help="Show only these addresses (globs).")
@with_globals
def show(options: Globals, file: str, format: str, actions: Sequence[str], targets: Sequence[str]) -> int:
    """Show a saved plan again, in any format, even when it is stale."""
    from syncengine.plan import saved as saved_plan
    from syncengine.plan.build import narrowed
    from syncengine.plan.diff import Action
    from syncengine.plan.planner import with_approvals
    from syncengine.plan.request import PlanRequest
    from syncengine.project.model import SANDBOX
    from syncengine.render.documents import SHOWN
    from syncengine.resource import selector

    unknown = [name for name in actions if name not in {action.word for action in Action}]
    if unknown:
        raise click.UsageError(f"--action {unknown[0]!r}: choose from {', '.join(action.word for action in Action)}")
    output = Output(options, options.folder, plan_file=file)
    try:
        plan = saved_plan.load(options.folder / file, SHOWN)
    except SyncengineError as error:
        return output.refusal(error, format)
    options = replace(
        options,
        sandbox=options.sandbox or plan.basis.base_url == SANDBOX,
        environment=options.environment or plan.basis.environment or None,
    )
    with suppress(SyncengineError):  # a plan can be shown without its project
        project = options.project()
        output = Output(options, project.root, project.blob, file)
        plan = with_approvals(plan, project, PlanRequest("show"))
    is_target = selector(targets, (change.key for change in plan.changes))
    part = narrowed(
        plan,
        lambda change: (not actions or change.action.word in actions) and (not targets or is_target(change.key)),
    )
    output.diagnostics(_lacking(plan, targets))
    output.data(PLAN_FORMATS[format](part if actions or targets else plan, output.look()))
    return ExitCode.DONE


def _lacking(plan: Plan, targets: Sequence[str]) -> list[Diagnostic]:
    """Return a warning for each target without changes, whose plan would wrongly look like one without changes."""
    from syncengine.plan.checks import NOTHING_SELECTED
    from syncengine.plan.request import Scope

    if not targets:
        return []
    keys = {change.key for change in plan.changes}
    globs = Scope(targets=tuple(targets)).of(keys).matching_nothing((key, None) for key in keys)
    messages = (f"{glob} selects nothing in this plan" for glob in globs)
    return [Diagnostic(severity=Severity.WARNING, code=NOTHING_SELECTED, message=text) for text in messages]
