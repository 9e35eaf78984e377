"""The place of a state in Git: its store, the project's memory of it, and its files on this machine."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from syncengine.document.digest import sha256_of
from syncengine.document.text import as_word
from syncengine.errors import GateTripped, SyncengineError
from syncengine.project import folder as own_folder
from syncengine.project.git_ref import GitRef, is_address, read_ref, without_login
from syncengine.state.errors import diagnose, is_of_disk
from syncengine.state.folder_memory import NEW_STATE
from syncengine.state.snapshots import memory
from syncengine.state.snapshots.git_store import GitStore
from syncengine.state.snapshots.repository import BareRepository, Remote, no_git
from syncengine.state.snapshots.versions import Snapshot, Superseded

FOLDER = ".syncengine/git-state"
TRIES = 5
KEPT_FILES = 2
"""The number of latest files for reading that are kept. A process that has an older file open can go on reading it."""

_CURES = (
    "begin a new state with `syncengine apply --new-state`, or rebuild a lost one with `syncengine state rebuild"
    " --new-state`"
)


class GitPlace:
    """One ref of one remote. `create`: the ref may be missing. `allows_rewound`: the ref may have been set back."""

    def __init__(self, place: str, *, create: bool = False, allows_rewound: bool = False) -> None:
        ref = read_ref(place)
        remote = _remote_of(ref)
        self.name = ref.name
        self.create = create
        self.allows_rewound = allows_rewound
        self.folder = _folder(ref, remote)
        self.store = GitStore(BareRepository(self.folder / "repository.git", remote, ref.ref, self.name), self.name)
        self._memory = self.folder / "seen.json"

    def look(self, *, is_ours: bool = False) -> Snapshot | None:
        """Return the current snapshot, or `None` when it is missing and that is permitted.

        Raise `GateTripped` for a snapshot that is missing or was set back without permission. With `is_ours` (the lock
        is ours), the caller checks itself whether the ref was set back.
        """
        for _ in range(TRIES):
            before = memory.last_seen(self._memory)  # before the look: another process may write both after it
            id = self.store.current()
            if id is None:
                self._refuse_absent(before)
                return None
            try:
                head = self.store.head(id)
            except Superseded:
                continue
            if not is_ours:
                self.accept(head, before)
            return head
        message = f"state {self.name} is busy: it changes faster than it can be read; repeat the command"
        raise SyncengineError(message, code="state-busy")

    def accept(self, head: Snapshot, before: memory.Seen | None) -> None:
        """Remember the snapshot as last seen. Raise `GateTripped` if it does not descend from the one seen before."""
        if not self.allows_rewound:
            memory.refuse_rewound(self.store, head, before)
            self.remember(head)

    def remember(self, head: Snapshot) -> None:
        """Record the snapshot as the one that this project last saw."""
        self.store.keep(head)
        memory.remember(self._memory, head)

    def last_seen(self) -> memory.Seen | None:
        return memory.last_seen(self._memory)

    def reading_file(self, version: str) -> Path:
        """Return the path of the file for reading a version."""
        return self.folder / f"read-{version[:24]}.db"

    def drop_old_files(self, version: str) -> None:
        """Delete the files of all versions except this one and the last ones before it."""
        others = sorted((made, file) for file, made in self._files_and_times() if file != self.reading_file(version))
        for _, file in others[: -(KEPT_FILES - 1)]:
            with suppress(OSError):
                file.unlink()
                Path(f"{file}-journal").unlink(missing_ok=True)

    def _files_and_times(self) -> Iterator[tuple[Path, float]]:
        for file in self.folder.glob("read-*.db"):
            with suppress(OSError):
                yield file, file.stat().st_mtime

    def drop_earlier(self) -> bool:
        """Delete this machine's data of earlier versions; return whether that succeeded."""
        try:
            for file in self.folder.glob("read-*.db"):
                file.unlink(missing_ok=True)
            self.store.purge()
        except (OSError, SyncengineError):
            return False
        return True

    def unread(self, error: Exception) -> SyncengineError:
        """Return the error for rows that could not be read: damage, unless this machine's disk failed."""
        return diagnose(error).error(self.name) if is_of_disk(error) else self.store.damaged(error)

    def _refuse_absent(self, last: memory.Seen | None) -> None:
        if self.create:
            return
        if last is None:
            message = f"there is no state at {self.name}; check the name, {_CURES}"
        else:
            version = last.version[:12]
            message = (
                f"there is no state at {self.name}, although this project saw version {version} of it; bring that back"
                f" with `syncengine state restore {version}`, {_CURES}"
            )
        raise GateTripped(message, code=NEW_STATE)


def _remote_of(ref: GitRef) -> Remote:
    if not ref.is_named:
        return Remote(ref.remote)
    try:
        remote = Remote.of_name(ref.remote, ref.folder)
    except LookupError as error:
        if shutil.which("git") is None:
            raise no_git(ref.name) from None
        cure = f"correct the name, or run `git remote add {as_word(ref.remote)} URL` ({error})"
        message = f"state {ref.name}: Git has no remote {ref.remote} in the project's folder; {cure}"
        raise SyncengineError(message, code="state-url") from None
    if not is_address(remote.url):
        address = without_login(remote.url)
        message = f"state {ref.name}: the remote {ref.remote} has the URL {address}; use https, ssh or a file instead"
        raise SyncengineError(message, code="state-url")
    return remote


def _folder(ref: GitRef, remote: Remote) -> Path:
    """Return the folder for a ref in the project, or a temporary one when the project cannot be written."""
    folder = ref.folder / FOLDER / sha256_of(f"{without_login(remote.url)}\n{ref.ref}".encode())[:16]
    try:
        own_folder.make(folder)
        folder.chmod(0o700)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    try:
        folder = Path(tempfile.mkdtemp(prefix="syncengine-"))
    except OSError as error:
        message = f"state {ref.name}: cannot write to {FOLDER} or to a folder for temporary files ({error.strerror})"
        raise SyncengineError(message, code="state-io") from None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def working_folder(place: GitPlace) -> Iterator[Path]:
    """Create a folder for this process alone, and delete those of dead processes."""
    for each in place.folder.glob("work-*"):
        _drop_if_dead(each)
    folder = Path(tempfile.mkdtemp(dir=place.folder, prefix="work-"))
    with (folder / "owner").open("wb") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _drop_if_dead(folder: Path) -> None:
    with suppress(OSError), (folder / "owner").open("rb") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
