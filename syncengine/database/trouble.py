"""Kinds of trouble with an outside system, as they are reported to the service and to people."""

from __future__ import annotations

from enum import StrEnum


class TroubleKind(StrEnum):
    """Why a sink, a lookup or a database takes nothing."""

    UNREACHABLE = "unreachable"
    AUTHENTICATION = "authentication"
    PERMISSIONS = "permissions"
    UNKNOWN = "unknown"
