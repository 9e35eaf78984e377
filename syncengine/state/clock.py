"""Clocks that may be compared: a database server's, else this machine's since it was started.

Wall clocks of two machines differ, and one machine's is set forward and back: they judge neither a lease nor a bound.
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
    """A clock and the name of its machine or server; readings under two names are not comparable."""

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
        """Return the server's clock for a database server, else this machine's."""
        return cls.of_machine(seconds) if dialect == "sqlite" else cls.of_server()
