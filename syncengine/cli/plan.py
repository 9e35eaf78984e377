"""plan, show: show what an apply would change, or a saved plan again; and the options of planning, as one value."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from syncengine.cli.help import command
from syncengine.cli.option_types import files as complete_files
from syncengine.cli.option_types import of_addresses
from syncengine.cli.options import Globals, relative_paths, with_globals
from syncengine.cli.output import Output, as_argument, output_format
from syncengine.cli.output_files import OutputFiles, ReportingCommand, ReportKind, Reports
from syncengine.cli.streams import has_printed
from syncengine.document.text import as_word
from syncengine.errors import Diagnostic, ExitCode, Severity, SyncengineError
from syncengine.project.model import APPROVAL, SANDBOX, Project
from syncengine.render import DIAGNOSTIC_FORMATS, PLAN_FORMATS, PLAN_REPORTS

if TYPE_CHECKING:
    from syncengine.plan.model import Plan
    from syncengine.plan.request import PlanRequest, Review

# --- the options of planning

SELECTION = (
    of_addresses("--target", "targets", help="Select only these addresses (globs)."),
    of_addresses("--exclude", "excludes", help="Select all but these addresses (globs)."),
    click.option("--reassert", is_flag=True, help="Send all declared resources again."),
    click.option("--sweep", is_flag=True, help="Complete a sync session even if it removes no activity type."),
    click.option("--no-delete", is_flag=True, help="Leave out removals and cleared values."),
    click.option("--redo", is_flag=True, help="Include changes of undone runs again."),
    click.option(
        "--approve-deletes",
        "approvals",
        metavar="COUNT@HASH",
        multiple=True,
        help="Approve exactly these removals and tags made public.",
    ),
)
"""The options of both commands that select or approve changes."""


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options in `SELECTION` to a command."""
    for option in reversed(SELECTION):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What a command line of `plan` or `apply` asks for, under the names of its options."""

    paths: tuple[str, ...]
    targets: tuple[str, ...]
    excludes: tuple[str, ...]
    reassert: bool
    sweep: bool
    no_delete: bool
    redo: bool
    approvals: tuple[str, ...]
    new_state: bool
    # Of `plan` alone.
    base: str | None = None
    no_state: bool = False
    undo: str | None = None
    force: bool = False
    out: str | None = None
    since: str | None = None
    # Of `apply` alone.
    reviewed: tuple[str, ...] = ()
    allow_unmerged: bool = False
    allow_older: bool = False
    max_errors: int | None = None
    lock_timeout: float | None = None

    def words(self, *, is_saved: bool) -> str:
        """Return the arguments of `apply` that belong to a plan, as words of a command line with a blank before each.

        A saved plan is applied whole, so that only the flags are left that allow an apply at all.
        """
        flags = {"--allow-unmerged": self.allow_unmerged, "--allow-older": self.allow_older}
        flags |= {"--new-state": self.new_state}
        words: list[str] = []
        if not is_saved:
            lists = {"--target": self.targets, "--exclude": self.excludes, "--reviewed": self.reviewed}
            words += [word for flag, values in lists.items() for text in values for word in (flag, text)]
            flags = {**self._selecting_flags, **flags}
        words += [flag for flag, is_given in flags.items() if is_given]
        paths = () if is_saved else map(as_argument, self.paths)
        return "".join(f" {word}" for word in (*paths, *map(as_word, words)))

    @property
    def _selecting_flags(self) -> Mapping[str, bool]:
        return {
            "--reassert": self.reassert,
            "--sweep": self.sweep,
            "--no-delete": self.no_delete,
            "--redo": self.redo,
        }

    @property
    def selects(self) -> bool:
        """Whether they select or add changes, which a saved plan does not allow."""
        return bool(self.targets or self.excludes or self.reassert or self.sweep or self.no_delete)

    def refuse_contradictions(self) -> None:
        """Raise a usage error for options of `plan` that need or exclude each other."""
        if self.no_state and (self.base is None or self.out is not None):
            needs = "needs --base REV" if self.base is None else "cannot be combined with --out"
            raise click.UsageError(f"--no-state {needs}: it compares Git with Git, and such a plan cannot be applied")
        if self.undo is None:
            if self.force:
                raise click.UsageError("--force needs --undo RUN")
            return
        others = {"--base": self.base, "--no-state": self.no_state, **self._selecting_flags}
        wrong = [name for name, value in others.items() if value]
        if self.paths or wrong:
            what = ", ".join(wrong) or "paths"
            raise click.UsageError(
                f"--undo cannot be combined with {what}: it plans from the history; select with --target"
            )

    def request(
        self, command: str, project: Project, options: Globals, *, is_saved: bool = False, review: Review | None = None
    ) -> PlanRequest:
        """Return the request of `command`. Raise a usage error for a path or an approval that means nothing.

        With `is_saved`, `apply` has a saved plan, whose file the paths are.
        """
        from syncengine.plan.request import (
            PlanRequest,  # with all of a plan, which is imported while manifests are read
            Scope,
        )

        paths = () if is_saved else self.paths
        chosen = relative_paths(paths, options.folder, project.root)
        if paths:  # whose plan would wrongly look like one without changes if they had no manifests
            from syncengine.manifest.files import find

            names = [PurePosixPath(file.name) for file in find(project.manifests, project.files).files]
            for path, place in zip(paths, chosen, strict=True):
                if place != "." and not any(name.is_relative_to(place) for name in names):
                    if (file := project.root / place).is_file() and not file.stat().st_size:
                        raise click.UsageError(
                            f"{path} is empty: the command that writes it may have been stopped early"
                        )
                    expected = "neither a saved plan nor a manifest" if command == "apply" else "no manifest"
                    raise click.UsageError(f"{path} is {expected} of this project: name manifests, or nothing for all")
        scope = Scope(paths=chosen, targets=self.targets, excludes=self.excludes, no_delete=self.no_delete)
        if self.sweep and not scope.whole:
            raise click.UsageError(
                "--sweep deletes every activity type that is not uploaded, so it cannot be combined with a selection"
            )
        for approval in self.approvals:
            if not APPROVAL.fullmatch(approval):
                raise click.UsageError(
                    f"{approval!r} is not an approval: copy the whole COUNT@HASH that the plan prints"
                )
        return PlanRequest(
            command=command,
            scope=scope,
            sweep=self.sweep,
            reassert=self.reassert,
            approvals=self.approvals,
            saves=self.out is not None,
            review=review,
            allow_older=self.allow_older,
            allow_unmerged=self.allow_unmerged,
            new_state=self.new_state,
            redo=self.redo,
            max_errors=self.max_errors,
            lock_timeout=self.lock_timeout,
        )


# --- plan

REPORTS = ReportKind(PLAN_REPORTS, DIAGNOSTIC_FORMATS, lambda error: error.diagnostics())


class PlanCommand(ReportingCommand):
    kind = REPORTS


@click.command(
    cls=PlanCommand,
    epilog="syncengine plan --target 'tag/ACME-*' --out plan.json\n# plan some tags, and save the plan",
)
@click.argument("paths", nargs=-1, shell_complete=complete_files)
@click.option("--base", metavar="REV", help="Mark the changes that a plan of this Git revision would also make.")
@click.option("--no-state", is_flag=True, help="With --base: compare Git with Git, without state, key or secrets.")
@click.option("--undo", metavar="RUN", help="Plan the undo of a run: its id in the history, or `last`.")
@click.option("--force", is_flag=True, help="With --undo: also revert resources that later runs changed.")
@click.option("--out", metavar="FILE", shell_complete=complete_files, help="Save the plan for `apply FILE`.")
@output_format(*PLAN_FORMATS)
@click.option(
    "--report",
    "reports",
    metavar="FORMAT=FILE",
    multiple=True,
    help="Also write the plan, or its changes as annotations (github, gitlab, sarif), to a file (- is stdout).",
)
@click.option("--since", metavar="FILE", shell_complete=complete_files, help="Compare with this reviewed plan.")
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
    from syncengine.render.documents import plan_document

    wanted = PlanOptions(**chosen)
    files = OutputFiles(options.folder, [] if wanted.since is None else [wanted.since])
    reporting = Reports(REPORTS, Output(options, options.folder), files, reports, wanted.out)
    try:
        with reporting.on_every_path():
            if wanted.out == "-":
                raise click.UsageError("--out -: a plan is saved in a file; `--format json` prints it to stdout")
            if wanted.out is not None:
                files.refuse_unsuitable(wanted.out, f"--out {wanted.out}")
            result = _planned(options, reporting, wanted)
            document = plan_document(result)
            step = "" if wanted.out is None else _next_step(result, as_argument(wanted.out) + options.place())
            code = _detailed_code(result) if detailed_exitcode else ExitCode.DONE
            del result  # its calls take as much memory as the document, which alone is shown
            output = reporting.output
            try:
                if not reporting.take_stdout:
                    output.data(PLAN_FORMATS[format](document, output.look()))
            finally:  # a reader of stdout that has gone away costs no report
                reporting.write(document)
    except SyncengineError as error:
        return reporting.output.refusal(error, "text" if reporting.take_stdout or has_printed() else format)
    if wanted.out is not None:
        output.say(f"Saved to {wanted.out}; {step}.")
    return code


def _next_step(plan: Plan, arguments: str) -> str:
    """Return what follows a plan that was saved; `arguments` of `apply` name its file and its project."""
    from syncengine.render.view import asks_about_removals_alone

    command = f"syncengine apply {arguments}"
    if plan.is_denied:
        return "it cannot be applied, because rules of this project deny it"
    if plan.is_undone:
        return f"`{command} --redo` applies it"
    if plan.gate.is_closed:
        kinds = (unit.kind for unit in plan.gate.units if unit.is_open)
        what = "its removals are" if asks_about_removals_alone(kinds) else "it is"
        return f"once {what} approved, `{command}` applies it"
    return f"`{command}` applies it"


def _detailed_code(plan: Plan) -> ExitCode:
    asks = any(unit.is_open and (plan.base is None or unit.is_own) for unit in plan.gate.units)
    if plan.is_denied or plan.is_undone or asks:
        return ExitCode.GATE
    if plan.since and plan.since.excess:
        return ExitCode.STALE
    return ExitCode.CHANGES if plan.changes_something_itself else ExitCode.DONE


def _planned(options: Globals, reporting: Reports, wanted: PlanOptions) -> Plan:
    """Make the plan, save it with `--out`, judge it by every approval, and compare it with `--since`."""
    wanted.refuse_contradictions()
    project = options.project()
    words = wanted.words(is_saved=wanted.out is not None or wanted.undo is not None)
    reporting.output = Output(options, project.root, project.blob, wanted.out or "", words)
    reporting.output.announce(project)
    reviewed = None
    if wanted.since is not None:
        from syncengine.render.plan_files import file_content, reviewed_in

        reviewed = reviewed_in(file_content(options.folder / wanted.since, wanted.since), wanted.since)
    request = wanted.request("plan", project, options)

    from syncengine.plan.planner import make_plan, with_approvals
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


# --- show


@command("show", "syncengine show plan.json --action delete\n# only what a saved plan deletes")
@click.argument("file", shell_complete=complete_files)
@output_format(*PLAN_FORMATS)
@click.option("--action", "actions", multiple=True, help="Show only these actions (create, update, delete, …).")
@of_addresses("--target", "targets", help="Show only these addresses (globs).")
@with_globals
def show(options: Globals, file: str, format: str, actions: Sequence[str], targets: Sequence[str]) -> int:
    """Show a saved or printed plan again, in any format, even when it is stale."""
    from syncengine.plan.checks import NOTHING_SELECTED
    from syncengine.plan.diff import Action
    from syncengine.render.documents import part_of
    from syncengine.render.plan_files import file_content, plan_in
    from syncengine.resource import Key, selector

    unknown = [name for name in actions if name not in {action.word for action in Action}]
    if unknown:
        raise click.UsageError(f"--action {unknown[0]!r}: choose from {', '.join(action.word for action in Action)}")
    output = Output(options, options.folder)
    try:
        found = plan_in(file_content(options.folder / file, file), file)
    except SyncengineError as error:
        return output.refusal(error, format)
    document, basis, to_apply = found.document, found.document.basis, file if found.saved else ""
    options = replace(
        options,
        sandbox=options.sandbox or document.service.base_url == SANDBOX,
        environment=options.environment or (basis.environment if basis else None),
    )
    output = replace(output, plan_file=to_apply)
    with suppress(SyncengineError):  # a plan can be shown without its project
        project = options.project()
        output = Output(options, project.root, project.blob, to_apply)
        document = found.judged(project)
    keys = [Key.parse(change.address) for change in document.changes] if targets else []
    if actions or targets:
        is_target = selector(targets, keys)
        document = part_of(
            document,
            lambda change: (
                (not actions or change.action in actions) and (not targets or is_target(Key.parse(change.address)))
            ),
        )
    if targets:
        globs = (glob for glob in targets if not any(map(selector([glob], keys), keys)))
        messages = (f"{glob} selects nothing in this plan" for glob in globs)
        output.diagnostics(
            [Diagnostic(severity=Severity.WARNING, code=NOTHING_SELECTED, message=text) for text in messages]
        )
    output.data(PLAN_FORMATS[format](document, output.look()))
    return ExitCode.DONE
