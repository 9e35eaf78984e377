"""The group of all `state` commands, and those that only read: list, show, history, versions and export."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

import click

from syncengine.cli.help import TableGroup, command
from syncengine.cli.option_types import addresses
from syncengine.cli.options import Globals, group_with_globals, with_globals
from syncengine.cli.output import Output, printing_command, show
from syncengine.cli.output_files import OutputFiles
from syncengine.errors import ExitCode, GateTripped, SyncengineError, Usage
from syncengine.project.files import write_whole
from syncengine.render import state as rendering
from syncengine.render.escape import file_name, visible
from syncengine.resource import Key, selector
from syncengine.state import transfer
from syncengine.state.folder_memory import REWOUND, memory_of
from syncengine.state.store import State, open_state
from syncengine.tools.state_edits import near

HISTORY_RUNS = 50

PARTS: Mapping[str, tuple[str, str]] = {
    "list": ("state.list_rows", "List the recorded resources."),
    "show": ("state.show_row", "Show everything that is recorded about one resource."),
    "history": ("state.show_history", "Show the last runs, or all changes of one resource."),
    "versions": ("state.list_versions", "List the restorable versions of a state in Git, newest first."),
    "restore": ("state_writing.restore_version", "Restore VERSION of a state in Git as a new version."),
    "forget": ("state_writing.forget_rows", "Remove rows from the state."),
    "prune": ("state_writing.prune_history", "Remove the history before T."),
    "erase": ("state_writing.erase_resources", "Erase resources from the state and all its history."),
    "quarantine": ("state_writing.quarantine", "Set a rejected resource aside, or list the quarantine."),
    "export": ("state.export_rows", "Write the whole state as JSON lines."),
    "import": ("state_writing.import_rows", "Record the rows of a `state export` file (- is stdin)."),
    "rebuild": ("state_writing.rebuild", "Rebuild a lost state from the manifests of a commit."),
    "lock": ("state_writing.lock_state", "Lock the state by hand, until `state unlock ID`."),
    "unlock": ("state_writing.unlock_state", "End the lock with this ID, whoever holds it."),
    "rebind": ("state_writing.rebind", "Accept a new team name, or a new URL of the service."),
}


class StateGroup(TableGroup):
    """The group of commands in `PARTS`."""

    sections = MappingProxyType({"Commands": PARTS})


@click.group(cls=StateGroup, epilog="syncengine state list 'tag/ACME-*'\n# list some recorded tags")
@group_with_globals
def state() -> None:
    """Inspect, lock and repair the state."""


@contextmanager
def reading(options: Globals) -> Iterator[State]:
    """Yield the state as it is. One that was set back is read too, with a warning: it can be looked at and exported."""
    project = options.project()
    memory = memory_of(project)
    with open_state(project.state, write=False) as store:
        try:
            if memory is not None:
                memory.recognize(store)
        except GateTripped as error:
            if error.code != REWOUND:
                raise
            Output(options, options.folder).say(error.message, level="warning")
        yield store


@command("list", "syncengine state list 'tag/ACME-*'\n# list some recorded tags")
@click.argument("globs", metavar="[ADDRESS]...", nargs=-1, shell_complete=addresses)
@printing_command
def list_rows(options: Globals, format: str, globs: Sequence[str]) -> int:
    """List the recorded resources. ADDRESS may be a glob."""
    with reading(options) as store:
        rows = list(store.rows())
        is_chosen = selector(globs, (row.key for row in rows))
        rows = [row for row in rows if not globs or is_chosen(row.key)]
        is_unmatched = bool(globs) and not rows and any(True for _ in store.rows())
    if is_unmatched:
        text = f"No recorded address matches {' or '.join(map(visible, globs))}.\n"
    else:
        text = rendering.rows_text(rows, Output(options, options.folder).look().width)
    return show(options, format, rendering.StateFormat(list(map(rendering.recorded_item, rows))), text)


@command("show", "syncengine state show tag/ACME-0042\n# everything recorded about one tag")
@click.argument("address", shell_complete=addresses)
@printing_command
def show_row(options: Globals, format: str, address: str) -> int:
    """Show everything that is recorded about one resource."""
    key = key_of(address)
    with reading(options) as store:
        row = store.get([key]).get(key)
        if row is None:
            raise SyncengineError(f"{address} is not recorded{near(store, key)}", code="not-recorded")
    return show(options, format, rendering.recorded_item(row, rendering.ResourceFormat), rendering.row_text(row))


@command("history", "syncengine state history tag/ACME-0042\n# the changes of one tag, field by field")
@click.argument("address", required=False, shell_complete=addresses)
@printing_command
def show_history(options: Globals, format: str, address: str | None) -> int:
    """Show the last runs, or all changes of one resource.

    With ADDRESS, the changes of that resource are shown field by field.
    """
    key = key_of(address) if address else None
    with reading(options) as store:
        if key is None:
            runs = store.runs(HISTORY_RUNS)
            return show(options, format, rendering.runs_document(runs), rendering.runs_text(runs))
        entries = store.history(key)
        if not entries:
            Output(options, options.folder).say(f"No history of {key} is recorded{near(store, key)}")
    return show(options, format, rendering.history_document(entries), rendering.history_text(entries))


@command("versions", "syncengine state versions\n# earlier versions of a state in Git")
@printing_command
def list_versions(options: Globals, format: str) -> int:
    """List the restorable versions of a state in Git, newest first."""
    from syncengine.render.state import versions_document, versions_text
    from syncengine.tools.state_edits import versions_of

    versions = versions_of(options.project())
    return show(options, format, versions_document(versions), versions_text(versions))


@command("export", "syncengine state export -o state.jsonl\n# a copy that only you can read")
@click.option("-o", "--out", metavar="FILE", help="Write to this file, readable only by you (default and -: stdout).")
@with_globals
def export_rows(options: Globals, out: str | None) -> int:
    """Write the whole state as JSON lines.

    A header comes first, then one line for each resource.
    """
    if out == "-":
        out = None
    if out is not None:
        OutputFiles(options.folder).refuse_unsuitable(out, f"--out {out}")
    output = Output(options, options.folder)
    try:
        with reading(options) as store:
            if remaining := store.under_way(options.project().service.landing):  # the rows could not show that call
                message = (
                    "the service may still execute an earlier call, which the export would lack:"
                    f" repeat in {math.ceil(remaining)} s, or after a killed run, run `syncengine apply` first"
                )
                raise SyncengineError(message, code="landing")
            facts = store.facts()
            refusals, quarantine = store.refusals().values(), store.quarantine()
            lines = transfer.lines_of(facts, store.undone(), store.rows(), store.count(), refusals, quarantine)
            if out is None:
                for line in lines:
                    output.data(line.decode())
            else:
                try:
                    write_whole(options.folder / out, lines, mode=0o600)
                except OSError as error:
                    message = f"{options.folder / out}: cannot be written: {error.strerror}"
                    raise SyncengineError(message, code="unwritable-file") from None
                output.say(f"Wrote {file_name(out)}")
    except SyncengineError as error:
        return output.refusal(error, "text")
    return ExitCode.DONE


def key_of(address: str) -> Key:
    try:
        return Key.parse(address)
    except ValueError:
        raise Usage(
            f"{address!r} is not an address: write tag/NAME, category/EXTERNAL_ID or activity-type/CODE"
        ) from None
