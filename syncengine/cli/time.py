"""The `time` commands: those of the inbox, and those that call the service."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time as clock
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from syncengine.cli.help import TableGroup, command
from syncengine.cli.option_types import WholeNumber, since
from syncengine.cli.options import Globals, group_with_globals
from syncengine.cli.output import Output, printing, printing_command, show
from syncengine.cli.service import calling
from syncengine.cli.streams import standard_input
from syncengine.errors import ExitCode, LockHeld, SyncengineError, Usage
from syncengine.render.escape import visible
from syncengine.state.inbox_model import FETCH, MECHANISMS

if TYPE_CHECKING:
    from syncengine.posted_time.audit import Listing
    from syncengine.posted_time.group import ContentChange
    from syncengine.project.model import Project
    from syncengine.service.client import Client
    from syncengine.state.inbox import Inbox
    from syncengine.state.inbox_model import InboxEntry


PARTS: Mapping[str, tuple[str, str]] = {
    "list": ("time.list_time", "List all posted time that the service has."),
    "pull": ("time.pull_time", "Fetch posted time, deliver and acknowledge it, once."),
    "inbox": ("time.show_inbox", "List the groups that are waiting or have failed."),
    "show": ("time.show_group", "Show the history of a group."),
    "retry": ("time.retry", "Deliver groups again to the sinks that lack them."),
    "audit": ("time.audit_time", "Compare posted time with the deliveries."),
    "preview": ("time.preview", "Render the deliveries of a group, and send nothing."),
    "export": ("time.export_time", "Print what the sinks took, as a table."),
    "register": ("time.register_time", "Start recording posted time for this connector."),
    "unregister": ("time.unregister_time", "Stop recording posted time."),
}


class TimeGroup(TableGroup):
    """The group of commands in `PARTS`."""

    sections = MappingProxyType({"Commands": PARTS})


@click.group(cls=TimeGroup, epilog="syncengine time inbox\n# groups that are waiting or have failed")
@group_with_globals
def time() -> None:
    """Inspect and deliver posted time by hand."""


# --- looking


@command("inbox", "syncengine time inbox --user 'Jane Doe'\n# the groups of one person")
@click.option("--state", "states", metavar="STATE", multiple=True, help="Only groups in this state (repeatable).")
@click.option("--user", metavar="NAME", help="Only groups of this user: name, e-mail or id.")
@click.option("--tag", metavar="NAME", help="Only groups with this tag.")
@since("Only groups offered since")
@printing_command
def show_inbox(options: Globals, format: str, states: Sequence[str], **chosen: Any) -> int:
    """List the groups that are waiting or have failed. With --state, list the groups in these states."""
    from syncengine.render import posted_time as rendering
    from syncengine.state.inbox import open_inbox

    _check_states(states)
    with open_inbox(options.project().state, write=False) as inbox:
        entries = inbox.entries(states=states, unsettled=not states, **chosen)
    return show(options, format, rendering.entries_document(entries), rendering.entries_text(entries))


def _check_states(states: Sequence[str]) -> None:
    from syncengine.state.inbox_model import GroupState

    unknown = [state for state in states if state not in list(GroupState)]
    if unknown:
        raise Usage(f"there is no state {unknown[0]!r}: choose from {', '.join(GroupState)}")


@command("show", "syncengine time show 4c1d9e\n# the history of one group")
@click.argument("group_id", metavar="GROUP_ID")
@printing_command
def show_group(options: Globals, format: str, group_id: str) -> int:
    """Show the history of a group: each offer, each attempt at each sink, each status sent."""
    from syncengine.render import posted_time as rendering
    from syncengine.state.inbox import open_inbox

    with open_inbox(options.project().state, write=False) as inbox:
        entry, events = _group_entry(inbox, group_id), inbox.story(group_id)
    return show(options, format, rendering.story_document(entry, events), rendering.story_text(entry, events))


@command("preview", "syncengine time preview --sample\n# render the deliveries of a sample group")
@click.argument("source", metavar="[FILE|GROUP_ID]", required=False)
@click.option("--sample", is_flag=True, help="Render a sample group.")
@printing_command
def preview(options: Globals, format: str, source: str | None, sample: bool) -> int:
    """Render the delivery of a group to every sink, and send nothing.

    FILE contains the group as JSON (`-` is stdin).
    """
    from msgspec import convert

    from syncengine.posted_time.build_route import build, warnings_of_sinks
    from syncengine.render import posted_time as rendering
    from syncengine.state.connector import settings_in
    from syncengine.state.inbox import open_inbox
    from syncengine.tools.posted_time import SAMPLE
    from syncengine.tools.posted_time import preview as rehearsed

    if sample == (source is not None):
        raise Usage("give one of FILE, GROUP_ID and --sample")
    project = options.project()
    Output(options, project.root).diagnostics(warnings_of_sinks(project))
    raw = SAMPLE if sample else _read(options, project, source or "")
    built = build(project, os.environ, now=clock.time, offline=True)
    with suppress(SyncengineError), open_inbox(project.state, write=False) as inbox:  # without a state, there are none
        built.route.configuration = settings_in(inbox.database)
    try:
        document = asyncio.run(rehearsed(built.route, raw))
    finally:
        built.databases.close()
    shown = convert(document, rendering.PreviewFormat)
    return show(options, format, shown, rendering.preview_text(shown))


def _read(options: Globals, project: Project, source: str) -> Mapping[str, Any]:
    """Return the group in the file `source` (`-` is stdin), or the group with this id from the inbox."""
    from syncengine.document.json_text import InvalidJson
    from syncengine.service.answers import read_loosely
    from syncengine.state.inbox import open_inbox

    file = options.folder / source
    try:
        is_file = os.path.isfile(file)  # noqa: PTH113 - `file.is_file()` raises for an id too long to be a file's name
        text = standard_input() if source == "-" else file.read_bytes() if is_file else None
    except OSError as error:
        raise SyncengineError(f"{source} cannot be read: {error.strerror}", code="unreadable-file") from None
    if text is None:
        with open_inbox(project.state, write=False) as inbox:
            return _group_entry(inbox, source, f"{source} is neither a file nor a group in the inbox").raw()
    try:
        group = read_loosely(text)  # as `serve` reads what the service sends
    except InvalidJson:
        raise SyncengineError(f"{source}{_place_in(text)}: this is not JSON", code="bad-json") from None
    if isinstance(group, list) and len(group) == 1:
        group = group[0]
    if not isinstance(group, dict):
        raise SyncengineError(f"{source} must contain one group of posted time, as a JSON object", code="bad-json")
    return group


def _place_in(text: bytes) -> str:
    """Return the line and the column at which a text stops being JSON, as the end of a file's name, if it is known."""
    try:
        json.loads(text, strict=False)  # of all readers of JSON it alone tells the place
    except json.JSONDecodeError as error:
        return f":{error.lineno}:{error.colno}"
    except (ValueError, RecursionError):
        pass
    return ""


def _group_entry(inbox: Inbox, group_id: str, unless: str | None = None) -> InboxEntry:
    """Return the group with this id. Raise `SyncengineError`, with the message `unless` if given, if there is none."""
    entry = inbox.entry(group_id)
    if entry is None:
        raise SyncengineError(unless or f"there is no group {group_id} in the inbox", code="unknown-group")
    return entry


# --- again


ACTS: Mapping[str, str] = {"settled": "Settled", "rehearsed": "Would deliver again", "asked": "Queued"}
"""What happened to groups that are selected but not delivered by this command, as the document and as the text say."""


@command(
    "retry",
    "syncengine time retry 4c1d9e\n# deliver one group to the sinks that lack it\n"
    "syncengine time retry --sink ledger --since 2d\n# list the groups to deliver again to a restored ledger",
)
@click.argument("group_ids", metavar="[GROUP_ID]...", nargs=-1)
@click.option("--state", "states", metavar="STATE", multiple=True, help="All groups in this state (repeatable).")
@click.option(
    "--accept", is_flag=True, help="Settle conflicts: keep the content of the sinks, and report SUCCESS to the service."
)
@click.option("--sink", metavar="NAME", help="With --since: all groups that this sink took, to that sink once more.")
@since("Only groups that --sink took, or that were offered, since")
@click.option(
    "-y", "--auto-approve", is_flag=True, help="With --sink: deliver the groups. Without it, they are only listed."
)
@printing_command
def retry(
    options: Globals,
    format: str,
    group_ids: Sequence[str],
    states: Sequence[str],
    accept: bool,
    sink: str | None,
    since: float | None,
    auto_approve: bool,
) -> int:
    """Deliver groups again to the sinks that lack them, or to one that lost them.

    Give GROUP_ID..., --state, or --sink with --since for a sink that was restored from a backup: one with receipts
    takes only the groups that it lacks. The next `time pull` or `serve` reports the result to the service.
    """
    if [bool(group_ids), bool(states), sink is not None].count(True) != 1:
        raise Usage("give one of GROUP_ID..., --state STATE, and --sink NAME with --since T")
    if sink is not None:
        if since is None or accept:
            raise Usage("--sink cannot be combined with --accept" if accept else "--sink NAME needs --since T")
        return _again_to(options, format, sink, since, auto_approve)
    if auto_approve or (since is not None and group_ids):
        raise Usage("-y needs --sink NAME" if auto_approve else "--since needs --state or --sink")
    return _retry(options, format, group_ids, states, since, accept)


def _retry(
    options: Globals, format: str, group_ids: Sequence[str], states: Sequence[str], since: float | None, accept: bool
) -> int:
    """Deliver groups to the sinks that lack them, or settle the conflicts among them."""
    from syncengine.posted_time.group import last_changes
    from syncengine.render.posted_time import changes_lines
    from syncengine.state.inbox import open_inbox
    from syncengine.tools.posted_time import in_conflict, selected, settle

    _check_states(states)
    project, output = options.project(), Output(options, options.folder)
    with open_inbox(project.state, write=True) as inbox:
        if group_ids:
            entries = [_group_entry(inbox, id) for id in group_ids]
        else:
            entries = inbox.entries(states=states, since=since)
        if accept:
            changes = settle(inbox, entries)
            settled = [entry for id in changes if (entry := inbox.entry(id))]
            _say_without(output, options, selected(settled, project).without)
            return _say(options, format, list(changes), "settled", changes)
        if group_ids and (conflict := next(iter(in_conflict(entries)), None)):
            if lines := list(changes_lines(last_changes(conflict, inbox.story(conflict.group_id)))):
                output.say("the content that was offered again differs from the delivered content:")
            for line in lines:
                output.say(line)
            raise SyncengineError(
                f"{conflict.group_id} is in conflict: {conflict.note}. Correct the sink, then use --accept",
                code="conflict",
            )
        selection = selected(entries, project)
        inbox.write(lambda tx: tx.ask(selection.group_ids))
    _say_without(output, options, selection.without)
    return _again(options, format, selection.group_ids)


def _say_without(output: Output, options: Globals, without: Iterable[tuple[InboxEntry, str]]) -> None:
    """Name the groups that a sink does not get, since they were decided without it."""
    from syncengine.document.text import as_word

    for entry, sink in without:
        showing = f"`syncengine time show {as_word(entry.group_id)} --format json{options.place()}`"
        output.say(
            f"{entry.group_id} was decided without sink {sink}, as before the sink was added or by --accept, and is not"
            " delivered to it" + (f"; {showing} prints the group." if entry.body else ".")
        )


def _again_to(options: Globals, format: str, sink: str, since: float, auto_approve: bool) -> int:
    """Deliver the groups that a sink took since then to it again, or without approval list them."""
    from syncengine.document.text import as_word
    from syncengine.render.words import count_of
    from syncengine.state.inbox import open_inbox
    from syncengine.tools.posted_time import taken_by

    project = options.project()
    section = project.posted_time
    names = [part.name.text for part in (section.deliver if section else None) or ()]
    if sink not in names:
        choice = f"choose from {', '.join(names)}" if names else "`postedTime.deliver` of the project file has none"
        raise Usage(f"there is no sink {sink!r}: {choice}")
    with open_inbox(project.state, write=auto_approve) as inbox:
        selection = taken_by(inbox, sink, since)
        if auto_approve:
            inbox.write(lambda tx: tx.ask(selection.group_ids, sink))
    output = Output(options, options.folder)
    if selection.reduced:
        output.say(f"Left out {count_of(selection.reduced, 'group')}, of which only receipts remain.")
    if not (selection.group_ids or selection.conflicts or selection.reduced):
        output.say(f"Nothing to deliver to sink {sink} again: that is done only with groups that it took since then.")
    for id in selection.conflicts:
        settling = f"`syncengine time retry {as_word(id)} --accept{options.place()}`"
        output.say(f"Left out {id}, which is in conflict: {settling} settles it.")
    if auto_approve:
        return _again(options, format, selection.group_ids)
    return _say(options, format, selection.group_ids, "rehearsed")


def _say(
    options: Globals,
    format: str,
    ids: Sequence[str],
    act: str,
    changes: Mapping[str, Sequence[ContentChange]] = MappingProxyType({}),
) -> int:
    """Print the selected groups. `changes` maps a group to the differences that a person settled."""
    from msgspec import UNSET

    from syncengine.render.escape import visible
    from syncengine.render.posted_time import SelectionFormat, change_items, changes_lines
    from syncengine.render.words import count_of

    lines = (line for id in ids for line in (f"  {visible(id)}", *changes_lines(changes.get(id, ()))))
    text = "".join(f"{line}\n" for line in lines)
    settled = {id: change_items(pairs) for id, pairs in changes.items() if pairs}
    document = SelectionFormat(act, ids, settled or UNSET)
    return show(options, format, document, f"{ACTS[act]}: {count_of(len(ids), 'group')}.\n{text}")


def _again(options: Globals, format: str, ids: Sequence[str]) -> int:
    """Deliver the groups now, or leave them to the process that holds the inbox."""
    from syncengine.cli.service import service_settings
    from syncengine.render import posted_time as rendering
    from syncengine.tools.posted_time import deliver_again

    project = options.project()
    try:
        entries = deliver_again(project, os.environ, ids, lambda: service_settings(options))
    except LockHeld as held:
        Output(options, project.root).say(f"{held.message}: its next round delivers them.")
        return _say(options, format, ids, "asked")
    failed = any(not entry.is_delivered or entry.has_trouble for entry in entries)
    show(options, format, rendering.entries_document(entries), rendering.entries_text(entries))
    return ExitCode.INCOMPLETE if failed else ExitCode.DONE


@command("export", "syncengine time export --since 30d\n# the deliveries of a month, for a spreadsheet")
@since("Only deliveries since")
@click.option("--sink", metavar="NAME", help="Only deliveries to this sink.")
@printing("csv", "json")
def export_time(options: Globals, format: str, since: float | None, sink: str | None) -> int:
    """Print what the sinks took, one row for each delivery, oldest first.

    The inbox is read alone: no sink, and not the service. Durations follow the settings of today.
    """
    from syncengine.posted_time.export import exported_by
    from syncengine.render.documents import dumped
    from syncengine.render.posted_time import export_csv, export_document
    from syncengine.render.words import count_of

    output = Output(options, options.folder)
    rows = exported_by(options.project(), since or 0.0, sink)
    if reduced := sum(row.is_reduced for row in rows):
        output.say(
            f"{count_of(reduced, 'delivery')} without content, of which only receipts remain: set"
            " `postedTime.keep` to keep the content of groups for longer",
            level="warning",
        )
    output.data(dumped(export_document(rows)) if format == "json" else export_csv(rows))
    return ExitCode.DONE


# --- calling the service


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
    from syncengine.tools.posted_time import pull_once

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
