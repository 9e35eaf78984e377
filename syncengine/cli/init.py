"""init: create a project, or add CI jobs to one."""

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
SCHEMAS = ("manifest.schema.json", "project.schema.json")
"""The schemas of the files that people edit."""


@click.command(cls=Command)
@click.argument("folder", metavar="[DIR]", default=".")
@click.option("--from-csv", "csv", metavar="FILE", help="Write a first `generate` block from the header of this file.")
@click.option("--key", metavar="COLUMN", help="The column of that file whose values name the tags.")
@click.option(
    "--ci",
    type=click.Choice(["github", "gitlab"]),
    help="Write CI jobs for this host; in an existing project, write only them.",
)
@click.option(
    "--install",
    metavar="REQUIREMENT",
    help="The package that CI jobs install: a requirement, the path of a wheel, or the https URL of a wheel, "
    f"a repository (git+https) or a package index.  [default: {DISTRIBUTION}, this version]",
)
@printing_command
def init(
    options: Globals, format: str, folder: str, csv: str | None, key: str | None, ci: str | None, install: str | None
) -> int:
    """Create a project in DIR: project file, example manifests, CI examples, schemas, .gitignore.

    It can plan and apply against the embedded sandbox right away. Existing files are kept.
    """
    from syncengine.document.nodes import quoted
    from syncengine.render.escape import file_name
    from syncengine.render.json import dumped
    from syncengine.tools.init.from_csv import MANIFEST, generated
    from syncengine.tools.init.new_project import SAMPLES, begin, beside_others

    if key is not None and csv is None:
        raise click.UsageError("--key names a column of the file in --from-csv, which is missing")
    output, place = Output(options, options.folder), options.folder / folder
    contents = beside_others(place, _contents(place, _installation(install), ci))
    left_out: tuple[str, ...] = ()
    if csv is not None:
        contents = {name: text for name, text in contents.items() if name not in SAMPLES}
        files, left_out = generated(options.folder / csv, csv, place, key)
        contents |= files
    begun = begin(place, contents)
    if format == "json":
        columns = {} if csv is None else {"leftOut": list(left_out)}
        output.data(dumped({"format": INIT_FORMAT, "written": begun.written, "kept": begun.kept, **columns}))
    else:
        output.data("".join(f"Wrote {file_name(str(Path(folder, name)))}\n" for name in begun.written))
        if left_out:
            output.say(
                f"Columns that may hold persons or addresses are left out: {', '.join(map(quoted, left_out))}; "
                f"the end of {MANIFEST} says how to use them."
            )
        for name in begun.kept:
            output.say(f"{Path(folder, name)} already exists and was kept.")
        where = "" if place.resolve() == Path.cwd() else f"-C {shlex.quote(str(place))} "
        output.say(f"Next: `syncengine {where}plan`, `syncengine {where}apply`.")
        output.say(f"{place / 'syncengine.yaml'} describes the next steps.")
    return ExitCode.DONE


def _contents(place: Path, installation: Installation, ci: str | None) -> dict[str, str | bytes]:
    """Return the files to write. With `--ci` and an existing project, these are only the files for CI."""
    from syncengine.tools.init.new_project import ci_files, is_project, refuse_subfolder, starter_files

    if ci is not None:
        refuse_subfolder(place)
        if is_project(place):
            return {**ci_files(installation, ci)}
    return {**starter_files(installation, ci), **_schemas()}


def _installation(install: str | None) -> Installation:
    from syncengine.tools.init.installation import DEFAULT, installation_of

    try:
        return DEFAULT if install is None else installation_of(install)
    except ValueError as error:
        raise click.UsageError(f"--install {install!r}: {error}") from None


def _schemas() -> dict[str, str]:
    from syncengine.render.json import dumped
    from syncengine.render.schemas.published import schemas

    by_name = schemas()
    return {f"schemas/{name}": dumped(by_name[name]) for name in SCHEMAS}
