"""Complete addresses in a shell from a SQLite state.

By the standard library alone: importing SQLAlchemy would take longer than a person who has pressed Tab should wait.
"""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

from syncengine.database.open import connect


def addresses_like(path: str, prefix: str, most: int) -> list[str]:
    """Return the first `most` addresses that begin with `prefix`. Raise `sqlite3.Error` if the file is not readable."""
    pattern = re.sub(r"([\\%_])", r"\\\1", prefix) + "%"
    query = "SELECT kind || '/' || name AS address FROM state_rows WHERE address LIKE ? ESCAPE '\\' ORDER BY 1 LIMIT ?"
    with closing(connect(Path(path), "ro", seconds=0.2)) as connection:
        return [address for (address,) in connection.execute(query, (pattern, most)) if address.startswith(prefix)]
