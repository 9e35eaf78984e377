"""Call the service, or the embedded sandbox, for a command."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from syncengine.cli.options import Globals, collect_rarely
from syncengine.cli.output import Output
from syncengine.errors import AuthFailed, LockHeld, SyncengineError, WrongTeam
from syncengine.project.files import make_folder
from syncengine.project.model import Project

if TYPE_CHECKING:
    from syncengine.service.client import Client

T = TypeVar("T")


def calling(options: Globals, talk: Callable[[Client, Project], Awaitable[T]]) -> T:
    """Run `talk` with a client of the project's service, and return its result."""
    from syncengine.cli.plan_options import announce
    from syncengine.connector.connection import client_of

    collect_rarely()
    project = options.project()
    output = Output(options, project.root)
    announce(project, output)
    project.base_url()
    project.api_key()
    if project.warnings:
        output.diagnostics(project.warnings)

    async def talking(base_url: str) -> T:
        async with client_of(project, base_url) as client:
            return await talk(client, project)

    with serving(project) as base_url:
        return asyncio.run(talking(base_url))


def service_settings(options: Globals) -> Mapping[str, Any] | None:
    """Return `connectorConfiguration`, or `None`, with a warning, when the service cannot be asked.

    Return `None` for a project without a service or key. Raise `WrongTeam` or `AuthFailed` for a wrong key.
    """
    from syncengine.connector.connection import prove_team
    from syncengine.connector.registration import NOT_REGISTERED, settings_of

    project = options.project()
    output = Output(options, project.root)

    def say(why: str) -> None:
        output.say(why, level="warning")

    async def ask(client: Client, project: Project) -> Mapping[str, Any] | None:
        await prove_team(client, project)
        return await settings_of(client, time.time(), project.service.connector_type, say)

    if not project.is_sandbox and None in (project.service.base_url, project.service.api_key):
        return None
    try:
        return calling(options, ask)
    except (AuthFailed, WrongTeam):
        raise
    except SyncengineError as error:
        say(f"{NOT_REGISTERED}: {error.message}")
        return None


@contextmanager
def serving(project: Project) -> Iterator[str]:
    """Yield the base URL of the service. The embedded sandbox is started for the block, unless it is running."""
    if not project.is_sandbox:
        yield project.base_url()
        return
    from syncengine.sandbox.app import running_sandbox

    make_folder(project.sandbox_data.parent)
    with ExitStack() as stack:
        try:
            url = stack.enter_context(running_sandbox(project.sandbox_data, api_key=project.api_key())).url
        except LockHeld:
            address = address_file(project.sandbox_data)
            if not address.exists():
                raise
            url = address.read_text(encoding="utf-8")
        yield url


def address_file(data: Path) -> Path:
    """Return the file with the URL of a foreground sandbox, which `--sandbox` reads while `data` is locked."""
    return data.with_suffix(".url")
