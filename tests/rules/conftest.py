"""A service and a project beside it, as the tests of the program have them."""

from __future__ import annotations

from tests.cli.conftest import project, service

__all__ = ["project", "service"]
