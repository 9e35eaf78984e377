"""The `time` commands that call the service: list, register, unregister, audit and pull."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from syncengine.cli.help import command
from syncengine.cli.option_types import WholeNumber, since
from syncengine.cli.options import Globals
from syncengine.cli.output import Output, printing_command, show
from syncengine.cli.service import calling
from syncengine.errors import ExitCode, Interrupted, Usage
from syncengine.render.escape import visible
from syncengine.state.inbox_model import FETCH, MECHANISMS

if TYPE_CHECKING:
    from syncengine.posted_time.audit import Listing
    from syncengine.posted_time.events import Event
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
    from syncengine.render.posted_time import incompleteness

    for message in incompleteness(result):
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
    from syncengine.posted_time.events import Acknowledged, RetryLater, Taken, Unusable
    from syncengine.posted_time.loops import SINK
    from syncengine.render.posted_time import pull_document, pull_text, troubles_of
    from syncengine.state.inbox_model import PostedTimeStatus

    output = Output(options, options.folder)
    events: list[Event] = []
    if sys.stderr.isatty():
        output.say("Fetching; without posted time, the service answers after up to a minute.")
    has_fetched = calling(options, lambda client, project: _pulled(client, project, limit, events))
    groups = list({event.group_id: event for event in events if isinstance(event, Taken)}.values())
    heard = {event.group_id: event.status for event in events if isinstance(event, Acknowledged)}
    troubles = list(troubles_of(events))
    for trouble in troubles if format == "text" else ():
        output.say(trouble, level="error")
    text = pull_text(groups, heard) if has_fetched else "Nothing was fetched.\n"
    show(options, format, pull_document(groups, heard, troubles, has_fetched), text)
    is_well = all(
        event.verdict.outcome is not PostedTimeStatus.TROUBLE and event.group_id in heard for event in groups
    ) and not any(
        isinstance(event, Unusable) or (isinstance(event, RetryLater) and event.what in ("fetch", "take", SINK))
        for event in events
    )
    return ExitCode.DONE if is_well else ExitCode.INCOMPLETE


async def _pulled(client: Client, project: Project, limit: int | None, events: list[Event]) -> bool:
    """Fetch, deliver and acknowledge once; tell the service which sinks are down. Return whether time was fetched."""
    from syncengine.connector.connection import prove_team, stopping_on_signals
    from syncengine.connector.registration import HealthReporter, settings_of
    from syncengine.posted_time.delivery import Delivery
    from syncengine.posted_time.events import RetryLater
    from syncengine.posted_time.loops import pull
    from syncengine.project.delivery_schema import Mode
    from syncengine.state.connector import Mechanism, registered_mechanism, remember_mechanism
    from syncengine.state.holder import Holder

    section = project.posted_time
    if section is None:
        raise Usage("the project file has no `postedTime:`, so there is no sink: add one to deliver posted time")
    if section.mode is Mode.OFF:  # a fetch would start recording
        raise Usage("`postedTime.mode` is off, so nothing was fetched: `time pull` needs `mode: fetch`")
    if section.mode is Mode.WEBHOOK:
        raise Usage(
            "`postedTime.mode` is webhook: the service calls `syncengine serve`, so nothing was fetched;"
            " `time pull` needs `mode: fetch`"
        )
    await prove_team(client, project)
    stop, delivery = asyncio.Event(), Delivery.of(project, os.environ)

    def say(why: str) -> None:
        events.append(RetryLater("registration", why, 0.0))

    delivery.configure(await settings_of(client, time.time(), project.service.connector_type, say))
    with stopping_on_signals(stop):
        async with delivery:
            with delivery.inbox.lease(Holder.here("time pull", os.environ), wait=0):
                chosen, seconds = limit or section.fetch_limit, project.service.timeout
                has_fetched = await pull(client, delivery, chosen, tell=events.append, stop=stop, call_seconds=seconds)
                if delivery.reported or not delivery.is_cautious:  # a sink that is only in doubt tells nothing
                    reporter, failure = HealthReporter(client, delivery.inbox.database, time.time), delivery.reported
                    if await reporter.is_news(failure) and not (answer := await reporter.tell(failure)).ok:
                        why = f"the service rejected the health report: {answer.summary}"
                        events.append(RetryLater("health", why, 0.0))
    mechanism = Mechanism(FETCH, project.base_url())  # a fetch registers a fetch client (docs/interface.md 4)
    if has_fetched and await asyncio.to_thread(registered_mechanism, project.state) != mechanism:
        await asyncio.to_thread(remember_mechanism, project.state, mechanism)
    if stop.is_set():
        raise Interrupted("interrupted; the groups that were fetched are in the inbox")
    return has_fetched
