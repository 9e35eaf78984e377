"""A state that was restored from a backup or lost between two runs: the folder notices it, and commands refuse it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.postgresql import Server

from .program import Project, tag
from .service import Service

ONE = [tag("A", description="one")]
TWO = [tag("A", description="two"), tag("B")]


Backup = tuple[Callable[[], None], Callable[[], None]]


@pytest.fixture(params=["file", "server"])
def backup(request: pytest.FixtureRequest, project: Project) -> Backup:
    """Functions that back up the project's state and restore the backup."""
    if request.param == "file":
        state, kept = project.folder / ".syncengine" / "state.db", project.folder / "yesterday.db"
        return (lambda: _copy(state, kept)), (lambda: _copy(kept, state))
    server: Server = request.getfixturevalue("server")
    server.sql(*(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)" for name in ("st", "yesterday")), "CREATE DATABASE st")
    project.environ["SYNCENGINE_STATE"] = server.url(database="st")
    return (
        lambda: server.sql("CREATE DATABASE yesterday TEMPLATE st"),
        lambda: server.sql("DROP DATABASE st WITH (FORCE)", "CREATE DATABASE st TEMPLATE yesterday"),
    )


def _copy(source: Path, target: Path) -> None:
    shutil.copy(source, target)


@pytest.fixture
def set_back(project: Project, backup: Backup) -> Project:
    """The state is a backup from before TWO was applied, and the manifest declares ONE again."""
    keep, bring_back = backup
    project.wants(tags=ONE)
    assert project.run("apply", "-y").code == 0
    keep()
    project.wants(tags=TWO)
    assert project.run("apply", "-y").code == 0
    bring_back()
    project.wants(tags=ONE)
    return project


USES_A_STATE = (
    ("plan",),
    ("apply", "-y"),
    ("drift",),
    ("state", "forget", "tag/A", "-y"),
    ("state", "quarantine"),
    ("time", "pull"),
    ("plan", "--undo", "last"),
)
"""Commands that would act on what the state lacks."""


def test_a_state_that_was_set_back_is_refused(set_back: Project, service: Service) -> None:
    """Otherwise the plan that reverts TWO would be empty. The second attempt is refused as well."""
    set_back.settings("postedTime: {deliver: [{name: out, jsonl: {path: out.jsonl}}]}")
    asked = service.asked()
    for command in (*USES_A_STATE, *USES_A_STATE, ("state", "prune", "--before", "7d", "-y")):
        done = set_back.run(*command)
        assert (done.code, "state-rewound" in done.out + done.err) == (4, True), (command, done.out, done.err)
    assert service.asked() == asked


def test_a_state_that_was_set_back_can_be_read(set_back: Project) -> None:
    """Commands that only read warn each time that it lacks the last applied changes."""
    for command in 2 * (("list",), ("history", "tag/A"), ("export",)):
        done = set_back.run("state", *command)
        assert (done.code, "set back" in done.err) == (0, True), (command, done.err)


def test_a_lock_in_a_state_that_was_set_back_can_be_ended(project: Project, backup: Backup) -> None:
    """`state restore` needs the lock, so `state unlock` must work before it."""
    keep, bring_back = backup
    project.wants(tags=ONE)
    assert project.run("apply", "-y").code == 0
    lock = project.run("state", "lock", "--format", "json").document["lock"]["id"]
    keep()
    assert project.run("state", "unlock", lock).code == 0
    assert project.run("apply", "-y").code == 0
    bring_back()
    assert project.run("plan").code == 4
    assert project.run("state", "unlock", lock).code == 0
    assert project.run("state", "restore", "-y").code == 0


def test_state_restore_accepts_a_state_that_was_set_back(set_back: Project, service: Service) -> None:
    """The next apply sends everything again, and the service then holds what the manifests declare."""
    assert set_back.run("state", "restore", "-y", "--format", "json").document["rows"] == 1
    assert set_back.run("plan", "--detailed-exitcode").code == 2
    assert set_back.run("apply", "-y").code == 0
    assert [held["description"] for held in service.holds()["tags"] if held["name"] == "A"] == ["one"]
    assert set_back.run("plan", "--detailed-exitcode").code == 0


def test_state_import_accepts_a_state_that_was_set_back(set_back: Project) -> None:
    """An export of that same state can be imported."""
    assert set_back.run("state", "export", "-o", "state.jsonl").code == 0
    assert set_back.run("state", "import", "state.jsonl", "-y").code == 0
    assert set_back.run("plan", "--detailed-exitcode").code == 2


def _clone(project: Project) -> Project:
    """A second folder of the project that shares the state and remembers it separately."""
    other = Project(project.folder.with_name("clone"), project.url, project.environ)
    shutil.copytree(project.folder / "manifests", other.folder / "manifests")
    return other


@pytest.mark.parametrize("backup", ["server"], indirect=True)
def test_a_restored_state_is_accepted_in_all_clones(project: Project, backup: Backup) -> None:
    """A further set-back is noticed by each clone, even one to a time before the accepted state."""
    keep, bring_back = backup
    project.wants(tags=ONE)
    assert project.run("apply", "-y").code == 0
    clone = _clone(project)
    assert clone.run("plan").code == 0
    keep()
    clone.wants(tags=TWO)
    assert clone.run("apply", "-y").code == 0
    project.wants(tags=TWO)
    assert project.run("plan").code == 0
    bring_back()
    assert [folder.run("plan").code for folder in (project, clone)] == [4, 4]
    assert project.run("state", "restore", "-y").code == 0
    assert [folder.run("plan").code for folder in (project, clone)] == [0, 0]
    assert clone.run("apply", "-y").code == 0
    assert project.run("plan").code == 0
    bring_back()
    assert [folder.run("plan").code for folder in (project, clone)] == [4, 4]


def test_a_copy_without_its_log_is_refused(project: Project, service: Service) -> None:
    """After a kill, the last changes are only in SQLite's write-ahead log; without it the state is set back."""
    project.wants(tags=ONE)
    assert project.run("apply", "-y").code == 0
    project.wants(tags=TWO)
    project.kill_during(service, "upsertTags", "apply", "-y")
    state = project.folder / ".syncengine" / "state.db"
    (state.with_name("state.db-wal")).unlink()
    (state.with_name("state.db-shm")).unlink(missing_ok=True)
    done = project.run("plan")
    assert (done.code, "state-rewound" in done.err) == (4, True), done.err


def test_a_folder_without_memory_accepts_any_state(set_back: Project) -> None:
    """A fresh clone, or a runner without a cache, cannot notice a set-back."""
    shutil.rmtree(set_back.folder / ".syncengine" / "seen")
    assert set_back.run("plan", "--detailed-exitcode").code == 0


def test_pruning_and_many_runs_are_no_set_back(project: Project) -> None:
    """Another folder may have pruned the last run that this folder knows."""
    project.wants(tags=ONE)
    assert project.run("apply", "-y").code == 0
    memory = {file: file.read_bytes() for file in (project.folder / ".syncengine" / "seen").iterdir()}
    for _ in range(3):
        assert project.run("apply", "-y").code == 0
    with sa.create_engine(f"sqlite:///{project.folder}/.syncengine/state.db").begin() as connection:
        for table in ("state_calls", "state_marks"):
            connection.exec_driver_sql(f"UPDATE {table} SET at = at - 999999")
    assert project.run("state", "prune", "--before", "2d", "-y").code == 0
    for file, content in memory.items():
        file.write_bytes(content)
    assert project.run("plan", "--detailed-exitcode").code == 0


# --- a lost state


@pytest.fixture(params=["file", "server"])
def vanished(request: pytest.FixtureRequest, project: Project) -> Project:
    """A project that was applied and exported its state; the state has been deleted since."""
    state = project.folder / ".syncengine" / "state.db"
    if request.param == "server":
        server: Server = request.getfixturevalue("server")
        server.sql("DROP DATABASE IF EXISTS st WITH (FORCE)", "CREATE DATABASE st")
        project.environ["SYNCENGINE_STATE"] = server.url(database="st")
    project.wants(tags=TWO)
    assert project.run("apply", "-y").code == 0
    assert project.run("state", "export", "-o", "state.jsonl").code == 0
    if request.param == "server":
        server.sql("DROP DATABASE st WITH (FORCE)", "CREATE DATABASE st")
    state.unlink(missing_ok=True)
    project.wants(tags=ONE)
    return project


def test_a_lost_state_is_not_replaced_by_a_new_one(vanished: Project, service: Service) -> None:
    """Otherwise all resources would be created again and B would be forgotten. An earlier export is not overwritten."""
    vanished.settings("postedTime: {deliver: [{name: out, jsonl: {path: out.jsonl}}]}")
    (vanished.folder / "tags.csv").write_text("name\nA\n")
    asked, export = service.asked(), (vanished.folder / "state.jsonl").read_bytes()
    others = (
        ("adopt", "tags.csv"),
        ("state", "list"),
        ("state", "export", "-o", "state.jsonl"),
        ("state", "lock"),
        ("state", "unlock", "3f2a9c"),
        ("state", "restore", "-y"),
        ("state", "quarantine", "tag/A", "--reason", "odd"),
    )
    for command in (*USES_A_STATE, *USES_A_STATE, *others):
        done = vanished.run(*command)
        said = done.out + done.err
        assert (done.code, *(word in said for word in ("new-state", "state rebuild", "--new-state"))) == (
            4,
            *(True, True, True),
        ), (command, said)
    assert service.asked() == asked
    assert (vanished.folder / "state.jsonl").read_bytes() == export


def test_new_state_starts_a_new_state(vanished: Project) -> None:
    """`--new-state` is needed only once."""
    assert "1 to create" in vanished.run("plan", "--new-state").out
    assert vanished.run("apply", "-y", "--new-state").code == 0
    assert vanished.run("plan", "--detailed-exitcode").code == 0
    assert vanished.run("apply", "-y").code == 0


def test_importing_the_last_export_replaces_a_lost_state(vanished: Project) -> None:
    """Resources that are no longer declared are recorded again."""
    assert vanished.run("state", "import", "state.jsonl", "-y").code == 0
    assert "tag/B" in vanished.run("state", "list").out
    assert "forget" in vanished.run("plan").out


def test_the_state_of_the_sandbox_may_be_deleted(project: Project) -> None:
    """Its data is deleted with it, so the next apply starts from nothing."""
    project.wants(tags=ONE)
    assert project.run("apply", "-y", "--sandbox").code == 0
    shutil.rmtree(project.folder / ".syncengine" / "sandbox")
    assert project.run("apply", "-y", "--sandbox").code == 0
