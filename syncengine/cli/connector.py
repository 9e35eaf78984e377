"""connector, health: register the connector, check its key, report or clear a failure by hand."""

from __future__ import annotations

import time

import click

from syncengine.cli.help import HelpfulGroup
from syncengine.cli.options import Globals, group_with_globals
from syncengine.cli.output import printing_command, show
from syncengine.cli.service_call import calling
from syncengine.render.escape import visible
from syncengine.render.formats import ConnectorFormat, HealthFormat, ReportedHealth


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
    from syncengine.connector.connection import proven_team

    team = calling(options, proven_team)
    return show(options, format, ConnectorFormat(team=team), f"The key belongs to team {visible(team)!r}.\n")


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

    type = ErrorType(kind) if kind in PUBLISHED else ErrorType[kind.upper()]
    failure = HealthFailure(type, message)
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
