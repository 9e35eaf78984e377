"""Clocks with comparable readings: a database server's clock, or else this machine's clock since its boot.

Wall clocks differ between machines and are set forward and back, so that no lease and no bound is judged by them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

from syncengine.document.clock import machine_seconds
from syncengine.state.holder import boot_id

SERVER = "server"
SERVER_SECONDS = sa.func.extract("epoch", sa.func.clock_timestamp())


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock, named by its machine or server. Readings of clocks with different names are not comparable."""

    name: str
    read: Callable[[sa.Connection], float]

    @classmethod
    def of_machine(cls, seconds: Callable[[], float] = machine_seconds) -> Clock:
        return cls(f"boot {boot_id()}", lambda _: seconds())

    @classmethod
    def of_server(cls) -> Clock:
        return cls(SERVER, lambda connection: float(connection.execute(sa.select(SERVER_SECONDS)).scalar_one()))

    @classmethod
    def of_database(cls, dialect: str, seconds: Callable[[], float]) -> Clock:
        """Return the server's clock for a database server, or this machine's clock for SQLite."""
        return cls.of_machine(seconds) if dialect == "sqlite" else cls.of_server()
