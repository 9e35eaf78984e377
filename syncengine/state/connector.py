"""Read and write what a state knows about this connector at the service, for which the service has no query.

- the mechanism for posted time, fetch or webhook, that was registered last: ending somebody else's webhook would lose
  their time, so that only one registered from here is unregistered automatically. Its caller key is stored as a salted
  digest, by which a new key is recognized;
- the settings that the service returned when the connector was last registered, and returns only then. Only plain
  values are stored, and none whose name looks like that of a secret;
- whether a health failure was reported from here, which only then may be rescinded: the service has one for a team, and
  rescinding that of a person, or of another connector, would tell users that all is well;
- until when receivers of posted time asked to be sent nothing (Retry-After), which outlasts the process that heard it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from types import NoneType
from typing import Any

import sqlalchemy as sa

from syncengine.document.json_text import decode_json
from syncengine.project.git_ref import is_git_ref
from syncengine.state.codec import to_json
from syncengine.state.database import StateDatabase, open_database
from syncengine.state.tables import CONNECTOR, FACTS, HEALTH, MECHANISM, RESTS

_SECRET = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)


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
    # Not scrypt: of its 16 MB, the C library gives back nothing, in any thread that ever asked for them. The number is
    # that of OWASP for passwords, a seventh of a second for each key that somebody guesses.
    key = hashlib.pbkdf2_hmac("sha256", caller_key.encode(), bytes.fromhex(salt), 600_000)
    return f"{salt}${key.hex()}"


def registered_mechanism(url: str) -> Mechanism | None:
    """Return the mechanism that the state at `url` registered last, or `None` if it has since been ended."""
    columns = (MECHANISM.c.mechanism, MECHANISM.c.base_url, MECHANISM.c.callback_url, MECHANISM.c.key_digest)
    with _opened(url, write=False) as database, database.transaction() as connection:
        row = connection.execute(sa.select(*columns)).one_or_none()
        return None if row is None else Mechanism(*row)


def remember_mechanism(url: str, mechanism: Mechanism | None) -> None:
    """Record the registered mechanism, or that there is none if `mechanism` is `None`."""
    with _opened(url, write=True) as database:
        if mechanism is None:
            _replace(database, MECHANISM, None)
        else:
            values = {"base_url": mechanism.base_url, "callback_url": mechanism.callback_url, "registered": time.time()}
            _replace(database, MECHANISM, {"mechanism": mechanism.name, "key_digest": mechanism.key_digest, **values})


def bind(url: str, team: str) -> None:
    """Bind the state to a team, unless it already belongs to one."""
    with _opened(url, write=True) as database, database.alone() as connection:
        # Without a new generation: it belongs to the holder of the lock, who would take another for a replaced state.
        connection.execute(sa.update(FACTS).where(FACTS.c.team.is_(None)).values(team=team))


def settings_in(database: StateDatabase) -> dict[str, Any]:
    """Return the connector's settings by name, or an empty dict if it was never registered."""
    with database.transaction() as connection:
        text = connection.execute(sa.select(CONNECTOR.c.settings)).scalar_one_or_none()
    settings = decode_json(text or "{}")
    return settings if isinstance(settings, dict) else {}


def remember_settings_in(database: StateDatabase, settings: Mapping[str, Any], at: float) -> None:
    """Store the settings of a registration in place of earlier ones. `at` is in seconds since the epoch."""
    kept = ((name, value) for name, value in settings.items() if not _SECRET.search(name))
    types = (bool, int, float, str, NoneType)  # not NUL, which PostgreSQL cannot store
    plain = {name: value for name, value in kept if isinstance(value, types) and "\x00" not in str(value)}
    if plain != settings_in(database):
        text = to_json(plain)
        _replace(database, CONNECTOR, {"settings": text, "registered": at})


def remember_settings(url: str, settings: Mapping[str, Any]) -> None:
    """Store the settings of a registration in the state at a path or URL."""
    with _opened(url, write=True) as database:
        remember_settings_in(database, settings, time.time())


def is_reported(database: StateDatabase) -> bool:
    """Return whether a failure was reported from here and not rescinded since."""
    with database.transaction() as connection:
        return connection.execute(sa.select(HEALTH.c.id)).first() is not None


def remember_report(database: StateDatabase, at: float) -> None:
    """Record a report, in seconds since the epoch. To be called before it is sent: its answer may be lost."""
    _replace(database, HEALTH, {"reported": at})


def forget_report(database: StateDatabase) -> None:
    """Record that the service accepted that there is no failure any more."""
    _replace(database, HEALTH, None)


def disown(url: str) -> None:
    """Have the state at a path or URL forget its report, since a person has replaced or cleared it at the service."""
    if is_git_ref(url):
        return
    with _opened(url, write=False) as database:  # a state that does not exist is not made for this
        if not is_reported(database):
            return
    with _opened(url, write=True) as database:
        forget_report(database)


def rests_in(database: StateDatabase) -> dict[str, float]:
    """Return the end of each receiver's rest, in seconds since the epoch.

    A receiver is a digest of the name and the URL of an HTTP sink: one that was moved may be asked at once.
    """
    with database.transaction() as connection:
        return {row.receiver: row.until for row in connection.execute(sa.select(RESTS))}


def remember_rest(database: StateDatabase, receiver: str, until: float) -> None:
    """Record the end of a receiver's rest, in place of an earlier one."""
    with database.alone() as connection:
        connection.execute(sa.delete(RESTS).where(RESTS.c.receiver == receiver))
        connection.execute(sa.insert(RESTS).values(receiver=receiver, until=until))


@contextmanager
def _opened(url: str, *, write: bool) -> Iterator[StateDatabase]:
    with closing(open_database(url, write=write)) as database:
        yield database


def _replace(database: StateDatabase, table: sa.Table, values: Mapping[str, object] | None) -> None:
    """Write the only row of a table in place of an earlier one, or only delete it."""
    with database.alone() as connection:
        connection.execute(sa.delete(table))
        if values is not None:
            connection.execute(sa.insert(table).values(id=1, **values))
