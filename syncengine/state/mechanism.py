"""Which way of delivering posted time this state registered last, fetch or webhook, and for whom. Reads and writes.

The service cannot be asked (docs/interface.md 4), and ending somebody else's webhook would lose their time: only a
mechanism registered from here is unregistered unasked. The caller key is kept as a salted digest, to know a new one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

from syncengine.state.database import open_database
from syncengine.state.inbox_tables import MECHANISM
from syncengine.state.store import new_lineage
from syncengine.state.tables import FACTS


@dataclass(frozen=True, slots=True)
class Mechanism:
    """`name`: fetch or webhook. `base_url` is the service it was registered at."""

    name: str
    base_url: str
    callback_url: str | None = None
    key_digest: str | None = None

    def has_key(self, caller_key: str) -> bool:
        """Whether it was registered with this key."""
        return self.key_digest is not None and hmac.compare_digest(
            self.key_digest, digest(caller_key, self.key_digest.partition("$")[0])
        )


def digest(caller_key: str, salt: str | None = None) -> str:
    """A digest that nobody turns back into the key; of a fresh salt unless one is given."""
    salt = salt or secrets.token_hex(16)
    key = hashlib.scrypt(caller_key.encode(), salt=bytes.fromhex(salt), n=2**14, r=8, p=1)
    return f"{salt}${key.hex()}"


def registered(url: str) -> Mechanism | None:
    """The mechanism that the state at `url` registered last and did not end since."""
    database = open_database(url, write=False, new_lineage=new_lineage)
    try:
        with database.transaction() as connection:
            if not sa.inspect(connection).has_table(MECHANISM.name):
                return None
            columns = (MECHANISM.c.mechanism, MECHANISM.c.base_url, MECHANISM.c.callback_url, MECHANISM.c.key_digest)
            row = connection.execute(sa.select(*columns)).one_or_none()
            return None if row is None else Mechanism(*row)
    finally:
        database.close()


def bind(url: str, team: str) -> None:
    """Bind the state to this team, unless it belongs to one already."""
    database = open_database(url, write=True, new_lineage=new_lineage)
    try:
        with database.alone() as connection:
            connection.execute(sa.update(FACTS).where(FACTS.c.team.is_(None)).values(team=team))
    finally:
        database.close()


def remember(url: str, mechanism: Mechanism | None, *, now: Callable[[], float] = time.time) -> None:
    """Record the registered mechanism; None: none."""
    database = open_database(url, write=True, new_lineage=new_lineage)
    try:
        with database.alone() as connection:
            connection.execute(sa.delete(MECHANISM))
            if mechanism is not None:
                values = {"base_url": mechanism.base_url, "callback_url": mechanism.callback_url}
                connection.execute(
                    sa.insert(MECHANISM).values(
                        id=1, mechanism=mechanism.name, key_digest=mechanism.key_digest, registered=now(), **values
                    )
                )
    finally:
        database.close()
