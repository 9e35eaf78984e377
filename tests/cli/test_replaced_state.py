"""A state that is replaced, restored from a backup or lost, during a run or between two: nobody acts on it unawares."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.postgresql import PASSWORD, Server
from tests.support.warm import Started

from .program import Project, ended, tag
from .service import Json, Service

ONE = [tag(f"MAT-{n:04}", metadata={"A": "x"}) for n in range(4)]
TWO = [tag(f"MAT-{n:04}", metadata={"A": "y"}) for n in range(4)]


def copy_over(backup: Path, state: Path) -> None:
    """Restore into the same file, as SQLite's own tools do."""
    with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(state)) as target:
        source.backup(target)


STRIKES: dict[str, Callable[[Path, Path], object]] = {
    "its folder is removed": lambda backup, state: shutil.rmtree(state.parent),
    "it is removed": lambda backup, state: state.unlink(),
    "it is renamed": lambda backup, state: state.rename(state.with_name("old.db")),
    "a backup is put in its place": lambda backup, state: Path(shutil.copy(backup, f"{state}.new")).replace(state),
    "a backup is copied over it": copy_over,
    "its log is removed": lambda backup, state: Path(f"{state}-wal").unlink(),
}


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
    ("operation", "strike"), [*(("upsertTags", each) for each in STRIKES), ("teamInfo", "its folder is removed")]
)
def test_an_apply_whose_state_is_replaced_ends(project: Project, service: Service, operation: str, strike: str) -> None:
    """The state file changes before the first write or during the last one, so nothing more could be recorded."""
    project.settle(tags=ONE)
    state, backup = project.folder / ".syncengine" / "state.db", project.folder / "backup.db"
    shutil.copy(state, backup)
    process = started(project, service, operation)
    STRIKES[strike](backup, state)
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


def emptied(server: Server, project: Project) -> None:
    """Give the project a state in a new database of the server."""
    server.sql("DROP DATABASE IF EXISTS st WITH (FORCE)", "CREATE DATABASE st")
    project.environ["SYNCENGINE_STATE"] = server.url(database="st")


@pytest.fixture
def on_a_server(project: Project, server: Server) -> Project:
    """A project whose state is the database `st` of a PostgreSQL server."""
    server.sql("DROP DATABASE IF EXISTS before")
    emptied(server, project)
    project.settle(tags=ONE)
    return project


@pytest.mark.parametrize("strike", DATABASES)
def test_a_new_database_ends_an_apply(on_a_server: Project, service: Service, server: Server, strike: str) -> None:
    """After reconnecting, the run notices that the PostgreSQL database is another one."""
    server.sql("CREATE DATABASE before TEMPLATE st")
    process = started(on_a_server, service)
    server.sql(*DATABASES[strike], **({"database": "st"} if "tables" in strike else {}))
    assert_claims_nothing(process)


def test_after_a_lost_state_the_next_apply_converges(on_a_server: Project, service: Service, server: Server) -> None:
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


# --- between two runs: the folder notices it, and commands refuse it


FIRST = [tag("A", description="one")]
SECOND = [tag("A", description="two"), tag("B")]


def applied(project: Project, tags: list[Json], *words: str) -> None:
    project.wants(tags=tags)
    assert project.run("apply", "-y", *words).code == 0


SET_BACK = ("DROP DATABASE st WITH (FORCE)", "CREATE DATABASE st TEMPLATE yesterday")
ACTING = ("plan", "apply -y", "drift", "state forget tag/A -y", "state quarantine", "time pull", "plan --undo last")
"""Commands that would act on what the state lacks."""


def test_a_state_that_was_set_back_is_refused_until_it_is_accepted(project: Project, service: Service) -> None:
    """Otherwise the plan that reverts SECOND would be empty. Commands that only read warn each time. `state restore`
    accepts it, and so does an import of its own export; a folder without memory, as a fresh clone, cannot notice it."""
    state, backup = project.folder / ".syncengine" / "state.db", project.folder / "yesterday.db"
    project.settings("postedTime: {deliver: [{name: out, jsonl: {path: out.jsonl}}]}")
    applied(project, FIRST)
    shutil.copy(state, backup)
    applied(project, SECOND)
    shutil.copy(backup, state)
    project.wants(tags=FIRST)
    asked = service.asked()
    for command in (*ACTING, *ACTING, "state prune --before 7d -y"):
        done = project.run(*command.split())
        assert (done.code, "state-rewound" in done.out + done.err) == (4, True), (command, done.out, done.err)
    assert service.asked() == asked
    for command in 2 * ("list", "history tag/A", "export -o state.jsonl"):
        done = project.run("state", *command.split())
        assert (done.code, "set back" in done.err) == (0, True), (command, done.err)

    assert project.run("state", "restore", "-y", "--format", "json").document["rows"] == 1
    assert project.run("plan", "--detailed-exitcode").code == 2
    assert project.run("apply", "-y").code == 0
    assert [held["description"] for held in service.holds()["tags"] if held["name"] == "A"] == ["one"]
    assert project.run("plan", "--detailed-exitcode").code == 0
    shutil.copy(backup, state)
    assert project.run("plan").code == 4
    assert project.run("state", "import", "state.jsonl", "-y").code == 0
    assert project.run("plan", "--detailed-exitcode").code == 2
    shutil.copy(backup, state)
    shutil.rmtree(project.folder / ".syncengine" / "seen")
    assert project.run("plan", "--detailed-exitcode").code == 0


def test_a_lock_in_a_state_that_was_set_back_can_be_ended(project: Project) -> None:
    """`state restore` needs the lock, so `state unlock` must work before it."""
    state, backup = project.folder / ".syncengine" / "state.db", project.folder / "yesterday.db"
    applied(project, FIRST)
    lock = project.run("state", "lock", "--format", "json").document["lock"]["id"]
    shutil.copy(state, backup)
    assert project.run("state", "unlock", lock).code == 0
    applied(project, FIRST)
    shutil.copy(backup, state)
    assert project.run("plan").code == 4
    assert project.run("state", "unlock", lock).code == 0
    assert project.run("state", "restore", "-y").code == 0


def test_a_restored_state_is_accepted_in_all_clones(project: Project, server: Server) -> None:
    """A further set-back is noticed by each clone, even one to a time before the accepted state."""
    server.sql("DROP DATABASE IF EXISTS yesterday WITH (FORCE)")
    emptied(server, project)
    applied(project, FIRST)
    clone = Project(project.folder.with_name("clone"), project.url, project.environ)  # remembers the state separately

    def plans() -> list[int]:
        return [folder.run("plan").code for folder in (project, clone)]

    clone.wants(tags=FIRST)
    assert plans() == [0, 0]
    server.sql("CREATE DATABASE yesterday TEMPLATE st")
    applied(clone, SECOND)
    assert plans() == [0, 0]
    server.sql(*SET_BACK)
    assert plans() == [4, 4]
    assert project.run("state", "restore", "-y").code == 0
    assert plans() == [0, 0]
    applied(clone, SECOND)
    assert project.run("plan").code == 0
    server.sql(*SET_BACK)
    assert plans() == [4, 4]


def test_a_copy_without_its_log_is_refused(project: Project, service: Service) -> None:
    """After a kill, the last changes are only in SQLite's write-ahead log; without it the state is set back."""
    applied(project, FIRST)
    project.wants(tags=SECOND)
    project.kill_during(service, "upsertTags", "apply", "-y")
    folder = project.folder / ".syncengine"
    (folder / "state.db-wal").unlink()
    (folder / "state.db-shm").unlink(missing_ok=True)
    done = project.run("plan")
    assert (done.code, "state-rewound" in done.err) == (4, True), done.err


def test_pruning_and_many_runs_are_no_set_back(project: Project) -> None:
    """Another folder may have pruned the last run that this folder knows."""
    applied(project, FIRST)
    memory = {file: file.read_bytes() for file in (project.folder / ".syncengine" / "seen").iterdir()}
    for _ in range(3):
        applied(project, FIRST)
    project.age(11)
    assert project.run("state", "prune", "--before", "2d", "-y").code == 0
    for file, content in memory.items():
        file.write_bytes(content)
    assert project.run("plan", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("kind", ["file", "server"])
def test_a_lost_state_is_not_replaced_by_a_new_one(
    project: Project, service: Service, request: pytest.FixtureRequest, kind: str
) -> None:
    """Otherwise all resources would be created again and B would be forgotten. An earlier export is not overwritten.
    Its import records everything again, and `--new-state`, which is needed only once, begins anew."""
    server: Server | None = request.getfixturevalue("server") if kind == "server" else None

    def vanish() -> None:
        if server is not None:
            emptied(server, project)
        (project.folder / ".syncengine" / "state.db").unlink(missing_ok=True)

    vanish()
    project.settings("postedTime: {deliver: [{name: out, jsonl: {path: out.jsonl}}]}")
    (project.folder / "tags.csv").write_text("name\nA\n")
    applied(project, SECOND)
    assert project.run("state", "export", "-o", "state.jsonl").code == 0
    vanish()
    project.wants(tags=FIRST)
    asked, export = service.asked(), (project.folder / "state.jsonl").read_bytes()
    others = ("list", "export -o state.jsonl", "lock", "unlock 3f2a9c", "restore -y", "quarantine tag/A --reason odd")
    for command in (*ACTING, *ACTING, "adopt tags.csv", *(f"state {words}" for words in others)):
        done = project.run(*command.split())
        said = [word in done.out + done.err for word in ("new-state", "state rebuild", "--new-state")]
        assert (done.code, said) == (4, [True] * 3), (command, done.out, done.err)
    assert service.asked() == asked
    assert (project.folder / "state.jsonl").read_bytes() == export

    assert project.run("state", "import", "state.jsonl", "-y").code == 0
    assert "tag/B" in project.run("state", "list").out
    assert "forget" in project.run("plan").out
    vanish()
    assert project.run("plan").code == 4
    assert "1 to create" in project.run("plan", "--new-state").out
    applied(project, FIRST, "--new-state")
    assert project.run("plan", "--detailed-exitcode").code == 0
    applied(project, FIRST)


def test_the_state_of_the_sandbox_may_be_deleted(project: Project) -> None:
    """Its data is deleted with it, so the next apply starts from nothing."""
    applied(project, FIRST, "--sandbox")
    shutil.rmtree(project.folder / ".syncengine" / "sandbox")
    applied(project, FIRST, "--sandbox")
