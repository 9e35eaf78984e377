"""The files that a command writes, such as those of `--out` and `--report`: refuse unsuitable ones, and write reports.

Reports are written on every path, also when the command fails, so that no older report passes for today's (docs/ci.md).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from syncengine.cli.help import Command
from syncengine.cli.options import globals_of
from syncengine.cli.output import COMMANDS, Output
from syncengine.cli.streams import AT_ONCE, safe, trouble_of
from syncengine.errors import SyncengineError
from syncengine.project.files import as_written, is_stream, refuse_links, write_whole
from syncengine.render import Renderer

INPUTS = frozenset({".yaml", ".yml", ".j2", ".csv"})
"""The suffixes of files that people write. No output has one of them."""

HEAD = 1_000  # bytes at the start of a file: our mark stands among them in each format, and a large file is not read

OURS = re.compile(
    rb"""
    \s*\{\s*"format"\s*:\s*"syncengine\.                        # plan, report, diagnostics, export
    | \s*\[\s*\{\s*"engine_name"\s*:\s*"syncengine"             # GitLab
    | \s*\{\s*"\$schema"\s*:\s*"https://json\.schemastore\.org/sarif.*"name"\s*:\s*"syncengine"
    | \s*\{\s*"\$schema"\s*:\s*"https://json-schema\.org/       # `schema`
    | <testsuites\ name="syncengine
    | <!doctype\ html>.*<meta\ name="generator"\ content="syncengine">
    | <!--\ syncengine\ -->
    | \#\ syncengine\n
    | ::(?:error|warning|notice)\                               # GitHub
    | has_changes=(?:true|false)\n                              # `publish --dotenv`
    """,
    re.VERBOSE | re.DOTALL,
)
"""The starts of all files that syncengine writes."""

MARKS = {"markdown": "<!-- syncengine -->\n", "text": "# syncengine\n"}
"""What the file of a report begins with, in formats that else have no mark of ours."""


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """The files that the outputs of one command may replace: those that are empty or have our mark.

    `kept` are the files that the command itself reads, such as a reviewed plan, which have our mark too.
    """

    folder: Path
    kept: Sequence[str] = ()

    def place(self, file: str) -> Path:
        """Return the place of a file without links."""
        return Path(os.path.realpath(self.folder / file))  # `resolve` fails at a link that leads to itself

    def named_twice(self, files: Iterable[str]) -> list[Path]:
        """Return the places that several of `files` name. Streams and devices may be named twice."""
        places = Counter(map(self.place, (file for file in files if file != "-")))
        return [place for place, count in places.items() if count > 1 and (place.is_file() or not place.exists())]

    def refuse_unsuitable(self, file: str, option: str) -> None:
        """Raise a usage error when `file`, the output of `option`, would replace anything but an earlier output."""
        path, place = as_written(self.folder / file), self.place(file)
        if file == "-" or is_stream(path):
            return
        if not path.parent.is_dir():
            raise click.UsageError(f"{option}: there is no folder {(self.folder / file).parent}")
        trouble = ""
        with suppress(OSError):  # whoever writes the file reports a link
            refuse_links(path)
            if path.suffix.lower() in INPUTS:
                trouble = f"no output is written to a {path.suffix} file, since people write them"
            elif place in map(self.place, self.kept):
                trouble = "this file is read by this command and would be overwritten"
            elif ".git" in place.parts:
                trouble = "this file is in the folder of Git"
            elif path.exists():
                with path.open("rb") as opened:
                    start = opened.read(HEAD)
                # An empty list is a report to GitLab without findings.
                if start.strip() not in (b"", b"[]") and not OURS.match(start):
                    trouble = "this file is not from syncengine and would be overwritten"
        if trouble:
            raise click.UsageError(f"{option}: {trouble}: choose another name")


# --- reports on every path


@dataclass(frozen=True, slots=True)
class ReportKind:
    """The reports of a command: their formats, and how an error is reported in these formats."""

    formats: Mapping[str, Renderer[Any]]
    trouble_formats: Mapping[str, Renderer[Any]]
    trouble: Callable[[SyncengineError], Any]


class Reports:
    """The reports of one run of a command, which are written on every path.

    `values` are those of its options `--report`, and `out` the file of another output. Only `targets`, pairs of a
    format and a file (`-` is stdout), are valid, and shared with no other output; the first error of the others is
    raised within `on_every_path`, so that the valid ones report it.
    """

    def __init__(
        self, kind: ReportKind, output: Output, files: OutputFiles, values: Sequence[str], out: str | None = None
    ) -> None:
        self.output = output
        self._kind = kind
        self._is_written = False
        errors: list[click.UsageError | SyncengineError] = []
        targets: list[tuple[str, str]] = []
        for value in values:
            format, equals, file = value.partition("=")
            try:
                if not equals or not file or format not in kind.formats:
                    raise click.UsageError(
                        f"--report {value!r}: write FORMAT=FILE, with one of the formats {', '.join(kind.formats)}"
                    )
                files.refuse_unsuitable(file, f"--report {value!r}")
                targets.append((format, file))
            except (click.UsageError, SyncengineError) as error:
                errors.append(error)
        names = [file for _, file in targets]
        errors += [
            click.UsageError(f"--report: two reports are written to {place}") for place in files.named_twice(names)
        ]
        twice = files.named_twice([*names, *([] if out is None else [out])])
        if not errors and out is not None and files.place(out) in twice:
            errors.append(click.UsageError(f"--out {out}: a report is written to the same file"))
        self._error = next(iter(errors), None)
        self.targets = [(format, file) for format, file in targets if files.place(file) not in twice]

    @property
    def take_stdout(self) -> bool:
        """Whether a report is written to stdout, which is then reserved for reports."""
        return any(file == "-" for _, file in self.targets)

    @contextmanager
    def on_every_path(self) -> Iterator[None]:
        """Write an error that is raised in the block to the reports, unless they are written, and raise it again."""
        try:
            if self._error is not None:
                raise self._error
            yield
        except (Exception, KeyboardInterrupt) as error:
            try:
                if not self._is_written:
                    self.write_trouble(error)
            except (SyncengineError, BrokenPipeError) as another:  # the first error decides the exit code
                if isinstance(another, SyncengineError):
                    self.output.say(f"error[{another.code}]: {another.message}", level="error")
            raise

    def refuse_unwritable(self) -> None:
        """Raise an error when a report is a link or a folder, which would be found only once the work is done."""
        for _, file in self.targets:
            path = as_written(self.output.options.folder / file)
            try:
                if file != "-" and not is_stream(path):
                    refuse_links(path)
            except OSError as error:
                message = f"the report {file} cannot be written: {error.strerror}; nothing was applied"
                raise SyncengineError(message, code="report-file") from None
        for _, file in self.targets:
            if (self.output.options.folder / file).is_dir():
                raise click.UsageError(f"--report: {file} is a folder; nothing was applied")

    def write(self, value: Any) -> None:
        """Write the reports of a plan or an apply. Raise the first error once all others are written."""
        self._write(self._kind.formats, value)

    def write_trouble(self, error: BaseException) -> None:
        """Write the reports of a command that ended with an error."""
        self._write(self._kind.trouble_formats, self._kind.trouble(trouble_of(error, "interrupted: nothing was sent")))

    def _write(self, formats: Mapping[str, Renderer[Any]], value: Any) -> None:
        look = replace(self.output.look(), colour=False, lines=None)
        texts = [(format, file, formats[format](value, look)) for format, file in self.targets]
        self._is_written = True
        trouble: SyncengineError | None = None
        for format, file, text in texts:
            if file == "-":
                continue
            path = self.output.options.folder / file
            content = text if format in COMMANDS else safe(text)
            if text and not is_stream(as_written(path)):
                content = MARKS.get(format, "") + content
            parts = (content[n : n + AT_ONCE] for n in range(0, len(content), AT_ONCE))
            try:
                write_whole(path, (part.encode(errors="backslashreplace") for part in parts))
            except OSError as error:
                words = f"the report {file} cannot be written: {error.strerror}"
                trouble = trouble or SyncengineError(words, code="report-file")
        for format, file, text in texts:  # after the files, which a reader of stdout that has gone away must not cost
            if file == "-":
                self.output.data(text, format)
        if trouble is not None:
            raise trouble


class ReportingCommand(Command):
    """A command that also writes its reports when click rejects the command line."""

    kind: ReportKind
    """What its reports are; set by each command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            options = globals_of(ctx, ctx.params)
            others = (value for name, value in ctx.params.items() if name != "reports")
            read = [word for value in others for word in (value if isinstance(value, tuple) else (value,))]
            files = OutputFiles(options.folder, [word for word in (*read, *ctx.args) if isinstance(word, str)])
            with suppress(SyncengineError):
                output = Output(options, options.folder)
                Reports(self.kind, output, files, ctx.params.get("reports") or ()).write_trouble(error)
            raise
