"""The models of the documents of `connector` and `health`. Fields may be added at any time."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from syncengine.render.schemas.from_models import Format


class ConnectorFormat(Format):
    """The document of `connector check --format json`, which has `team`, and of `connector register`, without it."""

    model_config = ConfigDict(title="syncengine connector")
    format: Literal["syncengine.connector/v1"]
    team: str = Field("", description="The team of the key; absent from `register`.")
    service_id: str | None = Field(None, description="The id that the service gave the connector.")
    service_id_expiry: str | None = Field(None, description="When the registration ends, as the service sent it.")
    group_name: str | None = None
    region_name: str | None = None
    connector_configuration: dict[str, Any] = Field({}, description="The settings from the service.")


class ReportedHealth(Format):
    error_type: Literal[
        "UNKNOWN",
        "TARGET_UNREACHABLE",
        "TARGET_AUTH_FAILURE",
        "TARGET_PERMISSIONS_FAILURE",
        "TARGET_SUBSCRIPTION_FAILURE",
    ]
    user_error_message: str | None = Field(description="The message for users; null for the type's default.")


class HealthFormat(Format):
    """The document of `health report --format json` and `health clear --format json`."""

    model_config = ConfigDict(title="syncengine health")
    format: Literal["syncengine.health/v1"]
    reported: ReportedHealth | None = Field(description="The failure that everybody sees; null once it is cleared.")
