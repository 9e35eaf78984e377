"""init: a new project."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncengine import DISTRIBUTION
from syncengine.cli.data_output import printing_command
from syncengine.cli.help import Command
from syncengine.cli.options import Globals
from syncengine.cli.output import Output
from syncengine.errors import ExitCode

if TYPE_CHECKING:
    from syncengine.tools.init.installation import Installation

INIT_FORMAT = "syncengine.init/v1"
REPEATS = 10
"""Names in several lines that are told of one by one."""
SCHEMAS = ("manifest.schema.json", "project.schema.json")
"""Those that editors check what people write with."""


@click.command(cls=Command)
@click.argument("folder", metavar="[DIR]", default=".")
@click.option("--from-csv", "csv", metavar="FILE", help="Write a first `generate` block from the header of this file.")
@click.option(
    "--install",
    metavar="REQUIREMENT",
    help="The package that the CI examples install: a requirement, the path of a wheel, or an https URL: of a wheel, "
    f"of a repository (git+https), or of a package index.  [default: {DISTRIBUTION}, this version of it]",
)
@printing_command
def init(given: Globals, format: str, folder: str, csv: str | None, install: str | None) -> int:
    """Create a project in DIR: project file, example manifests, CI examples, schemas, .gitignore.

    It plans and applies against the embedded sandbox at once. Files that are there are kept.
    """
    from syncengine.render.escape import file_name
    from syncengine.render.json import dumped
    from syncengine.tools.init.from_csv import generated
    from syncengine.tools.init.new_project import SAMPLES, begin, starter_files

    installation = _installation(install)
    output, place = Output(given, given.folder), given.folder / folder
    contents: dict[str, str | bytes] = {**starter_files(installation), **_schemas()}
    if csv is not None:
        contents = {name: text for name, text in contents.items() if name not in SAMPLES}
        contents |= generated(given.folder / csv, csv, place)
    begun = begin(place, contents)
    if format == "json":
        output.data(dumped({"format": INIT_FORMAT, "written": list(begun.written), "kept": list(begun.kept)}))
    else:
        output.data("".join(f"Wrote {file_name(str(Path(folder, name)))}\n" for name in begun.written))
        for sentence in _repeats(given.folder / csv, csv) if csv is not None else ():
            output.say(sentence)
        for name in begun.kept:
            output.say(f"{Path(folder, name)} is there already, and is kept")
        where = "" if place.resolve() == Path.cwd() else f"-C {shlex.quote(folder)} "
        output.say(f"Next: `syncengine {where}plan`, `syncengine {where}apply`.")
        output.say(f"{place / 'syncengine.yaml'} says how to go on.")
    return ExitCode.DONE


def _installation(install: str | None) -> Installation:
    from syncengine.tools.init.installation import DEFAULT, installation_of

    try:
        return DEFAULT if install is None else installation_of(install)
    except ValueError as error:
        raise click.UsageError(f"--install {install!r}: {error}") from None


def _schemas() -> dict[str, str]:
    from syncengine.render.json import dumped
    from syncengine.render.schemas.published import schemas

    made = schemas()
    return {f"schemas/{name}": dumped(made[name]) for name in SCHEMAS}


def _repeats(file: Path, name: str) -> list[str]:
    from syncengine.tools.init.from_csv import repeats_of

    found = repeats_of(file, name)
    more = len(found) - REPEATS
    return found if more <= 0 else [*found[:REPEATS], f"{name}: {more} more are in several lines"]
