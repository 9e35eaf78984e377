"""A client for a command that makes a call or two of the service by hand, and how its errors are shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from syncengine.cli.options import Globals, with_globals
from syncengine.cli.output import Output
from syncengine.errors import ExitCode, SyncengineError

if TYPE_CHECKING:
    from syncengine.service.client import Client
    from syncengine.settings import Project

T = TypeVar("T")


def service_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """Global options, `--format`, and errors in the format that was asked for."""

    @click.option("--format", "format", type=click.Choice(["text", "json"]), default="text", show_default=True)
    @with_globals
    @wraps(command)
    def wrapped(given: Globals, format: str, **options: Any) -> Any:
        try:
            return command(given=given, format=format, **options)
        except SyncengineError as error:
            return Output(given, given.folder).refusal(error, format)

    return wrapped


def calling(given: Globals, talk: Callable[[Client, Project], Awaitable[T]]) -> T:
    """What `talk` comes to with a client of the project's service."""
    from syncengine.cli.applying import serving
    from syncengine.cli.requests import announce
    from syncengine.connection import client_of

    project = given.project()
    announce(project, Output(given, project.root))
    project.base_url()
    project.api_key()

    async def talking(base_url: str) -> T:
        async with client_of(project, base_url) as client:
            return await talk(client, project)

    with serving(project) as base_url:
        return asyncio.run(talking(base_url))


def show(given: Globals, format: str, document: Any, text: str) -> int:
    """Data to stdout, as JSON or for people."""
    from syncengine.render.json import dumped

    Output(given, given.folder).data(dumped(document) if format == "json" else text)
    return ExitCode.DONE
