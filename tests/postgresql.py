"""A real PostgreSQL on loopback for tests, where its binaries are installed or a URL is given."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support.once import database_made_once, owned
from tests.support.quiet import database_answers, unused_port
from tests.support.waiting import PATIENCE_SECONDS, eventually

OFFERED = os.environ.get("SYNCENGINE_TEST_POSTGRESQL")
"""A SQLAlchemy URL of a database that may be emptied."""
PASSWORD = "pg-pa55-never-to-be-seen"


def _binaries() -> Path | None:
    found = shutil.which("postgres")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    return Path(found).parent if found else installed[-1].parent if installed else None


BINARIES = _binaries()


@dataclass
class Server:
    """A server that can be stopped and started. PostgreSQL refuses to run as root, so root runs it as `postgres`."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    user: dict[str, Any] = field(default_factory=dict)

    def url(self, role: str = "tester", password: str = PASSWORD, database: str = "postgres") -> str:
        return f"postgresql+psycopg://{role}:{password}@127.0.0.1:{self.port}/{database}"

    def sql(self, *statements: str, database: str = "postgres") -> None:
        engine = sa.create_engine(self.url(database=database), isolation_level="AUTOCOMMIT", poolclass=sa.pool.NullPool)
        with engine.connect() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def column(self, query: str) -> list[Any]:
        """The values of the first column of a query."""
        engine = sa.create_engine(self.url(), poolclass=sa.pool.NullPool)
        with engine.connect() as connection:
            return list(connection.exec_driver_sql(query).scalars())

    def start(self) -> None:
        assert BINARIES is not None
        command: list[str | Path] = [BINARIES / "postgres", "-D", self.folder / "data", "-p", str(self.port)]
        command += ["-h", "127.0.0.1", "-k", ""]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([*command, "-c", "fsync=off"], stdout=log, stderr=log, cwd="/", **self.user)
        eventually(self.answers, (self.folder / "log").read_text)

    def stop(self) -> None:
        """Stop the server at once, which cuts its connections."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(PATIENCE_SECONDS)
            self.process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze the server: connections stay open, new ones are accepted, and nothing is answered."""
        assert self.process is not None
        # The first process is the last to continue: meanwhile it reaps no other, whose id would be gone.
        os.kill(self.process.pid, signal.SIGSTOP)
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        processes = [*map(int, children), self.process.pid]
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)

    def answers(self) -> bool:
        return database_answers(self.url())


@contextmanager
def running() -> Iterator[Server]:
    if BINARIES is None:
        pytest.skip("PostgreSQL is not installed")
    pytest.importorskip("psycopg")
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    server = Server(owned(folder, user), unused_port(), user=user)

    def make(template: Path) -> None:
        assert BINARIES is not None
        password = template / "password"
        password.write_text(PASSWORD)
        options = ["--username=tester", f"--pwfile={password}", "--auth=scram-sha-256", "--encoding=UTF8", "--no-sync"]
        command: list[str | Path] = [BINARIES / "initdb", "-D", template / "data", *options]
        subprocess.run(command, check=True, capture_output=True, cwd="/", **server.user)

    try:
        database_made_once("postgresql", make, folder / "data", user)
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
