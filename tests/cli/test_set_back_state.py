"""A state that was restored from a backup or lost between two runs: the folder notices it, and commands refuse it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.postgresql import Server

from .program import Project, tag
from .service import Json, Service

ONE = [tag("A", description="one")]
TWO = [tag("A", description="two"), tag("B")]
Backup = tuple[Callable[[], None], Callable[[], None]]
STATES = ["file", "server"]


@pytest.fixture(params=STATES)
def backup(request: pytest.FixtureRequest, project: Project) -> Backup:
    """Functions that back up the project's state and restore the backup."""
    if request.param == "file":
        state, kept = project.folder / ".syncengine" / "state.db", project.folder / "yesterday.db"
        return (lambda: copy(state, kept)), (lambda: copy(kept, state))
    server: Server = request.getfixturevalue("server")
    server.sql("DROP DATABASE IF EXISTS yesterday WITH (FORCE)")
    emptied(server, project)
    return (
        lambda: server.sql("CREATE DATABASE yesterday TEMPLATE st"),
        lambda: server.sql("DROP DATABASE st WITH (FORCE)", "CREATE DATABASE st TEMPLATE yesterday"),
    )


def copy(source: Path, target: Path) -> None:
    shutil.copy(source, target)


def emptied(server: Server, project: Project) -> None:
    """Give the project a state in a new database of the server."""
    server.sql("DROP DATABASE IF EXISTS st WITH (FORCE)", "CREATE DATABASE st")
    project.environ["SYNCENGINE_STATE"] = server.url(database="st")


def applied(project: Project, tags: list[Json], *words: str) -> None:
    project.wants(tags=tags)
    assert project.run("apply", "-y", *words).code == 0


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


def test_a_state_that_was_set_back_is_refused_until_it_is_accepted(
    project: Project, service: Service, backup: Backup
) -> None:
    """Otherwise the plan that reverts TWO would be empty. Commands that only read warn each time.

    `state restore` accepts it, and so does an import of its own export; a folder without memory, as a fresh clone,
    cannot notice it.
    """
    keep, bring_back = backup
    project.settings("postedTime: {deliver: [{name: out, jsonl: {path: out.jsonl}}]}")
    applied(project, ONE)
    keep()
    applied(project, TWO)
    bring_back()
    project.wants(tags=ONE)
    asked = service.asked()
    for command in (*USES_A_STATE, *USES_A_STATE, ("state", "prune", "--before", "7d", "-y")):
        done = project.run(*command)
        assert (done.code, "state-rewound" in done.out + done.err) == (4, True), (command, done.out, done.err)
    assert service.asked() == asked
    for command in 2 * (("list",), ("history", "tag/A"), ("export", "-o", "state.jsonl")):
        done = project.run("state", *command)
        assert (done.code, "set back" in done.err) == (0, True), (command, done.err)

    assert project.run("state", "restore", "-y", "--format", "json").document["rows"] == 1
    assert project.run("plan", "--detailed-exitcode").code == 2
    assert project.run("apply", "-y").code == 0
    assert [held["description"] for held in service.holds()["tags"] if held["name"] == "A"] == ["one"]
    assert project.run("plan", "--detailed-exitcode").code == 0
    bring_back()
    assert project.run("plan").code == 4
    assert project.run("state", "import", "state.jsonl", "-y").code == 0
    assert project.run("plan", "--detailed-exitcode").code == 2
    bring_back()
    shutil.rmtree(project.folder / ".syncengine" / "seen")
    assert project.run("plan", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("backup", ["file"], indirect=True)
def test_a_lock_in_a_state_that_was_set_back_can_be_ended(project: Project, backup: Backup) -> None:
    """`state restore` needs the lock, so `state unlock` must work before it."""
    keep, bring_back = backup
    applied(project, ONE)
    lock = project.run("state", "lock", "--format", "json").document["lock"]["id"]
    keep()
    assert project.run("state", "unlock", lock).code == 0
    applied(project, ONE)
    bring_back()
    assert project.run("plan").code == 4
    assert project.run("state", "unlock", lock).code == 0
    assert project.run("state", "restore", "-y").code == 0


@pytest.mark.parametrize("backup", ["server"], indirect=True)
def test_a_restored_state_is_accepted_in_all_clones(project: Project, backup: Backup) -> None:
    """A further set-back is noticed by each clone, even one to a time before the accepted state."""
    keep, bring_back = backup
    applied(project, ONE)
    clone = Project(project.folder.with_name("clone"), project.url, project.environ)  # remembers the state separately

    def plans() -> list[int]:
        return [folder.run("plan").code for folder in (project, clone)]

    clone.wants(tags=ONE)
    assert plans() == [0, 0]
    keep()
    applied(clone, TWO)
    assert plans() == [0, 0]
    bring_back()
    assert plans() == [4, 4]
    assert project.run("state", "restore", "-y").code == 0
    assert plans() == [0, 0]
    applied(clone, TWO)
    assert project.run("plan").code == 0
    bring_back()
    assert plans() == [4, 4]


def test_a_copy_without_its_log_is_refused(project: Project, service: Service) -> None:
    """After a kill, the last changes are only in SQLite's write-ahead log; without it the state is set back."""
    applied(project, ONE)
    project.wants(tags=TWO)
    project.kill_during(service, "upsertTags", "apply", "-y")
    folder = project.folder / ".syncengine"
    (folder / "state.db-wal").unlink()
    (folder / "state.db-shm").unlink(missing_ok=True)
    done = project.run("plan")
    assert (done.code, "state-rewound" in done.err) == (4, True), done.err


def test_pruning_and_many_runs_are_no_set_back(project: Project) -> None:
    """Another folder may have pruned the last run that this folder knows."""
    applied(project, ONE)
    memory = {file: file.read_bytes() for file in (project.folder / ".syncengine" / "seen").iterdir()}
    for _ in range(3):
        applied(project, ONE)
    project.age(11)
    assert project.run("state", "prune", "--before", "2d", "-y").code == 0
    for file, content in memory.items():
        file.write_bytes(content)
    assert project.run("plan", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("kind", STATES)
def test_a_lost_state_is_not_replaced_by_a_new_one(
    project: Project, service: Service, request: pytest.FixtureRequest, kind: str
) -> None:
    """Otherwise all resources would be created again and B would be forgotten. An earlier export is not overwritten.

    Its import records everything again, and `--new-state`, which is needed only once, begins anew.
    """
    server: Server | None = request.getfixturevalue("server") if kind == "server" else None

    def vanish() -> None:
        if server is not None:
            emptied(server, project)
        (project.folder / ".syncengine" / "state.db").unlink(missing_ok=True)

    vanish()
    project.settings("postedTime: {deliver: [{name: out, jsonl: {path: out.jsonl}}]}")
    (project.folder / "tags.csv").write_text("name\nA\n")
    applied(project, TWO)
    assert project.run("state", "export", "-o", "state.jsonl").code == 0
    vanish()
    project.wants(tags=ONE)
    asked, export = service.asked(), (project.folder / "state.jsonl").read_bytes()
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
        done = project.run(*command)
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
    applied(project, ONE, "--new-state")
    assert project.run("plan", "--detailed-exitcode").code == 0
    applied(project, ONE)


def test_the_state_of_the_sandbox_may_be_deleted(project: Project) -> None:
    """Its data is deleted with it, so the next apply starts from nothing."""
    applied(project, ONE, "--sandbox")
    shutil.rmtree(project.folder / ".syncengine" / "sandbox")
    applied(project, ONE, "--sandbox")
