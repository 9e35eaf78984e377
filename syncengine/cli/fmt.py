"""fmt: the canonical layout of manifests, written, checked or shown."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import click

from syncengine.cli.completion import files
from syncengine.cli.data_output import printing_command
from syncengine.cli.help import Command
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.errors import Diagnostic, ExitCode, Problems, Severity, SyncengineError
from syncengine.project.atomic_write import write_whole
from syncengine.render.escape import file_name

FMT_FORMAT = "syncengine.fmt/v1"
LAID_OUT = (".yaml", ".yml")
LEFT_ALONE = (".json", ".j2")
"""JSON has its own tools, the layout of a template is its text's, and the project file is written once, by hand."""


class Laid(NamedTuple):
    """A file whose layout differs: its place, its name, its text before and after."""

    path: Path
    name: str
    before: str
    after: str


@click.command(cls=Command)
@click.argument("paths", nargs=-1, shell_complete=files)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when a file differs.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would differ.")
@printing_command
def fmt(options: Globals, format: str, paths: Sequence[str], check: bool, diff: bool) -> int:
    """Give manifests their canonical layout: order and indentation; comments are kept.

    Only YAML manifests are laid out. JSON and text templates (.yaml.j2) are left as they are, and so are
    syncengine.yaml, which has no order of its own, and files with other sections than a manifest's. A list or mapping
    in brackets with comments in it keeps its order.
    """
    output = Output(options, options.folder)
    laid, diagnostics = _laid(options, paths)
    for each in () if check or diff else laid:
        _write(each)
    if format == "json":
        output.data(_document(laid, diagnostics, diff))
    else:
        output.data("".join(_difference(each) if diff else f"{file_name(each.name)}\n" for each in laid))
        if diagnostics:
            output.diagnostics(diagnostics)
    if any(d.severity is Severity.ERROR for d in diagnostics):
        return ExitCode.INVALID
    return ExitCode.ERROR if check and laid else ExitCode.DONE


def _laid(options: Globals, paths: Sequence[str]) -> tuple[list[Laid], list[Diagnostic]]:
    """The files that differ, and the diagnostics of those that cannot be formatted."""
    from syncengine.document.diagnostics import Collector
    from syncengine.manifest.files import find
    from syncengine.tools.fmt.layout import laid_out

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
    """The folder that names are relative to, the chosen paths, and the files with secrets.

    With PATHS, errors in the project file are ignored.
    """
    if not paths:
        project = options.project()
        return project.root, list(project.manifests), project.secret_files()
    secrets: set[Path] = set()
    with suppress(SyncengineError):
        secrets = options.project().secret_files()
    return options.folder.absolute(), [options.folder / path for path in paths], secrets


def _write(laid: Laid) -> None:
    """Write a file as a whole, with its permissions."""
    try:
        write_whole(laid.path, [laid.after.encode()])
    except OSError as error:
        message = f"the file cannot be written: {error.strerror}"
        raise Problems(
            [Diagnostic(severity=Severity.ERROR, code="unwritable-file", message=message, file=laid.name)]
        ) from None


def _difference(laid: Laid) -> str:
    lines = difflib.unified_diff(laid.before.splitlines(), laid.after.splitlines(), laid.name, laid.name, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _document(laid: Sequence[Laid], diagnostics: Sequence[Diagnostic], diff: bool) -> str:
    from syncengine.render.json import diagnostics_document, dumped

    items = diagnostics_document(diagnostics)["diagnostics"]
    files = [{"file": each.name, **({"diff": _difference(each)} if diff else {})} for each in laid]
    return dumped({"format": FMT_FORMAT, "files": files, "diagnostics": items})
