"""init, schema: create a project, add CI jobs to one, and write the JSON Schemas of all formats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import UNSET

from syncengine.cli.help import command
from syncengine.cli.options import Globals, with_globals
from syncengine.cli.output import Output, printing_command, show
from syncengine.errors import ExitCode, SyncengineError

WITHOUT_INSTALL = (
    "--ci needs --install REQUIREMENT, what the jobs install, since no public package index has this program: "
    "NAME==VERSION of your own, a Git URL with @COMMIT, or a wheel; in a clone of this program, "
    "`git remote get-url origin` prints the URL (write git+https://… or git+ssh://…), and `git rev-parse HEAD` the "
    "commit"
)


@command("init", "syncengine init matters --from-csv matters.csv\n# start a project from your own list")
@click.argument("folder", metavar="[DIR]", default=".")
@click.option("--from-csv", "csv", metavar="FILE", help="Write a first `generate` block from the header of this file.")
@click.option("--key", metavar="COLUMN", help="The column of that file whose values name the tags.")
@click.option(
    "--ci",
    type=click.Choice(["github", "gitlab"]),
    help="Write CI jobs for this host; in an existing project, write only them. Needs --install.",
)
@click.option(
    "--install",
    metavar="REQUIREMENT",
    help="What CI jobs install: NAME==VERSION of your own on a package index, a Git repository (git+https://…@COMMIT), "
    "the path or URL of a wheel, or the URL of your package index.",
)
@printing_command
def init(
    options: Globals, format: str, folder: str, csv: str | None, key: str | None, ci: str | None, install: str | None
) -> int:
    """Create a project in DIR: project file, example manifests, CI examples, schemas, .gitignore.

    It can plan and apply against the embedded sandbox right away. Existing files are kept.
    """
    from syncengine.document.text import as_word
    from syncengine.render.escape import file_name
    from syncengine.render.formats import InitFormat
    from syncengine.tools.init import advice, create
    from syncengine.tools.init.from_csv import generated
    from syncengine.tools.init.jobs import UNCHOSEN, WAYS, installation_of

    if key is not None and csv is None:
        raise click.UsageError("--key names a column of the file in --from-csv, which is missing")
    output, place = Output(options, options.folder), options.folder / folder
    if place.is_file():
        raise click.UsageError(f"{folder} is a file: DIR is the folder to create, and a list goes with --from-csv")

    def this(**changed: str) -> str:
        """Return this very command with other values of some options, to copy into a shell."""
        values = {"from-csv": csv, "key": key, "ci": ci, "install": install} | changed
        words = [word for name, value in values.items() if value is not None for word in (f"--{name}", value)]
        return " ".join(map(as_word, ["syncengine", "init", *([folder] if folder != "." else []), *words]))

    if ci is not None and install is None:
        for way, example in WAYS.items():
            output.say(f"{way}:", level="error")
            output.say(f"  {this(install=example)}{options.place()}", level="error")
        raise click.UsageError(WITHOUT_INSTALL)
    try:
        installation = UNCHOSEN if install is None else installation_of(install)
    except ValueError as error:
        raise click.UsageError(f"--install {install!r}: {error}") from None
    made = None if csv is None else generated(options.folder / csv, csv, place, key, lambda key: this(key=key))
    run = "syncengine " if place.resolve() == Path.cwd() else f"syncengine -C {as_word(str(place))} "
    created = create(place, made, ci, installation, run)
    document = InitFormat(created.written, created.kept, UNSET if made is None else made.left_out)
    text = "".join(f"Wrote {file_name(str(Path(folder, name)))}\n" for name in created.written)
    show(options, format, document, text)
    if format == "json":
        return ExitCode.DONE
    for sentence in advice(made) if made is not None else ():
        output.say(sentence)
    for name in created.kept:
        output.say(f"{Path(folder, name)} already exists and was kept.")
    output.say("Next:")
    for number, step in enumerate(created.steps, 1):
        output.say(f"{number:2}. {step}")
    return ExitCode.DONE


@command("schema", "syncengine schema -o schemas\n# write all schemas to a folder, for editors")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("-o", "folder", metavar="DIR", help="The folder to write to.  [default: the current folder]")
@with_globals
def schema(options: Globals, names: Sequence[str], folder: str | None) -> int:
    """Write the JSON Schemas of all formats to a folder, or print a single one to stdout.

    NAME is the schema's file name without suffix: manifest, project, plan, report, diagnostics and so on. With -o, or
    several NAMEs, these schemas are written to the folder.
    """
    from syncengine.cli.output_files import OutputFiles
    from syncengine.document.diagnostics import suggestion
    from syncengine.project.files import refuse_links, write_whole
    from syncengine.render.documents import dumped
    from syncengine.render.schemas import SUFFIX, schemas

    output = Output(options, options.folder)
    by_file = schemas()
    by_name = {name.removesuffix(SUFFIX): name for name in by_file}
    short = [name.removesuffix(SUFFIX) for name in names]
    if unknown := [name for name in short if name not in by_name]:
        hint = suggestion(unknown[0], by_name) or f": choose from {', '.join(by_name)}"
        raise click.UsageError(f"there is no schema {unknown[0]!r}{hint}")
    chosen = {by_name[name]: by_file[by_name[name]] for name in short or by_name}
    if len(chosen) == len(names) == 1 and folder is None:
        output.data(dumped(*chosen.values()))
        return ExitCode.DONE
    place = options.folder / (folder or ".")
    outputs = OutputFiles(options.folder)
    try:
        refuse_links(place)
        place.mkdir(parents=True, exist_ok=True)
        for name in chosen:
            outputs.refuse_unsuitable(str(Path(folder or ".", name)), "-o")
        for name, content in chosen.items():
            write_whole(place / name, [dumped(content).encode()])
            output.say(f"Wrote {place / name}")
    except OSError as error:
        raise SyncengineError(
            f"the schemas cannot be written to {place}: {error.strerror}", code="unwritable-file"
        ) from None
    return ExitCode.DONE
