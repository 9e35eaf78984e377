"""Register this connector with the service, and report its health to users (docs/interface.md 2.6, 2.7).

The secrets in the answer to a registration are dropped while it is parsed: no interface accepts them (docs/interface.md
5), so no code here, log or file ever contains them.
"""

from __future__ import annotations

import asyncio
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from syncengine import __version__
from syncengine.errors import AuthFailed, SyncengineError, TroubleKind
from syncengine.posted_time.events import SinkTrouble
from syncengine.service.answers import Answer
from syncengine.service.client import Client
from syncengine.service.operations import (
    REGISTER_CONNECTOR,
    REPORT_HEALTH_FAILURE,
    RESCIND_HEALTH_FAILURE,
)
from syncengine.service.posted_time import Unanswered, refusal
from syncengine.state.connector import disown, forget_report, is_reported, remember_report
from syncengine.state.database import StateDatabase

NOT_REGISTERED = "the connector could not be registered"


class ErrorType(StrEnum):
    """The kind of failure of the connected system (docs/interface.md 2.7), by the names of `TroubleKind`."""

    UNKNOWN = "UNKNOWN"
    UNREACHABLE = "TARGET_UNREACHABLE"
    AUTHENTICATION = "TARGET_AUTH_FAILURE"
    PERMISSIONS = "TARGET_PERMISSIONS_FAILURE"
    SUBSCRIPTION = "TARGET_SUBSCRIPTION_FAILURE"


@dataclass(frozen=True, slots=True)
class Registered:
    """The answer to a registration without its secrets. `configuration` are the named settings of the service."""

    service_id: str | None
    expires: str | None
    group: str | None
    region: str | None
    configuration: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def renewal(registered: Registered, at: float, least: float) -> float:
    """Return when to register again, before the registration made at `at` expires; both in seconds since the epoch.

    That is after nine tenths of its lifetime, but not within `least` seconds, and infinity if no expiry is known.
    """
    try:
        expires = datetime.fromisoformat(registered.expires or "")
    except ValueError:
        return math.inf
    remaining = (expires if expires.tzinfo else expires.replace(tzinfo=UTC)).timestamp() - at
    return at + max(least, 0.9 * remaining)


def registration(now: float, connector_type: str) -> dict[str, object]:
    """Return the body of a registration at `now`, in seconds since epoch. `connector_type` is the connected system."""
    offset = datetime.fromtimestamp(now, UTC).astimezone().strftime("%z")  # of this machine, like +0100
    return {
        # As texts. The interface's other keys describe another kind of runtime.
        "environment": {
            "clientOs": platform.platform(terse=True),
            "clientArchitecture": platform.machine(),
            "pythonImplementation": platform.python_implementation(),
            "pythonVersion": platform.python_version(),
        },
        "connectorType": connector_type,
        "connectorVersion": __version__,
        "connectorLibraryVersion": __version__,
        "clientTimestamp": int(now * 1000),
        "clientTimeZoneOffset": f"{offset[:3]}:{offset[3:5]}",
    }


async def settings_of(
    client: Client, now: float, connector_type: str, say: Callable[[str], None]
) -> Mapping[str, Any] | None:
    """Return the named settings of the service, or `None` and tell `say` when registration fails.

    The settings of the last registration then stay in force, and time is delivered all the same.
    """
    try:
        return (await register(client, now, connector_type)).configuration
    except AuthFailed:
        raise
    except SyncengineError as error:
        say(f"{NOT_REGISTERED}: {error.message}")
        return None


async def register(client: Client, now: float, connector_type: str) -> Registered:
    """Register this connector with the service. An empty answer counts as accepted, without settings.

    Raise `SyncengineError` without the text of the answer, which may contain secrets.
    """
    answer = await client.call(REGISTER_CONNECTOR, registration(now, connector_type))
    if not answer.ok:
        raise refusal(REGISTER_CONNECTOR, client, replace(answer, data=None) if answer.status else answer)
    data = {} if answer.understood and answer.data is None else answer.data
    if not isinstance(data, dict):
        path = client.path(REGISTER_CONNECTOR)
        raise Unanswered(f"{path} answered {answer.status} with something that its specification does not allow")
    names = ("serviceId", "serviceIdExpiry", "groupName", "regionName")
    texts = [client.shown(value) if isinstance(value := data.get(name), str) else None for name in names]
    service_id, expires, group, region = texts
    configuration = data.get("connectorConfiguration")
    settings = MappingProxyType(dict(configuration) if isinstance(configuration, dict) else {})
    return Registered(service_id, expires, group, region, settings)


@dataclass(frozen=True, slots=True)
class HealthFailure:
    """The failure that users who post time see until it is rescinded."""

    type: ErrorType
    message: str | None = None


def failure_of(troubles: Sequence[SinkTrouble]) -> HealthFailure:
    """Return one failure for all failing sinks: the type of the first, the messages of all."""
    message = " ".join(dict.fromkeys(trouble.message for trouble in troubles))
    return HealthFailure(ErrorType[troubles[0].kind.name], message)


async def report_failure(client: Client, failure: HealthFailure) -> Answer:
    body = {"errorType": failure.type.value, "userErrorMessage": failure.message}
    return await client.call(REPORT_HEALTH_FAILURE, {name: value for name, value in body.items() if value})


async def rescind_failure(client: Client) -> Answer:
    return await client.call(RESCIND_HEALTH_FAILURE, {})


@dataclass(slots=True)
class HealthReporter:
    """Reports to the service, once each, when sinks fail, when their trouble changes, and when all have recovered.

    Only what this connector reported is rescinded, by this process or an earlier one: `database`, of the state, knows.
    `now` returns seconds since the epoch.
    """

    client: Client
    database: StateDatabase
    now: Callable[[], float]
    _reported: frozenset[tuple[str, TroubleKind]] | None = None
    """The troubles in the last report that the service accepted, or `None` when they are unknown."""

    async def tell(self, troubles: Sequence[SinkTrouble]) -> Answer:
        """Report the failing sinks, or rescind the failure when there are none.

        The service may have stored a report that it did not accept, so after a failed report the next is always sent.
        """
        self._reported = None
        if troubles:
            await asyncio.to_thread(remember_report, self.database, self.now())
            answer = await report_failure(self.client, failure_of(troubles))
        else:
            answer = await rescind_failure(self.client)
            if answer.ok:
                await asyncio.to_thread(forget_report, self.database)
        if answer.ok:
            self._reported = _kinds(troubles)
        return answer

    async def is_news(self, troubles: Sequence[SinkTrouble]) -> bool:
        """Return whether these troubles differ from the last report that the service accepted."""
        # A person may have reported something else since, or cleared ours.
        if self._reported != frozenset() and not troubles and not await asyncio.to_thread(is_reported, self.database):
            self._reported = frozenset()
        return self._reported != _kinds(troubles)


def _kinds(troubles: Sequence[SinkTrouble]) -> frozenset[tuple[str, TroubleKind]]:
    return frozenset((trouble.sink, trouble.kind) for trouble in troubles)


async def by_hand(client: Client, failure: HealthFailure | None, state: str) -> None:
    """Report or rescind a failure at a user's request, after which `state` has none at the service to rescind.

    Raise `SyncengineError` when the service does not accept it.
    """
    operation = REPORT_HEALTH_FAILURE if failure else RESCIND_HEALTH_FAILURE
    answer = await (report_failure(client, failure) if failure else rescind_failure(client))
    if not answer.ok:
        raise refusal(operation, client, answer)
    await asyncio.to_thread(disown, state)
