"""`serve` inside the test's own process with short waits, so that a test can play many outages."""

import asyncio
import io
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TextIO

import pytest

from syncengine.posted_time import sink_health
from syncengine.posted_time.pace import Pace
from syncengine.project.load import load_project
from syncengine.project.model import Project
from syncengine.serve.log import Log
from syncengine.serve.process import Process
from syncengine.service.operations import OPERATIONS
from tests.cli.service import KEY
from tests.posted_time.desk import SWIFT

from .world import CALLER_KEY, World

RESTS = {"FIRST_REST": 0.1, "LONGEST_REST": 0.5}
"""The pauses before a sink that failed is tried again, in seconds."""


def process_in(folder: Path, stream: TextIO, load: Callable[..., Project] = load_project, **pace: Pace) -> Process:
    """`serve` in a project's folder, with its log in `stream`."""
    environ = {"SYNCENGINE_API_KEY": KEY, "CALLER_KEY": CALLER_KEY}
    return Process(
        lambda: load(folder=folder, environ=environ, operations=OPERATIONS),
        lambda project: nullcontext(project.base_url()),
        environ,
        Log(stream, time.time),
        **pace,
    )


def work(
    estate: World,
    watch: Callable[[], object],
    load: Callable[..., Project] = load_project,
    stream: io.StringIO | None = None,
) -> str:
    """Serve until `watch` returns, and return the log. A given `stream` lets `watch` read the log meanwhile. An error
    of `serve`, or of a task that nobody awaited, fails the test."""
    stream = stream or io.StringIO()
    process = process_in(estate.project.folder, stream, load, pace=SWIFT)
    unseen: list[str] = []

    async def play() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(repr(context)))
        working = asyncio.create_task(process.work(process.load_configuration()))
        watching = asyncio.create_task(asyncio.to_thread(watch))
        try:
            await asyncio.wait([working, watching], return_when=asyncio.FIRST_COMPLETED)
            if not watching.done():
                await working
                raise AssertionError(f"serve ended by itself: {stream.getvalue()}")
            await watching
        finally:
            process.stop()
            await working

    with pytest.MonkeyPatch.context() as hurry:
        for name, seconds in RESTS.items():
            hurry.setattr(sink_health, name, seconds)
        asyncio.run(play())
    assert unseen == []
    return stream.getvalue()
