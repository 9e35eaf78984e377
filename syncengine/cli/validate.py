"""validate: load and check everything, offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncengine.cli.completion import files
from syncengine.cli.data_output import output_format
from syncengine.cli.help import Command
from syncengine.cli.options import Globals, relative_paths, with_globals
from syncengine.cli.output import Output
from syncengine.document.gc_pause import no_collection
from syncengine.errors import Diagnostic, ExitCode, Problems, Severity, SyncengineError
from syncengine.render.registry import DIAGNOSTIC_FORMATS, VALIDATE_FORMATS
from syncengine.render.words import count_of

if TYPE_CHECKING:
    from syncengine.plan.planner import Valid
    from syncengine.project.model import Project


@click.command(cls=Command, epilog="syncengine validate --format github\n# findings as annotations of a pull request")
@click.argument("paths", nargs=-1, shell_complete=files)
@output_format(*VALIDATE_FORMATS)
@with_globals
@no_collection()
def validate(options: Globals, paths: Sequence[str], format: str) -> int:
    """Load and check everything, offline.

    All manifests are loaded; PATHS limit the report. If there are no errors in PATHS, errors elsewhere are reported.
    """
    output = Output(options, options.folder)
    only: list[str] = []
    try:
        project = options.project()
        output = Output(options, project.root)
        only = list(relative_paths(paths, options.folder, project.root))
        valid, others = _validated(project), [*_warnings_of_sinks(project), *_selecting_nothing(project, only)]
    except SyncengineError as error:
        output.data(DIAGNOSTIC_FORMATS[format](_narrowed(error.diagnostics(), only), output.look()), format)
        return error.exit_code
    diagnostics = _narrowed((*project.warnings, *valid.diagnostics, *others), only)
    output.data(DIAGNOSTIC_FORMATS[format](diagnostics, output.look()), format)
    if format == "text":
        output.data(f"Valid: {count_of(valid.resources, 'resource')} in {count_of(valid.files, 'file')}.\n")
    return ExitCode.DONE


def _validated(project: Project) -> Valid:
    """Return the valid manifests. Raise `Problems` with all errors in manifests, rules and templates of posted time."""
    from syncengine.plan.planner import validated

    problems_of_templates: list[Diagnostic] = list(_problems_of_rules(project))
    if project.posted_time is not None:
        from syncengine.posted_time.build_route import check

        try:
            check(project)
        except Problems as problems:
            problems_of_templates.extend(problems.found)
    try:
        valid = validated(project)
    except Problems as problems:
        raise Problems([*problems_of_templates, *problems.found]) from None
    if problems_of_templates:
        raise Problems(problems_of_templates)
    return valid


def _problems_of_rules(project: Project) -> Sequence[Diagnostic]:
    from syncengine.rules.read import rule_set

    try:
        rule_set(project)
    except Problems as problems:
        return problems.found
    return ()


def _warnings_of_sinks(project: Project) -> Sequence[Diagnostic]:
    """Return the warnings about sinks. Raise `Problems` if the project takes them for errors."""
    from syncengine.posted_time.build_route import warnings_of_sinks

    found = warnings_of_sinks(project)
    if any(d.severity is Severity.ERROR for d in found):
        raise Problems(found)
    return found


def _narrowed(diagnostics: Sequence[Diagnostic], paths: Sequence[str]) -> list[Diagnostic]:
    """Return the diagnostics in `paths`, and all errors if there is no error in `paths`."""
    inside = [d for d in diagnostics if not paths or _is_in(d.file, paths)]
    if any(d.severity is Severity.ERROR for d in inside):
        return inside
    return [d for d in diagnostics if d.severity is Severity.ERROR or d in inside]


def _selecting_nothing(project: Project, only: Sequence[str]) -> list[Diagnostic]:
    """Return a warning for each path without manifests, so that an unread file is never called valid."""
    from syncengine.manifest.files import find
    from syncengine.plan.checks import NOTHING_SELECTED
    from syncengine.project.load import levelled

    read = (*project.manifests, *project.policy_paths)
    names = [file.name for file in find(read, project.root).files] if only else []
    warnings = [
        Diagnostic(
            severity=Severity.WARNING, code=NOTHING_SELECTED, message="this is not a manifest of the project", file=path
        )
        for path in only
        if path != project.config_name and not any(_is_in(name, [path]) for name in names)
    ]
    diagnostics = levelled(warnings, project.policy.diagnostics)
    if any(d.severity is Severity.ERROR for d in diagnostics):
        raise Problems(diagnostics)
    return diagnostics


def _is_in(file: str | None, paths: Sequence[str]) -> bool:
    return file is not None and any(Path(file).is_relative_to(path) for path in paths)
