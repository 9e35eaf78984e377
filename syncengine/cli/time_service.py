"""The `time` commands that call the service: list, register, unregister, audit and pull."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from syncengine.cli.help import Command
from syncengine.cli.option_types import PastTime
from syncengine.cli.options import Globals
from syncengine.cli.output import Output, printing_command, show
from syncengine.cli.service import calling
from syncengine.errors import ExitCode, Interrupted, Usage
from syncengine.render.escape import visible
from syncengine.state.inbox_model import FETCH, MECHANISMS

if TYPE_CHECKING:
    from syncengine.posted_time.audit import Audit, Listing, Targets
    from syncengine.posted_time.delivery import Delivery
    from syncengine.posted_time.events import Event, Taken
    from syncengine.project.delivery_schema import PostedTimeSection
    from syncengine.project.model import Project
    from syncengine.render.posted_time import PullFormat
    from syncengine.service.client import Client


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
    from syncengine.render.posted_time import MechanismFormat

    messages: list[str] = []
    name = calling(options, lambda client, project: _registered(client, project, mechanism, messages))
    document = MechanismFormat(registered=name, messages=messages)
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
    from syncengine.render.posted_time import MechanismFormat

    messages: list[str] = []
    name, ended = calling(options, lambda client, project: _unregistered(client, project, mechanism, messages))
    text = _sentences(messages if ended else [f"there was no {name} to unregister", *messages])
    document = MechanismFormat(unregistered=name if ended else None, messages=messages)
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


@click.command("audit", cls=Command, epilog="syncengine time audit --since 30d\n# find groups that a sink lacks")
@click.option(
    "--since",
    type=PastTime(),
    metavar="T",
    default="30d",
    show_default=True,
    help="Compare the time submitted since T: 7d or 36h ago, or a UTC date or time.",
)
@printing_command
def audit_time(options: Globals, format: str, since: float) -> int:
    """Compare the posted time on the service with the groups that the sinks took. Exit 1 if they differ.

    Receipts are read from the databases that keep them; for any other sink, the inbox is used.
    """
    from syncengine.render import posted_time as rendering

    result, listing, targets = calling(options, lambda client, project: _audited(client, project, since))
    say_incomplete(options, listing)
    for why in targets.unread.values():
        Output(options, options.folder).say(f"{why.rstrip('.')}; the inbox is used instead", level="warning")
    unread = sorted(targets.unread)
    show(options, format, rendering.audit_document(result, listing, unread), rendering.audit_text(result))
    if not result.agrees:
        return ExitCode.ERROR
    return ExitCode.DONE if listing.is_complete and not unread else ExitCode.INCOMPLETE


async def _audited(client: Client, project: Project, since: float) -> tuple[Audit, Listing, Targets]:
    from syncengine.posted_time.audit import Known, Listed, ask_targets, audit, listing
    from syncengine.posted_time.group import read_group
    from syncengine.service.posted_time import group_id, submitted
    from syncengine.state.inbox import open_inbox

    sinks = {sink.name.text: sink.when is None for sink in (project.posted_time and project.posted_time.deliver) or ()}
    each_tag = {sink.name.text for sink in (project.posted_time and project.posted_time.deliver) or () if sink.each}
    targets = await ask_targets(project, os.environ)
    receipts = [one for signed in targets.by_sink.values() for one in signed]
    with open_inbox(project.state, write=False) as inbox:
        for sink in sinks.keys() - targets.by_sink.keys():
            receipts += inbox.receipts(sink, 0.0)
        entries = {
            entry.group_id: Known(entry.state, entry.outcome, frozenset(delivery.sink for delivery in entry.deliveries))
            for entry in inbox.entries()
        }
    unseen = {receipt.group_id for receipt in receipts if receipt.at >= since}

    def enough(group: Mapping[str, Any]) -> bool:
        at = submitted(group)
        if at is not None and at < since * 1000 and not unseen:
            return True
        unseen.discard(group_id(group) or "")
        return False

    whole = await listing(client, enough)
    groups = [
        Listed(
            group_id(group) or "",
            str(group["status"]) if group.get("status") else None,
            submitted(group),
            tuple(tag.name for tag in read_group(group).tags),
        )
        for group in whole.groups
    ]
    return audit(groups, receipts, sinks, entries, since, each_tag), whole, targets


@click.command("pull", cls=Command, epilog="syncengine time pull --limit 5\n# one small round")
@click.option("--limit", type=int, help="Fetch at most this many groups (default: postedTime.fetchLimit, or 25).")
@printing_command
def pull_time(options: Globals, format: str, limit: int | None) -> int:
    """Fetch posted time once, deliver it and acknowledge it. Waits up to a minute when there is none."""
    from syncengine.posted_time.events import Acknowledged, RetryLater, Taken, Unusable
    from syncengine.posted_time.loops import SINK
    from syncengine.service.posted_time import fetch_query
    from syncengine.state.inbox_model import PostedTimeStatus

    fetch_query(limit)
    events: list[Event] = []
    if sys.stderr.isatty():
        Output(options, options.folder).say("Fetching; without posted time, the service answers after up to a minute.")
    has_fetched = calling(options, lambda client, project: _pulled(client, project, limit, events))
    groups = list({event.group_id: event for event in events if isinstance(event, Taken)}.values())
    heard = {event.group_id: event.status for event in events if isinstance(event, Acknowledged)}
    if format == "text":
        for trouble in _troubles(events):
            Output(options, options.folder).say(trouble, level="error")
    text = _text(groups, heard) if has_fetched else "Nothing was fetched.\n"
    show(options, format, _document(groups, heard, events, has_fetched), text)
    all_well = all(
        event.verdict.outcome is not PostedTimeStatus.TROUBLE and event.group_id in heard for event in groups
    )
    went_wrong = any(
        isinstance(event, Unusable) or (isinstance(event, RetryLater) and event.what in ("fetch", "take", SINK))
        for event in events
    )
    return ExitCode.DONE if all_well and not went_wrong else ExitCode.INCOMPLETE


async def _pulled(client: Client, project: Project, limit: int | None, events: list[Event]) -> bool:
    from syncengine.connector.connection import prove_team, stopping_on_signals
    from syncengine.connector.registration import settings_of
    from syncengine.posted_time.delivery import Delivery
    from syncengine.posted_time.events import RetryLater
    from syncengine.posted_time.loops import pull
    from syncengine.state.holder import Holder
    from syncengine.state.inbox_model import FETCH

    section = _section(project)
    await prove_team(client, project)
    stop = asyncio.Event()
    delivery = Delivery.of(project, os.environ)

    def say(why: str) -> None:
        events.append(RetryLater("registration", why, 0.0))

    delivery.configure(await settings_of(client, time.time(), project.service.connector_type, say))
    with stopping_on_signals(stop):
        async with delivery:
            with delivery.inbox.lease(Holder.here("time pull", os.environ), wait=0):
                chosen, seconds = limit or section.fetch_limit, project.service.timeout
                has_fetched = await pull(client, delivery, chosen, tell=events.append, stop=stop, call_seconds=seconds)
                await _tell_health(client, delivery, events)
    if has_fetched:
        await asyncio.to_thread(_remember, project, FETCH)
    if stop.is_set():
        raise Interrupted("interrupted; the groups that were fetched are in the inbox")
    return has_fetched


def _section(project: Project) -> PostedTimeSection:
    """Return the project's `postedTime`. Raise `Usage` when its mode is not fetch: a fetch would start recording."""
    from syncengine.project.delivery_schema import Mode

    section = project.posted_time
    if section is None:
        raise Usage("the project file has no `postedTime:`, so there is no sink: add one to deliver posted time")
    if section.mode is Mode.OFF:
        raise Usage("`postedTime.mode` is off, so nothing was fetched: `time pull` needs `mode: fetch`")
    if section.mode is Mode.WEBHOOK:
        raise Usage(
            "`postedTime.mode` is webhook: the service calls `syncengine serve`, so nothing was fetched;"
            " `time pull` needs `mode: fetch`"
        )
    return section


async def _tell_health(client: Client, delivery: Delivery, events: list[Event]) -> None:
    """Report to the service which sinks are down, or that all work again. Report nothing when one is only in doubt."""
    from syncengine.connector.registration import HealthReporter
    from syncengine.posted_time.events import RetryLater

    if delivery.is_cautious and not delivery.reported:
        return
    reporter = HealthReporter(client, delivery.inbox.database, time.time)
    if await reporter.is_news(delivery.reported) and not (answer := await reporter.tell(delivery.reported)).ok:
        events.append(RetryLater("health", f"the service rejected the health report: {answer.summary}", 0.0))


def _remember(project: Project, name: str) -> None:
    """Record the mechanism in the state: a fetch implicitly registers a fetch client (docs/interface.md 4)."""
    from syncengine.state.connector import Mechanism, registered_mechanism, remember_mechanism

    mechanism = Mechanism(name, project.base_url())
    if registered_mechanism(project.state) != mechanism:
        remember_mechanism(project.state, mechanism)


def _troubles(events: list[Event]) -> Iterator[str]:
    """Yield a message for each failure among `events`."""
    from syncengine.posted_time.events import GivenUp, RetryLater, Unusable

    for event in events:
        match event:
            case RetryLater(what, why, _):
                yield f"{what}: {why}"
            case Unusable(why):
                yield why
            case GivenUp(group_id, why):
                yield f"{group_id}: {why}"


def _document(groups: list[Taken], heard: Mapping[str, str], events: list[Event], has_fetched: bool) -> PullFormat:
    from syncengine.render.posted_time import AcknowledgedItem, PulledItem, PullFormat

    pulled = []
    for event in groups:
        verdict, is_heard = event.verdict, event.group_id in heard
        pulled.append(PulledItem(event.group_id, verdict.outcome, verdict.message, verdict.external_id, is_heard))
    acknowledged = [AcknowledgedItem(id, status) for id, status in heard.items()]
    return PullFormat(has_fetched, pulled, acknowledged, list(_troubles(events)))


def _text(groups: list[Taken], heard: Mapping[str, str]) -> str:
    if not groups:
        return "There is no posted time to fetch.\n"
    lines = []
    for event in groups:
        words = f": {visible(event.verdict.message)}" if event.verdict.message else ""
        remark = "" if event.group_id in heard else " (not acknowledged yet)"
        lines.append(f"{visible(event.group_id)}  {event.verdict.outcome.value}{words}{remark}\n")
    return "".join(lines)
