"""reviewed: fetch the plans that were reviewed in the pull requests of recent commits."""

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


@click.command(
    cls=Command,
    epilog="syncengine reviewed --from github -o reviewed\n# plans of the last merges, for `apply --reviewed`",
)
@click.option("--from", "host", type=click.Choice(["github", "gitlab"]), required=True, help="The host to ask.")
@click.option(
    "-o", "--out", metavar="DIR", required=True, shell_complete=folders, help="Write the plans to this folder."
)
@click.option(
    "--commits",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    help="How many commits of the branch to look at.",
)
@click.option("--artifact", default="plan", show_default=True, help="The artifact with the plan; on GitLab, its job.")
@click.option("--file", default="plan.json", show_default=True, help="The plan's file in the artifact.")
@printing_command
def reviewed(options: Globals, format: str, host: str, out: str, commits: int, artifact: str, file: str) -> int:
    """Fetch the reviewed plans of recently merged pull requests, for `apply --reviewed`.

    There may be several, since a host may drop queued runs, and the next run applies all of their merges. Artifacts of
    forks are not read.
    """
    from syncengine.project import git
    from syncengine.publish.artifacts import Wanted, reviewed_files
    from syncengine.publish.hosts import HOSTS
    from syncengine.render.json import dumped
    from syncengine.render.words import count_of

    kind = HOSTS[host]
    ids = git.recent(options.folder, commits)
    if not ids:
        raise SyncengineError("this folder has no commits: check out the branch to apply", code="no-commit")
    found = reviewed_files(kind, kind.place_in(os.environ), ids, Wanted(artifact, file))
    output = Output(options, options.folder)
    plans = [each for each in found if _is_plan(each, file, output)]
    folder = options.folder / out
    _refuse_others(folder, out, {_name(each) for each in plans})
    names = [_write(folder, _name(each), each.content) for each in plans]
    if format == "json":
        output.data(dumped({"format": REVIEWED_FORMAT, "written": names}))
    else:
        output.data("".join(f"Wrote {name}\n" for name in names))
        if not names:
            output.say(f"No reviewed plan was found for the pull requests of the last {count_of(len(ids), 'commit')}.")
    return ExitCode.DONE


def _is_plan(artifact: ReviewedFile, file: str, output: Output) -> bool:
    """Return whether `apply --reviewed` can compare with the artifact. If not, print a warning with the reason."""
    from syncengine.render.documents import reviewed_in

    try:
        reviewed_in(artifact.content, f"{file} of pull request {artifact.number}")
    except SyncengineError as error:
        output.say(f"warning[{error.code}]: plan left out: {error.message}", level="warning")
        return False
    return True


def _name(artifact: ReviewedFile) -> str:
    return f"{artifact.number}.json"


def _refuse_others(folder: Path, shown: str, names: set[str]) -> None:
    """Refuse a folder with plans that this run does not write, since `apply` takes all of them for reviewed ones."""
    from syncengine.project import git
    from syncengine.project.atomic_write import as_written, refuse_links

    try:
        refuse_links(folder)
        others = sorted(path.name for path in folder.glob("*.json") if path.name not in names)
    except OSError as error:
        raise SyncengineError(f"{shown}: {error.strerror}", code="reviewed-folder") from None
    place = as_written(folder)
    parent = next(each for each in place.parents if each.is_dir())
    if others:
        message = f"{shown} has {others[0]}, which nobody may have reviewed: empty the folder first, or choose another"
        raise SyncengineError(message, code="reviewed-folder")
    if git.may_keep(parent, str(place.relative_to(parent))):
        message = f"{shown} is in Git, or Git cannot say, so that a branch may bring plans: choose another folder"
        raise SyncengineError(message, code="reviewed-folder")


def _write(folder: Path, name: str, content: bytes) -> str:
    from syncengine.project.atomic_write import write_whole

    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        write_whole(path, [content], mode=0o600)
    except OSError as error:
        raise SyncengineError(f"{folder}: cannot be written: {error.strerror}", code="unwritable-file") from None
    return str(path)
