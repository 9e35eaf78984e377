"""connector: registration, and a call that proves the key; health: failures by hand."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from syncengine.cli.data_output import printing_command, show
from syncengine.cli.help import Group
from syncengine.cli.options import Globals
from syncengine.cli.service_call import calling
from syncengine.render.escape import visible

if TYPE_CHECKING:
    from syncengine.connector.registration import Registered

TYPES = ("unknown", "unreachable", "authentication", "permissions", "subscription")
PUBLISHED = (
    "TARGET_UNREACHABLE",
    "TARGET_AUTH_FAILURE",
    "TARGET_PERMISSIONS_FAILURE",
    "TARGET_SUBSCRIPTION_FAILURE",
)
"""The interface's own names of them (docs/interface.md 2.7); UNKNOWN is the same."""


@click.group(cls=Group)
def connector() -> None:
    """Register this connector, or check that the service accepts its key."""


@connector.command("register")
@printing_command
def register_connector(given: Globals, format: str) -> int:
    """Tell the service who connects, and remember its settings for us. The secrets of its answer are dropped."""
    from syncengine.connector.registration import register
    from syncengine.state.connector_settings import remember

    registered = calling(given, lambda client, project: register(client, time.time(), project.service.connector_type))
    remember(given.project().state, registered.configuration)
    return show(given, format, _document(registered), _text(registered))


@connector.command("check")
@printing_command
def check_connector(given: Globals, format: str) -> int:
    """Make an authenticated call that names the team. Fails for another one than the project's, or the state's."""
    from syncengine.connector.connection import proven_team

    team = calling(given, proven_team)
    return show(given, format, {"team": team}, f"The key belongs to team {visible(team)!r}.\n")


@click.group(cls=Group)
def health() -> None:
    """Report or clear a health failure by hand."""


@health.command("report")
@click.argument("kind", metavar="TYPE", type=click.Choice((*TYPES, *PUBLISHED), case_sensitive=False))
@click.option("--message", metavar="TEXT", help="Shown to users instead of the type's own message.")
@printing_command
def report_health(given: Globals, format: str, kind: str, message: str | None) -> int:
    """Report that the connected system is in trouble. Everybody who posts time is told so until it is cleared.

    TYPE is unknown, unreachable, authentication, permissions or subscription, or the interface's name of one.
    """
    from syncengine.connector.registration import ErrorType, Failure, by_hand

    type = ErrorType(kind) if kind in PUBLISHED else ErrorType[kind.upper()]
    failure = Failure(type, message)
    calling(given, lambda client, _: by_hand(client, failure))
    document = {"reported": {"errorType": failure.type.value, "userErrorMessage": message}}
    return show(given, format, document, f"Reported: {failure.type.value}. `syncengine health clear` clears it.\n")


@health.command("clear")
@printing_command
def clear_health(given: Globals, format: str) -> int:
    """Clear whatever failure was reported."""
    from syncengine.connector.registration import by_hand

    calling(given, lambda client, _: by_hand(client, None))
    return show(given, format, {"reported": None}, "Cleared.\n")


def _document(registered: Registered) -> dict[str, object]:
    return {
        "serviceId": registered.service_id,
        "serviceIdExpiry": registered.expires,
        "groupName": registered.group,
        "regionName": registered.region,
        "connectorConfiguration": dict(registered.configuration),
    }


def _text(registered: Registered) -> str:
    facts = {
        "service id": registered.service_id,
        "expires": registered.expires,
        "group": registered.group,
        "region": registered.region,
        **registered.configuration,
    }
    lines = [f"  {visible(str(name))}: {visible(str(value))}" for name, value in facts.items() if value is not None]
    return "\n".join(["Registered.", *lines, ""])
