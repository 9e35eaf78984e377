"""time list, pull, register, unregister, audit: posted time by hand, as far as the service is asked."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from syncengine.cli.applying import Seconds
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.cli.printing import printing_command, show
from syncengine.cli.service import calling
from syncengine.errors import ExitCode, Interrupted, Usage
from syncengine.render.visible import visible

if TYPE_CHECKING:
    from syncengine.posted_time.audit import Audit
    from syncengine.posted_time.events import Event
    from syncengine.posted_time.listing import Listing
    from syncengine.service.client import Client
    from syncengine.settings import Project

MECHANISMS = ("fetch", "webhook")


# --- list


@click.command("list")
@click.option("--since", type=Seconds(), metavar="DURATION", help="Only what was submitted so long ago at most.")
@click.option("--limit", type=int, default=500, show_default=True, help="Groups a request, from 1 to 500.")
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
    _say_incomplete(given, found)
    show(given, format, rendering.listing_document(found), rendering.listing_text(found))
    return ExitCode.DONE if found.is_complete else ExitCode.INCOMPLETE


def _say_incomplete(given: Globals, found: Listing) -> None:
    from syncengine.render.posted_time import incompleteness

    for message in incompleteness(found):
        Output(given, given.folder).say(message, level="warning")


# --- pull


@click.command("pull")
@click.option("--limit", type=int, help="Fetch so many groups at most (default: postedTime.fetchLimit, or 25).")
@printing_command
def pull_time(given: Globals, format: str, limit: int | None) -> int:
    """Fetch once, deliver what comes, and acknowledge it. Waits up to a minute when there is nothing."""
    from syncengine.posted_time.events import Acknowledged, Taken, Unusable, Waiting
    from syncengine.posted_time.verdict import Outcome
    from syncengine.service.posted_time import fetch_query

    fetch_query(limit)
    told: list[Event] = []
    calling(given, lambda client, project: _pulled(client, project, limit, told))
    taken = [event for event in told if isinstance(event, Taken)]
    heard = {event.group_id: event.status for event in told if isinstance(event, Acknowledged)}
    if format == "text":
        for trouble in _troubles(told):
            Output(given, given.folder).say(trouble, level="error")
    document = {
        "groups": [
            {
                "groupId": event.group_id,
                "status": event.verdict.outcome.value,
                "message": event.verdict.message,
                "externalId": event.verdict.external_id,
                "acknowledged": event.group_id in heard,
            }
            for event in taken
        ],
        "acknowledged": [{"groupId": id, "status": status} for id, status in heard.items()],
        "troubles": list(_troubles(told)),
    }
    show(given, format, document, _pull_text(taken, heard))
    all_well = all(event.verdict.outcome is not Outcome.TROUBLE and event.group_id in heard for event in taken)
    went_wrong = any(
        isinstance(event, Unusable) or (isinstance(event, Waiting) and event.what in ("fetch", "take"))
        for event in told
    )
    return ExitCode.DONE if all_well and not went_wrong else ExitCode.INCOMPLETE


async def _pulled(client: Client, project: Project, limit: int | None, told: list[Event]) -> None:
    from syncengine.connection import stopping_on_signals, team_of
    from syncengine.connector import register
    from syncengine.posted_time.delivery import Delivery
    from syncengine.posted_time.mechanism import FETCH
    from syncengine.posted_time.pull import pull
    from syncengine.store.holder import Holder

    section = project.posted_time
    if section is None:
        raise Usage("the project file has no `postedTime:`, so that there is no sink for posted time")
    await team_of(client)
    stop = asyncio.Event()
    delivery = Delivery.of(project, os.environ)
    delivery.configure((await register(client, time.time())).configuration)
    with stopping_on_signals(stop):
        async with delivery:
            with delivery.inbox.lease(Holder.here("time pull", os.environ), wait=0):
                chosen = limit or section.fetch_limit
                await pull(client, delivery, chosen, tell=told.append, stop=stop, call_seconds=project.service.timeout)
    await asyncio.to_thread(_remember, project, FETCH)
    if stop.is_set():
        raise Interrupted("interrupted; what was taken is in the inbox")


def _remember(project: Project, name: str) -> None:
    """A fetch registers a fetch client by itself (specification §4)."""
    from syncengine.store.mechanism import Mechanism, registered, remember

    mechanism = Mechanism(name, project.base_url())
    if registered(project.state) != mechanism:
        remember(project.state, mechanism)


def _troubles(told: list[Event]) -> Iterator[str]:
    """What went wrong, in sentences."""
    from syncengine.posted_time.events import GivenUp, Unusable, Waiting

    for event in told:
        match event:
            case Waiting(what, why, _):
                yield f"{what}: {why}"
            case Unusable(why):
                yield why
            case GivenUp(group_id, why):
                yield f"{group_id}: {why}"


def _pull_text(taken: list[Any], heard: Mapping[str, str]) -> str:
    if not taken:
        return "There is no posted time to fetch.\n"
    lines = []
    for event in taken:
        words = f": {visible(event.verdict.message)}" if event.verdict.message else ""
        known = "" if event.group_id in heard else " (the service was not told yet)"
        lines.append(f"{visible(event.group_id)}  {event.verdict.outcome.value}{words}{known}\n")
    return "".join(lines)


# --- register, unregister


@click.command("register")
@click.argument("mechanism", required=False, type=click.Choice(MECHANISMS))
@printing_command
def register_time(given: Globals, format: str, mechanism: str | None) -> int:
    """Have posted time recorded for this connector, by fetch or webhook (default: what the project file says).

    The other one of the two is unregistered first, if this project registered it.
    """
    said: list[str] = []
    name = calling(given, lambda client, project: _registered(client, project, mechanism, said))
    text = "".join(f"{line[0].upper()}{visible(line[1:])}.\n" for line in said)
    return show(given, format, {"registered": name}, text)


async def _registered(client: Client, project: Project, name: str | None, said: list[str]) -> str:
    from syncengine.posted_time.mechanism import FETCH, Registrar, callback_of

    chosen = name or _mode(project)
    registrar = Registrar(client, project.state, project.base_url(), said.append)
    if chosen == FETCH:
        await registrar.fetch()
    else:
        await registrar.webhook(callback_of(project, os.environ))
    return chosen


@click.command("unregister")
@click.argument("mechanism", required=False, type=click.Choice(MECHANISMS))
@printing_command
def unregister_time(given: Globals, format: str, mechanism: str | None) -> int:
    """Have no more posted time recorded. What users post while nothing is registered never comes here."""
    name, ended = calling(given, lambda client, project: _unregistered(client, project, mechanism))
    text = f"The {name} is unregistered.\n" if ended else f"There was no {name} to unregister.\n"
    return show(given, format, {"unregistered": name if ended else None}, text)


async def _unregistered(client: Client, project: Project, name: str | None) -> tuple[str, bool]:
    from syncengine.posted_time.mechanism import NAMES, Registrar
    from syncengine.store.mechanism import registered

    known = registered(project.state)
    chosen = name or (known.name if known else _mode(project))
    ended = await Registrar(client, project.state, project.base_url(), lambda _: None).end(chosen)
    return NAMES[chosen], ended


def _mode(project: Project) -> str:
    mode = project.posted_time.mode.value if project.posted_time and project.posted_time.mode else "fetch"
    if mode not in MECHANISMS:
        raise Usage("`postedTime.mode` is off: say `fetch` or `webhook`")
    return mode


# --- audit


@click.command("audit")
@click.option("--since", type=Seconds(), metavar="DURATION", default="30d", show_default=True, help="How far back.")
@printing_command
def audit_time(given: Globals, format: str, since: float) -> int:
    """Compare what the service lists as posted with what the sinks took. Exit 1 where they differ."""
    from syncengine.render import posted_time as rendering

    found, listing = calling(given, lambda client, project: _audited(client, project, time.time() - since))
    _say_incomplete(given, listing)
    show(given, format, rendering.audit_document(found, listing), rendering.audit_text(found))
    if not found.agrees:
        return ExitCode.ERROR
    return ExitCode.DONE if listing.is_complete else ExitCode.INCOMPLETE


async def _audited(client: Client, project: Project, since: float) -> tuple[Audit, Listing]:
    from syncengine.posted_time.audit import Known, Listed, Taken, audit
    from syncengine.posted_time.listing import listing
    from syncengine.service.posted_time import group_id, submitted
    from syncengine.store.inbox import open_inbox

    sinks = {sink.name.text: sink.when is None for sink in (project.posted_time and project.posted_time.deliver) or ()}
    with open_inbox(project.state, write=False) as inbox:
        taken = [Taken(r.group_id, r.sink, r.at, r.external_id) for sink in sinks for r in inbox.receipts(sink, 0.0)]
        known = {
            entry.group_id: Known(entry.state, entry.outcome, frozenset(made.sink for made in entry.deliveries))
            for entry in inbox.entries()
        }
    unseen = {receipt.group_id for receipt in taken if receipt.at >= since}

    def enough(group: Mapping[str, Any]) -> bool:
        at = submitted(group)
        if at is not None and at < since * 1000 and not unseen:
            return True
        unseen.discard(group_id(group) or "")
        return False

    whole = await listing(client, enough)
    groups = [
        Listed(group_id(group) or "", str(group["status"]) if group.get("status") else None, submitted(group))
        for group in whole.groups
    ]
    return audit(groups, taken, sinks, known, since), whole
