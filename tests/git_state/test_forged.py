"""A damaged or forged state in Git is an error without a traceback; the history in each version is limited."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from syncengine.state.removal import trim
from syncengine.state.store import open_state
from syncengine.state.tables import CALLS
from tests.cli.program import Project, tag
from tests.support.git import git

from .conftest import ONE, Clone, applies, fails, succeeds, versions
from .places import REF
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
    "an unknown status": (ROW, line(at3="wonderful")),
    "a huge number": (ROW, line(at4=1e300)),
    "broken base64": ("state_calls.0000", line(at8="%")),
    "an unknown table": ("sqlite_master.0000", lambda data: b"[1]\n"),
    "no lock": ("lock.json", lambda data: b"[]"),
    "a lock of text": ("lock.json", lambda data: b"x"),
}


def test_a_damaged_snapshot_is_an_error(begun: Project, clone: Clone, remote: Path) -> None:
    """It is the error `state-damaged` in a new clone too, and `apply` does not go on."""
    head = git(remote, "rev-parse", REF)
    for name, damage in DAMAGED.items():
        forge(remote, *damage)
        other = clone(f"after {name}")
        for words in (("state", "list"), ("apply", "-y")):
            fails(other, *words, says="error[state-damaged]")
        git(remote, "update-ref", REF, head)


def test_a_damaged_snapshot_is_replaced_by_a_version(begun: Project, remote: Path) -> None:
    """`state restore` of an earlier version replaces a damaged snapshot, with all rows doubtful."""
    forge(remote, *DAMAGED["cut"])
    succeeds(begun, "state", "restore", "-y", versions(begun)[0]["id"])
    assert begun.rows()["tag/ACME-1"]["doubtful"] is True
    applies(begun, **ONE)


@pytest.mark.parametrize("bound", [{"runs": 2}, {"changes": 2}], ids=str)
def test_the_history_is_kept_for_the_last_runs(clone: Clone, bound: dict[str, int]) -> None:
    """Only the last runs keep their calls; all rows stay, and undoing an older run is refused."""
    project = clone("one")
    project.settings()
    for number in range(5):
        project.wants(tags=[tag("ACME-1", description=str(number)), tag("ACME-2")])
        succeeds(project, "apply", "-y")
    with open_state(project.loaded().state, write=True) as state, state.database.transaction() as connection:
        trim(connection, 1e12, **bound)
        lines = connection.execute(sa.select(CALLS.c.run).distinct()).scalars().all()
    assert 1 <= len(lines) <= 3
    assert list(project.rows()) == ["tag/ACME-1", "tag/ACME-2"]
    shown = succeeds(project, "state", "history", "tag/ACME-1").out
    assert ('"4"' in shown, '"0"' in shown) == (True, False), shown
    runs = project.run("state", "history", "--format", "json").document["runs"]
    assert len(runs) == 5
    fails(project, "plan", "--undo", runs[-1]["id"], code=64, says="is no longer kept")
