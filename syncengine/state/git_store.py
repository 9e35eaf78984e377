"""A state in a Git ref: its snapshots, and whether the ref was set back, as far as the project remembers.

state.json       facts of the version                  lock.json    the rows of the lock
TABLE.0000       rows of a table, by primary key

Each version is a commit without parents: what is no longer among the parents of the ref's commit is unreachable.
"""

from __future__ import annotations

import atexit
import base64
import os
import re
import secrets
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from msgspec import Struct

from syncengine.content import sha256_of
from syncengine.document.json_text import decode_json, encode_json
from syncengine.document.text import as_word
from syncengine.errors import GateTripped, SyncengineError
from syncengine.project.files import make_folder
from syncengine.project.git_ref import GitRef, is_address, read_ref, without_login
from syncengine.state.database import FAILURES, OTHER_VERSION, diagnose, is_of_disk
from syncengine.state.folder_memory import NEW_STATE, REWOUND, ChangeMark, FolderMemory, KnownChange, StateMarks
from syncengine.state.git_repository import SEEN, BareRepository, Remote, Superseded, no_git
from syncengine.state.tables import LOCK, MARKS, METADATA, STATE_LOCK, VERSION, create_tables

FORMAT = "syncengine.git-state/v4"
FAMILY = "syncengine.git-state/"
INFO_FILE, LOCK_FILE = "state.json", "lock.json"

KEPT = 100
"""The number of versions that can be restored: they are the parents of each commit, which every look reads."""

# A file that changes is pushed and stored whole, until the server packs it. So tables are cut where the key of a row
# says so, about every 200 rows: a change elsewhere leaves a file, and thus its blob, as it was.
BORDER, MOST_BYTES = 256, 64 * 1024

TABLES: Mapping[str, sa.Table] = {table.name: table for table in METADATA.sorted_tables if table is not LOCK}


class VersionInfo(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The facts of a version. `schema` is the version of the tables."""

    lineage: str
    serial: int
    when: float
    who: str
    command: str
    rows: int
    run: str | None = None
    format: str = ""
    schema: int = 0


class Version(Struct, frozen=True):
    """A kept version, by its id."""

    id: str
    info: VersionInfo


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of the state. `id` changes with every write, `version` with every write of rows.

    `version_ids` are the versions that can be restored, newest first. `lock` is the content of the lock's file. `blobs`
    are the ids of all files by name, for the store alone.
    """

    id: str
    version_ids: tuple[str, ...]
    info: VersionInfo
    lock: bytes
    blobs: Mapping[str, str] = field(repr=False)

    @property
    def version(self) -> str:
        return self.version_ids[0]


@dataclass(frozen=True, slots=True)
class Content:
    """The content of the next version. `keeps` versions are kept."""

    info: VersionInfo
    files: Mapping[str, bytes] = field(repr=False)
    keeps: int = KEPT


def files_of(connection: sa.Connection) -> dict[str, bytes]:
    """Return the rows of all tables, by file."""
    files: dict[str, bytes] = {}
    for name, table in TABLES.items():
        lines: list[bytes] = []
        size = number = 0
        keys = [column.name for column in table.primary_key]
        for row in connection.execute(sa.select(table).order_by(*table.primary_key)):
            key = "\0".join(str(row._mapping[each]) for each in keys)
            if lines and (size >= MOST_BYTES or zlib.crc32(key.encode()) % BORDER == 0):
                files[f"{name}.{number:04d}"] = b"".join(lines)
                lines, size, number = [], 0, number + 1
            lines.append(encode_json(tuple(row)) + b"\n")  # bytes become base64
            size += len(lines[-1])
        if lines:
            files[f"{name}.{number:04d}"] = b"".join(lines)
    return files


def rows_of(table: sa.Table, files: Mapping[str, bytes]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table. Raise `ValueError` for a damaged line."""
    binary = [column.name for column in table.c if isinstance(column.type, sa.LargeBinary)]
    for name in sorted(files):
        for line in files[name].splitlines() if name.startswith(f"{table.name}.") else ():
            if not isinstance(values := decode_json(line), list):
                raise ValueError("a row is not a list")
            row: dict[str, Any] = dict(zip(table.c.keys(), values, strict=True))
            for column in binary:
                if row[column] is not None:
                    row[column] = base64.b64decode(str(row[column]), validate=True)
            yield row


def fill(connection: sa.Connection, head: Snapshot, files: Mapping[str, bytes]) -> None:
    """Create the tables of a snapshot and fill them. Raise a member of `FAILURES` if damaged."""
    if unknown := {name.partition(".")[0] for name in files} - {*TABLES}:
        raise LookupError(f"there are rows of an unknown table: {min(unknown)}")
    create_tables(connection)
    for table in TABLES.values():
        if rows := list(rows_of(table, files)):
            connection.execute(sa.insert(table), rows)
    set_lock(connection, lock_rows(head.lock))


def lock_of(connection: sa.Connection) -> bytes:
    rows = connection.execute(sa.select(LOCK).order_by(LOCK.c.id)).mappings()
    return encode_json([dict(row) for row in rows]) + b"\n"


def lock_rows(data: bytes) -> list[dict[str, Any]]:
    """Decode the rows of the lock's table. Raise `ValueError` or `LookupError` for damaged rows."""
    rows: list[dict[str, Any]] = decode_json(data, list[dict[str, Any]])
    for row in rows:
        if not {*row} <= {*LOCK.c.keys()} or type(row["epoch"]) is not int or type(row["id"]) is not int:
            raise ValueError("the row of the lock is damaged")
    if not any(row["id"] == STATE_LOCK for row in rows):
        raise LookupError("the row of the lock is missing")
    return rows


def set_lock(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    connection.execute(sa.delete(LOCK))
    connection.execute(sa.insert(LOCK), [dict(row) for row in rows])


def state_lock(head: Snapshot) -> Mapping[str, Any]:
    """Return the row of the state's lock."""
    return next(row for row in lock_rows(head.lock) if row["id"] == STATE_LOCK)


def info_of(data: bytes) -> VersionInfo | None:
    """Decode `state.json`; `None` for another version of the program. Raise `ValueError` for other content."""
    info: VersionInfo = decode_json(data, VersionInfo)
    if not info.format.startswith(FAMILY):
        raise ValueError("unknown format")
    return info if (info.format, info.schema) == (FORMAT, VERSION) else None


DAMAGED = "state-damaged"
UNREADABLE = (SyncengineError, ValueError, LookupError, TypeError)
"""The errors of reading a snapshot from a local repository that may be broken."""

_SHORT = re.compile("[0-9a-f]{7,64}")
_PARENT = re.compile(rb"^parent ([0-9a-f]+)$", re.MULTILINE)


@dataclass(slots=True)
class GitStore:
    """A Git ref as a store with one current snapshot."""

    repository: BareRepository
    name: str

    def current(self) -> str | None:
        """Ask the remote for the id of the current snapshot. Return `None` when there is none."""
        return self.repository.look()

    def head(self, id: str) -> Snapshot:
        """Return the snapshot with an id that was current. Raise `Superseded` when it is so no longer.

        Raise `SyncengineError` if it is damaged in the remote, or of another version of the program.
        """
        try:
            if not self.repository.has(id):
                self.repository.fetch()
                if not self.repository.has(id) and self.repository.look() != id:
                    raise Superseded
            return self._read_head(id)
        except UNREADABLE as error:
            if isinstance(error, SyncengineError) and error.code == OTHER_VERSION.code:
                raise
            return self._healed(id)

    def _healed(self, id: str) -> Snapshot:
        """Replace the broken local repository by a new copy, unless the snapshot is damaged there as well."""
        with self.repository.copy() as repository:
            repository.fetch()
            copy = GitStore(repository, self.name)
            try:
                head = copy._read_head(id)
                copy.files(head)
            except SyncengineError as error:
                if error.code == "state-unreachable":  # Git's words for a commit that is none
                    raise self._no_state(error) from error
                raise
            except (ValueError, LookupError, TypeError) as error:
                raise self._no_state(error) from error
            self.repository.replace_by(repository)
            return head

    def keep(self, head: Snapshot) -> None:
        """Keep the objects of a snapshot in the local repository."""
        self.repository.keep(head.id)

    def tidy(self) -> None:
        self.repository.tidy()

    def purge(self) -> None:
        self.repository.purge()

    def seen(self) -> Snapshot | None:
        """Return the snapshot that was kept last, or `None` if there is none, or it cannot be read."""
        try:
            return self._read_head(SEEN)
        except UNREADABLE:
            return None

    def files(self, head: Snapshot, table: str = "") -> Mapping[str, bytes]:
        """Return the files with the lines of a snapshot's tables, or of one of them, by name."""
        names = [name for name in head.blobs if name not in (INFO_FILE, LOCK_FILE) and name.startswith(table)]
        ids = [head.blobs[name] for name in names]
        try:
            data = self.repository.read(ids)
        except UNREADABLE:
            self._healed(head.id)
            data = self.repository.read(ids)
        return dict(zip(names, data, strict=True))

    def versions(self, head: Snapshot) -> list[Version]:
        """Return the kept versions, newest first."""
        try:
            infos = self.repository.read(f"{id}:{INFO_FILE}" for id in head.version_ids)
            return [Version(id, self._info(info)) for id, info in zip(head.version_ids, infos, strict=True)]
        except (ValueError, LookupError) as error:
            raise self.damaged(error) from error

    def version(self, id: str) -> Snapshot:
        """Return a version by the beginning of its id, from the local repository. Raise `SyncengineError` if absent."""
        try:
            if not _SHORT.fullmatch(id):
                raise ValueError("no id")
            return self._read_head(id)
        except (ValueError, LookupError, TypeError):
            message = f"state {self.name} has no version {id}; run `syncengine state versions` to list the versions"
            raise SyncengineError(message, code="no-such-version") from None

    def write(self, over: Snapshot | None, lock: bytes, content: Content | None) -> Snapshot:
        """Write a snapshot over `over`, with its rows unless `content` is given. Raise `Superseded` if outdated."""
        repository = self.repository
        if content is None:
            assert over is not None, "the first version has content"
            info, versions = over.info, over.version_ids
            blobs = {**over.blobs, **repository.write_blobs({LOCK_FILE: lock})}
            tree = repository.write_tree(blobs)
        else:
            info = content.info
            own = {INFO_FILE: encode_json(info), LOCK_FILE: lock}
            blobs = repository.write_blobs({**content.files, **own})
            tree = repository.write_tree(blobs)
            version = repository.commit_tree(tree, (), int(info.when), f"{info.serial}: {info.command}")
            versions = (version, *(over.version_ids if over else ()))[: content.keeps]
        # With the nonce, no two writes ever make the same commit, so that a push of unknown end can be read back.
        message = f"{info.serial}\n\nnonce {secrets.token_hex(16)}"
        id = repository.commit_tree(tree, versions, int(info.when), message)
        repository.push(id, over.id if over else None)
        return Snapshot(id, versions, info, lock, blobs)

    def _read_head(self, name: str) -> Snapshot:
        """Read a snapshot from a commit. Raise `ValueError` or `LookupError` for a commit that is no snapshot."""
        id = self.repository.commit_id(name)
        commit, info, lock = self.repository.read([id, f"{id}:{INFO_FILE}", f"{id}:{LOCK_FILE}"])
        lock_rows(lock)
        parents = [parent.decode() for parent in _PARENT.findall(commit.partition(b"\n\n")[0])]
        # Somebody may have set the ref by hand to a version, which has no parents.
        return Snapshot(id, tuple(parents) or (id,), self._info(info), lock, self.repository.list_tree(id))

    def _info(self, data: bytes) -> VersionInfo:
        info = info_of(data)
        if info is None:
            raise OTHER_VERSION.error(self.name)
        return info

    def _no_state(self, error: Exception) -> SyncengineError:
        cure = "delete the ref, and run `syncengine state restore VERSION` in a project that saw an earlier version"
        return self._damage("or no state of syncengine: " + cure, error, ", ")

    def damaged(self, error: Exception) -> SyncengineError:
        """Return the error for a snapshot that cannot be decoded."""
        cure = "run `syncengine state restore VERSION` with an earlier version from `syncengine state versions`"
        return self._damage(cure, error, ": ")

    def _damage(self, cure: str, error: Exception, joint: str) -> SyncengineError:
        words = "".join(letter for letter in str(error) if letter.isprintable())[:120] or type(error).__name__
        return SyncengineError(f"state {self.name} is damaged{joint}{cure} ({words})", code=DAMAGED)


FOLDER = ".syncengine/git-state"
TRIES = 5
"""The number of attempts to read a snapshot that is replaced while it is fetched: a push takes as long as a fetch."""
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
        self.memory = FolderMemory(self.folder / "seen.json", self.name)

    def look(self, *, is_ours: bool = False) -> Snapshot | None:
        """Return the current snapshot, or `None` when it is missing and that is permitted.

        Raise `GateTripped` for a snapshot that is missing or was set back without permission. With `is_ours` (the lock
        is ours), the caller checks itself whether the ref was set back.
        """
        for _ in range(TRIES):
            before = self.memory.last()  # before the look: another process may write both after it
            id = self.store.current()
            if id is None and self.create:
                return None
            if id is None:
                why = f"there is no state at {self.name}; check the name, {_CURES}"
                if before is not None and (seen := self.store.seen()) is not None:
                    version = seen.version[:12]
                    why = (
                        f"there is no state at {self.name}, although this project saw version {version} of it; bring"
                        f" that back with `syncengine state restore {version}`, {_CURES}"
                    )
                raise GateTripped(why, code=NEW_STATE)
            try:
                head = self.store.head(id)
            except Superseded:
                continue
            if not is_ours:
                self.accept(head, before)
            return head
        message = f"state {self.name} is busy: it changes faster than it can be read; repeat the command"
        raise SyncengineError(message, code="state-busy")

    def accept(self, head: Snapshot, before: KnownChange | None) -> None:
        """Remember the snapshot as last seen. Raise `GateTripped` if it does not descend from the one seen before."""
        if self.allows_rewound:
            return
        if before is not None and not self.marks(head).follow(before):
            now = f"version {head.version[:12]} (number {head.info.serial})"
            then, cure = "", "list the versions with `syncengine state versions`"
            if (seen := self.store.seen()) is not None:
                id = seen.version[:12]
                then = f", {id} (number {seen.info.serial})"
                cure += f"; to return to the one last seen, run `syncengine state restore {id}`"
            message = (
                f"state {self.name} was set to {now}, which does not descend from the version that this project last"
                f" saw{then}: {cure}"
            )
            raise GateTripped(message, code=REWOUND)
        self.remember(head)

    def remember(self, head: Snapshot) -> None:
        """Record the snapshot as the one that this project last saw, and keep its objects."""
        marks = self.marks(head)
        if not self.memory.is_ahead(marks):
            self.store.keep(head)
            self.memory.remember(marks)

    def marks(self, head: Snapshot) -> StateMarks:
        """Return the marks of a snapshot."""
        try:
            rows = list(rows_of(MARKS, self.store.files(head, MARKS.name)))
        except FAILURES as error:
            raise self.unread(error) from error
        epoch = max(int(row["epoch"]) for row in lock_rows(head.lock))
        marks = (ChangeMark(row["id"], row["verb"], row["change"]) for row in rows)
        return StateMarks(head.info.lineage, tuple(marks), epoch)

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
