"""serve, sandbox: run the connector, or the embedded service, until it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path

import click

from syncengine.cli.help import Command
from syncengine.cli.options import Globals, collect_rarely, with_globals
from syncengine.cli.output import Output
from syncengine.cli.service_call import address_file
from syncengine.cli.streams import Lines
from syncengine.errors import ExitCode, SyncengineError
from syncengine.project.files import make_folder, write_whole
from syncengine.render.escape import file_name


@click.command(cls=Command, epilog="syncengine serve --log-format text\n# run until stopped, with a log for people")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Address of /healthz, /readyz and /metrics (default: that of the project file).",
)
@with_globals
def serve(options: Globals, listen: str | None) -> int:
    """Reconcile on an interval, deliver posted time and report health, until SIGTERM.

    The log goes to stderr, one JSON object per line; `--log-format text` is for people.
    """
    # By default SIGHUP would end the process until the loop listens to it; the project file is read after this anyway.
    signal.signal(signal.SIGHUP, lambda number, frame: None)
    from syncengine.cli.service_call import serving
    from syncengine.cli.streams import trace_requests
    from syncengine.project.delivery_schema import listen as address_of
    from syncengine.serve.log import Log, QueuedStream, quiet_libraries
    from syncengine.serve.process import Process

    address = address_of(listen) if listen else None
    if listen and address is None:
        raise click.UsageError(f"--listen {listen!r}: write HOST:PORT, such as 127.0.0.1:8766")
    with closing(QueuedStream(sys.stderr)) as stream:
        log = Log(Lines(stream), time.time, json=options.log_format != "text", quiet=bool(options.quiet))
        if options.debug:
            trace_requests(lambda traced: log.debug("request", str(traced), **asdict(traced)))

        def leave() -> None:
            stream.close()
            os._exit(ExitCode.INTERRUPTED)

        process = Process(options.project, serving, os.environ, log, listen=address)
        try:
            quiet_libraries()
            collect_rarely()
            asyncio.run(process.run(leave))
        except SyncengineError as error:
            log.refusal("ended", error)
            return error.exit_code
    return ExitCode.DONE


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

    collect_rarely()
    output = Output(options, options.folder)
    file = options.folder / (data or Path(".syncengine", "sandbox", "service.db"))
    make_folder(file.parent)

    address = address_file(file)

    def ready(running: RunningSandbox) -> None:
        leaving.callback(address.unlink, missing_ok=True)
        write_whole(address, [running.url.encode()])
        output.data(f"Sandbox at {running.url} (data in {file_name(str(file))})\n")
        output.say(f"Console page at {running.console_url}. Stop it with Ctrl-C.")

    with ExitStack() as leaving:
        serve(host, port, file, api_key, ready=ready)
    return ExitCode.DONE
