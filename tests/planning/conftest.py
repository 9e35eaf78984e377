"""The fixtures of a service and a project, which the tests of the program share."""

from __future__ import annotations

from tests.cli.conftest import project, service

__all__ = ["project", "service"]
