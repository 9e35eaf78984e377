"""Read and write the mechanism for posted time, fetch or webhook, that this state last registered.

The service has no query for it (docs/interface.md 4), and ending somebody else's webhook would lose their time, so that
only a mechanism registered from here is unregistered automatically. The caller key is stored as a salted digest, by
which a new key is recognized.
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
    """A registered mechanism. `name` is fetch or webhook; `base_url` is the service at which it was registered."""

    name: str
    base_url: str
    callback_url: str | None = None
    key_digest: str | None = None

    def has_key(self, caller_key: str) -> bool:
        """Return whether the mechanism was registered with this caller key."""
        return self.key_digest is not None and hmac.compare_digest(
            self.key_digest, digest(caller_key, self.key_digest.partition("$")[0])
        )


def digest(caller_key: str, salt: str | None = None) -> str:
    """Return an irreversible digest of the caller key, with a fresh salt unless `salt` is given."""
    salt = salt or secrets.token_hex(16)
    key = hashlib.scrypt(caller_key.encode(), salt=bytes.fromhex(salt), n=2**14, r=8, p=1)
    return f"{salt}${key.hex()}"


def registered(url: str) -> Mechanism | None:
    """Return the mechanism that the state at `url` registered last, or `None` if it has since been ended."""
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
    """Bind the state to a team, unless it already belongs to one."""
    database = open_database(url, write=True, new_lineage=new_lineage)
    try:
        with database.alone() as connection:
            connection.execute(sa.update(FACTS).where(FACTS.c.team.is_(None)).values(team=team))
    finally:
        database.close()


def remember(url: str, mechanism: Mechanism | None, *, now: Callable[[], float] = time.time) -> None:
    """Record the registered mechanism, or that there is none if `mechanism` is `None`."""
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
