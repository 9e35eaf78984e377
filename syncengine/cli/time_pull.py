"""time pull: fetch, deliver and acknowledge posted time once, by hand."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from syncengine.cli.data_output import printing_command, show
from syncengine.cli.help import Command
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.cli.service_call import calling
from syncengine.errors import ExitCode, Interrupted, Usage
from syncengine.render.escape import visible

if TYPE_CHECKING:
    from syncengine.posted_time.delivery import Delivery
    from syncengine.posted_time.events import Event, Taken
    from syncengine.project.delivery_schema import PostedTimeSection
    from syncengine.project.model import Project
    from syncengine.service.client import Client


PULL_FORMAT = "syncengine.pull/v1"


@click.command("pull", cls=Command, epilog="syncengine time pull --limit 5\n# one small round")
@click.option("--limit", type=int, help="Fetch at most this many groups (default: postedTime.fetchLimit, or 25).")
@printing_command
def pull_time(options: Globals, format: str, limit: int | None) -> int:
    """Fetch posted time once, deliver it and acknowledge it. Waits up to a minute when there is none."""
    from syncengine.posted_time.events import Acknowledged, RetryLater, Taken, Unusable
    from syncengine.posted_time.pull import SINK
    from syncengine.posted_time.verdict import PostedTimeStatus
    from syncengine.service.posted_time import fetch_query

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
    from syncengine.posted_time.pull import pull
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


def _document(groups: list[Taken], heard: Mapping[str, str], events: list[Event], has_fetched: bool) -> dict[str, Any]:
    return {
        "format": PULL_FORMAT,
        "fetched": has_fetched,
        "groups": [
            {
                "groupId": event.group_id,
                "status": event.verdict.outcome.value,
                "message": event.verdict.message,
                "externalId": event.verdict.external_id,
                "acknowledged": event.group_id in heard,
            }
            for event in groups
        ],
        "acknowledged": [{"groupId": id, "status": status} for id, status in heard.items()],
        "troubles": list(_troubles(events)),
    }


def _text(groups: list[Taken], heard: Mapping[str, str]) -> str:
    if not groups:
        return "There is no posted time to fetch.\n"
    lines = []
    for event in groups:
        words = f": {visible(event.verdict.message)}" if event.verdict.message else ""
        remark = "" if event.group_id in heard else " (not acknowledged yet)"
        lines.append(f"{visible(event.group_id)}  {event.verdict.outcome.value}{words}{remark}\n")
    return "".join(lines)
