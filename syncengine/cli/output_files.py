"""The files that a command writes, such as those of `--out` and `--report`: refuse unsuitable ones, and write reports.

Reports are written on every path, also when the command fails, so that no older report passes for today's (docs/ci.md).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from syncengine.cli.help import Command
from syncengine.cli.options import globals_of
from syncengine.cli.output import COMMANDS, Output
from syncengine.cli.streams import safe, trouble_of
from syncengine.errors import SyncengineError
from syncengine.project.files import as_written, is_stream, refuse_links, write_whole
from syncengine.render import Renderer

INPUTS = frozenset({".yaml", ".yml", ".j2", ".csv"})
"""The suffixes of files that people write. No output has one of them."""

HEAD = 1_000
"""The number of bytes at the start of a file among which our mark stands, in whichever format."""

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

Targets = Sequence[tuple[str, str]]
"""The formats and the files of reports. The file `-` is stdout."""


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """The files that the outputs of one command may replace: those that are empty or have our mark.

    `kept` are the files that the command itself reads, such as a reviewed plan, which have our mark too.
    """

    folder: Path
    kept: Sequence[str] = ()

    def reports(self, values: Sequence[str], formats: Iterable[str]) -> Targets:
        """Return the `FORMAT=FILE` options as pairs. Raise an error for other text, and files that no report gets."""
        pairs = []
        for value in values:
            format, equals, file = value.partition("=")
            if not equals or not file or format not in formats:
                raise click.UsageError(
                    f"--report {value!r}: write FORMAT=FILE, with one of the formats {', '.join(formats)}"
                )
            if not (parent := (self.folder / file).parent).is_dir():
                raise click.UsageError(f"--report {value!r}: there is no folder {parent}")
            self.refuse_unsuitable(file, f"--report {value!r}")
            pairs.append((format, file))
        for shared in self.named_twice(file for _, file in pairs):
            raise click.UsageError(f"--report: two reports are written to {shared}")
        return pairs

    def valid_reports(self, values: Sequence[str], formats: Iterable[str], out: str | None = None) -> Targets:
        """Return the valid `FORMAT=FILE` options as pairs. Leave out all others, and files that are shared."""
        pairs: list[tuple[str, str]] = []
        for value in values:
            with suppress(click.UsageError, SyncengineError):
                pairs += self.reports([value], formats)
        twice = self.named_twice([*(file for _, file in pairs), *([] if out is None else [out])])
        return [(format, file) for format, file in pairs if self.place(file) not in twice]

    def named_twice(self, files: Iterable[str]) -> list[Path]:
        """Return the places that several of `files` name. Streams and devices may be named twice."""
        places = Counter(map(self.place, (file for file in files if file != "-")))
        return [place for place, count in places.items() if count > 1 and (place.is_file() or not place.exists())]

    def place(self, file: str) -> Path:
        """Return the place of a file without links."""
        return Path(os.path.realpath(self.folder / file))  # `resolve` fails at a link that leads to itself

    def refuse_unsuitable(self, file: str, option: str) -> None:
        """Raise a usage error when `file`, the output of `option`, would replace anything but an earlier output."""
        path = as_written(self.folder / file)
        if file == "-" or is_stream(path):
            return
        with suppress(OSError):  # whoever writes the file reports a link
            refuse_links(path)
            if trouble := self._trouble_with(path):
                raise click.UsageError(f"{option}: {trouble}: choose another name")

    def _trouble_with(self, path: Path) -> str:
        place = self.place(str(path))
        if path.suffix.lower() in INPUTS:
            return f"no output is written to a {path.suffix} file, since people write them"
        if place in map(self.place, self.kept):
            return "this file is read by this command and would be overwritten"
        if ".git" in place.parts:
            return "this file is in the folder of Git"
        return "" if is_replaceable(path) else "this file is not from syncengine and would be overwritten"

    def refuse_links(self, targets: Targets) -> None:
        """Raise `SyncengineError` when a report is a link, which would be found only once the work is done."""
        for _, file in targets:
            path = as_written(self.folder / file)
            try:
                if file != "-" and not is_stream(path):
                    refuse_links(path)
            except OSError as error:
                message = f"the report {file} cannot be written: {error.strerror}; nothing was applied"
                raise SyncengineError(message, code="report-file") from None


def is_replaceable(path: Path) -> bool:
    """Return whether there is no such file, or one that is empty or has our mark. Raise `OSError` if it is unreadable.

    An empty list is a report to GitLab without findings.
    """
    if not path.exists():
        return True
    with path.open("rb") as file:
        start = file.read(HEAD)
    return start.strip() in (b"", b"[]") or OURS.match(start) is not None


def takes_stdout(targets: Targets) -> bool:
    """Return whether a report is written to stdout, which is then reserved for reports."""
    return any(file == "-" for _, file in targets)


# --- reports on every path --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReportKind:
    """The reports of a command: their formats, and how an error is reported in these formats."""

    formats: Mapping[str, Renderer[Any]]
    trouble_formats: Mapping[str, Renderer[Any]]
    trouble: Callable[[SyncengineError], Any]


@dataclass(slots=True)
class Reports:
    """The reports of one run of a command."""

    kind: ReportKind
    output: Output
    targets: Targets
    _is_written: bool = field(default=False, init=False)

    @contextmanager
    def on_every_path(self) -> Iterator[None]:
        """Write an error that is raised in the block to the reports, unless they are written, and raise it again."""
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            try:
                if not self._is_written:
                    self.write_trouble(error)
            except (SyncengineError, BrokenPipeError) as another:  # the first error decides the exit code
                if isinstance(another, SyncengineError):
                    self.output.say(f"error[{another.code}]: {another.message}", level="error")
            raise

    def write(self, value: Any) -> None:
        """Write the reports of a plan or an apply. Raise the first error once all others are written."""
        look = replace(self.output.look(), colour=False, lines=None)
        self._write([(format, self.kind.formats[format](value, look), file) for format, file in self.targets])

    def write_trouble(self, error: BaseException) -> None:
        """Write the reports of a command that ended with an error."""
        value = self.kind.trouble(trouble_of(error, "interrupted: nothing was sent"))
        look = replace(self.output.look(), colour=False, lines=None)
        self._write([(format, self.kind.trouble_formats[format](value, look), file) for format, file in self.targets])

    def _write(self, reports: Sequence[tuple[str, str, str]]) -> None:
        self._is_written = True
        trouble: SyncengineError | None = None
        for format, text, file in reports:
            if file == "-":
                continue
            path = self.output.options.folder / file
            content = text if format in COMMANDS else safe(text)
            if text and not is_stream(as_written(path)):
                content = MARKS.get(format, "") + content
            try:
                write_whole(path, [content.encode(errors="backslashreplace")])
            except OSError as error:
                words = f"the report {file} cannot be written: {error.strerror}"
                trouble = trouble or SyncengineError(words, code="report-file")
        for format, text, file in reports:
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
                targets = files.valid_reports(ctx.params.get("reports") or (), self.kind.formats)
                Reports(self.kind, Output(options, options.folder), targets).write_trouble(error)
            raise
