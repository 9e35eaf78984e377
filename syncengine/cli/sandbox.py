"""sandbox: run the embedded service in the foreground."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from syncengine.cli.help import Command
from syncengine.cli.options import Globals, with_globals
from syncengine.cli.output import Output
from syncengine.errors import ExitCode
from syncengine.project import folder
from syncengine.project.atomic_write import write_whole
from syncengine.render.escape import file_name


@click.command(cls=Command, epilog="syncengine sandbox --port 0\n# run on a free port, with a console page")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8765,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0 takes a free one.",
)
@click.option("--data", metavar="FILE", help="The file for its data (default: .syncengine/sandbox/service.db).")
@click.option("--api-key", default="sandbox", show_default=True, help="The API key to accept.")
@with_globals
def sandbox(options: Globals, host: str, port: int, data: str | None, api_key: str) -> int:
    """Run the embedded service in the foreground, until it is interrupted.

    Its interface is at /connect/api, and a console page at /.
    """
    from syncengine.sandbox.app import RunningSandbox, serve

    output = Output(options, options.folder)
    file = options.folder / (data or Path(".syncengine", "sandbox", "service.db"))
    folder.make(file.parent)

    address = address_file(file)

    def ready(running: RunningSandbox) -> None:
        leaving.callback(address.unlink, missing_ok=True)
        write_whole(address, [running.url.encode()])
        output.data(f"Sandbox at {running.url} (data in {file_name(str(file))})\n")
        output.say(f"Console page at {running.console_url}. Stop it with Ctrl-C.")

    with ExitStack() as leaving:
        serve(host, port, file, api_key, ready=ready)
    return ExitCode.DONE


def address_file(data: Path) -> Path:
    """Return the file with the URL of a foreground sandbox, which `--sandbox` reads while `data` is locked."""
    return data.with_suffix(".url")
