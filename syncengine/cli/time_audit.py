"""time audit: compare the posted time that the service lists with the deliveries to sinks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from syncengine.cli.data_output import printing_command, show
from syncengine.cli.help import Command
from syncengine.cli.moment import PastTime
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.cli.service_call import calling
from syncengine.cli.time_service import say_incomplete
from syncengine.errors import ExitCode

if TYPE_CHECKING:
    from syncengine.posted_time.audit import Audit, Listing, Targets
    from syncengine.project.model import Project
    from syncengine.service.client import Client


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
    from syncengine.posted_time.audit import AuditReceipt, Known, Listed, ask_targets, audit, listing
    from syncengine.posted_time.group import read_group
    from syncengine.service.posted_time import group_id, submitted
    from syncengine.state.inbox import open_inbox

    sinks = {sink.name.text: sink.when is None for sink in (project.posted_time and project.posted_time.deliver) or ()}
    each_tag = {sink.name.text for sink in (project.posted_time and project.posted_time.deliver) or () if sink.each}
    targets = await ask_targets(project, os.environ)
    receipts = [one for signed in targets.by_sink.values() for one in signed]
    with open_inbox(project.state, write=False) as inbox:
        for sink in sinks.keys() - targets.by_sink.keys():
            receipts += [AuditReceipt(r.group_id, r.sink, r.at, r.external_id) for r in inbox.receipts(sink, 0.0)]
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
