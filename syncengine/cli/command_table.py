"""The table of commands, and the program that imports only the command that is called."""

from __future__ import annotations

from collections.abc import Mapping

import click

from syncengine import __version__
from syncengine.cli.help import CommandEntry, FirstPage
from syncengine.cli.options import group_with_globals

SECTIONS: Mapping[str, Mapping[str, CommandEntry]] = {
    "Main": {
        "init": CommandEntry("syncengine.cli.init", "Create a project that can plan and apply against the sandbox."),
        "validate": CommandEntry("syncengine.cli.validate", "Load and check everything, offline."),
        "plan": CommandEntry("syncengine.cli.plan", "Show what would change."),
        "apply": CommandEntry("syncengine.cli.apply", "Execute a saved plan, or plan and apply."),
    },
    "Review": {
        "show": CommandEntry("syncengine.cli.show", "Show a saved plan again."),
        "test": CommandEntry("syncengine.cli.test", "Run the tests of rules and manifests, offline."),
        "publish": CommandEntry("syncengine.cli.publish", "Post a plan or report as a comment on a pull request."),
        "reviewed": CommandEntry("syncengine.cli.reviewed", "Fetch the reviewed plans of merged pull requests."),
    },
    "Posted time and connector": {
        "serve": CommandEntry(
            "syncengine.cli.serve", "Run the connector: reconcile, deliver posted time, report health."
        ),
        "time": CommandEntry("syncengine.cli.time", "Inspect and deliver posted time by hand."),
        "connector": CommandEntry("syncengine.cli.connector", "Register this connector, or check its key."),
        "health": CommandEntry("syncengine.cli.health", "Report or clear a health failure by hand."),
    },
    "State": {
        "state": CommandEntry("syncengine.cli.state", "Inspect, lock and repair the state."),
        "adopt": CommandEntry("syncengine.cli.adopt", "Record resources that exist on the service; nothing is sent."),
        "drift": CommandEntry("syncengine.cli.drift", "Compare the tags in posted time with the applied ones."),
    },
    "Tools": {
        "render": CommandEntry("syncengine.cli.render", "Print the manifests with templates and defaults applied."),
        "fmt": CommandEntry("syncengine.cli.fmt", "Format manifests."),
        "schema": CommandEntry("syncengine.cli.schema", "Print or write the JSON Schemas of all formats."),
        "sandbox": CommandEntry("syncengine.cli.sandbox", "Run the embedded service in the foreground."),
    },
}


class Program(FirstPage):
    """The program: the group of all commands in `SECTIONS`."""

    sections = SECTIONS


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="syncengine plan\n# show what would change",
)
@click.version_option(__version__, prog_name="syncengine", message="%(prog)s %(version)s")
@group_with_globals
def program() -> None:
    """Keep a time-recording service in step with YAML files in Git.

    Manifests declare tags, categories and activity types; `plan` shows what would change,
    `apply` makes the changes.
    """
