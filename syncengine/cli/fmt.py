"""fmt: write, check or show the canonical layout of manifests."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import click

from syncengine.cli.completion import files
from syncengine.cli.data_output import printing_command
from syncengine.cli.help import Command
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.errors import Diagnostic, ExitCode, Severity, SyncengineError
from syncengine.project.atomic_write import write_whole
from syncengine.project.content import refuse_missing
from syncengine.render.escape import file_name, visible

FMT_FORMAT = "syncengine.fmt/v1"
LAID_OUT = (".yaml", ".yml")
LEFT_ALONE = (".json", ".j2")
"""Suffixes of files that are not formatted: JSON has its own tools, and templates are text."""


class Laid(NamedTuple):
    """A file whose layout is not canonical: its path, its name, and its text before and after."""

    path: Path
    name: str
    before: str
    after: str


@click.command(cls=Command, epilog="syncengine fmt --check\n# exit 1 if a file differs, for a hook")
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
    unwritten = {} if check or diff else {each.name: why for each in laid if (why := _write(each))}
    laid = [each for each in laid if each.name not in unwritten]
    diagnostics += unwritten.values()
    if format == "json":
        output.data(_document(laid, diagnostics, diff))
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

    root, chosen, secrets = _chosen(options, paths)
    sought = find(chosen, root, secrets=secrets)
    diagnostics = [d for d in sought.problems if not (d.file or "").lower().endswith(LEFT_ALONE)]
    laid = []
    for file in sought.files:
        findings = Collector(file.name, diagnostics)
        data = file.content(findings) if file.name.lower().endswith(LAID_OUT) else None
        after = laid_out(data, own := Collector(file.name)) if data is not None else None
        if data is not None:
            diagnostics += own.found
        if data is not None and after is not None and after.encode() != data:
            laid.append(Laid(file.path, file.name, data.decode("utf-8-sig"), after))
    return laid, diagnostics


def _chosen(options: Globals, paths: Sequence[str]) -> tuple[Path, list[Path], set[Path]]:
    """Return the folder to which file names are relative, the chosen paths, and the files with secrets.

    With PATHS, errors in the project file are ignored.
    """
    if not paths:
        project = options.project()
        return project.root, list(project.manifests), project.secret_files()
    for path in paths:
        refuse_missing(options.folder / path, path)
    secrets: set[Path] = set()
    with suppress(SyncengineError):
        secrets = options.project().secret_files()
    return options.folder.absolute(), [options.folder / path for path in paths], secrets


def _write(laid: Laid) -> Diagnostic | None:
    """Replace a file by its formatted text and keep its permissions, or return the error that prevents it."""
    try:
        write_whole(laid.path, [laid.after.encode()])
    except OSError as error:
        message = f"the file cannot be written: {error.strerror}"
        return Diagnostic(severity=Severity.ERROR, code="unwritable-file", message=message, file=laid.name)
    return None


def _difference(laid: Laid, shown: Callable[[str], str] = str) -> str:
    lines = difflib.unified_diff(laid.before.splitlines(), laid.after.splitlines(), laid.name, laid.name, lineterm="")
    return "".join(f"{shown(line)}\n" for line in lines)


def _document(laid: Sequence[Laid], diagnostics: Sequence[Diagnostic], diff: bool) -> str:
    from syncengine.render.json import diagnostics_document, dumped

    items = diagnostics_document(diagnostics)["diagnostics"]
    files = [{"file": each.name, **({"diff": _difference(each)} if diff else {})} for each in laid]
    return dumped({"format": FMT_FORMAT, "files": files, "diagnostics": items})
