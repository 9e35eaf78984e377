"""A damaged copy of the state is fetched again; a damaged or forged state is an error without a traceback."""

import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest

from syncengine.state.removal import trim
from syncengine.state.store import open_state
from tests.cli.program import Project, tag
from tests.support import warm
from tests.support.git import git

from .conftest import ONE, TWO, Clone, applies, fails, rests, succeeds, versions
from .places import REF
from .test_store import forge

pytestmark = pytest.mark.slow


BREAKAGES = {
    "empty objects": "for file in objects/??/*; do chmod +w $file; : > $file; done",
    "no rows": "git ls-tree refs/heads/seen | grep state_ | cut -c 13-52 | sed 's,..,rm -f objects/&/,' | sh",
    "no head": ": > HEAD",
    "seen is garbage": "printf '\\0\\0' > refs/heads/seen",
}
"""Commands of a shell in the local repository: what a power cut leaves."""


@pytest.mark.parametrize("breakage", BREAKAGES.values(), ids=BREAKAGES)
def test_a_damaged_local_repository_is_fetched_again(begun: Project, remote: Path, breakage: str) -> None:
    (kept,) = begun.folder.glob(".syncengine/git-state/*/repository.git")
    subprocess.run(["sh", "-ec", breakage], cwd=kept, check=True)
    rests(begun)
    applies(begun, **TWO)
    assert git(remote, "rev-list", "--count", REF) == "6"


def test_a_damaged_remote_is_restored_from_a_clone(begun: Project, remote: Path) -> None:
    version = versions(begun)[0]["id"]
    git(remote, "update-ref", REF, git(remote, "rev-parse", f"{REF}^{{tree}}"))
    assert "error[state-damaged]" in fails(begun, "plan", says="delete the ref").err
    git(remote, "update-ref", "-d", REF)
    git(remote, "gc", "--quiet", "--prune=now")
    succeeds(begun, "state", "restore", "-y", version)
    assert list(begun.rows()) == ["tag/ACME-1"]


def test_a_full_disk_is_reported(begun: Project) -> None:
    """Not as damage; the state stays unchanged."""
    before = versions(begun)
    for words in (("plan",), ("apply", "-y"), ("state", "history"), ("state", "restore", "-y", before[0]["id"])):
        for most in (0, 4096, 65536):
            shutil.rmtree(begun.folder / ".syncengine")
            code, said = limited(begun, words, most)
            assert code == 1, (words, most)
            assert re.search(r"error\[state-(io|full|unreachable)\]: state git\+ref:", said), said
        assert versions(begun) == before
    applies(begun, **TWO)


def limited(project: Project, words: Sequence[str], most: int) -> tuple[int, str]:
    """Run the program where no file may grow beyond `most` bytes, and return its exit code and output."""
    pipe = project.folder / "said"  # what is written to a pipe does not count
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most))
    environ = project.surroundings()
    code = warm.Started(words, folder=project.folder, environ=environ, log=pipe, first=limit).wait(60)
    said = os.read(reading, 65536).decode()
    os.close(reading)
    pipe.unlink()
    return code, said


# --- damaged or forged snapshots

ROW = "state_rows.0000"
Damage = Callable[[bytes], bytes]


def line(place: int, value: object) -> Damage:
    """Return a change that replaces the value at a place of the first row."""

    def changed(data: bytes) -> bytes:
        row = msgspec.json.decode(data.splitlines()[0])
        row[place] = value
        return msgspec.json.encode(row) + b"\n"

    return changed


DAMAGED: dict[str, tuple[str, Damage]] = {
    "no JSON": (ROW, lambda data: b"{"),
    "cut": (ROW, lambda data: data[:-9]),
    "bytes": (ROW, lambda data: b"\xff\x00"),
    "an object": (ROW, lambda data: b'{"a": 1}\n'),
    "a value too many": (ROW, lambda data: data.replace(b"]\n", b",1]\n")),
    "twice": (ROW, lambda data: data + data),
    "a list for a name": (ROW, line(1, ["x"])),
    "an unknown status": (ROW, line(3, "wonderful")),
    "a huge number": (ROW, line(4, 1e300)),
    "broken base64": ("state_calls.0000", line(8, "%")),
    "an unknown table": ("sqlite_master.0000", lambda data: b"[1]\n"),
    **{
        f"a lock of {text[:30]!r}": ("lock.json", lambda data, text=text: text)  # type: ignore[misc] # a default
        for text in (b"x", b"[]", b"[" * 100_000, b'[{"id": 1, "epoch": "x"}]', b'[{"id": 1, "epoch": 1, "x": 1}]')
    },
}


def test_a_damaged_snapshot_is_an_error(begun: Project, clone: Clone, remote: Path) -> None:
    head = git(remote, "rev-parse", REF)
    for number, damage in enumerate(DAMAGED.values()):
        forge(remote, *damage)
        other = clone(f"clone-{number}")
        for words in (("state", "list"), ("apply", "-y")):
            fails(other, *words, says="error[state-damaged]")
        git(remote, "update-ref", REF, head)


def test_a_damaged_snapshot_is_replaced_by_a_version(begun: Project, remote: Path) -> None:
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
    assert list(project.rows()) == ["tag/ACME-1", "tag/ACME-2"]
    shown = succeeds(project, "state", "history", "tag/ACME-1").out
    assert ('"4"' in shown, '"0"' in shown) == (True, False), shown
    runs = project.run("state", "history", "--format", "json").document["runs"]
    assert len(runs) == 5
    fails(project, "plan", "--undo", runs[-1]["id"], code=64, says="is no longer kept")
