"""time inbox, show, preview, retry, redeliver: what is in the inbox; and the group that all `time` commands are in."""

from __future__ import annotations

import asyncio
import os
import sys
import time as clock
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from syncengine.cli.data_output import printing_command, show
from syncengine.cli.help import Command, CommandEntry, TableGroup
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.errors import ExitCode, LockHeld, SyncengineError, Usage

if TYPE_CHECKING:
    from syncengine.posted_time.content_changes import ContentChange
    from syncengine.project.model import Project
    from syncengine.state.inbox import Inbox, InboxEntry

SERVICE = "syncengine.cli.time_service"


PARTS: Mapping[str, CommandEntry] = {
    "list": CommandEntry(SERVICE, "List all posted time that the service has.", "list_time"),
    "pull": CommandEntry("syncengine.cli.time_pull", "Fetch, deliver and acknowledge once.", "pull_time"),
    "inbox": CommandEntry(__name__, "Show what waits and what failed.", "show_inbox"),
    "show": CommandEntry(__name__, "Tell a group's whole story.", "show_group"),
    "retry": CommandEntry(__name__, "Deliver groups again where they are missing.", "retry"),
    "redeliver": CommandEntry(__name__, "Deliver to one sink again.", "redeliver"),
    "audit": CommandEntry(
        "syncengine.cli.time_audit", "Compare what the service lists with what sinks took.", "audit_time"
    ),
    "preview": CommandEntry(__name__, "Render everything, send nothing.", "preview"),
    "register": CommandEntry(SERVICE, "Have the service record posted time for us.", "register_time"),
    "unregister": CommandEntry(SERVICE, "End that.", "unregister_time"),
}


class TimeGroup(TableGroup):
    """The commands of this group."""

    table = PARTS


@click.group(cls=TimeGroup)
def time() -> None:
    """Inspect and deliver posted time by hand."""


class Moment(click.ParamType[float]):
    """A point in time, in seconds since epoch: so long ago (30d, 2h), or a date and time."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from syncengine.document.setting_types import duration

        if isinstance(value, float):
            return value
        ago = duration(str(value))
        if ago is not None:
            return clock.time() - ago
        try:
            return datetime.fromisoformat(str(value)).timestamp()
        except (ValueError, OverflowError):
            return self.fail(f"{value!r} is no moment: write 30d, 2h, or 2024-05-01T09:00:00Z", param, ctx)


# --- looking


@click.command("inbox", cls=Command)
@click.option("--state", "states", metavar="STATE", multiple=True, help="Only groups in this state (repeatable).")
@click.option("--user", metavar="NAME", help="Only groups of this user: name, e-mail or id.")
@click.option("--tag", metavar="NAME", help="Only groups with this tag.")
@click.option(
    "--since", type=Moment(), metavar="T", help="Only groups offered since then: 30d, 2h, or a date and time."
)
@printing_command
def show_inbox(given: Globals, format: str, states: Sequence[str], **chosen: Any) -> int:
    """List groups that wait or failed; with --state, the groups in that state."""
    from syncengine.render import inbox as rendering
    from syncengine.state.inbox import open_inbox

    _check_states(states)
    with open_inbox(given.project().state, write=False) as inbox:
        entries = inbox.entries(states=states, unsettled=not states, **chosen)
    return show(given, format, rendering.entries_document(entries), rendering.entries_text(entries))


def _check_states(states: Sequence[str]) -> None:
    from syncengine.state.inbox_states import GroupState

    unknown = [state for state in states if state not in list(GroupState)]
    if unknown:
        raise Usage(f"there is no state {unknown[0]!r}: {', '.join(GroupState)}")


@click.command("show", cls=Command)
@click.argument("group_id", metavar="GROUP_ID")
@printing_command
def show_group(given: Globals, format: str, group_id: str) -> int:
    """Show the story of a group: each offer, each attempt at each sink, each status sent."""
    from syncengine.render import inbox as rendering
    from syncengine.state.inbox import open_inbox

    with open_inbox(given.project().state, write=False) as inbox:
        entry, events = _known(inbox, group_id), inbox.story(group_id)
    return show(given, format, rendering.story_document(entry, events), rendering.story_text(entry, events))


@click.command("preview", cls=Command)
@click.argument("source", metavar="[FILE|GROUP_ID]", required=False)
@click.option("--sample", is_flag=True, help="Render a made-up group.")
@printing_command
def preview(given: Globals, format: str, source: str | None, sample: bool) -> int:
    """Render what every sink would get for a group, and send nothing. FILE is its JSON (`-` is stdin)."""
    from syncengine.posted_time.build_route import build
    from syncengine.posted_time.preview import SAMPLE
    from syncengine.posted_time.preview import preview as rehearsed
    from syncengine.render import inbox as rendering

    if sample == (source is not None):
        raise Usage("write FILE, GROUP_ID or --sample")
    project = given.project()
    raw = SAMPLE if sample else _read(given, project, source or "")
    built = build(project, os.environ, now=clock.time, offline=True)
    built.route.configuration = _remembered_settings(project)
    try:
        document = asyncio.run(rehearsed(built.route, raw))
    finally:
        built.databases.close()
    return show(given, format, {"format": rendering.PREVIEW_FORMAT, **document}, rendering.preview_text(document))


def _remembered_settings(project: Project) -> Mapping[str, Any]:
    """Those of the last registration; none where the state cannot be had: a rehearsal goes on without."""
    from syncengine.state.connector_settings import settings_in
    from syncengine.state.inbox import open_inbox

    try:
        with open_inbox(project.state, write=False) as inbox:
            return settings_in(inbox.database)
    except SyncengineError:
        return {}


def _read(given: Globals, project: Project, source: str) -> Mapping[str, Any]:
    """A group from a file, or from the inbox."""
    import orjson

    from syncengine.state.inbox import open_inbox

    file = given.folder / source
    try:
        text = sys.stdin.buffer.read() if source == "-" else file.read_bytes() if file.is_file() else None
    except OSError as error:
        raise SyncengineError(f"{source} cannot be read: {error.strerror}", code="unreadable-file") from None
    if text is None:
        with open_inbox(project.state, write=False) as inbox:
            return _known(inbox, source, f"{source} is neither a file nor a group in the inbox").raw()
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        place = f"{source}:{error.lineno}:{error.colno}"
        raise SyncengineError(f"{place}: this is not JSON: {error.msg}", code="bad-json") from None
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    if not isinstance(found, dict):
        raise SyncengineError(f"{source} must hold one posted time group: a JSON object", code="bad-json")
    return found


def _known(inbox: Inbox, group_id: str, unless: str | None = None) -> InboxEntry:
    """The group; SyncengineError with the sentence `unless` where there is none."""
    entry = inbox.entry(group_id)
    if entry is None:
        raise SyncengineError(unless or f"there is no group {group_id} in the inbox", code="unknown-group")
    return entry


# --- again

SELECTION_FORMAT = "syncengine.selection/v1"


class Act(StrEnum):
    """What was done with groups that were not delivered at once."""

    SETTLED = "settled"
    REHEARSED = "rehearsed"
    ASKED = "asked"


_ACTS: Mapping[Act, str] = {
    Act.SETTLED: "Settled",
    Act.REHEARSED: "Would deliver again",
    Act.ASKED: "Asked for",
}


@click.command("retry", cls=Command)
@click.argument("group_ids", metavar="GROUP_ID...", nargs=-1)
@click.option("--state", "states", metavar="STATE", multiple=True, help="All groups in this state (repeatable).")
@click.option("--accept", is_flag=True, help="Settle conflicts: the sinks are right, and the service is told SUCCESS.")
@printing_command
def retry(given: Globals, format: str, group_ids: Sequence[str], states: Sequence[str], accept: bool) -> int:
    """Deliver groups again to the sinks that lack them. The service is told by the next `time pull` or `serve`."""
    from syncengine.posted_time.content_changes import last_changes
    from syncengine.state.inbox import open_inbox
    from syncengine.state.inbox_states import GroupState

    if bool(group_ids) == bool(states):
        raise Usage("write GROUP_ID..., or --state")
    _check_states(states)
    with open_inbox(given.project().state, write=True) as inbox:
        entries = [_known(inbox, id) for id in group_ids] if group_ids else inbox.entries(states=states)
        conflicts = [entry for entry in entries if entry.state is GroupState.CONFLICT]
        if accept:
            changes = {entry.group_id: last_changes(entry, inbox.story(entry.group_id)) for entry in conflicts}
            inbox.settle(list(changes))
            return _say(given, format, list(changes), Act.SETTLED, changes)
        if conflicts and group_ids:
            _say_changes(given, last_changes(conflicts[0], inbox.story(conflicts[0].group_id)))
            raise SyncengineError(
                f"{conflicts[0].group_id} is a conflict: {conflicts[0].note}. Change the sink by hand, then --accept",
                code="conflict",
            )
        wanted = [entry.group_id for entry in entries if entry.state is not GroupState.CONFLICT]
        inbox.ask(wanted)
    return _again(given, format, wanted)


@click.command("redeliver", cls=Command)
@click.option("--sink", required=True, metavar="NAME", help="The sink that lost groups.")
@click.option(
    "--since", type=Moment(), required=True, metavar="T", help="Groups that it took since then: 30d, 2h, or a date."
)
@click.option("-y", "--auto-approve", is_flag=True, help="Deliver; without this option, only list the groups.")
@printing_command
def redeliver(given: Globals, format: str, sink: str, since: float, auto_approve: bool) -> int:
    """Deliver again to one sink what it took since T. A sink with receipts takes only the groups that it lacks."""
    from syncengine.state.inbox import open_inbox
    from syncengine.state.inbox_states import GroupState

    project = given.project()
    section = project.posted_time
    known = [part.name.text for part in (section.deliver if section else None) or ()]
    if sink not in known:
        raise Usage(f"there is no sink {sink!r}: {', '.join(known) or 'postedTime.deliver is empty'}")
    with open_inbox(project.state, write=auto_approve) as inbox:
        taken = [receipt.group_id for receipt in inbox.receipts(sink, since)]
        found = {id: inbox.entry(id) for id in taken}
        conflicts = [id for id, entry in found.items() if entry and entry.state is GroupState.CONFLICT]
        whole = [id for id, entry in found.items() if entry and entry.body and id not in conflicts]
        if auto_approve:
            inbox.ask(whole, sink)
    _say_left_out(Output(given, given.folder), len(found) - len(conflicts) - len(whole), conflicts)
    return _again(given, format, whole) if auto_approve else _say(given, format, whole, Act.REHEARSED)


def _say_left_out(output: Output, reduced: int, conflicts: Sequence[str]) -> None:
    if reduced:
        output.say(f"{reduced} are too old: only their receipts are left.")
    for id in conflicts:
        output.say(f"{id} is a conflict, and left out: `syncengine time retry {id} --accept` settles it.")


def _say_changes(given: Globals, changes: Sequence[ContentChange]) -> None:
    """What was offered again, against what the sinks have."""
    from syncengine.render.inbox import changes_lines

    output = Output(given, given.folder)
    for line in ("what was offered again differs from what was delivered:", *changes_lines(changes)) if changes else ():
        output.say(line)


def _say(
    given: Globals,
    format: str,
    ids: Sequence[str],
    act: Act,
    changes: Mapping[str, Sequence[ContentChange]] = MappingProxyType({}),
) -> int:
    """`changes`: by group, what a person settled; in the document only where there are any."""
    from syncengine.render.escape import visible
    from syncengine.render.inbox import changes_document, changes_lines
    from syncengine.render.words import counted

    lines = (line for id in ids for line in (f"  {visible(id)}", *changes_lines(changes.get(id, ()))))
    text = "".join(f"{line}\n" for line in lines)
    document: dict[str, Any] = {"format": SELECTION_FORMAT, "act": act.value, "groups": list(ids)}
    if settled := {id: changes_document(found) for id, found in changes.items() if found}:
        document["changes"] = settled
    return show(given, format, document, f"{_ACTS[act]}: {counted(len(ids), 'group')}.\n{text}")


def _again(given: Globals, format: str, ids: Sequence[str]) -> int:
    """Deliver now, or leave it to the process that holds the inbox."""
    from syncengine.cli.service_call import service_settings
    from syncengine.posted_time.delivery import Delivery
    from syncengine.render import inbox as rendering
    from syncengine.state.inbox import Holder

    project = given.project()
    delivery = Delivery.of(project, os.environ)

    async def delivering() -> list[InboxEntry]:
        async with delivery:
            with delivery.inbox.lease(Holder.here("time retry", os.environ), wait=0):
                if ids:
                    delivery.configure(await asyncio.to_thread(service_settings, given))
                for id in ids:
                    await delivery.again(id)
                return [entry for id in ids if (entry := delivery.inbox.entry(id))]

    try:
        entries = asyncio.run(delivering())
    except LockHeld as held:
        Output(given, project.root).say(f"{held.message}: it delivers them in its next round.")
        return _say(given, format, ids, Act.ASKED)
    failed = any(not entry.is_delivered or entry.has_trouble for entry in entries)
    show(given, format, rendering.entries_document(entries), rendering.entries_text(entries))
    return ExitCode.INCOMPLETE if failed else ExitCode.DONE
