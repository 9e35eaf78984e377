"""Make `matters.db`, the small database that `from-sql.yaml` reads."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

MATTERS = [
    ("EX-SQL-2001", "Appeal against a refusal", "Example Trading Ltd", "2024-05-01 09:00:00", None),
    ("EX-SQL-2002", "Design registration", "Müller & Söhne GmbH", "2024-06-03 10:30:00", None),
    ("EX-SQL-2003", "Transfer of rights", "Example Trading Ltd", "2022-01-10 08:15:00", "2023-02-01 12:00:00"),
]


def main(path: Path) -> None:
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            "CREATE TABLE matter (number TEXT PRIMARY KEY, title TEXT, client TEXT, opened TEXT, closed TEXT)"
        )
        connection.executemany("INSERT INTO matter VALUES (?, ?, ?, ?, ?)", MATTERS)
    connection.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("matters.db"))
