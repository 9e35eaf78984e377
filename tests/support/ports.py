"""Ports for a server that starts later, or starts again, and the question whether a database has started."""

import random
import socket

import sqlalchemy as sa

RANGE = range(10_000, 32_000)
"""Below the ports that a kernel hands out to clients and to servers that ask for port 0: nobody takes one by chance."""


def unused_port() -> int:
    """A port of 127.0.0.1 that nothing listens at."""
    while True:
        port = random.SystemRandom().choice(RANGE)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue


def database_answers(url: str) -> bool:
    engine = sa.create_engine(url)
    try:
        with engine.connect():
            return True
    except sa.exc.OperationalError:
        return False
    finally:
        engine.dispose()
