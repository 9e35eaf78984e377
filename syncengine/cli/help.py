"""Format the help of commands: their own options and an example; the first page explains the global options."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import click
from click.core import ParameterSource

from syncengine.cli.option_types import refuse_empty

GLOBAL = "Global options (before or after the name of a command)"
SEE_GLOBAL = "Global options, such as --sandbox, --env and --verbose: `syncengine --help`."
"""The line of all pages but the first. At 80 columns it is not wrapped."""


COMPLETION = 'eval "$(_SYNCENGINE_COMPLETE=bash_source syncengine)"'


UNDO = "`syncengine plan --undo RUN --out FILE` plans the undo of a run, and `syncengine apply FILE` applies it."
ELSEWHERE: Mapping[str, str] = {
    "help": "`syncengine --help` lists the commands, and `syncengine COMMAND --help` explains one.",
    "undo": UNDO,
    "rollback": UNDO,
    "apply --undo": UNDO,
    "apply --out": "`syncengine plan --out FILE` saves a plan, and `syncengine apply FILE` applies it.",
}
"""Commands and options that exist elsewhere under another name, with a hint to them."""


@dataclass(slots=True)
class Invocation:
    """What a command line asks for, as far as it could be read: errors are told in its formats."""

    command: str = ""
    format: str = ""
    log_format: str = ""

    def read(self, ctx: click.Context) -> None:
        """Take over what a context says; those of commands come after that of the program."""
        if ctx.parent is not None:
            self.command = self.command or ctx.info_name or ""
        self.format = ctx.params.get("format") or self.format
        self.log_format = ctx.params.get("log_format") or self.log_format


class Command(click.Command):
    """A command whose help lists its own options and an example. The epilog is a command line, and its purpose."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words, invocation = tuple(args), ctx.find_object(Invocation) or Invocation()
        try:
            rest = super().parse_args(ctx, args)  # empties `args`
            for parameter in self.get_params(ctx):
                # Defaults and variables may be empty.
                if ctx.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE:
                    refuse_empty(parameter, ctx.params.get(parameter.name or ""))
        except click.UsageError as error:
            self.read_rejected(ctx, words)
            invocation.read(ctx)
            if isinstance(error, click.NoSuchOption):
                name, names = error.option_name, {name for each in self.get_params(ctx) for name in each.opts}
                # A long option written with one dash, as in Terraform, is read as short ones.
                dashed = [long for word in words if len(long := f"-{word.partition('=')[0]}") > 3 and long in names]
                alike = error.possibilities or () if name != "--yes" else {"-y"} & names
                near = next(iter([*dashed, *alike]), None)
                hint = ELSEWHERE.get(f"{ctx.info_name} {name}") or (f"Did you mean '{near}'?" if near else "")
                error = click.UsageError(f"No such option '{name}'. {hint}".rstrip())
            error.ctx = ctx
            raise error from None
        invocation.read(ctx)
        return rest

    def read_rejected(self, ctx: click.Context, words: Sequence[str]) -> None:
        """Fill `ctx.params` with what can be read of words that were rejected, for reports of the error."""
        ctx.resilient_parsing = ctx.ignore_unknown_options = ctx.allow_extra_args = True
        with suppress(click.UsageError):
            super().parse_args(ctx, list(words))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter, "Options", is_global=False)
        formatter.write_paragraph()
        formatter.write_text(SEE_GLOBAL)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example. Its lines are never wrapped, so that they can be copied."""
        with formatter.section("Example"):
            for line in (self.epilog or "").splitlines():
                formatter.write(f"{' ' * formatter.current_indent}{line}\n")


def command(name: str, epilog: str) -> Callable[[Callable[..., Any]], Command]:
    """Return the decorator of a command's function; see `Command` for its epilog."""
    return click.command(name, cls=Command, epilog=epilog)


class HelpfulGroup(Command, click.Group):
    """A group of `Command`s, whose help lists them before the options."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)

    def read_rejected(self, ctx: click.Context, words: Sequence[str]) -> None:
        """Read the command behind rejected options, too, which says in what format the error is told."""
        super().read_rejected(ctx, words)
        _, rest, _ = self.make_parser(ctx).parse_args(list(words))
        name = next((word for word in rest if not word.startswith("-")), "")
        if command := self.get_command(ctx, name):
            self._read_part(ctx, command, rest[rest.index(name) :])

    def _read_part(self, ctx: click.Context, command: click.Command, words: Sequence[str]) -> None:
        lenient = {"resilient_parsing": True, "ignore_unknown_options": True, "allow_extra_args": True}
        command.make_context(words[0], list(words[1:]), parent=ctx, **lenient)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            unknown = Command(args[0], params=[click.Option([f"--{name}"]) for name in ("format", "log-format")])
            self._read_part(ctx, unknown, args)
            import difflib

            name, message = args[0], error.message
            if name in ELSEWHERE:
                message = f"No such command {name!r}. {ELSEWHERE[name]}"
            elif name:
                near = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
                message = f"No such command {name!r}." + (f" Did you mean {near[0]!r}?" if near else "")
            raise click.UsageError(message, ctx) from None


class TableGroup(HelpfulGroup):
    """A group whose commands are listed in sections of a table and imported only when called.

    The table has the place of each command's function (`module.function` of this package), and its summary.
    """

    sections: ClassVar[Mapping[str, Mapping[str, tuple[str, str]]]]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in self.sections.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for section in self.sections.values():
            if cmd_name in section:
                module, _, name = section[cmd_name][0].partition(".")
                command = getattr(importlib.import_module(f"{__package__}.{module}"), name)
                assert isinstance(command, click.Command)
                return command
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self.list_commands(ctx)))  # one column of summaries in all sections
        for title, section in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{widest}}", summary) for name, (_, summary) in section.items()])


class FirstPage(TableGroup):
    """The group of all commands, whose help alone explains the global options, and how to complete words in a shell."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        write_options(self, ctx, formatter, "Options", is_global=False)
        write_options(self, ctx, formatter, GLOBAL, is_global=True)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Shell completion for bash (for others, use zsh_source or fish_source)"):
            formatter.write(f"{' ' * formatter.current_indent}{COMPLETION}\n")


class GlobalOption(click.Option):
    """A global option, which every command takes."""


def write_options(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter, title: str, *, is_global: bool
) -> None:
    """Write the options of a command, either its own or the global ones, as a section."""
    options = (param for param in command.get_params(ctx) if isinstance(param, click.Option))
    members = (option for option in options if isinstance(option, GlobalOption) is is_global)
    with formatter.section(title):
        formatter.write_dl([row for option in members if (row := option.get_help_record(ctx))])
