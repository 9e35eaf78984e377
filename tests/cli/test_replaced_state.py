"""A state that is removed, replaced, restored or lost during a run: the run ends with an error and claims nothing."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.postgresql import PASSWORD, Server
from tests.support.warm import Started

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


def started(project: Project, service: Service, operation: str = "upsertTags") -> Started:
    """An apply that waits for the answer to this operation, the second of its kind."""
    project.wants(tags=TWO)
    asked = service.asked().count(operation)
    service.fault(operation, delay=1.5)
    process = project.fork("apply", "-y")
    service.wait_for(operation, asked + 1)
    return process


def assert_claims_nothing(process: Started) -> None:
    done = ended(process)
    assert (done.code, "error[state-replaced]" in done.out + done.err) == (1, True), (done.out, done.err)
    assert "Applied 4 changes" not in done.out


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
    process = started(project, service, operation)
    strike(state, backup)
    assert_claims_nothing(process)


def test_the_journal_of_a_replacement_state_is_kept(project: Project, service: Service) -> None:
    """A run that had the old state open does not delete what another process wrote to the new one."""
    project.settle(tags=ONE)
    state = project.folder / ".syncengine" / "state.db"
    shutil.copy(state, backup := project.folder / "backup.db")
    process = started(project, service)
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


DATABASES = {
    "created again": ("DROP DATABASE st WITH (FORCE)", "CREATE DATABASE st"),
    "dropped": ("DROP DATABASE st WITH (FORCE)",),
    # Restoring a dump does the same.
    "replaced by a copy from before": ("DROP DATABASE st WITH (FORCE)", "CREATE DATABASE st TEMPLATE before"),
    "without its tables": ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public"),
}


@pytest.fixture
def on_a_server(project: Project, server: Server) -> Project:
    """A project whose state is the database `st` of a PostgreSQL server."""
    server.sql("DROP DATABASE IF EXISTS st", "DROP DATABASE IF EXISTS before", "CREATE DATABASE st")
    project.environ["SYNCENGINE_STATE"] = server.url(database="st")
    project.wants(tags=ONE)
    assert project.run("apply", "-y").code == 0
    return project


@pytest.mark.parametrize("strike", DATABASES)
def test_an_apply_whose_database_is_replaced_ends_and_claims_nothing(
    on_a_server: Project, service: Service, server: Server, strike: str
) -> None:
    """After reconnecting, the run notices that the PostgreSQL database is another one."""
    server.sql("CREATE DATABASE before TEMPLATE st")
    process = started(on_a_server, service)
    server.sql(*DATABASES[strike], **({"database": "st"} if "tables" in strike else {}))
    assert_claims_nothing(process)


def test_a_state_lost_during_an_apply_is_reported_and_the_next_apply_converges(
    on_a_server: Project, service: Service, server: Server
) -> None:
    """The report says that changes which were acknowledged but could not be recorded are in doubt."""
    process = started(on_a_server, service)
    server.stop()
    done = ended(process)
    assert (done.code, "error[state-unreachable]" in done.out) == (1, True)
    assert "it could not record are in doubt" in done.out
    refused = on_a_server.run("apply", "-y")
    said = refused.out + refused.err
    assert (refused.code, "nothing is listening" in refused.err, "No problems" in said) == (1, True, False)
    assert PASSWORD not in done.out + done.err + said
    server.start()
    assert on_a_server.run("apply", "-y").code == 0
    assert on_a_server.run("plan", "--detailed-exitcode").code == 0
    assert [each["metadata"] for each in service.holds()["tags"]] == [{"A": "y"}] * 4
