"""The `time` commands that call the service: list, register, unregister, audit and pull."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from syncengine.cli.help import command
from syncengine.cli.option_types import WholeNumber, since
from syncengine.cli.options import Globals
from syncengine.cli.output import Output, printing_command, show
from syncengine.cli.service import calling
from syncengine.errors import ExitCode, Usage
from syncengine.render.escape import visible
from syncengine.state.inbox_model import FETCH, MECHANISMS

if TYPE_CHECKING:
    from syncengine.posted_time.audit import Listing
    from syncengine.project.model import Project
    from syncengine.service.client import Client


@command("list", "syncengine time list --since 7d --format json\n# what was posted this week")
@since("Only groups submitted since")
@click.option(
    "--limit", type=WholeNumber(1, 500), default=500, show_default=True, help="Groups per request, up to 500."
)
@printing_command
def list_time(options: Globals, format: str, since: float | None, limit: int) -> int:
    """List all posted time that the service has, newest first, each group once."""
    from syncengine.posted_time.audit import listing
    from syncengine.render import posted_time as rendering
    from syncengine.service.posted_time import submitted

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
    from syncengine.render.words import list_gaps

    for message in list_gaps(result.unreadable, result.hidden):
        Output(options, options.folder).say(message, level="warning")


@command("register", "syncengine time register\n# start recording time for this project")
@click.argument("mechanism", required=False, type=click.Choice(MECHANISMS))
@printing_command
def register_time(options: Globals, format: str, mechanism: str | None) -> int:
    """Start recording posted time for this connector, by fetch or webhook (default: that of the project file).

    The other mechanism is unregistered first if this project registered it.
    """
    from syncengine.connector.connection import prove_team
    from syncengine.posted_time.mechanism import Registrar, callback_of
    from syncengine.render.posted_time import MechanismFormat

    messages: list[str] = []

    async def registered(client: Client, project: Project) -> str:
        chosen = mechanism or _mode(project)
        await prove_team(client, project)
        registrar = Registrar(client, project.state, project.base_url(), messages.append)
        if chosen == FETCH:
            await registrar.fetch()
        else:
            await registrar.webhook(callback_of(project, os.environ))
        return chosen

    document = MechanismFormat(registered=calling(options, registered), messages=messages)
    return show(options, format, document, _sentences(messages))


@command("unregister", "syncengine time unregister\n# stop recording time")
@click.argument("mechanism", required=False, type=click.Choice(MECHANISMS))
@printing_command
def unregister_time(options: Globals, format: str, mechanism: str | None) -> int:
    """Stop recording posted time. Time that users post while nothing is registered never arrives."""
    from syncengine.posted_time.mechanism import NAMES, Registrar
    from syncengine.render.posted_time import MechanismFormat
    from syncengine.state.connector import registered_mechanism

    messages: list[str] = []

    async def unregistered(client: Client, project: Project) -> tuple[str, bool]:
        registration = registered_mechanism(project.state)
        chosen = mechanism or (registration.name if registration else _mode(project))
        registrar = Registrar(client, project.state, project.base_url(), messages.append)
        return NAMES[chosen], await registrar.end(chosen)

    name, ended = calling(options, unregistered)
    text = _sentences(messages if ended else [f"there was no {name} to unregister", *messages])
    document = MechanismFormat(unregistered=name if ended else None, messages=messages)
    return show(options, format, document, text)


def _mode(project: Project) -> str:
    mode = project.posted_time.mode.value if project.posted_time and project.posted_time.mode else FETCH
    if mode not in MECHANISMS:
        raise Usage("`postedTime.mode` is off: set it to `fetch` or `webhook`")
    return mode


def _sentences(messages: Sequence[str]) -> str:
    return "".join(f"{line[0].upper()}{visible(line[1:])}.\n" for line in messages)


@command("audit", "syncengine time audit --since 30d\n# find groups that a sink lacks")
@since("Compare the time submitted since", default="30d")
@printing_command
def audit_time(options: Globals, format: str, since: float) -> int:
    """Compare the posted time on the service with the groups that the sinks took. Exit 1 if they differ.

    Receipts are read from the databases that keep them; for any other sink, the inbox is used.
    """
    from syncengine.posted_time.audit import audit_project
    from syncengine.render import posted_time as rendering

    result, listing, targets = calling(
        options, lambda client, project: audit_project(client, project, os.environ, since)
    )
    say_incomplete(options, listing)
    for why in targets.unread.values():
        Output(options, options.folder).say(f"{why.rstrip('.')}; the inbox is used instead", level="warning")
    unread = sorted(targets.unread)
    show(options, format, rendering.audit_document(result, listing, unread), rendering.audit_text(result))
    if not result.agrees:
        return ExitCode.ERROR
    return ExitCode.DONE if listing.is_complete and not unread else ExitCode.INCOMPLETE


@command("pull", "syncengine time pull --limit 5\n# one small round")
@click.option(
    "--limit", type=WholeNumber(1), help="Fetch at most this many groups (default: postedTime.fetchLimit, or 25)."
)
@printing_command
def pull_time(options: Globals, format: str, limit: int | None) -> int:
    """Fetch posted time once, deliver it and acknowledge it. Waits up to a minute when there is none."""
    from syncengine.render.posted_time import pull_document, pull_text, troubles_of
    from syncengine.tools.pull_once import pull_once

    output = Output(options, options.folder)
    if sys.stderr.isatty():
        output.say("Fetching; without posted time, the service answers after up to a minute.")
    done = calling(options, lambda client, project: pull_once(client, project, limit, os.environ))
    troubles = list(troubles_of(done.events))
    for trouble in troubles if format == "text" else ():
        output.say(trouble, level="error")
    text = pull_text(done.groups, done.heard) if done.has_fetched else "Nothing was fetched.\n"
    show(options, format, pull_document(done.groups, done.heard, troubles, done.has_fetched), text)
    return ExitCode.DONE if done.is_well else ExitCode.INCOMPLETE
