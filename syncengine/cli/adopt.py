"""adopt: what exists on the service already, recorded without a request."""

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

ADOPT_FORMAT = "syncengine.adopt/v1"


@click.command(cls=Command)
@click.argument("file", metavar="FILE", shell_complete=files)
@click.option("--replace", is_flag=True, help="Replace rows that are already recorded.")
@printing_command
def adopt(given: Globals, format: str, file: str, replace: bool) -> int:
    """Record resources that exist on the service, from FILE (CSV, JSON or YAML). Nothing is sent.

    JSON and YAML are written like manifests; the header of a CSV file names the fields, `metadata.NAME` among them.
    """
    from syncengine.tools.adopt.listed import SUFFIXES, listed

    project = given.project()
    path = given.folder / file
    if not file.lower().endswith(SUFFIXES):
        raise Usage(f"{file}: its name ends in {', '.join(SUFFIXES)}")
    announce(project, Output(given, project.root))
    name = Path(os.path.relpath(path.resolve(), project.root.resolve())).as_posix()
    rows = listed(content_of(path), name)
    with writing(project, "adopt") as state, named_run(state, "adopt", os.environ) as counts:
        known = {key for key, row in state.get(row.key for row in rows).items() if row.status is not Status.DELETED}
        new = rows if replace else [row for row in rows if row.key not in known]
        state.put(new)
        counts["applied"] = len(new)
        taken = {row.key for row in new}
    return _told(given, format, new, [row for row in rows if row.key not in taken])


def _told(given: Globals, format: str, new: list[Recorded], known: list[Recorded]) -> int:
    from syncengine.render.words import counted

    listed = {"adopted": [str(row.key) for row in new], "known": [str(row.key) for row in known]}
    text = f"Adopted {counted(len(new), 'resource')}; nothing was sent.\n"
    show(given, format, {"format": ADOPT_FORMAT, **listed}, text)
    if format == "json":
        return ExitCode.DONE
    output = Output(given, given.folder)
    if known:
        output.say(f"{counted(len(known), 'resource')} recorded already and kept so; --replace takes the file's word.")
    doubtful = sum(row.doubtful for row in new)
    if doubtful:
        output.say(f"{counted(doubtful, 'category')} without `serverId`: the next apply asks for the id.")
    return ExitCode.DONE
