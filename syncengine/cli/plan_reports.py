"""Write the reports of a plan even when it fails, so that no older report passes for today's (docs/ci.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from syncengine.cli.help import Command
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.cli.report_files import OutputFiles, write_reports
from syncengine.cli.streams import usage_of
from syncengine.errors import Interrupted, SyncengineError, as_bug
from syncengine.project.signals import is_interrupt
from syncengine.render.registry import DIAGNOSTIC_FORMATS, PLAN_REPORTS

if TYPE_CHECKING:
    from syncengine.plan.model import Plan

Targets = Sequence[tuple[str, str]]


class PlanCommand(Command):
    """The `plan` command, which also writes its reports when click rejects the command line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            _after_misspelling(ctx.find_object(Globals) or Globals(), words, error)
            raise


def _after_misspelling(program: Globals, words: Sequence[str], error: click.UsageError) -> None:
    """Write `error` to the reports named in `words`, which click could not parse. `program`: options before `plan`."""
    values = [word.removeprefix("--report=") for word in words if word.startswith("--report=")]
    values += [after for before, after in pairwise(words) if before == "--report"]
    folders = [word.removeprefix("-C") for word in words if word.startswith("-C") and word != "-C"]
    folders += [after for before, after in pairwise(words) if before == "-C"]
    options = Globals.of({"directory": folders}).over(program)
    others = [word for word in words if word not in values and not word.startswith("--report=")]
    files = OutputFiles(options, (word.partition("=")[2] if word.startswith("--") else word for word in others))
    with suppress(SyncengineError):
        PlanReports(Output(options, options.folder), valid_targets(values, files)).write_trouble(error)


def valid_targets(values: Sequence[str], files: OutputFiles, out: str | None = None) -> Targets:
    """Return the valid `FORMAT=FILE` values of `--report` as pairs. Leave out all others, and files that are shared."""
    targets: list[tuple[str, str]] = []
    for value in values:
        with suppress(click.UsageError):
            targets += files.reports([value], list(PLAN_REPORTS))
    twice = files.named_twice([*(file for _, file in targets), *([] if out is None else [out])])
    return [(format, file) for format, file in targets if files.place(file) not in twice]


@dataclass
class PlanReports:
    """The reports to write, as pairs of format and file. `output` is that of the project once the project is loaded."""

    output: Output
    targets: Targets

    @contextmanager
    def instead(self) -> Iterator[None]:
        """Write an error raised in the block to the reports, in place of the plan, and raise it again."""
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            try:
                self.write_trouble(error)
            except SyncengineError as another:  # the first error decides the exit code
                self.output.say(f"error[{another.code}]: {another.message}", level="error")
            raise

    def rendered(self, plan: Plan) -> list[tuple[str, str, str]]:
        look = replace(self.output.look(), colour=False)
        return [(format, PLAN_REPORTS[format](plan, look), file) for format, file in self.targets]

    def write_trouble(self, error: BaseException) -> None:
        diagnostics = trouble_of(error).diagnostics()
        look = replace(self.output.look(), colour=False, lines=None)
        write_reports(
            self.output,
            [(format, DIAGNOSTIC_FORMATS[format](diagnostics, look), file) for format, file in self.targets],
        )


def trouble_of(error: BaseException) -> SyncengineError:
    """Return the error that ended a command in a form that can be shown, without data from unexpected errors."""
    if is_interrupt(error):
        error = KeyboardInterrupt()
    match error:
        case SyncengineError():
            return error
        case click.ClickException():
            return usage_of(error)
        case KeyboardInterrupt() | click.Abort():
            return Interrupted("interrupted: nothing was sent")
        case OSError() if error.filename:
            return SyncengineError(f"{error.filename}: {error.strerror}", code="file")
    return SyncengineError(as_bug(error) if isinstance(error, Exception) else type(error).__name__, code="internal")
