"""Fixtures of the commands' own tests: a sandbox and a project for it."""

from tests.cli.conftest import project, service

__all__ = ["project", "service"]
