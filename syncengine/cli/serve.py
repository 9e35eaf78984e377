"""serve: run the connector until it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import closing
from dataclasses import asdict

import click

from syncengine.cli.help import Command
from syncengine.cli.options import Globals, with_globals
from syncengine.cli.streams import Lines
from syncengine.document.gc_pause import rare_collection
from syncengine.errors import ExitCode, SyncengineError


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
    from syncengine.cli.apply import serving
    from syncengine.cli.debug import trace_requests
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
            rare_collection()
            asyncio.run(process.run(leave))
        except SyncengineError as error:
            log.refusal("ended", error)
            return error.exit_code
    return ExitCode.DONE
