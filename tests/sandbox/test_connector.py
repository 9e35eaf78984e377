"""The sandbox keeps the service's rules for connectors: their registration and the failures that they report."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from syncengine.sandbox import posting
from syncengine.sandbox.rules import MESSAGES

from .conftest import Asking

REGISTRATION = {
    "environment": {"clientOs": "linux", "javaVmVersion": 21},
    "connectorType": "ledger",
    "connectorVersion": "1.0",
    "connectorLibraryVersion": "1.0",
    "clientTimestamp": 1706400000000,
    "clientTimeZoneOffset": "+10:00",
}


def test_a_registration_is_answered_with_credentials_that_are_new_each_time(service: Asking) -> None:
    """docs/interface.md 2.6: the service's id stays the same, and the expiry is an ISO 8601 instant."""
    first, second = (service.told("registerConnector", **REGISTRATION) for _ in range(2))
    assert first["serviceId"] == second["serviceId"]
    assert first["serviceKey"] != second["serviceKey"]
    assert first["serviceSessionToken"] != second["serviceSessionToken"]
    assert datetime.fromisoformat(first["serviceIdExpiry"]).utcoffset() is not None
    assert first.keys() == {
        "serviceId",
        "serviceKey",
        "serviceIdExpiry",
        "serviceSessionToken",
        "groupName",
        "regionName",
        "connectorConfiguration",
    }


def test_a_registration_is_kept_without_its_credentials(service: Asking) -> None:
    """The sandbox keeps what the connector sent, and not the credentials that it answered."""
    answer = service.told("registerConnector", **REGISTRATION)
    connector = service.state()["connection"]["connector"]
    assert REGISTRATION.items() <= connector.items()
    held = str(service.sandbox.store.connection)
    assert answer["serviceKey"] not in held
    assert answer["serviceSessionToken"] not in held


@pytest.mark.parametrize("body", [{"environment": []}, {"clientTimestamp": "now"}, {"connectorType": 1}])
def test_a_registration_of_the_wrong_shape_is_refused(service: Asking, body: dict[str, Any]) -> None:
    """An invalid registration answers 400, and nothing is registered."""
    assert service.ask("registerConnector", **body)[0] == 400
    assert service.state()["connection"]["connector"] is None


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_reported_failure_is_shown_to_who_posts_until_it_is_rescinded(service: Asking, kind: str) -> None:
    """docs/interface.md 3: users see the message of the report, or else the standard message of its error type."""
    assert service.ask("reportHealthFailure", errorType=kind) == (204, None)
    assert service.sandbox.do(posting.post, {}).body["healthMessage"] == MESSAGES[kind]
    assert service.ask("reportHealthFailure", errorType=kind, userErrorMessage="Ask Ann.")[0] == 204
    assert service.sandbox.do(posting.post, {}).body["healthMessage"] == "Ask Ann."
    assert service.state()["connection"]["health"]["errorType"] == kind
    assert service.ask("rescindHealthFailure") == (204, None)
    assert service.sandbox.do(posting.post, {}).body["healthMessage"] is None
    assert service.ask("rescindHealthFailure")[0] == 204


@pytest.mark.parametrize("body", [{"errorType": "BROKEN"}, {"errorType": 1}, {"userErrorMessage": {}}])
def test_a_failure_that_is_not_understood_is_refused(service: Asking, body: dict[str, Any]) -> None:
    """docs/interface.md 2.7: errorType is an enum; a report with an unknown type or a wrong field answers 400."""
    assert service.ask("reportHealthFailure", **body)[0] == 400
    assert service.state()["connection"]["health"] is None
