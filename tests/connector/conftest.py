"""The fixtures of tests/cli: a service for each test, and a project for it."""

from tests.cli.conftest import project, service

__all__ = ["project", "service"]
