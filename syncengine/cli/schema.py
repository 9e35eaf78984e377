"""schema: write the JSON Schemas of all formats to files, or one to stdout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from syncengine.cli.help import Command
from syncengine.cli.options import Globals, with_globals
from syncengine.cli.output import Output
from syncengine.errors import ExitCode, SyncengineError


@click.command(cls=Command, epilog="syncengine schema -o schemas\n# write all schemas to a folder, for editors")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("-o", "folder", metavar="DIR", help="The folder to write to.  [default: the current folder]")
@with_globals
def schema(options: Globals, names: Sequence[str], folder: str | None) -> int:
    """Write the JSON Schemas of all formats to a folder, or print a single one to stdout.

    NAME is the schema's file name without suffix: manifest, project, plan, report, diagnostics and so on. With -o, or
    several NAMEs, these schemas are written to the folder.
    """
    from syncengine.cli.output_files import OutputFiles
    from syncengine.project.atomic_write import refuse_links, write_whole
    from syncengine.render.json import dumped

    output = Output(options, options.folder)
    chosen = _schemas(names)
    if len(chosen) == len(names) == 1 and folder is None:
        output.data(dumped(*chosen.values()))
        return ExitCode.DONE
    place = options.folder / (folder or ".")
    for name in chosen:
        OutputFiles(options.folder).refuse_unsuitable(str(place / name), "-o")
    try:
        refuse_links(place)
        place.mkdir(parents=True, exist_ok=True)
        for name, content in chosen.items():
            write_whole(place / name, [dumped(content).encode()])
            output.say(f"Wrote {place / name}")
    except OSError as error:
        raise SyncengineError(
            f"the schemas cannot be written to {place}: {error.strerror}", code="unwritable-file"
        ) from None
    return ExitCode.DONE


def _schemas(names: Sequence[str]) -> dict[str, Any]:
    """Return the schemas with these names, or all schemas without names, by file name."""
    from syncengine.document.diagnostics import suggestion
    from syncengine.render.schemas.published import SUFFIX, schemas

    by_file = schemas()
    by_name = {name.removesuffix(SUFFIX): name for name in by_file}
    for name in names:
        if name.removesuffix(SUFFIX) not in by_name:
            hint = suggestion(name, by_name) or f": choose from {', '.join(by_name)}"
            raise click.UsageError(f"there is no schema {name!r}{hint}")
    return {by_name[short]: by_file[by_name[short]] for short in (n.removesuffix(SUFFIX) for n in names or by_name)}
