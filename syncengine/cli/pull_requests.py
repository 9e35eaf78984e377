"""publish, reviewed: keep a plan as one comment of a pull request, and fetch the plans that were reviewed there."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncengine.cli.help import command
from syncengine.cli.option_types import WholeNumber, files, folders
from syncengine.cli.options import Globals
from syncengine.cli.output import Output, printing_command
from syncengine.cli.output_files import OutputFiles
from syncengine.errors import ExitCode, SyncengineError

if TYPE_CHECKING:
    from syncengine.publish.comment import Outputs, Publishing

DEFAULT_KEY = "default"


@command("publish", "syncengine publish plan.json --to github --key prod\n# the comment that reviewers read")
@click.argument("file", shell_complete=files)
@click.option(
    "--to", "host", type=click.Choice(["github", "gitlab"]), required=True, help="The host of the pull request."
)
@click.option("--key", metavar="NAME", help="The name of the comment, one for each name (default: the environment).")
@click.option("--dotenv", metavar="FILE", shell_complete=files, help="Write the outputs as variables for later jobs.")
@click.option("--dry-run", is_flag=True, help="Print the comment and send nothing.")
@printing_command
def publish(
    options: Globals, format: str, file: str, host: str, key: str | None, dotenv: str | None, dry_run: bool
) -> int:
    """Write FILE, a plan or report in JSON, to a pull request as one comment, which is kept up to date.

    The pull request and the token are taken from the variables of the CI job.
    """
    from syncengine.project import git
    from syncengine.project.load import project_folder
    from syncengine.publish import comment
    from syncengine.publish.hosts import HOSTS
    from syncengine.render.documents import dumped
    from syncengine.render.formats import PublishFormat

    if dotenv is not None:
        OutputFiles(options.folder, [file]).refuse_unsuitable(dotenv, f"--dotenv {dotenv}")
    name = key or options.environment or os.environ.get("SYNCENGINE_ENV") or DEFAULT_KEY
    if not comment.KEY.fullmatch(name):
        raise click.UsageError(f"--key {name!r}: use letters, digits, dots and hyphens")
    path = options.folder / file
    project = None
    with suppress(SyncengineError):  # without its project, a plan is published as it is
        project = options.project()
    publication = comment.publication_of(path, file, project)
    kind = HOSTS[host]
    place = kind.place_in(os.environ if not dry_run else {**kind.stand_ins, **os.environ})
    if not dry_run:
        head = None if place.follows else git.head(options.folder)
        comment.refuse_committed(publication, path, file, head.id if head else None)
    marker = comment.Marker(name, place.head, place.run)
    output = Output(options, project_folder(options.folder), project.blob if project else None)
    look = replace(output.look(), colour=False, lines=None)
    text = comment.comment_of(publication, place, marker, comment.LIMITS[host], look)
    if dry_run:
        output.data(
            dumped(PublishFormat(outcome="dry-run", text=text, outputs=publication.outputs))
            if format == "json"
            else text
        )
        return ExitCode.DONE
    # For later steps and jobs of CI, before anything is sent to the host.
    if dotenv is not None:
        comment.write(options.folder / dotenv, comment.output_lines(publication.outputs), "the outputs")
    if output_file := os.environ.get("GITHUB_OUTPUT"):
        comment.write(Path(output_file), comment.output_lines(publication.outputs), "the outputs", append=True)
    done = comment.publish(kind, place, marker, text)
    _tell(output, done, text, format, publication.outputs)
    return ExitCode.DONE


def _tell(output: Output, done: Publishing, text: str, format: str, outputs: Outputs) -> None:
    """Print the outcome. A text that could not become a comment goes to the job's summary, or to its log."""
    from syncengine.publish.comment import Published, write
    from syncengine.render.documents import dumped
    from syncengine.render.formats import PublishFormat

    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if done.outcome is Published.SUMMARY and summary:
        write(Path(summary), f"{text}\n", "the job's summary", append=True)
    if format == "json":
        output.data(dumped(PublishFormat(outcome=done.outcome, url=done.url, reason=done.reason, outputs=outputs)))
    elif done.outcome is Published.SUMMARY:
        where = "the job's summary has the text" if summary else "the text follows"
        output.say(f"No comment: {done.reason}; {where}.", level="warning")
        output.data("" if summary else text)
    elif done.outcome is Published.OLDER:
        output.say(f"Not written: {done.reason}.")
    else:
        word = done.outcome.value
        output.data(f"{word.capitalize()}: {done.url}\n" if done.url else f"Comment {word}.\n")


@command(
    "reviewed", "syncengine reviewed --from github -o reviewed\n# plans of the last merges, for `apply --reviewed`"
)
@click.option("--from", "host", type=click.Choice(["github", "gitlab"]), required=True, help="The host to ask.")
@click.option(
    "-o", "--out", metavar="DIR", required=True, shell_complete=folders, help="Write the plans to this folder."
)
@click.option(
    "--commits",
    type=WholeNumber(1, 100),
    default=10,
    show_default=True,
    help="How many commits of the branch to look at, up to 100.",
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
    from syncengine.project.files import write_whole
    from syncengine.publish.hosts import HOSTS, Wanted, reviewed_files
    from syncengine.render.documents import dumped
    from syncengine.render.formats import ReviewedFormat
    from syncengine.render.plan_files import reviewed_in
    from syncengine.render.words import count_of

    kind = HOSTS[host]
    ids = git.recent(options.folder, commits)
    if not ids:
        raise SyncengineError(
            "no commit is checked out here: run this in a clone, with the branch to apply", code="no-commit"
        )
    found = reviewed_files(kind, kind.place_in(os.environ), ids, Wanted(artifact, file))
    output = Output(options, options.folder)
    folder = options.folder / out
    plans: dict[str, bytes] = {}
    for each in found:
        try:
            reviewed_in(each.content, f"{file} of pull request {each.number}")  # as `apply --reviewed` reads it
        except SyncengineError as error:
            output.say(f"warning[{error.code}]: plan left out: {error.message}", level="warning")
        else:
            plans[f"{each.number}.json"] = each.content
    _refuse_others(folder, out, plans)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in plans.items():
            write_whole(folder / name, [content], mode=0o600)
    except OSError as error:
        raise SyncengineError(f"{folder}: cannot be written: {error.strerror}", code="unwritable-file") from None
    names = [str(folder / name) for name in plans]
    if format == "json":
        output.data(dumped(ReviewedFormat(names)))
    else:
        output.data("".join(f"Wrote {name}\n" for name in names))
        if not names:
            output.say(f"No reviewed plan was found for the pull requests of the last {count_of(len(ids), 'commit')}.")
    return ExitCode.DONE


def _refuse_others(folder: Path, shown: str, names: Collection[str]) -> None:
    """Refuse a folder with plans that this run does not write, since `apply` takes all of them for reviewed ones."""
    from syncengine.project import git
    from syncengine.project.files import as_written, refuse_links

    try:
        refuse_links(folder)
        others = sorted(path.name for path in folder.glob("*.json") if path.name not in names)
    except OSError as error:
        raise SyncengineError(f"{shown}: {error.strerror}", code="reviewed-folder") from None
    if others:
        message = f"{shown} has {others[0]}, which nobody may have reviewed: empty the folder first, or choose another"
        raise SyncengineError(message, code="reviewed-folder")
    place = as_written(folder)
    parent = next(each for each in place.parents if each.is_dir())
    if git.may_keep(parent, str(place.relative_to(parent))):
        message = f"{shown} is in Git, or Git cannot say, so that a branch may bring plans: choose another folder"
        raise SyncengineError(message, code="reviewed-folder")
