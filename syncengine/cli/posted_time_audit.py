"""time audit: what the service lists as posted, against what the sinks took."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from syncengine.cli.applying import Seconds
from syncengine.cli.options import Globals
from syncengine.cli.posted_time_service import say_incomplete
from syncengine.cli.printing import printing_command, show
from syncengine.cli.service import calling
from syncengine.errors import ExitCode

if TYPE_CHECKING:
    from syncengine.posted_time.audit import Audit
    from syncengine.posted_time.listing import Listing
    from syncengine.service.client import Client
    from syncengine.settings import Project


@click.command("audit")
@click.option("--since", type=Seconds(), metavar="DURATION", default="30d", show_default=True, help="How far back.")
@printing_command
def audit_time(given: Globals, format: str, since: float) -> int:
    """Compare what the service lists as posted with what the sinks took. Exit 1 where they differ."""
    from syncengine.render import posted_time as rendering

    found, listing = calling(given, lambda client, project: _audited(client, project, time.time() - since))
    say_incomplete(given, listing)
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
