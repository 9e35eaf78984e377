"""A state that is removed, replaced or restored during a run: the run ends with an error and never claims success."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.postgresql import Server

from .program import Project, ended, tag
from .service import Service

ONE = [tag(f"MAT-{n:04}", metadata={"A": "x"}) for n in range(4)]
TWO = [tag(f"MAT-{n:04}", metadata={"A": "y"}) for n in range(4)]


def _remove_all(state: Path, backup: Path) -> None:
    shutil.rmtree(state.parent)


def _remove_the_file(state: Path, backup: Path) -> None:
    state.unlink()


def _rename(state: Path, backup: Path) -> None:
    state.rename(state.with_name("old.db"))


def _put_a_backup_in_its_place(state: Path, backup: Path) -> None:
    shutil.copy(backup, state.with_name("new"))
    state.with_name("new").replace(state)


def _copy_a_backup_over_it(state: Path, backup: Path) -> None:
    """Restore into the same file, as SQLite's own tools do."""
    with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(state)) as target:
        source.backup(target)


def _remove_its_log(state: Path, backup: Path) -> None:
    Path(f"{state}-wal").unlink()


STRIKES = (
    _remove_all,
    _remove_the_file,
    _rename,
    _put_a_backup_in_its_place,
    _copy_a_backup_over_it,
    _remove_its_log,
)


@pytest.mark.parametrize(
    ("operation", "strike"), [*(("upsertTags", each) for each in STRIKES), ("teamInfo", STRIKES[0])]
)
def test_an_apply_whose_state_is_replaced_ends_and_claims_nothing(
    project: Project, service: Service, operation: str, strike: Callable[[Path, Path], None]
) -> None:
    """The state file changes before the first write or during the last one, so nothing more could be recorded."""
    project.settle(tags=ONE)
    state, backup = project.folder / ".syncengine" / "state.db", project.folder / "backup.db"
    shutil.copy(state, backup)
    project.wants(tags=TWO)
    asked = service.asked().count(operation)
    service.fault(operation, delay=1.5)
    process = project.fork("apply", "-y")
    service.wait_for(operation, asked + 1)
    strike(state, backup)
    done = ended(process)
    assert (done.code, "error[state-replaced]" in done.out + done.err) == (1, True), (done.out, done.err)
    assert "Applied 4 changes" not in done.out


def test_the_journal_of_a_replacement_state_is_kept(project: Project, service: Service) -> None:
    """A run that had the old state open does not delete what another process wrote to the new one."""
    project.settle(tags=ONE)
    state = project.folder / ".syncengine" / "state.db"
    shutil.copy(state, backup := project.folder / "backup.db")
    project.wants(tags=TWO)
    service.fault("upsertTags", delay=1.5)
    process = project.fork("apply", "-y")
    service.wait_for("upsertTags", 2)
    for file in state.parent.glob("state.db*"):
        file.unlink()
    shutil.copy(backup, state)
    with closing(sqlite3.connect(state)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE of_another (id)")
        other.commit()
        assert ended(process).code == 1
        with closing(sqlite3.connect(state)) as third:
            assert third.execute("SELECT count(*) FROM of_another").fetchone() == (0,)


def _recreate(server: Server) -> None:
    server.sql("DROP DATABASE st WITH (FORCE)", "CREATE DATABASE st")


def _drop(server: Server) -> None:
    server.sql("DROP DATABASE st WITH (FORCE)")


def _restore(server: Server) -> None:
    """Replace the database by a copy made before the run, as restoring a dump does."""
    server.sql("DROP DATABASE st WITH (FORCE)", "CREATE DATABASE st TEMPLATE before")


def _drop_its_tables(server: Server) -> None:
    server.sql("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", database="st")


@pytest.mark.parametrize("strike", [_recreate, _drop, _restore, _drop_its_tables])
def test_an_apply_whose_database_is_replaced_ends_and_claims_nothing(
    project: Project, service: Service, server: Server, strike: Callable[[Server], None]
) -> None:
    """After reconnecting, the run notices that the PostgreSQL database is another one."""
    server.sql("DROP DATABASE IF EXISTS st", "DROP DATABASE IF EXISTS before", "CREATE DATABASE st")
    project.environ["SYNCENGINE_STATE"] = server.url(database="st")
    project.wants(tags=ONE)
    assert project.run("apply", "-y").code == 0
    server.sql("CREATE DATABASE before TEMPLATE st")
    project.wants(tags=TWO)
    service.fault("upsertTags", delay=1.5)
    process = project.fork("apply", "-y")
    service.wait_for("upsertTags", 2)
    strike(server)
    done = ended(process)
    assert (done.code, "error[state-replaced]" in done.out + done.err) == (1, True), (done.out, done.err)
    assert "Applied 4 changes" not in done.out
