"""The place of a state in Git: its store, and the project's memory of it, by which a ref set back is noticed."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import msgspec
from msgspec import Struct

from syncengine.content import sha256_of
from syncengine.document.text import as_word
from syncengine.errors import GateTripped, SyncengineError
from syncengine.project.files import make_folder, replace_whole
from syncengine.project.git_ref import GitRef, is_address, read_ref, without_login
from syncengine.state.errors import diagnose, is_of_disk
from syncengine.state.folder_memory import NEW_STATE
from syncengine.state.snapshots.git_store import REMEMBERED, GitStore, Snapshot, lock_rows
from syncengine.state.snapshots.repository import BareRepository, Remote, Superseded, no_git

FOLDER = ".syncengine/git-state"
TRIES = 5
"""The number of attempts to read a snapshot that is replaced while it is fetched."""
REWOUND = "state-rewound"

_CURES = (
    "begin a new state with `syncengine apply --new-state`, or rebuild a lost one with `syncengine state rebuild"
    " --new-state`"
)


class Seen(Struct, frozen=True):
    """A snapshot that this project has seen: its id and version, and the epoch of its lock."""

    id: str
    version: str
    serial: int
    epoch: int


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
            before = self.last_seen()  # before the look: another process may write both after it
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

    def accept(self, head: Snapshot, before: Seen | None) -> None:
        """Remember the snapshot as last seen. Raise `GateTripped` if it does not descend from the one seen before."""
        if self.allows_rewound:
            return
        if before is not None and not self._follows(head, before):
            cure = (
                "list the versions with `syncengine state versions`; to return to the one last seen, run `syncengine"
                f" state restore {before.version[:12]}`"
            )
            message = (
                f"state {self.name} was set to version {head.version[:12]} (number {head.info.serial}), which does not"
                f" descend from the version that this project last saw, {before.version[:12]} (number {before.serial}):"
                f" {cure}"
            )
            raise GateTripped(message, code=REWOUND)
        self.remember(head)

    def _follows(self, head: Snapshot, last: Seen) -> bool:
        if head.version == last.version:
            return _epoch_of(head) >= last.epoch  # set back within a version, a lock would count as never taken
        descends = self.store.is_descendant(head, last.version)
        return descends if descends is not None else head.info.serial > last.serial + REMEMBERED

    def remember(self, head: Snapshot) -> None:
        """Record the snapshot as the one that this project last saw, and keep its objects."""
        self.store.keep(head)
        seen = Seen(head.id, head.version, head.info.serial, _epoch_of(head))
        replace_whole(self._memory, [msgspec.json.encode(seen)], mode=0o600)

    def last_seen(self) -> Seen | None:
        """Return the snapshot last seen, or `None` when there is none or the file cannot be read."""
        try:
            return msgspec.json.decode(self._memory.read_bytes(), type=Seen)
        except (OSError, msgspec.MsgspecError):
            return None

    def drop_earlier(self) -> bool:
        """Delete this machine's data of earlier versions; return whether that succeeded."""
        try:
            self.store.purge()
        except (OSError, SyncengineError):
            return False
        return True

    def unread(self, error: Exception) -> SyncengineError:
        """Return the error for rows that could not be read: damage, unless this machine's disk failed."""
        return diagnose(error).error(self.name) if is_of_disk(error) else self.store.damaged(error)

    def _refuse_absent(self, last: Seen | None) -> None:
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


def _epoch_of(head: Snapshot) -> int:
    return max(int(row["epoch"]) for row in lock_rows(head.lock))


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
        make_folder(folder)
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
