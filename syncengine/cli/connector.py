"""connector: register the connector, or check its key with a call."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from syncengine.cli.data_output import printing_command, show
from syncengine.cli.help import HelpfulGroup
from syncengine.cli.options import Globals, group_with_globals
from syncengine.cli.service_call import calling
from syncengine.render.escape import visible

if TYPE_CHECKING:
    from syncengine.connector.registration import Registered

CONNECTOR_FORMAT = "syncengine.connector/v1"


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
    return show(options, format, _document(registered), _text(registered))


@connector.command("check", epilog="syncengine connector check\n# print the team of the key")
@printing_command
def check_connector(options: Globals, format: str) -> int:
    """Check the key with a call, and print its team.

    Fails if that team differs from the team of the project or of the state.
    """
    from syncengine.connector.connection import proven_team

    team = calling(options, proven_team)
    document = {"format": CONNECTOR_FORMAT, "team": team}
    return show(options, format, document, f"The key belongs to team {visible(team)!r}.\n")


def _document(registered: Registered) -> dict[str, object]:
    return {
        "format": CONNECTOR_FORMAT,
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
