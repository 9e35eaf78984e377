"""The service's rules for connectors: registration and reported failures (docs/interface.md 2.6, 2.7). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from syncengine.sandbox.request import INTEGER, OBJECT, TEXT, FieldType, RuleAnswer, RuleRequest, read_fields
from syncengine.sandbox.world import Draft

MESSAGES = {
    "UNKNOWN": "The connected system has a problem. Time cannot be posted to it now.",
    "TARGET_UNREACHABLE": "The connected system cannot be reached. Time cannot be posted to it now.",
    "TARGET_AUTH_FAILURE": "The connector cannot sign in to the connected system.",
    "TARGET_PERMISSIONS_FAILURE": "The connector is not allowed to post time in the connected system.",
    "TARGET_SUBSCRIPTION_FAILURE": "The subscription of the connected system has a problem.",
}
"""The message to users by type of failure, for reports without a message of their own."""

CREDENTIALS_LAST = timedelta(hours=12)

_FAILURE = {
    "errorType": FieldType(f"one of {', '.join(MESSAGES)}", lambda value: isinstance(value, str) and value in MESSAGES),
    "userErrorMessage": TEXT,
}
_REGISTRATION = {
    "environment": OBJECT,
    "connectorType": TEXT,
    "connectorVersion": TEXT,
    "connectorLibraryVersion": TEXT,
    "clientTimestamp": INTEGER,
    "clientTimeZoneOffset": TEXT,
}


def report(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Report a health failure, which stays in effect until it is rescinded or another report replaces it."""
    values = read_fields(request.body, _FAILURE)
    draft.connect(replace(draft.connection, health={"errorType": "UNKNOWN", **values, "reported": request.now}))
    return RuleAnswer(204, None)


def rescind(draft: Draft, _request: RuleRequest) -> RuleAnswer:
    """Rescind the health failure, if there is one."""
    draft.connect(replace(draft.connection, health=None))
    return RuleAnswer(204, None)


def message(health: Mapping[str, Any] | None) -> str | None:
    """Return the message shown to users who post time, or `None` without a health failure."""
    return None if health is None else health.get("userErrorMessage") or MESSAGES[health["errorType"]]


def register(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Register a connector. Its new credentials are not kept, since nothing uses them (docs/interface.md 5.4)."""
    before = draft.connection.connector or {"serviceId": request.new_id()}
    values = read_fields(request.body, _REGISTRATION)
    connector = {"serviceId": before["serviceId"], **values, "registered": request.now}
    draft.connect(replace(draft.connection, connector=connector))
    expiry = datetime.fromtimestamp(request.now / 1000, UTC) + CREDENTIALS_LAST
    answer = {
        "serviceId": connector["serviceId"],
        "serviceKey": f"key-{request.new_id()}",
        "serviceIdExpiry": expiry.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "serviceSessionToken": f"token-{request.new_id()}",
        "groupName": "connectors",
        "regionName": "local",
        "connectorConfiguration": dict(draft.chosen.connector_configuration),
    }
    return RuleAnswer(200, answer)
