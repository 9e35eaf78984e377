"""time list, register, unregister: list the posted time on the service, and control its recording."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from syncengine.cli.data_output import printing_command, show
from syncengine.cli.help import Command
from syncengine.cli.moment import PastTime
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.cli.service_call import calling
from syncengine.errors import ExitCode, Usage
from syncengine.render.escape import visible
from syncengine.state.inbox_model import FETCH, MECHANISMS

if TYPE_CHECKING:
    from syncengine.posted_time.audit import Listing
    from syncengine.project.model import Project
    from syncengine.service.client import Client

MECHANISM_FORMAT = "syncengine.mechanism/v1"


# --- list


@click.command(
    "list",
    cls=Command,
    epilog="syncengine time list --since 7d --format json\n# what was posted this week",
)
@click.option(
    "--since", type=PastTime(), metavar="T", help="Only groups submitted since T: 7d or 36h ago, or a UTC date or time."
)
@click.option("--limit", type=int, default=500, show_default=True, help="Groups per request, from 1 to 500.")
@printing_command
def list_time(options: Globals, format: str, since: float | None, limit: int) -> int:
    """List all posted time that the service has, newest first, each group once."""
    from syncengine.posted_time.audit import listing
    from syncengine.render import posted_time as rendering
    from syncengine.service.posted_time import list_query, submitted

    list_query(limit, None)
    after = 0 if since is None else int(since * 1000)
    result = calling(
        options,
        lambda client, _: listing(client, lambda group: since is not None and (submitted(group) or 0) < after, limit),
    )
    say_incomplete(options, result)
    show(options, format, rendering.listing_document(result), rendering.listing_text(result))
    return ExitCode.DONE if result.is_complete else ExitCode.INCOMPLETE


def say_incomplete(options: Globals, result: Listing) -> None:
    """Print a warning for groups that a listing lacks."""
    from syncengine.render.posted_time import incompleteness

    for message in incompleteness(result):
        Output(options, options.folder).say(message, level="warning")


# --- register, unregister


@click.command("register", cls=Command, epilog="syncengine time register\n# start recording time for this project")
@click.argument("mechanism", required=False, type=click.Choice(MECHANISMS))
@printing_command
def register_time(options: Globals, format: str, mechanism: str | None) -> int:
    """Start recording posted time for this connector, by fetch or webhook (default: that of the project file).

    The other mechanism is unregistered first if this project registered it.
    """
    messages: list[str] = []
    name = calling(options, lambda client, project: _registered(client, project, mechanism, messages))
    document = {"format": MECHANISM_FORMAT, "registered": name, "messages": messages}
    return show(options, format, document, _sentences(messages))


def _sentences(messages: Sequence[str]) -> str:
    return "".join(f"{line[0].upper()}{visible(line[1:])}.\n" for line in messages)


async def _registered(client: Client, project: Project, name: str | None, messages: list[str]) -> str:
    from syncengine.connector.connection import prove_team
    from syncengine.posted_time.mechanism import Registrar, callback_of

    chosen = name or _mode(project)
    await prove_team(client, project)
    registrar = Registrar(client, project.state, project.base_url(), messages.append)
    if chosen == FETCH:
        await registrar.fetch()
    else:
        await registrar.webhook(callback_of(project, os.environ))
    return chosen


@click.command("unregister", cls=Command, epilog="syncengine time unregister\n# stop recording time")
@click.argument("mechanism", required=False, type=click.Choice(MECHANISMS))
@printing_command
def unregister_time(options: Globals, format: str, mechanism: str | None) -> int:
    """Stop recording posted time. Time that users post while nothing is registered never arrives."""
    messages: list[str] = []
    name, ended = calling(options, lambda client, project: _unregistered(client, project, mechanism, messages))
    text = _sentences(messages if ended else [f"there was no {name} to unregister", *messages])
    document = {"format": MECHANISM_FORMAT, "unregistered": name if ended else None, "messages": messages}
    return show(options, format, document, text)


async def _unregistered(client: Client, project: Project, name: str | None, messages: list[str]) -> tuple[str, bool]:
    from syncengine.posted_time.mechanism import NAMES, Registrar
    from syncengine.state.connector import registered_mechanism

    registration = registered_mechanism(project.state)
    chosen = name or (registration.name if registration else _mode(project))
    ended = await Registrar(client, project.state, project.base_url(), messages.append).end(chosen)
    return NAMES[chosen], ended


def _mode(project: Project) -> str:
    mode = project.posted_time.mode.value if project.posted_time and project.posted_time.mode else FETCH
    if mode not in MECHANISMS:
        raise Usage("`postedTime.mode` is off: set it to `fetch` or `webhook`")
    return mode
