"""Read and write the settings that the service returned when this connector was last registered.

The service returns them only in the answer to a registration, so they are stored for deliveries without one. Only plain
values are stored, and none whose name looks like that of a secret.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson
import sqlalchemy as sa

from syncengine.state.columns import METADATA
from syncengine.state.database import StateDatabase, open_database
from syncengine.state.inbox_tables import CONNECTOR
from syncengine.state.store import new_lineage

_SECRET = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)


def settings_in(database: StateDatabase) -> dict[str, Any]:
    """Return the connector's settings by name, or an empty dict if it was never registered."""
    with database.transaction() as connection:
        if not sa.inspect(connection).has_table(CONNECTOR.name):
            return {}
        text = connection.execute(sa.select(CONNECTOR.c.settings)).scalar_one_or_none()
    settings = orjson.loads(text or "{}")
    return settings if isinstance(settings, dict) else {}


def remember_in(database: StateDatabase, settings: Mapping[str, Any], at: float) -> None:
    """Store the settings of a registration in place of earlier ones. `at` is in seconds since the epoch."""
    plain = {name: value for name, value in settings.items() if _is_plain(value) and not _SECRET.search(name)}
    if plain == settings_in(database):
        return
    with database.alone() as connection:
        METADATA.create_all(connection, tables=[CONNECTOR])
        connection.execute(sa.delete(CONNECTOR))
        text = orjson.dumps(plain, option=orjson.OPT_SORT_KEYS).decode()
        connection.execute(sa.insert(CONNECTOR).values(id=1, settings=text, registered=at))


def remember(url: str, settings: Mapping[str, Any], *, now: Callable[[], float] = time.time) -> None:
    """Store the settings of a registration in the state at a path or URL."""
    database = open_database(url, write=True, new_lineage=new_lineage)
    try:
        remember_in(database, settings, now())
    finally:
        database.close()


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and "\x00" not in value)
