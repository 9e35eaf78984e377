"""adopt: record resources that exist on the service already, without sending a request."""

from __future__ import annotations

import os
from pathlib import Path

import click

from syncengine.cli.completion import files
from syncengine.cli.data_output import printing_command, show
from syncengine.cli.help import Command
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.cli.plan_options import announce
from syncengine.cli.state_writing import named_run, writing
from syncengine.errors import ExitCode, Usage
from syncengine.project.content import content_of
from syncengine.resource import Recorded, Status
from syncengine.state.store import State

ADOPT_FORMAT = "syncengine.adopt/v1"


@click.command(cls=Command, epilog="syncengine adopt tags.csv\n# record resources that exist on the service")
@click.argument("file", metavar="FILE", shell_complete=files)
@click.option("--replace", is_flag=True, help="Replace rows that are already recorded.")
@click.option("--new-state", is_flag=True, help="Create a missing state, also one in Git.")
@printing_command
def adopt(options: Globals, format: str, file: str, replace: bool, new_state: bool) -> int:
    """Record resources that exist on the service; nothing is sent.

    FILE lists them, as CSV, JSON or YAML. JSON and YAML are written like manifests; the header of a CSV file names the
    fields, including `metadata.NAME`.
    """
    from syncengine.tools.adopt import SUFFIXES, listed

    project = options.project()
    path = options.folder / file
    if not file.lower().endswith(SUFFIXES):
        raise Usage(f"{file}: the file name must end in {' or '.join((', '.join(SUFFIXES[:-1]), SUFFIXES[-1]))}")
    announce(project, Output(options, project.root))
    name = Path(os.path.relpath(path.resolve(), project.root.resolve())).as_posix()
    rows = listed(data := content_of(path), name)
    with writing(project, "adopt", create=new_state) as state:
        if path.is_file() and (now := content_of(path)) != data:  # it changed while this waited for the lock
            rows = listed(now, name)
        new = _adopted(state, rows, replaces=replace)
    adopted_keys = {row.key for row in new}
    return _show_result(options, format, new, [row for row in rows if row.key not in adopted_keys])


def _adopted(state: State, rows: list[Recorded], *, replaces: bool) -> list[Recorded]:
    """Record the rows, without those that are recorded already unless it `replaces` them. Return what was recorded."""
    with named_run(state, "adopt", os.environ) as counts:
        existing = {key for key, row in state.get(row.key for row in rows).items() if row.status is not Status.DELETED}
        new = rows if replaces else [row for row in rows if row.key not in existing]
        state.put(new)
        counts["applied"] = len(new)
    return new


def _show_result(options: Globals, format: str, new: list[Recorded], existing: list[Recorded]) -> int:
    from syncengine.render.words import count_of

    addresses = {"adopted": [str(row.key) for row in new], "known": [str(row.key) for row in existing]}
    text = f"Adopted {count_of(len(new), 'resource')}; nothing was sent.\n"
    show(options, format, {"format": ADOPT_FORMAT, **addresses}, text)
    if format == "json":
        return ExitCode.DONE
    output = Output(options, options.folder)
    if existing:
        were, them = ("was", "it") if len(existing) == 1 else ("were", "them")
        output.say(
            f"{count_of(len(existing), 'resource')} {were} already recorded and left unchanged;"
            f" use --replace to take {them} from the file."
        )
    doubtful = sum(row.doubtful for row in new)
    if doubtful:
        output.say(f"{count_of(doubtful, 'category')} without `serverId`: the next apply fetches the id.")
    return ExitCode.DONE
