"""Write data to stdout, in the format of `--format`, and messages to stderr."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO, TypeVar

import click
from msgspec.structs import replace

from syncengine.cli.options import Globals, with_globals
from syncengine.cli.streams import OutputFailed, put, tell
from syncengine.document.text import as_word
from syncengine.errors import Diagnostic, ExitCode, SyncengineError
from syncengine.project.model import FILE_NAME, Project
from syncengine.render import DIAGNOSTIC_FORMATS
from syncengine.render.escape import harmless, visible
from syncengine.render.style import Look, links_of

COMMANDS = frozenset({"github"})
"""The formats that consist of workflow commands, which a CI runner reads in the log."""

REPOSITORIES = ("GITHUB_REPOSITORY", "CI_PROJECT_PATH")
"""The variables in which jobs of GitHub and GitLab have the repository's name, with its owner."""

COMMAND = re.compile("`(syncengine [^`]+)`")
"""The pattern of a command in a message."""


@dataclass(frozen=True, slots=True)
class Output:
    """The output of one command, styled for its streams.

    `blob` is the template of links to lines of files. For commands to copy, `plan_file` is the path of the saved plan
    that is shown, and `selection` further arguments that belong to the plan.
    """

    options: Globals
    root: Path
    blob: str | None = None
    plan_file: str = ""
    selection: str = ""

    def look(self, stream: TextIO | None = None) -> Look:
        """Return the style for text on `stream`, by default stdout."""
        stream = stream or sys.stdout
        terminal, prefix = stream.isatty(), self._prefix()
        project_file = Path(self.options.config or FILE_NAME).name
        # The project's name: its repository on the host and its folder there, or its folder's name alone.
        repository = next((os.environ[name] for name in REPOSITORIES if os.environ.get(name)), "")
        names = (repository, prefix) if repository else (self.root.resolve().name,)
        return Look(
            width=shutil.get_terminal_size().columns if terminal else 120,
            colour=not self.options.no_color and is_coloured(os.environ, terminal=terminal),
            unicode=(stream.encoding or "").lower().replace("-", "") == "utf8",
            verbose=bool(self.options.verbose),
            lines=self._lines if terminal else None,
            prefix=prefix,
            links=links_of(self.blob, os.environ),
            plan_file=as_argument(self.plan_file) if self.plan_file else "",
            place=f"{self.options.place()}{self.selection}",
            project="/".join(filter(None, (*names, "" if project_file == FILE_NAME else project_file))),
            project_file=project_file,
        )

    def _prefix(self) -> str:
        """Return the project's folder relative to the root of its Git repository, or `""` without a repository."""
        root = self.root.resolve()
        repository = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
        return "" if root == repository else root.relative_to(repository).as_posix()

    def _lines(self, file: str) -> Sequence[str] | None:
        """Return the lines of a manifest, or `None` for the project file, with its secrets (docs/planning.md 4.11)."""
        if Path(file).name in (FILE_NAME, Path(self.options.config or FILE_NAME).name):
            return None
        try:
            return (self.root / file).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return None

    def data(self, text: str, format: str = "text") -> None:
        """Write data to stdout."""
        put(text, commands=format in COMMANDS)

    def say(self, text: str, *, level: str = "info") -> None:
        """Write a message to stderr. With `--quiet`, messages of level `info` are dropped."""
        if self.options.quiet and level == "info":
            return
        if self.options.log_format == "json":
            self._log(level, text)
        else:
            tell(harmless(visible(text)) + "\n")

    def _log(self, level: str, message: str, members: Mapping[str, object] = MappingProxyType({})) -> None:
        """Write a message and its `members` to stderr as one line of JSON."""
        from syncengine.document.json_text import encode_json

        texts = {**members, "message": message}
        for name, value in texts.items():
            if isinstance(value, str):  # JSON cannot hold bytes of a file name that are not UTF-8
                texts[name] = value.encode(errors="backslashreplace").decode()
        tell(encode_json({"level": level, **texts}).decode() + "\n")

    def announce(self, project: Project) -> None:
        """Print a note when the project uses the embedded sandbox (docs/project-file.md)."""
        if project.is_sandbox:
            folder = os.path.relpath(project.sandbox_data.parent)
            self.say(f"Using the embedded sandbox; its data and its state are in {folder}.")

    def diagnostics(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Write diagnostics to stderr."""
        if self.options.log_format == "json":
            for diagnostic in diagnostics:
                found = {name: getattr(diagnostic, name) for name in ("code", "file", "line", "column", "address")}
                members = {name: value for name, value in found.items() if value is not None}
                self._log(diagnostic.severity.value, diagnostic.message, members)
        elif diagnostics:
            # Each command to copy gets the options that name the project.
            place = self.options.place()
            messages = (COMMAND.sub(lambda found: f"`{found[1]}{place}`", each.message) for each in diagnostics)
            placed = [replace(each, message=text) for each, text in zip(diagnostics, messages, strict=True)]
            tell(DIAGNOSTIC_FORMATS["text"](placed, self.look(sys.stderr)))

    def refusal(self, error: SyncengineError, format: str) -> int:
        """Print an error in `format`, and return its exit code. Raise it if it is that nothing can be printed."""
        if isinstance(error, OutputFailed):
            raise error
        if format in ("text", "markdown", "html", "junit"):
            self.diagnostics(error.diagnostics())
        if format != "text":
            self.data(DIAGNOSTIC_FORMATS[format](error.diagnostics(), self.look()), format)
        return error.exit_code


def as_argument(path: str) -> str:
    """Return a path as an argument that a shell passes on, and that is no option."""
    return as_word(f"./{path}" if path.startswith("-") else path)


def is_coloured(environ: Mapping[str, str], *, terminal: bool) -> bool:
    """Return whether to colour text: by NO_COLOR, else by FORCE_COLOR, else by the terminal."""
    if environ.get("NO_COLOR"):
        return False
    if forced := environ.get("FORCE_COLOR"):
        return forced.lower() not in ("0", "false")
    return terminal and environ.get("TERM") != "dumb"


F = TypeVar("F", bound=Callable[..., Any])


def output_format(*names: str) -> Callable[[F], F]:
    """Return the option `--format` with these formats, of which the first is the default."""
    kind, first = click.Choice(names), names[0]
    return click.option("--format", "format", type=kind, default=first, show_default=True, help="Format of the output.")


def printing(*formats: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what adds the global options and `--format` to a command, and prints its errors so, or as text."""

    def printing_errors(command: Callable[..., Any]) -> Callable[..., Any]:
        @output_format(*formats)
        @with_globals
        @wraps(command)
        def wrapped(options: Globals, format: str, **arguments: Any) -> Any:
            try:
                return command(options=options, format=format, **arguments)
            except SyncengineError as error:
                from syncengine.project.load import project_folder

                output = Output(options, options.folder if options.config else project_folder(options.folder))
                return output.refusal(error, format if format in DIAGNOSTIC_FORMATS else "text")

        return wrapped

    return printing_errors


printing_command = printing("text", "json")


def show(options: Globals, format: str, document: Any, text: str) -> int:
    """Write `document` as JSON, or `text`, to stdout, and return exit code 0."""
    from syncengine.render.documents import dumped

    Output(options, options.folder).data(dumped(document) if format == "json" else text)
    return ExitCode.DONE
