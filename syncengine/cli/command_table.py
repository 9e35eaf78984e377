"""The table of commands, and the program that imports only the command that is called."""

from __future__ import annotations

from collections.abc import Mapping

import click

from syncengine import __version__
from syncengine.cli.help import CommandEntry, TableGroup
from syncengine.cli.options import Globals, global_options

COMMANDS: Mapping[str, CommandEntry] = {
    "init": CommandEntry("syncengine.cli.init", "Create a project that can plan and apply against the sandbox."),
    "validate": CommandEntry("syncengine.cli.validate", "Load and check everything, offline."),
    "test": CommandEntry("syncengine.cli.test", "Run the tests of rules and manifests, offline."),
    "render": CommandEntry("syncengine.cli.render", "Print the manifests with templates and defaults applied."),
    "plan": CommandEntry("syncengine.cli.plan", "Show what would change."),
    "show": CommandEntry("syncengine.cli.show", "Show a saved plan again."),
    "apply": CommandEntry("syncengine.cli.apply", "Execute a saved plan, or plan and apply."),
    "reviewed": CommandEntry("syncengine.cli.reviewed", "Fetch the reviewed plans of merged pull requests."),
    "publish": CommandEntry("syncengine.cli.publish", "Post a plan or report as a comment on a pull request."),
    "drift": CommandEntry("syncengine.cli.drift", "Compare the tags in posted time with the applied ones."),
    "state": CommandEntry("syncengine.cli.state", "Inspect, lock and repair the state."),
    "adopt": CommandEntry(
        "syncengine.cli.adopt", "Record resources that exist on the service, without sending anything."
    ),
    "fmt": CommandEntry("syncengine.cli.fmt", "Format manifests."),
    "serve": CommandEntry("syncengine.cli.serve", "Run the connector: reconcile, deliver posted time, report health."),
    "connector": CommandEntry("syncengine.cli.connector", "Register this connector, or check its key."),
    "health": CommandEntry("syncengine.cli.health", "Report or clear a health failure by hand."),
    "time": CommandEntry("syncengine.cli.time", "Inspect and deliver posted time by hand."),
    "schema": CommandEntry("syncengine.cli.schema", "Print or write the JSON Schemas of all formats."),
    "sandbox": CommandEntry("syncengine.cli.sandbox", "Run the embedded service in the foreground."),
    "help": CommandEntry("syncengine.cli.help", "Show help for a command."),
}


class Program(TableGroup):
    """The program: the group of all commands in `COMMANDS`."""

    table = COMMANDS


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="syncengine", message="%(prog)s %(version)s")
@global_options
@click.pass_context
def program(ctx: click.Context, /, **options: object) -> None:
    """Keep a time-recording service in step with YAML files in Git.

    Manifests declare tags, categories and activity types; `plan` shows what would change,
    `apply` makes the changes.
    """
    ctx.obj = Globals.of(options)
