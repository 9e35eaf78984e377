"""A client for a command that makes a call or two of the service by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from syncengine.cli.options import Globals
from syncengine.cli.output import Output

if TYPE_CHECKING:
    from syncengine.service.client import Client
    from syncengine.settings import Project

T = TypeVar("T")


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
