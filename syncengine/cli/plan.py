"""validate, plan, show, schema: what needs no service."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syncengine.cli.completion import addresses, files
from syncengine.cli.help import Command
from syncengine.cli.options import Globals, relative_paths, with_globals
from syncengine.cli.output import Output, report_targets, takes_stdout, write_reports
from syncengine.document.gc_pause import no_collection
from syncengine.errors import Diagnostic, ExitCode, Problems, Severity, SyncengineError, Usage
from syncengine.render.registry import DIAGNOSTIC_FORMATS, PLAN_FORMATS, TROUBLE_FORMATS
from syncengine.render.words import counted

if TYPE_CHECKING:
    from syncengine.plan.planner import Valid
    from syncengine.project.model import Project

_of_addresses = partial(click.option, metavar="ADDR", multiple=True, shell_complete=addresses)

SELECTION = (
    _of_addresses("--target", "targets", help="Only these addresses (globs)."),
    _of_addresses("--exclude", "excludes", help="Not these addresses (globs)."),
    click.option("--reassert", is_flag=True, help="Send all that is desired again."),
    click.option("--sweep", is_flag=True, help="Complete a sync session even if no activity type is removed."),
    click.option("--no-delete", is_flag=True, help="Leave out everything that removes or clears."),
    click.option("--approve-deletes", "approvals", metavar="COUNT@HASH", multiple=True, help="Approve the removals."),
)


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose what a plan may hold."""
    for option in reversed(SELECTION):
        command = option(command)
    return command


@click.command(cls=Command)
@click.argument("paths", nargs=-1, shell_complete=files)
@click.option("--format", "format", type=click.Choice(list(DIAGNOSTIC_FORMATS)), default="text", show_default=True)
@with_globals
@no_collection()
def validate(given: Globals, paths: Sequence[str], format: str) -> int:
    """Load and check everything, offline.

    All manifests are loaded; PATHS narrow what is reported. Errors are reported wherever they are if there are none
    in PATHS.
    """
    output = Output(given, given.folder)
    only: list[str] = []
    try:
        project = given.project()
        output = Output(given, project.root)
        only = list(relative_paths(paths, given.folder, project.root))
        valid, missed = _validated(project), _selecting_nothing(project, only)
    except SyncengineError as error:
        output.data(DIAGNOSTIC_FORMATS[format](_narrowed(error.diagnostics(), only), output.look()), format)
        return error.exit_code
    found = _narrowed((*project.warnings, *valid.diagnostics, *missed), only)
    output.data(DIAGNOSTIC_FORMATS[format](found, output.look()), format)
    if format == "text":
        output.data(f"Valid: {counted(valid.resources, 'resource')} in {counted(valid.files, 'file')}.\n")
    return ExitCode.DONE


def _validated(project: Project) -> Valid:
    """The manifests, once they and the templates of posted time are right; Problems with all that is wrong."""
    from syncengine.plan.planner import validated

    found: list[Diagnostic] = []
    if project.posted_time is not None:
        from syncengine.posted_time.build_route import check

        try:
            check(project)
        except Problems as problems:
            found.extend(problems.found)
    try:
        valid = validated(project)
    except Problems as problems:
        raise Problems([*found, *problems.found]) from None
    if found:
        raise Problems(found)
    return valid


def _narrowed(found: Sequence[Diagnostic], paths: Sequence[str]) -> list[Diagnostic]:
    """What is found in `paths`; errors that are all elsewhere are told, since something keeps it from being valid."""
    inside = [d for d in found if not paths or _is_in(d.file, paths)]
    if any(d.severity is Severity.ERROR for d in inside):
        return inside
    return [d for d in found if d.severity is Severity.ERROR or d in inside]


def _selecting_nothing(project: Project, only: Sequence[str]) -> list[Diagnostic]:
    """A warning for each of PATHS that no manifest is in: "valid" would be said of something that nobody looked at."""
    from syncengine.manifest.files import find
    from syncengine.plan.checks import NOTHING_SELECTED
    from syncengine.project.load import levelled

    names = [file.name for file in find(project.manifests, project.root).files] if only else []
    found = [
        Diagnostic(
            severity=Severity.WARNING, code=NOTHING_SELECTED, message="this is no manifest of the project", file=path
        )
        for path in only
        if path != project.config_name and not any(_is_in(name, [path]) for name in names)
    ]
    told = levelled(found, project.policy.diagnostics)
    if any(d.severity is Severity.ERROR for d in told):
        raise Problems(told)
    return told


def _is_in(file: str | None, paths: Sequence[str]) -> bool:
    return file is not None and any(Path(file).is_relative_to(path) for path in paths)


@click.command(cls=Command)
@click.argument("paths", nargs=-1, shell_complete=files)
@click.option("--out", metavar="FILE", shell_complete=files, help="Save the plan for `apply FILE`.")
@click.option("--format", "format", type=click.Choice(list(PLAN_FORMATS)), default="text", show_default=True)
@click.option("--report", "reports", metavar="FORMAT=FILE", multiple=True, help="Also write it so (- is stdout).")
@click.option("--detailed-exitcode", is_flag=True, help="2 when there are changes, 4 when the gate would refuse.")
@selection
@with_globals
@no_collection()
def plan(
    given: Globals,
    paths: Sequence[str],
    out: str | None,
    format: str,
    reports: Sequence[str],
    detailed_exitcode: bool,
    **chosen: Any,
) -> int:
    """Show what would change. PATHS select changes; all manifests are always loaded."""
    from syncengine.cli.plan_options import announce, request_of
    from syncengine.plan import saved
    from syncengine.plan.planner import judged, make_plan
    from syncengine.plan.request import Surroundings
    from syncengine.render.json import plan_document

    targets = report_targets(reports, list(PLAN_FORMATS))
    output = Output(given, given.folder)
    try:
        project = given.project()
        output = Output(given, project.root)
        announce(project, output)
        request = request_of("plan", project, given, paths, chosen)
        planned = make_plan(project, request, Surroundings(os.environ))
        if out is not None:
            planned = saved.save(planned, plan_document, Path(out))
        planned = judged(planned, project, request)
    except click.UsageError as error:
        _report_trouble(output, Usage(error.format_message()), targets)
        raise
    except SyncengineError as error:
        _report_trouble(output, error, targets)
        return output.refusal(error, "text" if takes_stdout(targets) else format)
    if not takes_stdout(targets):
        output.data(PLAN_FORMATS[format](planned, output.look()))
    plain = replace(output.look(), colour=False)
    write_reports(output, [(name, PLAN_FORMATS[name](planned, plain), file) for name, file in targets])
    if out is not None:
        output.say(f"Saved to {out}; `syncengine apply {out}` applies it.")
    if not detailed_exitcode:
        return ExitCode.DONE
    if planned.gate.is_closed:
        return ExitCode.GATE
    return ExitCode.CHANGES if planned.changes_something else ExitCode.DONE


def _report_trouble(output: Output, error: SyncengineError, targets: Sequence[tuple[str, str]]) -> None:
    """Write the reports of a plan that could not be made, so that none of an earlier one stays."""
    found, plain = error.diagnostics(), replace(output.look(), colour=False, lines=None)
    write_reports(output, [(name, TROUBLE_FORMATS[name](found, plain), file) for name, file in targets])


@click.command(cls=Command)
@click.argument("file", shell_complete=files)
@click.option("--format", "format", type=click.Choice(list(PLAN_FORMATS)), default="text", show_default=True)
@click.option("--action", "actions", multiple=True, help="Only these actions (create, update, delete, …).")
@_of_addresses("--target", "targets", help="Only these addresses (globs).")
@with_globals
@no_collection()
def show(given: Globals, file: str, format: str, actions: Sequence[str], targets: Sequence[str]) -> int:
    """Show a saved plan again, in any format, even when it is stale."""
    from fnmatch import fnmatchcase

    from syncengine.plan import saved as saved_plan
    from syncengine.plan.build import narrowed
    from syncengine.plan.diff import Action
    from syncengine.plan.planner import judged
    from syncengine.plan.request import Request
    from syncengine.render.json import plan_document

    unknown = [name for name in actions if name not in {action.word for action in Action}]
    if unknown:
        raise click.UsageError(f"--action {unknown[0]}: one of {', '.join(action.word for action in Action)}")
    output = Output(given, given.folder)
    try:
        planned = saved_plan.load(given.folder / file, plan_document)
    except SyncengineError as error:
        return output.refusal(error, format)
    with suppress(SyncengineError):  # a plan can be looked at without its project
        planned = judged(planned, given.project(), Request("show"))
    part = narrowed(
        planned,
        lambda change: (
            (not actions or change.action.word in actions)
            and (not targets or any(fnmatchcase(str(change.key), glob) for glob in targets))
        ),
    )
    output.data(PLAN_FORMATS[format](part if actions or targets else planned, output.look()))
    return ExitCode.DONE


@click.command(cls=Command)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("-o", "folder", metavar="DIR", help="Write files there.  [default: the current folder]")
@with_globals
def schema(given: Globals, names: Sequence[str], folder: str | None) -> int:
    """Write the JSON Schemas of all formats into a folder, or print the one with this NAME to stdout.

    NAME is that of the file: manifest, project, plan, report, diagnostics and so on. With -o, those with these NAMEs
    are written.
    """
    from syncengine.project.atomic_write import refuse_links, write_whole
    from syncengine.render.json import dumped

    output = Output(given, given.folder)
    chosen = _schemas(names)
    if len(chosen) == len(names) == 1 and folder is None:
        output.data(dumped(*chosen.values()))
        return ExitCode.DONE
    place = given.folder / (folder or ".")
    try:
        refuse_links(place)
        place.mkdir(parents=True, exist_ok=True)
        for name, content in chosen.items():
            write_whole(place / name, [dumped(content).encode()])
            output.say(f"{place / name}")
    except OSError as error:
        raise SyncengineError(f"the schemas cannot be written to {place}: {error.strerror}") from None
    return ExitCode.DONE


def _schemas(names: Sequence[str]) -> dict[str, Any]:
    """Those with these names, by file name; all of them without names."""
    from syncengine.document.diagnostics import suggestion
    from syncengine.render.schemas.published import SUFFIX, schemas

    made = schemas()
    known = {name.removesuffix(SUFFIX): name for name in made}
    for name in names:
        if name.removesuffix(SUFFIX) not in known:
            hint = suggestion(name, known) or f"; there are {', '.join(known)}"
            raise click.UsageError(f"there is no schema {name!r}{hint}")
    return {known[short]: made[known[short]] for short in (n.removesuffix(SUFFIX) for n in names or known)}
