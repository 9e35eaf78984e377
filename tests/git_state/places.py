"""Places of states in Git for tests, and a store in memory with the same protocol as a repository."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from syncengine.errors import SyncengineError
from syncengine.state.folder_memory import FolderMemory
from syncengine.state.git_repository import Superseded
from syncengine.state.git_store import Content, GitPlace, Snapshot, Version

REF = "refs/syncengine/test"


def url(repository: Path, name: str = REF) -> str:
    return f"git+ref://file://{repository}/{name}"


def place_of(repository: Path, project: Path) -> str:
    return f"{url(repository)}#{project}"


class MemoryStore:
    name = "git+ref://memory"

    def __init__(self) -> None:
        self.ref: str | None = None
        self.heads: dict[str, Snapshot] = {}
        self.contents: dict[str, Mapping[str, bytes]] = {}
        self.writes = 0

    def current(self) -> str | None:
        return self.ref

    def head(self, id: str) -> Snapshot:
        return self.heads[id]

    def version(self, id: str) -> Snapshot:
        found = next((head for head in self.heads.values() if head.version == id), None)
        if found is None:
            raise SyncengineError("no such version")
        return found

    def keep(self, head: Snapshot) -> None:
        return

    def seen(self) -> Snapshot | None:
        return None

    def tidy(self) -> None:
        return

    def purge(self) -> None:
        return

    def damaged(self, error: Exception) -> SyncengineError:
        return SyncengineError(f"damaged: {error!r}")

    def files(self, head: Snapshot, table: str = "") -> Mapping[str, bytes]:
        return {name: data for name, data in self.contents[head.version].items() if name.startswith(table)}

    def write(self, over: Snapshot | None, lock: bytes, content: Content | None) -> Snapshot:
        if self.ref != (over.id if over else None):
            raise Superseded
        self.writes += 1
        id, version = f"h{self.writes}", f"v{self.writes}"
        kept, info = (over.version_ids, over.info) if over else ((), None)
        if content is not None:
            kept, info = (version, *kept)[: content.keeps], content.info
            self.contents[version] = dict(content.files)
        assert info is not None
        info = msgspec.json.decode(msgspec.json.encode(info), type=type(info))
        self.heads[id] = Snapshot(id, kept, info, lock, {})
        self.ref = id
        return self.heads[id]

    def versions(self, head: Snapshot) -> list[Version]:
        return [Version(id, self.version(id).info) for id in head.version_ids]


class MemoryPlace(GitPlace):
    """The place of a state in a `MemoryStore`, as seen from a separate machine."""

    def __init__(self, store: MemoryStore, folder: Path) -> None:
        self.name, self.create, self.allows_rewound = store.name, True, False
        self.folder, self.store = folder, store
        self.memory = FolderMemory(folder / "seen.json", self.name)
