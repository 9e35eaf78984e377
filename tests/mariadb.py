"""A real MariaDB on loopback for tests, where its server and the driver are installed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.once import database_made_once, owned
from tests.support.quiet import database_answers, unused_port
from tests.support.waiting import PATIENCE_SECONDS, eventually

PASSWORD = "maria-pa55-never-to-be-seen"


@contextmanager
def running() -> Iterator[str]:
    """The URL of a new server's database, in the mode that truncates long values; skips without MariaDB."""
    pytest.importorskip("pymysql")
    server, install = shutil.which("mariadbd"), shutil.which("mariadb-install-db")
    if server is None or install is None:
        pytest.skip("MariaDB is not installed")
    folder, port = Path(tempfile.mkdtemp(prefix="mariadb-")), unused_port()
    user: dict[str, Any] = {"user": "mysql", "group": "mysql"} if os.geteuid() == 0 else {}
    owned(folder, user)
    start = folder / "start.sql"
    start.write_text(
        "CREATE DATABASE ledger;\n"
        f"CREATE USER tester@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
        "GRANT ALL ON ledger.* TO tester@'127.0.0.1';\n"
    )

    def make(template: Path) -> None:
        making = [install, "--no-defaults", f"--datadir={template / 'data'}"]
        making += ["--skip-test-db", "--auth-root-authentication-method=normal"]
        subprocess.run(making, check=True, capture_output=True, cwd="/", **user)

    data = folder / "data"
    database_made_once("mariadb", make, data, user)
    command = [server, "--no-defaults", f"--datadir={data}", f"--port={port}", "--bind-address=127.0.0.1"]
    command += [f"--socket={folder / 's'}", "--sql-mode=", f"--init-file={start}", "--skip-name-resolve"]
    url = f"mysql+pymysql://tester:{PASSWORD}@127.0.0.1:{port}/ledger"
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **user)
    try:
        eventually(lambda: database_answers(url), (folder / "log").read_text)
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
        shutil.rmtree(folder)
