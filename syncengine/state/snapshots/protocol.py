"""The store of snapshots: read a version, write another if it is still that one. Values and a Protocol only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct

from syncengine.errors import SyncengineError

KEPT = 100
"""Versions that a store keeps."""

REMEMBERED = 10_000
"""Versions whose ids a state knows, so that whoever has seen one of them knows what descends from it."""


class VersionInfo(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One version. `columns` are those of each table, in the order of its lines; `schema` that of the tables."""

    format: str
    schema: int
    lineage: str
    serial: int
    when: float
    who: str
    command: str
    rows: int
    run: str | None = None
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Version(Struct, frozen=True):
    """A version that is kept."""

    id: str
    info: VersionInfo


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The present snapshot. `id` is another after each write, `version` after each write of rows.

    `version_ids` are those that can be restored, the newest first; `lock` is the content of the lock. `shards` and
    `ancestors` belong to the store.
    """

    id: str
    version: str
    version_ids: tuple[str, ...]
    info: VersionInfo
    lock: bytes
    shards: Mapping[str, str] = field(repr=False)
    ancestors: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Content:
    """The rows of a version to be. `also` are versions that it descends from as well; `keeps` is how many are kept."""

    info: VersionInfo
    files: Mapping[str, bytes] = field(repr=False)
    also: tuple[str, ...] = ()
    keeps: int = KEPT


class Superseded(Exception):
    """The snapshot is no longer the one that was read; or, as its text says, another write seems to be under way."""


class SnapshotStore(Protocol):
    """A place with one current snapshot."""

    name: str

    def current(self) -> str | None:
        """Ask for the id of the present snapshot; None where there is none."""
        ...

    def head(self, id: str) -> Snapshot:
        """The snapshot of an id that was current; SyncengineError if it is damaged, or of a newer syncengine."""
        ...

    def version(self, id: str) -> Snapshot:
        """A version that is kept, by the beginning of its id; SyncengineError where it is not."""
        ...

    def keep(self, head: Snapshot) -> None:
        """Keep the objects of a snapshot on this machine."""
        ...

    def tidy(self) -> None:
        """Drop leftovers of many writes from this machine."""
        ...

    def purge(self) -> None:
        """Drop all on this machine that the present snapshot does not lead to."""
        ...

    def damaged(self, error: Exception) -> SyncengineError:
        """The error of a snapshot that cannot be understood."""
        ...

    def files(self, head: Snapshot) -> Mapping[str, bytes]:
        """The lines of its tables."""
        ...

    def write(self, over: Snapshot | None, lock: bytes, content: Content | None) -> Snapshot:
        """Replace exactly that snapshot, its rows only where there is content; Superseded where it is another."""
        ...

    def versions(self, head: Snapshot) -> list[Version]:
        """The versions that are kept, the newest first."""
        ...

    def is_descendant(self, head: Snapshot, version: str) -> bool | None:
        """Whether a head came from a version; None where that is too long ago to be known."""
        ...

    def ancestors(self, head: Snapshot) -> Iterable[str]:
        """The beginnings of the ids of its earlier versions, oldest first."""
        ...
