"""reviewed: the plans that were reviewed in the pull requests of the last commits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncengine.cli.completion import folders
from syncengine.cli.data_output import printing_command
from syncengine.cli.help import Command
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.errors import ExitCode, SyncengineError

if TYPE_CHECKING:
    from syncengine.publish.artifacts import ReviewedFile

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
    output = Output(options, options.folder)
    plans = [each for each in found if _is_plan(each, file, output)]
    names = [_write(options.folder / out, each.number, each.content) for each in plans]
    if format == "json":
        output.data(dumped({"format": REVIEWED_FORMAT, "written": names}))
    else:
        output.data("".join(f"Wrote {name}\n" for name in names))
        if not names:
            output.say(f"No reviewed plan: none of the last {len(ids)} commits came with a pull request that has one.")
    return ExitCode.DONE


def _is_plan(artifact: ReviewedFile, file: str, output: Output) -> bool:
    """Whether `apply --reviewed` can compare with it; a warning says why not."""
    from syncengine.render.reviewed import reviewed_in

    try:
        reviewed_in(artifact.content, f"{file} of pull request {artifact.number}")
    except SyncengineError as error:
        output.say(f"warning[{error.code}]: left out, as if it had none: {error.message}", level="warning")
        return False
    return True


def _write(folder: Path, number: int, content: bytes) -> str:
    from syncengine.project.atomic_write import write_whole

    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{number}.json"
        write_whole(path, [content], mode=0o600)
    except OSError as error:
        raise SyncengineError(f"{folder}: cannot be written: {error.strerror}", code="unwritable-file") from None
    return str(path)
