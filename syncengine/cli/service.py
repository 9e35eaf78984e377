"""The commands that call the service, or run it: connector, health, drift, serve and sandbox."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from syncengine.cli.help import HelpfulGroup, command
from syncengine.cli.option_types import Age, WholeNumber, of_addresses, since
from syncengine.cli.options import Globals, collect_rarely, group_with_globals, with_globals
from syncengine.cli.output import Output, output_format, printing_command, show
from syncengine.cli.streams import Lines
from syncengine.errors import AuthFailed, ExitCode, GateTripped, LockHeld, SyncengineError, Usage, WrongTeam
from syncengine.project.files import write_whole
from syncengine.project.model import Project
from syncengine.project.runner import is_ci
from syncengine.render.escape import file_name, visible
from syncengine.render.formats import ConnectorFormat, HealthFormat, ReportedHealth

if TYPE_CHECKING:
    from syncengine.posted_time.drift import Drift
    from syncengine.service.client import Client

T = TypeVar("T")

# --- calls of any command


def calling(options: Globals, talk: Callable[[Client, Project], Awaitable[T]]) -> T:
    """Run `talk` with a client of the project's service, and return its result."""
    from syncengine.connector.connection import client_of

    collect_rarely()
    project = options.project()
    output = Output(options, project.root)
    output.announce(project)
    project.base_url()  # or its absence, and that of the key, would be found only after the sandbox is started
    project.api_key()
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


# --- connector, health


@click.group(cls=HelpfulGroup, epilog="syncengine connector check\n# print the team of the key")
@group_with_globals
def connector() -> None:
    """Register this connector, or check that the service accepts its key."""


@connector.command("register", epilog="syncengine connector register\n# register with the service")
@printing_command
def register_connector(options: Globals, format: str) -> int:
    """Register this connector with the service.

    The settings that the service returns are stored in the state, without their secrets.
    """
    from syncengine.connector.registration import register
    from syncengine.state.connector import remember_settings

    registered = calling(options, lambda client, project: register(client, time.time(), project.service.connector_type))
    remember_settings(options.project().state, registered.configuration)
    facts = {
        "service id": registered.service_id,
        "expires": registered.expires,
        "group": registered.group,
        "region": registered.region,
        **registered.configuration,
    }
    document = ConnectorFormat(
        service_id=registered.service_id,
        service_id_expiry=registered.expires,
        group_name=registered.group,
        region_name=registered.region,
        connector_configuration=dict(registered.configuration),
    )
    lines = [f"  {visible(str(name))}: {visible(str(value))}" for name, value in facts.items() if value is not None]
    return show(options, format, document, "\n".join(["Registered.", *lines, ""]))


@connector.command("check", epilog="syncengine connector check\n# print the team of the key")
@printing_command
def check_connector(options: Globals, format: str) -> int:
    """Check the key with a call, and print its team.

    Fails if that team differs from the team of the project or of the state.
    """
    from syncengine.connector.connection import prove_team

    team = calling(options, partial(prove_team, binds=False))
    return show(options, format, ConnectorFormat(team=team), f"The key belongs to team {visible(team)!r}.\n")


# As in `ErrorType`, whose module loads the service's client and SQLAlchemy, which help can do without.
TYPES = ("unknown", "unreachable", "authentication", "permissions", "subscription")
PUBLISHED = (
    "TARGET_UNREACHABLE",
    "TARGET_AUTH_FAILURE",
    "TARGET_PERMISSIONS_FAILURE",
    "TARGET_SUBSCRIPTION_FAILURE",
)
"""The names that the service's interface has for `TYPES` (docs/interface.md 2.7). UNKNOWN is the same in both."""


@click.group(cls=HelpfulGroup, epilog="syncengine health clear\n# clear the reported failure")
@group_with_globals
def health() -> None:
    """Report or clear a health failure by hand."""


@health.command(
    "report",
    epilog="syncengine health report unreachable --message 'Back at noon.'\n"
    "# show a message to everyone who posts time",
)
@click.argument("kind", metavar="TYPE", type=click.Choice((*TYPES, *PUBLISHED), case_sensitive=False))
@click.option("--message", metavar="TEXT", help="Shown to users instead of the default message of the type.")
@printing_command
def report_health(options: Globals, format: str, kind: str, message: str | None) -> int:
    """Report a failure of the connected system. Everyone who posts time sees it until it is cleared.

    TYPE is unknown, unreachable, authentication, permissions or subscription, or its name in the interface of the
    service, such as TARGET_UNREACHABLE.
    """
    from syncengine.connector.registration import ErrorType, HealthFailure, by_hand

    failure = HealthFailure(ErrorType(kind) if kind in PUBLISHED else ErrorType[kind.upper()], message)
    calling(options, lambda client, project: by_hand(client, failure, project.state))
    document = HealthFormat(ReportedHealth(failure.type, message))
    return show(options, format, document, f"Reported: {failure.type.value}. `syncengine health clear` clears it.\n")


@health.command("clear", epilog="syncengine health clear\n# clear the reported failure")
@printing_command
def clear_health(options: Globals, format: str) -> int:
    """Clear the reported failure."""
    from syncengine.connector.registration import by_hand

    calling(options, lambda client, project: by_hand(client, None, project.state))
    return show(options, format, HealthFormat(None), "Cleared.\n")


# --- drift


@command("drift", "syncengine drift --since 7d --unused 180d\n# this week's drift, and tags unused for half a year")
@since("Read the time submitted since", default="30d")
@click.option(
    "--unused",
    type=Age(),
    metavar="DURATION",
    help="List declared tags that were not used for this long, such as 180d.",
)
@of_addresses("--exclude", "excludes", help="Leave out these addresses (globs), such as tags of other tools.")
@output_format("text", "json", "markdown")
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 on any finding other than an unused tag.")
@with_globals
def drift(
    options: Globals, since: float, unused: float | None, excludes: Sequence[str], format: str, detailed_exitcode: bool
) -> int:
    """Compare the tags in posted time with the applied ones. Nothing is changed, either on the service or in the state.

    Only tags and times of submission are read. Markdown, and all output in CI, shows only names that may be published.
    """
    from syncengine.apply.guards import refuse_other_service
    from syncengine.connector.connection import check_team, team_of
    from syncengine.posted_time.drift_reading import Window, drift_of
    from syncengine.render.documents import dumped
    from syncengine.render.drift import drift_document, drift_markdown, drift_text, incompleteness
    from syncengine.render.markdown import errors_markdown
    from syncengine.state.folder_memory import memory_of
    from syncengine.state.store import open_state

    for name in excludes:
        if "/" not in name and not name.startswith(("*", "?", "[")):
            raise Usage(
                f"--exclude {name} leaves nothing out, since an address is KIND/NAME; did you mean `tag/{name}`?"
            )
    window = Window(since, None if unused is None else max(0.0, time.time() - unused), tuple(excludes))
    output = Output(options, options.folder)
    published = is_ci(os.environ)

    async def compared(client: Client, project: Project) -> Drift:
        with open_state(project.state, write=False, memory=memory_of(project)) as state:
            if not state.exists:
                if published and not project.is_sandbox:
                    message = "there is no state, so every tag would be unknown in this CI job"
                    raise GateTripped(f"{message}: check `state` in the project file, or apply first", code="no-state")
                output.say("there is no state yet, so every tag is unknown", level="warning")
            facts = state.facts()
            refuse_other_service(facts, project.base_url())
            if facts.team is not None or project.service.team is not None:  # else there is nothing to compare with
                check_team(await team_of(client), project, facts.team)
            return await drift_of(client, state, window)

    try:
        result = calling(options, compared)
    except SyncengineError as error:
        if format == "markdown":
            output.data(errors_markdown("Drift could not be checked", error.diagnostics()))
        return output.refusal(error, "text" if format == "markdown" else format)
    for message in incompleteness(result, published=published):
        output.say(message, level="warning")
    if format == "markdown":
        output.data(drift_markdown(result, options.place()))
    elif format == "json":
        output.data(dumped(drift_document(result, published=published)))
    else:
        output.data(drift_text(result, output.look(), published=published, options=options.place()))
    if not result.reading.is_complete:
        return ExitCode.INCOMPLETE
    return ExitCode.CHANGES if detailed_exitcode and not result.is_clean else ExitCode.DONE


# --- serve, sandbox


@command("serve", "syncengine serve --log-format text\n# run until stopped, with a log for people")
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
            process.run(leave)
        except SyncengineError as error:
            log.refusal("ended", error)
            return error.exit_code
    return ExitCode.DONE


@command("sandbox", "syncengine sandbox --port 0\n# run on a free port, with a console page")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8765,
    show_default=True,
    type=WholeNumber(0, 65535),
    help="The port to listen on; 0 takes a free one.",
)
@click.option("--data", metavar="FILE", help="The file for its data (default: .syncengine/sandbox/service.db).")
@click.option("--api-key", default="sandbox", show_default=True, help="The API key to accept.")
@with_globals
def sandbox(options: Globals, host: str, port: int, data: str | None, api_key: str) -> int:
    """Run the embedded service in the foreground, until it is interrupted.

    Its interface is at /connect/api, and a console page at /.
    """
    from syncengine.sandbox.app import RunningSandbox
    from syncengine.sandbox.app import serve as run_sandbox

    collect_rarely()
    output = Output(options, options.folder)
    file = options.folder / (data or Path(".syncengine", "sandbox", "service.db"))
    address = address_file(file)

    def ready(running: RunningSandbox) -> None:
        leaving.callback(address.unlink, missing_ok=True)
        write_whole(address, [running.url.encode()])
        output.data(f"Sandbox at {running.url} (data in {file_name(str(file))})\n")
        output.say(f"Console page at {running.console_url}. Stop it with Ctrl-C.")

    with ExitStack() as leaving:
        run_sandbox(host, port, file, api_key, ready=ready)
    return ExitCode.DONE
