"""The store of snapshots in a Git ref: a commit whose tree is the state, and whose parents are the kept versions.

state.json        facts of the version        lock               the rows of the lock
tables/NAME/0000  lines of a table            ancestors/000000   ids of earlier versions, 100 per file
"""

from __future__ import annotations

import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from syncengine.errors import SyncengineError
from syncengine.state.errors import OTHER_VERSION
from syncengine.state.info import VERSION
from syncengine.state.snapshots.layout import lock_rows
from syncengine.state.snapshots.objects import CommitObject, ObjectWriter, read_commit, read_tree
from syncengine.state.snapshots.repository import BareRepository, OtherFormat
from syncengine.state.snapshots.versions import REMEMBERED, Content, Snapshot, Superseded, Version, VersionInfo

FORMAT = "syncengine.git-state/v1"
FAMILY = "syncengine.git-state/"
INFO, LOCK, TABLES, ANCESTORS = "state.json", "lock", "tables", "ancestors"
ID_LENGTH, PER_FILE = 16, 100
"""The number of characters of an id among the ancestors, and the number of ids per file."""

DAMAGED = "state-damaged"

LARGEST = 64 * 1024 * 1024
"""The size in bytes of the largest blob that is read."""

_SHORT = re.compile("[0-9a-f]{7,64}")
_INFO = msgspec.json.Decoder(VersionInfo)


@dataclass(slots=True)
class GitStore:
    """A Git ref as a store with one current snapshot."""

    repository: BareRepository
    name: str

    @property
    def _writer(self) -> ObjectWriter:
        return ObjectWriter(self.repository.folder, self.repository.algorithm)

    def current(self) -> str | None:
        """Ask the remote for the id of the current snapshot. Return `None` when there is none."""
        return self.repository.look()

    def head(self, id: str) -> Snapshot:
        """Return the snapshot with an id that was current. Raise `SyncengineError` if it is damaged or too new."""
        try:
            return self._fetched(id)
        except SyncengineError as error:
            is_out_of_reach = error.code != DAMAGED and self.repository.is_sound()
            if is_out_of_reach or not self._has_whole_copy(id):
                raise
            return self._fetched(id)

    def _fetched(self, id: str) -> Snapshot:
        if not self.repository.has([id]):
            self.repository.fetch()
            if not self.repository.has([id]):
                raise Superseded
        try:
            return self._head(id)
        except (ValueError, LookupError, TypeError) as error:
            raise self._no_state(error) from error

    def _has_whole_copy(self, id: str) -> bool:
        """Replace the local repository by a new copy if the snapshot is whole there; return whether it is."""
        with self.repository.copy() as repository:
            repository.fetch()
            try:
                copy = GitStore(repository, self.name)
                copy._read(copy._head(id).shards.values())
            except (SyncengineError, ValueError, LookupError, TypeError):
                return False
            self.repository.replace_by(repository)
            return True

    def keep(self, head: Snapshot) -> None:
        """Keep the objects of a snapshot in the local repository."""
        self.repository.keep(head.id)

    def tidy(self) -> None:
        """Remove the leftovers of many writes from the local repository."""
        self.repository.tidy()

    def purge(self) -> None:
        """Remove everything from the local repository that the current snapshot does not refer to."""
        self.repository.purge()

    def files(self, head: Snapshot) -> Mapping[str, bytes]:
        """Return the files with the lines of a snapshot's tables, by path."""
        try:
            data = self._read(head.shards.values())
        except (SyncengineError, LookupError):
            if not self._has_whole_copy(head.id):
                raise
            data = self._read(head.shards.values())
        return dict(zip(head.shards, data, strict=True))

    def versions(self, head: Snapshot) -> list[Version]:
        """Return the kept versions, newest first."""
        try:
            infos = self._read(f"{id}:{INFO}" for id in head.version_ids)
            return [Version(id, _INFO.decode(info)) for id, info in zip(head.version_ids, infos, strict=True)]
        except (ValueError, LookupError) as error:
            raise self.damaged(error) from error

    def version(self, id: str) -> Snapshot:
        """Return a version by the beginning of its id, from the local repository. Raise `SyncengineError` if absent."""
        try:
            if not _SHORT.fullmatch(id):
                raise ValueError("no id")
            return self._head(id)
        except (ValueError, LookupError, TypeError):
            message = f"state {self.name} has no version {id}; run `syncengine state versions` to list the versions"
            raise SyncengineError(message, code="no-such-version") from None

    def is_descendant(self, head: Snapshot, version: str) -> bool | None:
        """Return whether a head descends from a version, or `None` when the records do not reach back far enough."""
        if version in head.version_ids:
            return True
        names = [id for id in head.ancestors.values() if id]
        ids = b"\n".join(self._read(names)).split()
        if version[:ID_LENGTH].encode() in ids:
            return True
        return None if len(ids) >= REMEMBERED - PER_FILE else False

    def ancestors(self, head: Snapshot) -> Iterable[str]:
        """Return the shortened ids of a snapshot's earlier versions, oldest first."""
        lines = self._read(head.ancestors[name] for name in sorted(head.ancestors))
        return [line.decode() for data in lines for line in data.split()]

    def write(self, over: Snapshot | None, lock: bytes, content: Content | None) -> Snapshot:
        """Write a snapshot over `over`, with its rows unless `content` is given. Raise `Superseded` if outdated."""
        if over is not None:
            return self._pushed(over, lock, content)
        self.repository.prepare_new()
        try:
            return self._pushed(None, lock, content)
        except OtherFormat:
            self.repository.prepare_other()
            return self._pushed(None, lock, content)

    def _pushed(self, over: Snapshot | None, lock: bytes, content: Content | None) -> Snapshot:
        head = self._made(over, lock, content)
        self.repository.push(head.id, over.id if over else None)
        return head

    def _made(self, over: Snapshot | None, lock: bytes, content: Content | None) -> Snapshot:
        """Write the objects of a new head to the local repository, and return the head."""
        writer = self._writer
        if content is None:
            assert over is not None, "the first version has content"
            info, shards, ancestors, versions = over.info, over.shards, over.ancestors, over.version_ids
            tree = self._tree(info, lock, shards, ancestors)
        else:
            info, before = content.info, over.shards if over else {}
            shards = {path: self._shard(writer, data, before.get(path)) for path, data in content.files.items()}
            ancestors = self._with_ancestors(over, content.also)
            tree = self._tree(info, lock, shards, ancestors)
            version = writer.commit(tree, (), int(info.when), f"{info.serial}: {info.command}")
            versions = (version, *(over.version_ids if over else ()))[: content.keeps]
        # With the nonce, no two writes ever make the same commit.
        id = writer.commit(tree, versions, int(info.when), f"{info.serial}\n\nnonce {secrets.token_hex(16)}")
        return Snapshot(id, versions[0], versions, info, lock, shards, ancestors)

    def _shard(self, writer: ObjectWriter, data: bytes, before: str | None) -> str:
        return before if before is not None and before == writer.blob_id(data) else writer.blob(data)

    def _tree(self, info: VersionInfo, lock: bytes, shards: Mapping[str, str], ancestors: Mapping[str, str]) -> str:
        writer = self._writer
        tables: dict[str, dict[str, str]] = defaultdict(dict)
        for path, id in shards.items():
            table, _, name = path.partition("/")
            tables[table][name] = id
        folders = {table: writer.tree(files, {}) for table, files in tables.items()}
        files = {INFO: writer.blob(msgspec.json.encode(info)), LOCK: writer.blob(lock)}
        earlier = {ANCESTORS: writer.tree(ancestors, {})} if ancestors else {}
        return writer.tree(files, {TABLES: writer.tree({}, folders), **earlier})

    def _with_ancestors(self, over: Snapshot | None, also: Sequence[str]) -> dict[str, str]:
        """Return the files of ancestors with more ids appended. All but the last file keep their blobs."""
        if over is None and not also:
            return {}
        names = sorted(over.ancestors) if over else []
        last = names[-1] if names else "000000"
        lines = self._read([over.ancestors[last]])[0].split() if over and names else []
        files = {name: over.ancestors[name] for name in names[:-1]} if over else {}
        lines += [id[:ID_LENGTH].encode() for id in (*also, *([over.version] if over else []))]
        for start in range(0, len(lines), PER_FILE):
            name = f"{int(last) + start // PER_FILE:06d}"
            files[name] = self._writer.blob(b"\n".join(lines[start : start + PER_FILE]) + b"\n")
        return {name: files[name] for name in sorted(files)[-REMEMBERED // PER_FILE :]}

    def _head(self, name: str) -> Snapshot:
        """Read a snapshot from a commit. Raise `ValueError` or `LookupError` for a commit that is no snapshot."""
        id, data = self.repository.commit(name)
        commit = read_commit(data)
        width = len(id) // 2
        files, folders = read_tree(self._read([commit.tree])[0], width)
        text, lock = self._read([files[INFO], files[LOCK]])
        info = self._info(text)
        names = read_tree(self._read([folders[TABLES]])[0], width)[1]
        trees = zip(names, self._read(names.values()), strict=True)
        shards = {f"{name}/{file}": blob for name, tree in trees for file, blob in read_tree(tree, width)[0].items()}
        ancestors = read_tree(self._read([folders[ANCESTORS]])[0], width)[0] if ANCESTORS in folders else {}
        return _checked(id, commit, info, lock, shards, ancestors)

    def _info(self, data: bytes) -> VersionInfo:
        info = _INFO.decode(data)
        if info.schema != VERSION or (info.format != FORMAT and info.format.startswith(FAMILY)):
            raise OTHER_VERSION.error(self.name)
        if info.format != FORMAT:
            raise ValueError("unknown format")
        return info

    def _read(self, names: Iterable[str]) -> list[bytes]:
        contents = self.repository.read(names)
        if any(data is None or len(data) > LARGEST for data in contents):
            raise LookupError("an object is missing")
        return [data for data in contents if data is not None]

    def _no_state(self, error: Exception) -> SyncengineError:
        cure = "delete the ref, and run `syncengine state restore VERSION` in a project that saw an earlier version"
        message = f"state {self.name} is damaged, or no state of syncengine: {cure} ({_few_words(error)})"
        return SyncengineError(message, code=DAMAGED)

    def damaged(self, error: Exception) -> SyncengineError:
        """Return the error for a snapshot that cannot be decoded."""
        cure = "run `syncengine state restore VERSION` with an earlier version from `syncengine state versions`"
        message = f"state {self.name} is damaged: {cure} ({_few_words(error)})"
        return SyncengineError(message, code=DAMAGED)


def _checked(
    id: str,
    commit: CommitObject,
    info: VersionInfo,
    lock: bytes,
    shards: Mapping[str, str],
    ancestors: Mapping[str, str],
) -> Snapshot:
    lock_rows(lock)
    if not all(name.isdigit() for name in ancestors):
        raise ValueError("a file of ancestors has an unknown name")
    versions = commit.parents or (id,)  # somebody set the ref by hand to a version, which has no parents
    return Snapshot(id, versions[0], versions, info, lock, dict(sorted(shards.items())), ancestors)


def _few_words(error: Exception) -> str:
    return "".join(_printable(str(error)))[:120] or type(error).__name__


def _printable(text: str) -> Iterator[str]:
    return (letter for letter in text if letter.isprintable())
