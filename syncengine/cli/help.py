"""Format the help of commands: their own options and an example; the first page explains the global options."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar

import click

from syncengine.cli.option_types import has_empty_words, refuse_empty_parameters

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


class Command(click.Command):
    """A command whose help lists its own options and an example. The epilog is a command line, and its purpose."""

    refused_later: Collection[str] = ()
    """Names of parameters whose empty values the command itself rejects."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = tuple(args)  # parsing empties `args`
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            elsewhere = ELSEWHERE.get(f"{ctx.info_name} {error.option_name}")
            hint = elsewhere or self._with_two_dashes(ctx, words) or self._nearest(ctx, error.option_name)
            raise click.UsageError(f"No such option '{error.option_name}'. {hint}".rstrip(), ctx) from None
        except click.BadParameter:
            self._refuse_empty(ctx, words)  # a better message than "not a number"
            raise
        self._refuse_empty(ctx, words)
        return rest

    def _refuse_empty(self, ctx: click.Context, words: Sequence[str]) -> None:
        """Raise a usage error for a value that is empty on the command line. Defaults and variables may be empty."""
        if ctx.resilient_parsing or not has_empty_words(words):
            return
        written, *_ = self.make_parser(ctx).parse_args(list(words))
        early = (parameter for parameter in self.get_params(ctx) if parameter.name not in self.refused_later)
        try:
            refuse_empty_parameters(early, written)
        except click.UsageError as error:
            raise click.UsageError(error.message, ctx) from None

    def _with_two_dashes(self, ctx: click.Context, words: Iterable[str]) -> str:
        """Return a hint for the first long option written with one dash, as in Terraform, or an empty string."""
        options = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        written = (f"-{word.partition('=')[0]}" for word in words)
        return next((f"Did you mean '{name}'?" for name in written if name in options and len(name) > 3), "")

    def _nearest(self, ctx: click.Context, written: str) -> str:
        """Return a hint to the long option most like `written`, if any. Dashes do not count: all options have them."""
        from syncengine.document.diagnostics import nearest

        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option) and not each.hidden]
        names = {name.lstrip("-"): name for option in options for name in (*option.opts, *option.secondary_opts)}
        if written == "--yes" and any("-y" in option.opts for option in options):
            return "Did you mean '-y'?"
        near = nearest(written.lstrip("-"), tuple(names)) if written.startswith("--") else None
        return "" if near is None else f"Did you mean '{names[near]}'?"

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter, "Options", is_global=False)
        formatter.write_paragraph()
        formatter.write_text(SEE_GLOBAL)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example. Its lines are never wrapped, so that they can be copied."""
        with formatter.section("Example"):
            for line in (self.epilog or "").splitlines():
                formatter.write(f"{' ' * formatter.current_indent}{line}\n")


class HelpfulGroup(Command, click.Group):
    """A group of `Command`s, whose help lists them before the options."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(self._did_you_mean(ctx, error.message, args[0]), ctx) from None

    def _did_you_mean(self, ctx: click.Context, message: str, name: str) -> str:
        if name in ELSEWHERE:
            return f"No such command {name!r}. {ELSEWHERE[name]}"
        import difflib

        near = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
        return f"No such command {name!r}." + (f" Did you mean {near[0]!r}?" if near else "") if name else message


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
