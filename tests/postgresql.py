"""A real PostgreSQL server of its own on loopback, where its programs are installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc

OTHER_USER = "postgres"
"""Who runs it where root does not: PostgreSQL will not run as root."""


def programs() -> Path | None:
    """The folder of `initdb` and `postgres`; None where they are not installed."""
    named = shutil.which("initdb")
    found = [*([Path(named).parent] if named else []), *Path("/usr/lib/postgresql").glob("*/bin")]
    return next((folder for folder in found if (folder / "postgres").exists()), None)


@contextmanager
def running_postgresql() -> Iterator[str]:
    """The SQLAlchemy URL of an empty database; nothing of it is left afterwards."""
    found = programs()
    assert found is not None
    user = OTHER_USER if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="syncengine-postgresql-"))
    if user:
        shutil.chown(folder, user)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    data = str(folder / "data")
    options = ("-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync")
    try:
        making = [str(found / "initdb"), "-D", data, *options]
        subprocess.run(making, user=user, cwd=folder, check=True, capture_output=True)
        running = [str(found / "postgres"), "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", "", "-F"]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(running, user=user, cwd=folder, stdout=log, stderr=log)
        try:
            yield _answering(f"postgresql+psycopg://tester@127.0.0.1:{port}/postgres", server)
        finally:
            server.terminate()
            server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answering(url: str, server: subprocess.Popen[bytes]) -> str:
    engine = sa.create_engine(url)
    for _ in range(200):
        assert server.poll() is None
        try:
            engine.connect().close()
        except exc.OperationalError:
            time.sleep(0.05)
            continue
        break
    engine.dispose()
    return url
