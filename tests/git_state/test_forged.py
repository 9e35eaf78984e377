"""A damaged or forged state in Git is an error without a traceback; the history in each version is limited."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from syncengine.state.removal import trim
from syncengine.state.store import open_state
from syncengine.state.tables import CALLS, ROWS, RUNS
from tests.cli.program import Project, tag

from .conftest import Clone
from .places import REF, git
from .test_store import forge

pytestmark = pytest.mark.slow

ROW = "state_rows.0000"
Damage = Callable[[bytes], bytes]


def line(**values: object) -> Damage:
    """Return a change that replaces values of the first row by their position."""

    def changed(data: bytes) -> bytes:
        row = msgspec.json.decode(data.splitlines()[0])
        for place, value in values.items():
            row[int(place.removeprefix("at"))] = value
        return msgspec.json.encode(row) + b"\n"

    return changed


DAMAGED: dict[str, tuple[str, Damage]] = {
    "no JSON": (ROW, lambda data: b"{"),
    "cut": (ROW, lambda data: data[:-9]),
    "bytes": (ROW, lambda data: b"\xff\x00"),
    "an object": (ROW, lambda data: b'{"a": 1}\n'),
    "a value too many": (ROW, lambda data: data.replace(b"]\n", b",1]\n")),
    "twice": (ROW, lambda data: data + data),
    "a list for a name": (ROW, line(at1=["x"])),
    "a huge number": (ROW, line(at4=1e300)),
    "broken base64": ("state_calls.0000", line(at8="%")),
    "an unknown table": ("sqlite_master.0000", lambda data: b"[1]\n"),
    "no lock": ("lock.json", lambda data: b"[]"),
    "a lock of text": ("lock.json", lambda data: b"x"),
}


@pytest.fixture
def begun(clone: Clone) -> Project:
    project = clone("one")
    project.wants(tags=[tag("ACME-1")])
    assert project.run("apply", "-y", "--new-state").code == 0
    return project


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_snapshot_is_an_error(begun: Project, clone: Clone, remote: Path, case: str) -> None:
    """A damaged snapshot is the error `state-damaged` in a new clone too, and `apply` does not go on."""
    forge(remote, *DAMAGED[case])
    other = clone("two")
    other.wants(tags=[tag("ACME-1"), tag("ACME-2")])
    for words in (("state", "list"), ("apply", "-y")):
        done = other.run(*words)
        assert (done.code, "error[state-damaged]" in done.err) == (1, True), (words, done.out, done.err)


def test_a_row_with_an_unknown_status_is_an_error(begun: Project, clone: Clone, remote: Path) -> None:
    forge(remote, ROW, line(at3="wonderful"))
    done = clone("two").run("state", "list")
    assert (done.code, "state-damaged" in done.err) == (1, True), done.err


def test_a_damaged_snapshot_is_replaced_by_a_version(begun: Project, remote: Path) -> None:
    """`state restore` of an earlier version replaces a damaged snapshot, with all rows doubtful."""
    forge(remote, *DAMAGED["cut"])
    version = begun.run("state", "versions", "--format", "json").document["versions"][0]["id"]
    done = begun.run("state", "restore", "-y", version)
    assert done.code == 0, done.err
    assert begun.rows()["tag/ACME-1"]["doubtful"] is True
    assert begun.run("apply", "-y").code == 0
    assert begun.run("plan", "--detailed-exitcode").code == 0


def test_a_ref_that_is_no_state_can_be_deleted_and_restored(begun: Project, remote: Path) -> None:
    version = begun.run("state", "versions", "--format", "json").document["versions"][0]["id"]
    git(remote, "update-ref", REF, git(remote, "rev-parse", f"{REF}^{{tree}}"))
    done = begun.run("plan")
    assert (done.code, "delete the ref" in done.err) == (1, True), done.err
    git(remote, "update-ref", "-d", REF)
    assert begun.run("state", "restore", "-y", version).code == 0
    assert list(begun.rows()) == ["tag/ACME-1"]


@pytest.mark.parametrize("bound", [{"runs": 2}, {"changes": 2}], ids=str)
def test_the_history_is_kept_for_the_last_runs(clone: Clone, bound: dict[str, int]) -> None:
    """Only the last runs keep their calls; all rows stay, and undoing an older run is refused."""
    project = clone("one")
    project.settings()
    for number in range(5):
        project.wants(tags=[tag("ACME-1", description=str(number)), tag("ACME-2")])
        assert project.run("apply", "-y").code == 0
    with open_state(project.loaded().state, write=True) as state, state.database.transaction() as connection:
        trim(connection, 1e12, **bound)
        lines = connection.execute(sa.select(CALLS.c.run).distinct()).scalars().all()
        assert connection.execute(sa.select(sa.func.count()).select_from(RUNS)).scalar_one() == 5
        assert set(connection.execute(sa.select(ROWS.c.name)).scalars()) == {"ACME-1", "ACME-2"}
    assert 1 <= len(lines) <= 3
    shown = project.run("state", "history", "tag/ACME-1")
    assert (shown.code, '"4"' in shown.out, '"0"' in shown.out) == (0, True, False), shown.out
    first = project.run("state", "history", "--format", "json").document["runs"][-1]["id"]
    undone = project.run("plan", "--undo", first)
    assert (undone.code, "is no longer kept" in undone.err) == (64, True), undone.err
