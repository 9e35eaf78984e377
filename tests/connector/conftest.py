"""A service for each test, and a project beside it."""

from tests.cli.conftest import project, service

__all__ = ["project", "service"]
