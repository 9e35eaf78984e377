"""time list, register, unregister: what the service has of posted time, and how it comes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from syncengine.cli.apply import Seconds
from syncengine.cli.data_output import printing_command, show
from syncengine.cli.help import Command
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.cli.service_call import calling
from syncengine.errors import ExitCode, Usage
from syncengine.render.escape import visible
from syncengine.state.inbox_states import FETCH, MECHANISMS

if TYPE_CHECKING:
    from syncengine.posted_time.listing import Listing
    from syncengine.project.model import Project
    from syncengine.service.client import Client

MECHANISM_FORMAT = "syncengine.mechanism/v1"


# --- list


@click.command("list", cls=Command)
@click.option("--since", type=Seconds(), metavar="DURATION", help="Only groups submitted within this time.")
@click.option("--limit", type=int, default=500, show_default=True, help="Groups per request, from 1 to 500.")
@printing_command
def list_time(given: Globals, format: str, since: float | None, limit: int) -> int:
    """List all posted time that the service has, newest first, each group once."""
    from syncengine.posted_time.listing import listing
    from syncengine.render import posted_time as rendering
    from syncengine.service.posted_time import list_query, submitted

    list_query(limit, None)
    after = 0 if since is None else int((time.time() - since) * 1000)
    found = calling(
        given,
        lambda client, _: listing(client, lambda group: since is not None and (submitted(group) or 0) < after, limit),
    )
    say_incomplete(given, found)
    show(given, format, rendering.listing_document(found), rendering.listing_text(found))
    return ExitCode.DONE if found.is_complete else ExitCode.INCOMPLETE


def say_incomplete(given: Globals, found: Listing) -> None:
    """What is missing in a listing."""
    from syncengine.render.posted_time import incompleteness

    for message in incompleteness(found):
        Output(given, given.folder).say(message, level="warning")


# --- register, unregister


@click.command("register", cls=Command)
@click.argument("mechanism", required=False, type=click.Choice(MECHANISMS))
@printing_command
def register_time(given: Globals, format: str, mechanism: str | None) -> int:
    """Have posted time recorded for this connector, by fetch or webhook (default: from the project file).

    The other one of the two is unregistered first, if this project registered it.
    """
    said: list[str] = []
    name = calling(given, lambda client, project: _registered(client, project, mechanism, said))
    document = {"format": MECHANISM_FORMAT, "registered": name, "messages": said}
    return show(given, format, document, _sentences(said))


def _sentences(said: Sequence[str]) -> str:
    return "".join(f"{line[0].upper()}{visible(line[1:])}.\n" for line in said)


async def _registered(client: Client, project: Project, name: str | None, said: list[str]) -> str:
    from syncengine.connector.connection import prove_team
    from syncengine.posted_time.mechanism import Registrar, callback_of

    chosen = name or _mode(project)
    await prove_team(client, project)
    registrar = Registrar(client, project.state, project.base_url(), said.append)
    if chosen == FETCH:
        await registrar.fetch()
    else:
        await registrar.webhook(callback_of(project, os.environ))
    return chosen


@click.command("unregister", cls=Command)
@click.argument("mechanism", required=False, type=click.Choice(MECHANISMS))
@printing_command
def unregister_time(given: Globals, format: str, mechanism: str | None) -> int:
    """Stop recording posted time. Time that users post while nothing is registered never arrives."""
    said: list[str] = []
    name, ended = calling(given, lambda client, project: _unregistered(client, project, mechanism, said))
    text = _sentences(said if ended else [f"there was no {name} to unregister", *said])
    document = {"format": MECHANISM_FORMAT, "unregistered": name if ended else None, "messages": said}
    return show(given, format, document, text)


async def _unregistered(client: Client, project: Project, name: str | None, said: list[str]) -> tuple[str, bool]:
    from syncengine.posted_time.mechanism import NAMES, Registrar
    from syncengine.state.mechanism import registered

    known = registered(project.state)
    chosen = name or (known.name if known else _mode(project))
    ended = await Registrar(client, project.state, project.base_url(), said.append).end(chosen)
    return NAMES[chosen], ended


def _mode(project: Project) -> str:
    mode = project.posted_time.mode.value if project.posted_time and project.posted_time.mode else FETCH
    if mode not in MECHANISMS:
        raise Usage("`postedTime.mode` is off: say `fetch` or `webhook`")
    return mode
