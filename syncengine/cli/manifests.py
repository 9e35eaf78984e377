"""The commands that read manifests offline: validate, render, test and fmt."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from msgspec import UNSET

from syncengine.cli.help import command
from syncengine.cli.option_types import files
from syncengine.cli.options import Globals, relative_paths, with_globals
from syncengine.cli.output import Output, output_format, printing, printing_command
from syncengine.errors import Diagnostic, ExitCode, Problems, Severity, SyncengineError
from syncengine.project.files import refuse_missing, write_whole
from syncengine.render import DIAGNOSTIC_FORMATS, VALIDATE_FORMATS
from syncengine.render.ci import TEST_FORMATS
from syncengine.render.escape import file_name, visible
from syncengine.render.words import count_of

if TYPE_CHECKING:
    from syncengine.plan.planner import Valid
    from syncengine.project.model import Project


@command("validate", "syncengine validate --format github\n# findings as annotations of a pull request")
@click.argument("paths", nargs=-1, shell_complete=files)
@output_format(*VALIDATE_FORMATS)
@with_globals
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
        valid, others = _validated(project, only)
    except SyncengineError as error:
        output.data(DIAGNOSTIC_FORMATS[format](_narrowed(error.diagnostics(), only), output.look()), format)
        return error.exit_code
    diagnostics = _narrowed((*project.warnings, *valid.diagnostics, *others), only)
    output.data(DIAGNOSTIC_FORMATS[format](diagnostics, output.look()), format)
    if format == "text":
        output.data(f"Valid: {count_of(valid.resources, 'resource')} in {count_of(valid.files, 'file')}.\n")
    return ExitCode.DONE


def _validated(project: Project, only: Sequence[str]) -> tuple[Valid, list[Diagnostic]]:
    """Return the valid manifests, and warnings about sinks and `only`. Raise `Problems` with all errors.

    Those in manifests, in rules and in the templates of posted time are found together.
    """
    from syncengine.manifest.files import find
    from syncengine.plan.checks import NOTHING_SELECTED
    from syncengine.plan.planner import validated
    from syncengine.project.load import levelled
    from syncengine.rules.read import rule_set

    checks: list[Callable[[Project], object]] = [rule_set]
    warnings: list[Diagnostic] = []
    if project.posted_time is not None:  # or what sinks need would be imported
        from syncengine.posted_time.build_route import check, warnings_of_sinks

        checks.append(check)
    problems: list[Diagnostic] = []
    for found in checks:
        try:
            found(project)
        except Problems as error:
            problems += error.found
    try:
        valid = validated(project)
    except Problems as error:
        raise Problems([*problems, *error.found]) from None
    if problems:
        raise Problems(problems)
    if project.posted_time is not None:
        warnings += warnings_of_sinks(project)
        if any(d.severity is Severity.ERROR for d in warnings):  # as the project may take them
            raise Problems(warnings)
    read = (*project.manifests, *project.policy_paths)
    names = [file.name for file in find(read, project.root).files] if only else []
    unread = [  # an unread file is never called valid
        Diagnostic(
            severity=Severity.WARNING, code=NOTHING_SELECTED, message="this is not a manifest of the project", file=path
        )
        for path in only
        if path != project.config_name and not any(_is_in(name, [path]) for name in names)
    ]
    levels = levelled(unread, project.policy.diagnostics)
    if any(d.severity is Severity.ERROR for d in levels):
        raise Problems(levels)
    return valid, [*warnings, *levels]


def _narrowed(diagnostics: Sequence[Diagnostic], paths: Sequence[str]) -> list[Diagnostic]:
    """Return the diagnostics in `paths`, and all errors if there is no error in `paths`."""
    inside = [d for d in diagnostics if not paths or _is_in(d.file, paths)]
    if any(d.severity is Severity.ERROR for d in inside):
        return inside
    return [d for d in diagnostics if d.severity is Severity.ERROR or d in inside]


def _is_in(file: str | None, paths: Sequence[str]) -> bool:
    return file is not None and any(Path(file).is_relative_to(path) for path in paths)


@command("render", "syncengine render manifests/matters.yaml\n# one manifest with templates and defaults applied")
@click.argument("paths", nargs=-1, shell_complete=files)
@printing("yaml", "json")
def render(options: Globals, format: str, paths: Sequence[str]) -> int:
    """Print the manifests with templates and defaults applied, as one manifest. PATHS limit the output."""
    from syncengine.manifest.desired import load
    from syncengine.plan.request import Scope
    from syncengine.render.manifest import manifest_json, manifest_yaml

    project = options.project()
    scope = Scope(paths=relative_paths(paths, options.folder, project.root))
    desired = load(project)
    resources = [r for r in desired.resources.values() if scope.selects((r.key, r.source))]
    removals = [r for r in desired.removed.values() if scope.selects((r.key, r.source))]
    text = (manifest_json if format == "json" else manifest_yaml)(resources, removals)
    Output(options, project.root).data(text)
    return ExitCode.DONE


@command("test", "syncengine test policies --format junit\n# test results for the page of a CI job")
@click.argument("paths", nargs=-1, shell_complete=files)
@printing(*TEST_FORMATS)
def test(options: Globals, format: str, paths: Sequence[str]) -> int:
    """Run the tests of rules, manifests and templates, offline; exit 1 when one fails.

    Tests are listed under `tests:` in rule files. With PATHS (files or folders of rules), only the tests there are run,
    against the rules in PATHS and those of the project.
    """
    from syncengine.rules.read import rule_set
    from syncengine.tools.rule_tests import run_tests

    project = options.project()
    chosen = relative_paths(paths, options.folder, project.root)
    rules = rule_set(project, [project.root / path for path in chosen])
    tests = [test for test in rules.tests if not chosen or _is_in(test.file, chosen)]
    results = tuple(run_tests(project, rules, tests))
    output = Output(options, project.root)
    output.data(TEST_FORMATS[format](results, output.look()))
    return ExitCode.DONE if all(result.passes for result in results) else ExitCode.ERROR


LAID_OUT = (".yaml", ".yml")
LEFT_ALONE = (".json", ".j2")
"""Suffixes of files that are not formatted: JSON has its own tools, and templates are text."""


class Laid(NamedTuple):
    """A file whose layout is not canonical: its path, its name, and its text before and after."""

    path: Path
    name: str
    before: str
    after: str


@command("fmt", "syncengine fmt --check\n# exit 1 if a file differs, for a hook")
@click.argument("paths", nargs=-1, shell_complete=files)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; show the changes as a diff.")
@printing_command
def fmt(options: Globals, format: str, paths: Sequence[str], check: bool, diff: bool) -> int:
    """Format manifests: order of keys, and indentation. Comments are kept.

    Only YAML manifests are formatted: not JSON, text templates (.yaml.j2), syncengine.yaml, or files with sections that
    no manifest has. A list or mapping in brackets keeps its order if there are comments inside.
    """
    output = Output(options, options.folder)
    laid, diagnostics = _laid(options, paths)
    is_invalid = any(d.severity is Severity.ERROR for d in diagnostics)
    unwritten = set[str]()
    for each in laid if not (check or diff) else ():
        try:
            write_whole(each.path, [each.after.encode()])
        except OSError as error:
            why = f"the file cannot be written: {error.strerror}"
            diagnostics.append(Diagnostic(severity=Severity.ERROR, code="unwritable-file", message=why, file=each.name))
            unwritten.add(each.name)
    laid = [each for each in laid if each.name not in unwritten]
    if format == "json":
        from syncengine.render.documents import diagnostic_items, dumped
        from syncengine.render.formats import FmtFormat, LaidFile

        files = [LaidFile(each.name, _difference(each) if diff else UNSET) for each in laid]
        output.data(dumped(FmtFormat(files, diagnostic_items(diagnostics))))
    else:
        act = "Would format" if check else "Formatted"
        output.data("".join(_difference(each, visible) if diff else f"{act} {file_name(each.name)}\n" for each in laid))
        if diagnostics:
            output.diagnostics(diagnostics)
    if is_invalid:
        return ExitCode.INVALID
    return ExitCode.ERROR if unwritten or (check and laid) else ExitCode.DONE


def _laid(options: Globals, paths: Sequence[str]) -> tuple[list[Laid], list[Diagnostic]]:
    """Return the files whose layout is not canonical, and the diagnostics of files that cannot be formatted."""
    from syncengine.document.diagnostics import Collector
    from syncengine.manifest.files import find
    from syncengine.tools.fmt import laid_out

    secrets: set[Path] = set()
    if paths:  # then errors in the project file do not matter
        for path in paths:
            refuse_missing(options.folder / path, path)
        with suppress(SyncengineError):
            secrets = options.project().secret_files()
        root, chosen = options.folder.absolute(), [options.folder / path for path in paths]
    else:
        project = options.project()
        root, chosen, secrets = project.root, list(project.manifests), project.secret_files()
    sought = find(chosen, root, secrets=secrets)
    diagnostics = [d for d in sought.problems if not (d.file or "").lower().endswith(LEFT_ALONE)]
    laid = []
    for file in sought.files:
        if (
            not file.name.lower().endswith(LAID_OUT)
            or (data := file.content(Collector(file.name, diagnostics))) is None
        ):
            continue
        own = Collector(file.name)
        after = laid_out(data, own)
        diagnostics += own.found
        if after is not None and after.encode() != data:
            laid.append(Laid(file.path, file.name, data.decode("utf-8-sig"), after))
    return laid, diagnostics


def _difference(laid: Laid, shown: Callable[[str], str] = str) -> str:
    lines = difflib.unified_diff(laid.before.splitlines(), laid.after.splitlines(), laid.name, laid.name, lineterm="")
    return "".join(f"{shown(line)}\n" for line in lines)
