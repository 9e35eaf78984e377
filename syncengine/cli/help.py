"""Format the help of commands (own options, global options, an example), and run `help`."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import click

from syncengine.cli.empty_values import has_empty_words, refuse_empty_parameters

GLOBAL = "Global options"


class Example(NamedTuple):
    """An example: a command line, and its purpose."""

    line: str
    says: str


EXAMPLES: Mapping[str, Example] = {
    "": Example("syncengine plan", "show what would change"),
    "init": Example("syncengine init matters --from-csv matters.csv", "start a project from your own list"),
    "validate": Example("syncengine validate --format github", "findings as annotations of a pull request"),
    "test": Example("syncengine test policies --format junit", "test results for the page of a CI job"),
    "render": Example("syncengine render manifests/matters.yaml", "one manifest with templates and defaults applied"),
    "plan": Example("syncengine plan --target 'tag/ACME-*' --out plan.json", "plan some tags, and save the plan"),
    "show": Example("syncengine show plan.json --action delete", "only what a saved plan deletes"),
    "apply": Example("syncengine apply plan.json --report junit=report.xml", "apply the reviewed plan, with a report"),
    "reviewed": Example(
        "syncengine reviewed --from github -o reviewed", "plans of the last merges, for `apply --reviewed`"
    ),
    "publish": Example("syncengine publish plan.json --to github --key prod", "the comment that reviewers read"),
    "drift": Example("syncengine drift --since 7d --unused 180d", "this week's drift, and tags unused for half a year"),
    "state": Example("syncengine state list 'tag/ACME-*'", "list some recorded tags"),
    "state list": Example("syncengine state list 'tag/ACME-*'", "list some recorded tags"),
    "state show": Example("syncengine state show tag/ACME-0042", "everything recorded about one tag"),
    "state diff": Example("syncengine --env live state diff test", "compare the states of `live` and `test`"),
    "state history": Example("syncengine state history tag/ACME-0042", "the changes of one tag, field by field"),
    "state versions": Example("syncengine state versions", "earlier versions of a state in Git"),
    "state restore": Example("syncengine state restore 3f2a9c1", "return to an earlier version"),
    "state forget": Example("syncengine state forget tag/ACME-0042", "stop managing a tag here"),
    "state prune": Example(
        "syncengine state prune --before 180d --dry-run", "count the history older than half a year"
    ),
    "state erase": Example("syncengine state erase 'tag/Jane Doe'", "erase a name from the state and its history"),
    "state quarantine": Example(
        'syncengine state quarantine tag/2024-117 --reason "their ticket 4711"',
        "apply everything but a rejected tag",
    ),
    "state export": Example("syncengine state export -o state.jsonl", "a copy that only you can read"),
    "state import": Example("syncengine state import state.jsonl", "read an export"),
    "state rebuild": Example(
        "syncengine state rebuild --from-git origin/main --all-history",
        "rebuild a lost state from the commit applied last",
    ),
    "state lock": Example("syncengine state lock --reason 'the service is being moved'", "keep everyone from applying"),
    "state unlock": Example("syncengine state unlock 3f2a9c", "end the lock with this id"),
    "state rebind": Example("syncengine state rebind", "accept the team's new name"),
    "adopt": Example("syncengine adopt tags.csv", "record resources that exist on the service"),
    "fmt": Example("syncengine fmt --check", "exit 1 if a file differs, for a hook"),
    "serve": Example("syncengine serve --log-format text", "run until stopped, with a log for people"),
    "connector": Example("syncengine connector check", "print the team of the key"),
    "connector register": Example("syncengine connector register", "register with the service"),
    "connector check": Example("syncengine connector check", "print the team of the key"),
    "health": Example("syncengine health clear", "clear the reported failure"),
    "health report": Example(
        "syncengine health report unreachable --message 'Back at noon.'", "show a message to everyone who posts time"
    ),
    "health clear": Example("syncengine health clear", "clear the reported failure"),
    "time": Example("syncengine time inbox", "groups that are waiting or have failed"),
    "time list": Example("syncengine time list --since 7d --format json", "what was posted this week"),
    "time pull": Example("syncengine time pull --limit 5", "one small round"),
    "time inbox": Example("syncengine time inbox --user 'Jane Doe'", "the groups of one person"),
    "time show": Example("syncengine time show 4c1d9e", "the history of one group"),
    "time retry": Example("syncengine time retry 4c1d9e", "deliver one group to the sinks that lack it"),
    "time redeliver": Example(
        "syncengine time redeliver --sink ledger --since 2d", "list the groups to deliver again to a restored ledger"
    ),
    "time audit": Example("syncengine time audit --since 30d", "find groups that a sink lacks"),
    "time preview": Example("syncengine time preview --sample", "render the deliveries of a sample group"),
    "time register": Example("syncengine time register", "start recording time for this project"),
    "time unregister": Example("syncengine time unregister", "stop recording time"),
    "schema": Example("syncengine schema -o schemas", "write all schemas to a folder, for editors"),
    "sandbox": Example("syncengine sandbox --port 0", "run on a free port, with a console page"),
    "help": Example("syncengine help time retry", "the help of one command"),
}
"""The examples, by command without `syncengine`."""

COMPLETION = 'eval "$(_SYNCENGINE_COMPLETE=bash_source syncengine)"'


UNDO = "`syncengine plan --undo RUN --out FILE` plans the undo of a run, and `syncengine apply FILE` applies it."
ELSEWHERE: Mapping[str, str] = {
    "undo": UNDO,
    "rollback": UNDO,
    "apply --undo": UNDO,
    "apply --out": "`syncengine plan --out FILE` saves a plan, and `syncengine apply FILE` applies it.",
}
"""Commands and options that exist elsewhere under another name, with a hint to them."""


class Command(click.Command):
    """A command whose help lists its own options first, then the global ones, then an example."""

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

        options = (each for each in self.get_params(ctx) if isinstance(each, click.Option) and not each.hidden)
        names = {name.lstrip("-"): name for option in options for name in (*option.opts, *option.secondary_opts)}
        near = nearest(written.lstrip("-"), tuple(names)) if written.startswith("--") else None
        return "" if near is None else f"Did you mean '{names[near]}'?"

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_example(ctx, formatter)


class HelpfulGroup(Command, click.Group):
    """A group of `Command`s, whose help lists options before commands."""

    command_class = Command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

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


class CommandEntry(NamedTuple):
    """The module of a command, its summary, and its name in the module where that differs."""

    module: str
    help: str
    name: str = ""


class TableGroup(HelpfulGroup):
    """A group whose commands are listed in a table and imported only when called."""

    table: Mapping[str, CommandEntry] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        command = getattr(importlib.import_module(entry.module), entry.name or cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.table.items()])


class GlobalOption(click.Option):
    """A global option, which every command takes."""


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the options of a command and the global options as two sections."""
    for title, is_global in (("Options", False), (GLOBAL, True)):
        options = [param for param in command.get_params(ctx) if isinstance(param, click.Option)]
        members = (option for option in options if isinstance(option, GlobalOption) is is_global)
        rows = [row for option in members if (row := option.get_help_record(ctx))]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


def write_example(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the example of a command. Its line is never wrapped, so that it can be copied."""
    words = ctx.command_path.split()[1:]
    if (example := EXAMPLES.get(" ".join(words))) is None:
        return
    with formatter.section("Example"):
        formatter.write(f"{' ' * formatter.current_indent}{example.line}\n")
        formatter.write_text(f"  # {example.says}")
    if not words:
        with formatter.section("Shell completion for bash (for others, use zsh_source or fish_source)"):
            formatter.write(f"{' ' * formatter.current_indent}{COMPLETION}\n")


@click.command("help", cls=Command)
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def help(ctx: click.Context, words: Sequence[str]) -> None:
    """Show the help of a command, or of the program."""
    from syncengine.cli.streams import put

    where = ctx.find_root()
    for n, word in enumerate(words):
        group = where.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"{' '.join(words[:n])} has no commands of its own.", where)
        name, command, _ = group.resolve_command(where, [word])
        assert command is not None
        where = command.context_class(command, info_name=name, parent=where)
    put(where.get_help() + "\n")
