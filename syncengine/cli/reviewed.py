"""reviewed: the plans that were reviewed in the pull requests of the last commits."""

from __future__ import annotations

import os
from pathlib import Path

import click

from syncengine.cli.completion import folders
from syncengine.cli.data_output import printing_command
from syncengine.cli.help import Command
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.errors import ExitCode, SyncengineError

REVIEWED_FORMAT = "syncengine.reviewed/v1"


@click.command(cls=Command)
@click.option("--from", "host", type=click.Choice(["github", "gitlab"]), required=True, help="The host to ask.")
@click.option(
    "-o", "--out", metavar="DIR", required=True, shell_complete=folders, help="Write the plans to this folder."
)
@click.option(
    "--commits", type=click.IntRange(1, 100), default=10, show_default=True, help="So many commits of the branch."
)
@click.option("--artifact", default="plan", show_default=True, help="The artifact of the job that planned.")
@click.option("--file", default="plan.json", show_default=True, help="The file in it.")
@printing_command
def reviewed(options: Globals, format: str, host: str, out: str, commits: int, artifact: str, file: str) -> int:
    """Fetch the plans of the pull requests that were merged last, for `apply --reviewed`.

    Several merges are applied at once where a host dropped runs that were queued. Artifacts of forks are not read.
    """
    from syncengine.project import git
    from syncengine.publish.artifacts import Wanted, reviewed_files
    from syncengine.publish.hosts import HOSTS
    from syncengine.render.json import dumped

    kind = HOSTS[host]
    ids = git.recent(options.folder, commits)
    if not ids:
        raise SyncengineError("this folder has no commits: check out the branch that is applied", code="no-commit")
    found = reviewed_files(kind, kind.place(os.environ), ids, Wanted(artifact, file))
    names = [_write(options.folder / out, each.number, each.content) for each in found]
    output = Output(options, options.folder)
    if format == "json":
        output.data(dumped({"format": REVIEWED_FORMAT, "written": names}))
    else:
        output.data("".join(f"Wrote {name}\n" for name in names))
        if not names:
            output.say(f"No reviewed plan: none of the last {len(ids)} commits came with a pull request that has one.")
    return ExitCode.DONE


def _write(folder: Path, number: int, content: bytes) -> str:
    from syncengine.project.atomic_write import write_whole

    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{number}.json"
        write_whole(path, [content], mode=0o600)
    except OSError as error:
        raise SyncengineError(f"{folder}: cannot be written: {error.strerror}", code="unwritable-file") from None
    return str(path)
