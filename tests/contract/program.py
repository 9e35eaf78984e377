"""The program as a process in a fixed project, and the project's files as text, with databases as SQL."""

import os
import re
import shutil
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support import warm
from tests.support.warm import Ended

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROJECT, TODAY = HERE / "project", HERE / "today"
WIDTH = "80"
IS_WRITING = os.environ.get("SYNCENGINE_CONTRACT") == "write"
DATABASES = {
    "state.sql": ".syncengine/sandbox/state.db",
    "service.sql": ".syncengine/sandbox/service.db",
    "cache.sql": ".syncengine/cache.db",
    "ledger.sql": "ledger.db",
}
"""The SQL file of a situation → its database in a project."""
FIRST = "planned"
"""The situation whose files have the tables of all."""
NUMBERS = ("user_version", "application_id")
BOOT = re.compile(r'("boot":"|boot )[0-9a-f-]{36}')
HOST, PERSON = "desk", "robin"


def surroundings(folder: Path, **more: str) -> dict[str, str]:
    """An environment that is the same everywhere: only PATH is inherited."""
    fixed = {"COLUMNS": WIDTH, "LANG": "C.UTF-8", "LOGNAME": PERSON, "TZ": "UTC", "SYNCENGINE_API_KEY": "sandbox"}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder), **fixed, **more}


def run(folder: Path, *arguments: str, **environ: str) -> Ended:
    """Run the program to its end; its output must contain no traceback."""
    done = warm.run(arguments, folder=folder, environ=surroundings(folder, **environ), seconds=120)
    assert "Traceback" not in done.out + done.err, done.err
    return done


# --- a project's folder


def lay_out(folder: Path, version: str) -> None:
    """Copy the project as it was `before`, or is `after`, with its ledger if there is none yet."""
    for part in ("both", version):
        shutil.copytree(PROJECT / part, folder, dirs_exist_ok=True)
    if not (folder / "ledger.db").exists():
        _restore((folder / "ledger.sql").read_text(encoding="utf-8"), folder / "ledger.db")
    (folder / "ledger.sql").unlink()


def restore(folder: Path, situation: str, *without: str) -> Path:
    """Lay out a situation of the folder `today` in an empty folder, `without` some of its files."""
    for name, database in DATABASES.items():
        if name not in without:
            _restore(_stored(situation, name), folder / database)
    for path in (TODAY / situation).iterdir():
        if path.name not in DATABASES:
            shutil.copy(path, folder / path.name)
    lay_out(folder, "after")
    return folder


def keep(folder: Path, situation: str, *files: str, url: str = "") -> None:
    """Write a situation: databases as SQL, and other files as they are. `url` is replaced by `sandbox`.

    Situations after the first have the same tables: of these only the rows are written, and only where they differ.
    """
    to = TODAY / situation
    to.mkdir(parents=True, exist_ok=True)
    for name, database in DATABASES.items():
        with closing(sqlite3.connect(folder / database)) as connection:
            numbers = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in NUMBERS}
            lines = [*(f"PRAGMA {name} = {number};" for name, number in numbers.items()), *connection.iterdump(), ""]
        text = _told("\n".join(lines), folder)
        text = text.replace(url, "sandbox") if url else text
        if situation == FIRST:
            (to / name).write_text(text, encoding="utf-8")
        elif text != _stored(FIRST, name):
            rows = (line for line in text.splitlines(keepends=True) if line.startswith("INSERT"))
            (to / name).write_text("".join(rows), encoding="utf-8")
    for name in files:
        shutil.copy(folder / name, to / name)


def _stored(situation: str, name: str) -> str:
    text = (TODAY / FIRST / name).read_text(encoding="utf-8")
    rows = TODAY / situation / name
    if situation == FIRST or not rows.exists():
        return text
    tables = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("INSERT"))
    return f"{tables}BEGIN;\n{rows.read_text(encoding='utf-8')}COMMIT;\n"


def _told(text: str, folder: Path) -> str:
    """The text with this machine's name, boot id and folders replaced."""
    here = rf"""("host":"|'){re.escape(socket.gethostname())}(?=["'])"""
    text = re.sub(here, rf"\g<1>{HOST}", text)
    return re.sub(BOOT, rf"\g<1>{'0' * 36}", text).replace(str(folder), "/project")


def _restore(text: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA synchronous = OFF")
        database.executescript(text)
    path.chmod(0o600)
