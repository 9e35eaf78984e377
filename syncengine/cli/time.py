"""The group of all `time` commands, and those of the inbox: inbox, show, preview, retry and export."""

from __future__ import annotations

import asyncio
import json
import os
import time as clock
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from syncengine.cli.help import TableGroup, command
from syncengine.cli.option_types import since
from syncengine.cli.options import Globals, group_with_globals
from syncengine.cli.output import Output, printing, printing_command, show
from syncengine.cli.streams import standard_input
from syncengine.errors import ExitCode, LockHeld, SyncengineError, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from syncengine.posted_time.group import ContentChange
    from syncengine.project.model import Project
    from syncengine.state.inbox import Inbox
    from syncengine.state.inbox_model import InboxEntry


PARTS: Mapping[str, tuple[str, str]] = {
    "list": ("time_service.list_time", "List all posted time that the service has."),
    "pull": ("time_service.pull_time", "Fetch posted time, deliver and acknowledge it, once."),
    "inbox": ("time.show_inbox", "List the groups that are waiting or have failed."),
    "show": ("time.show_group", "Show the history of a group."),
    "retry": ("time.retry", "Deliver groups again to the sinks that lack them."),
    "audit": ("time_service.audit_time", "Compare posted time with the deliveries."),
    "preview": ("time.preview", "Render the deliveries of a group, and send nothing."),
    "export": ("time.export_time", "Print what the sinks took, as a table."),
    "register": ("time_service.register_time", "Start recording posted time for this connector."),
    "unregister": ("time_service.unregister_time", "Stop recording posted time."),
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
    from syncengine.posted_time.preview import SAMPLE
    from syncengine.posted_time.preview import preview as rehearsed
    from syncengine.render import posted_time as rendering
    from syncengine.state.connector import settings_in
    from syncengine.state.inbox import open_inbox

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
    from syncengine.posted_time.retry import in_conflict, selected, settle
    from syncengine.render.posted_time import changes_lines
    from syncengine.state.inbox import open_inbox

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
    from syncengine.posted_time.retry import taken_by
    from syncengine.render.words import count_of
    from syncengine.state.inbox import open_inbox

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
    from syncengine.posted_time.retry import deliver_again
    from syncengine.render import posted_time as rendering

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
