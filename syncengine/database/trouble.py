"""The kinds of trouble with an outside system that are reported to the service and to users."""

from __future__ import annotations

from enum import StrEnum


class TroubleKind(StrEnum):
    """The reason why a sink, a lookup or a database cannot be used."""

    UNREACHABLE = "unreachable"
    AUTHENTICATION = "authentication"
    PERMISSIONS = "permissions"
    SUBSCRIPTION = "subscription"
    UNKNOWN = "unknown"
