"""The commands that write the state by hand, under its lock: `state forget`, `state import`, `adopt` and others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from syncengine.cli.help import command
from syncengine.cli.option_types import FutureTime, PastTime, addresses, approved, files
from syncengine.cli.options import Globals
from syncengine.cli.output import Output, printing_command, show
from syncengine.cli.state import key_of, reading
from syncengine.cli.streams import agreed, is_answered, standard_input
from syncengine.connector.connection import rebind_team
from syncengine.errors import ExitCode, SyncengineError, Usage
from syncengine.project.files import content_of
from syncengine.project.git_ref import is_git_ref
from syncengine.project.runner import Holder
from syncengine.render import state as rendering
from syncengine.render.words import count_of, when
from syncengine.state import transfer
from syncengine.state.folder_memory import memory_of
from syncengine.state.store import open_state, refuse_vanished
from syncengine.tools import state_edits
from syncengine.tools.state_edits import named_run, refuse_unknown, writing


@command("restore", "syncengine state restore 3f2a9c1\n# return to an earlier version")
@click.argument("version", metavar="VERSION", required=False)
@approved
@printing_command
def restore_version(options: Globals, format: str, version: str | None, auto_approve: bool) -> int:
    """Restore VERSION of a state in Git as a new version.

    Every row becomes doubtful, so that the next apply sends all resources again. Without VERSION, a state in a file or
    a database that was set back is accepted as it is.
    """
    from syncengine.render.state import restored_text
    from syncengine.tools.state_edits import accept, restore

    if version is None:
        if is_git_ref(options.project().state):
            raise Usage("VERSION is missing: give an id from `syncengine state versions`")
        _confirm("Accept the state as it is, although it may lack the latest changes?", auto_approve)
        count = accept(options.project())
        text = f"Accepted {count_of(count, 'resource')}. All rows are doubtful: the next apply sends them again.\n"
        return show(options, format, rendering.RestoreFormat(None, count), text)
    _confirm(f"Replace the recorded rows by those of version {version}?", auto_approve)
    restored = restore(options.project(), version)
    return show(options, format, rendering.RestoreFormat(restored.id, restored.info.rows), restored_text(restored))


@command("forget", "syncengine state forget tag/ACME-0042\n# stop managing a tag here")
@click.argument("addresses", metavar="ADDRESS...", nargs=-1, required=True, shell_complete=addresses)
@approved
@printing_command
def forget_rows(options: Globals, format: str, addresses: Sequence[str], auto_approve: bool) -> int:
    """Remove rows from the state. The service keeps the resources, and later plans no longer know them."""
    keys = [key_of(address) for address in addresses]
    project = options.project()
    with open_state(project.state, write=False, memory=memory_of(project)) as store:
        refuse_unknown(store, keys, store.get(keys), "not recorded, so nothing was forgotten")
    _confirm(f"Forget {', '.join(addresses)}? The service keeps {'it' if len(keys) == 1 else 'them'}.", auto_approve)
    with writing(project, "state forget") as store:
        refuse_unknown(store, keys, store.get(keys), "not recorded, so nothing was forgotten")
        count = store.forget(keys, project.service.landing)
    text = f"Forgot {count_of(count, 'resource')}; nothing was deleted on the service.\n"
    return show(options, format, rendering.ForgetFormat(list(map(str, keys))), text)


@command("prune", "syncengine state prune --before 180d --dry-run\n# count the history older than half a year")
@click.option(
    "--before",
    type=PastTime(),
    required=True,
    metavar="T",
    help="Remove what is older than T: 7d or 36h ago, or a UTC date or time.",
)
@click.option("--dry-run", is_flag=True, help="Only count the runs and changes to be removed.")
@approved
@printing_command
def prune_history(options: Globals, format: str, before: float, dry_run: bool, auto_approve: bool) -> int:
    """Remove the history before T.

    Runs, their changes and former values are removed; rows, approvals and everything in doubt stay. Removed runs can no
    longer be undone, and earlier versions of a state in Git can no longer be restored.
    """
    if dry_run:
        with reading(options) as store:
            pruned, is_compact = store.prune(before, is_trial=True), True
    else:
        _refuse_no_state(options)
        _confirm(f"Remove the history from before {when(before)}? Its runs can no longer be undone.", auto_approve)
        with writing(options.project(), "state prune") as store:
            with named_run(store, "state prune", os.environ) as counts:
                pruned = store.prune(before)
                counts["runs removed"] = pruned.runs
            is_compact = store.compact()
    in_git = is_git_ref(options.project().state)
    numbers = (pruned.runs, pruned.entries, pruned.in_doubt)
    document = rendering.PruneFormat(when(pruned.before), *numbers, dry_run, is_compact and not dry_run)
    return show(options, format, document, rendering.pruned_text(pruned, before, dry_run, is_compact, in_git))


@command("erase", "syncengine state erase 'tag/Jane Doe'\n# erase a name from the state and its history")
@click.argument("addresses", metavar="ADDRESS...", nargs=-1, required=True, shell_complete=addresses)
@approved
@printing_command
def erase_resources(options: Globals, format: str, addresses: Sequence[str], auto_approve: bool) -> int:
    """Erase resources from the state and all its history.

    Remove them from the manifests, or forget them, first. The history still shows that something happened, but neither
    names nor contents. Earlier versions of a state in Git are deleted.
    """
    keys = [key_of(address) for address in addresses]
    _refuse_no_state(options)
    them = "it" if len(keys) == 1 else "them"
    question = f"Erase {count_of(len(keys), 'resource')} for good? Changes to {them} can no longer be undone."
    _confirm(question, auto_approve)
    project = options.project()
    erased, remaining, is_compact = state_edits.erase(project, keys)
    in_git = is_git_ref(project.state)
    document = rendering.EraseFormat(len(keys), erased.entries, erased.runs, is_compact)
    return show(options, format, document, rendering.erased_text(len(keys), erased, remaining, is_compact, in_git))


def _refuse_no_state(options: Globals) -> None:
    """Raise `no-state` when there is no state: a command that only removes does not create one."""
    project = options.project()
    with open_state(project.state, write=False, memory=memory_of(project)) as store:
        if not store.exists:
            raise SyncengineError("there is no state yet, so there is nothing to remove", code="no-state")


@command(
    "quarantine",
    'syncengine state quarantine tag/2024-117 --reason "ticket 4711" --until 7d\n'
    "# apply everything but a rejected tag, for a week",
)
@click.argument("address", required=False, shell_complete=addresses)
@click.option("--reason", metavar="TEXT", help="Why the resource is set aside; shown in every plan.")
@click.option(
    "--until", type=FutureTime(), metavar="T", help="Until T: 7d or 36h from now, the end of a UTC date, or a UTC time."
)
@click.option("--end", is_flag=True, help="End the quarantine: the next apply sends the resource again.")
@printing_command
def quarantine(
    options: Globals, format: str, address: str | None, reason: str | None, until: float | None, end: bool
) -> int:
    """Set a rejected resource aside, or list the quarantine.

    All other resources are applied without it. Without ADDRESS, the quarantine is listed.
    """
    if address is None:
        if reason is not None or until is not None or end:
            raise Usage("--reason, --until and --end need an ADDRESS, such as `tag/ACME-0042`")
        verdict = state_edits.current_quarantine(options.project())
        return show(options, format, rendering.quarantine_document(verdict), rendering.quarantine_text(verdict))
    key = key_of(address)
    if end:
        if reason is not None or until is not None:
            raise Usage("--end cannot be combined with --reason or --until")
        state_edits.end_quarantine(options.project(), key)
        return show(
            options, format, rendering.QuarantineFormat(ended=str(key)), f"{address} is no longer in quarantine.\n"
        )
    if reason is None:
        raise Usage("give --reason TEXT, which every plan shows, or --end to end the quarantine")
    record = state_edits.set_aside(options.project(), key, reason, until)
    return show(
        options, format, rendering.set_aside_document(record), rendering.set_aside_text(record, options.place())
    )


@command("import", "syncengine state import state.jsonl\n# read an export")
@click.argument("file", metavar="FILE", shell_complete=files)
@approved
@click.option("--new-state", is_flag=True, help="Create a state in Git if there is none yet.")
@printing_command
def import_rows(options: Globals, format: str, file: str, auto_approve: bool, new_state: bool) -> int:
    """Record the rows of a `state export` file (- is stdin).

    Rows with the same address are replaced, and all others stay. Every row becomes doubtful, so that the next apply
    sends all resources again.
    """
    data = standard_input() if file == "-" else content_of(options.folder / file)
    exported = transfer.read(data, file)
    _confirm(f"Record {count_of(len(exported.rows), 'resource')}, replacing rows with the same address?", auto_approve)
    state_edits.put_export(options.project(), exported, create=new_state)
    count = count_of(len(exported.rows), "resource")
    text = f"Imported {count}. All rows are doubtful: the next apply sends them again.\n"
    return show(options, format, rendering.ImportFormat(len(exported.rows)), text)


@command(
    "rebuild", "syncengine state rebuild --from-git origin/main\n# rebuild a lost state from the commit applied last"
)
@click.option("--from-git", "revision", metavar="REV", required=True, help="The commit that was applied last.")
@click.option("--replace", is_flag=True, help="Replace rows that are already recorded.")
@click.option("--new-state", is_flag=True, help="Create a state in Git if there is none yet.")
@approved
@printing_command
def rebuild(options: Globals, format: str, revision: str, auto_approve: bool, replace: bool, new_state: bool) -> int:
    """Rebuild a lost state from the manifests of a commit.

    Every row becomes doubtful, so that the next apply sends all resources again. Blocks with rows of databases and
    services are left out by name: the next apply records them.
    """
    from syncengine.render.documents import diagnostic_items

    project = options.project()
    output = Output(options, project.root)
    from syncengine.tools.state_edits import rebuilt, record

    parts = {"replaces": replace, "create": new_state}
    new = rebuilt(revision, project, options.project_at, **parts)
    if new.diagnostics:
        output.diagnostics(new.diagnostics)
    short = new.commit[:10]
    what = f"{count_of(len(new.rows), 'resource')} from "
    what += short if new.commit.startswith(revision) else f"{revision} ({short})"
    _confirm(f"Record {what}?", auto_approve)
    record(project, new, revision, **parts)
    document = rendering.RebuildFormat(new.commit, len(new.rows), diagnostic_items(new.diagnostics))
    text = f"Recorded {what}.\nAll rows are doubtful: `plan` shows which resources the next apply sends again.\n"
    return show(options, format, document, text)


@command("lock", "syncengine state lock --reason 'the service is being moved'\n# keep everyone from applying")
@click.option("--reason", metavar="TEXT", help="Shown to everyone who is kept out by the lock.")
@printing_command
def lock_state(options: Globals, format: str, reason: str | None) -> int:
    """Lock the state by hand, until `state unlock ID`."""
    project = options.project()
    with open_state(project.state, write=True, memory=memory_of(project)) as store:
        info = store.hold(Holder.here("state lock", os.environ), reason)
    text = f"Locked: {info}\nUnlock with: syncengine state unlock {info.id}{options.place()}\n"
    return show(options, format, rendering.lock_document(info), text)


@command("unlock", "syncengine state unlock 3f2a9c\n# end the lock with this id")
@click.argument("lock_id", metavar="ID")
@printing_command
def unlock_state(options: Globals, format: str, lock_id: str) -> int:
    """End the lock with this ID, whoever holds it. The holder can no longer write or send anything."""
    project = options.project()
    refuse_vanished(project.state, memory_of(project))
    with open_state(project.state, write=False) as looked:
        lock = looked.current_lock()
    if lock is None:
        raise SyncengineError("the state is not locked", code="not-locked")
    with open_state(project.state, write=True) as store:
        if not store.force_unlock(lock_id):
            raise SyncengineError(f"{lock_id} is not the id of the lock, which is held by {lock}", code="other-lock")
    return show(options, format, rendering.LockFormat(None, unlocked=lock_id), f"Unlocked {lock_id}.\n")


@command("rebind", "syncengine state rebind\n# accept the team's new name")
@approved
@printing_command
def rebind(options: Globals, format: str, auto_approve: bool) -> int:
    """Accept a new team name, or a new URL of the service.

    The service is asked for the team of the key, and the state is bound to it.
    """
    from syncengine.cli.service import serving

    project = options.project()
    Output(options, project.root).diagnostics(project.warnings)
    _confirm("Bind this state to the configured service and to the team of the key?", auto_approve)
    before, team = rebind_team(project, os.environ, lambda: serving(project))
    text = f"Bound to team {team!r}" + (f" (formerly {before!r}).\n" if before else ".\n")
    return show(options, format, rendering.RebindFormat(team, before), text)


def _confirm(question: str, auto_approve: bool) -> None:
    if auto_approve:
        return
    if not is_answered():
        raise Usage("there is no terminal to ask for confirmation: repeat with -y")
    if not agreed(question):
        raise SyncengineError("nothing was changed", code="not-confirmed")


@command("adopt", "syncengine adopt tags.csv\n# record resources that exist on the service")
@click.argument("file", metavar="FILE", shell_complete=files)
@click.option("--replace", is_flag=True, help="Replace rows that are already recorded.")
@click.option("--new-state", is_flag=True, help="Create a missing state, also one in Git.")
@printing_command
def adopt(options: Globals, format: str, file: str, replace: bool, new_state: bool) -> int:
    """Record resources that exist on the service; nothing is sent.

    FILE lists them, as CSV, JSON or YAML. JSON and YAML are written like manifests; the header of a CSV file names the
    fields, including `metadata.NAME`.
    """
    from syncengine.render.formats import AdoptFormat
    from syncengine.tools.adopt import SUFFIXES, adopted, listed

    project = options.project()
    path = options.folder / file
    if not file.lower().endswith(SUFFIXES):
        raise Usage(f"{file}: the file name must end in {' or '.join((', '.join(SUFFIXES[:-1]), SUFFIXES[-1]))}")
    Output(options, project.root).announce(project)
    name = Path(os.path.relpath(path.resolve(), project.root.resolve())).as_posix()
    rows = listed(data := content_of(path), name)
    with writing(project, "adopt", create=new_state) as state:
        if path.is_file() and (now := content_of(path)) != data:  # it changed while this waited for the lock
            rows = listed(now, name)
        new = adopted(state, rows, replaces=replace)
    keys = {row.key for row in new}
    existing = [row for row in rows if row.key not in keys]
    document = AdoptFormat([str(row.key) for row in new], [str(row.key) for row in existing])
    show(options, format, document, f"Adopted {count_of(len(new), 'resource')}; nothing was sent.\n")
    output = Output(options, options.folder)
    if format == "text" and existing:
        were, them = ("was", "it") if len(existing) == 1 else ("were", "them")
        output.say(
            f"{count_of(len(existing), 'resource')} {were} already recorded and left unchanged;"
            f" use --replace to take {them} from the file."
        )
    if format == "text" and (doubtful := sum(row.doubtful for row in new)):
        output.say(f"{count_of(doubtful, 'category')} without `serverId`: the next apply fetches the id.")
    return ExitCode.DONE
