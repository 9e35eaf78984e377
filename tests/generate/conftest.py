"""The fixtures of tests/cli: a service and a project for it."""

from __future__ import annotations

from tests.cli.conftest import project, service

__all__ = ["project", "service"]
