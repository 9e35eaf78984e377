"""A snapshot of a state in Git, its versions, and the content of the next version. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

KEPT = 100
"""The number of versions that a store keeps."""

REMEMBERED = 10_000
"""The number of earlier versions whose ids a state stores, so that a project recognizes the ones it has seen."""


class VersionInfo(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The facts of a version. `columns` has each table's columns, in line order; `schema` is the schema version."""

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
    """A kept version, by its id."""

    id: str
    info: VersionInfo


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of the state. `id` changes with every write, `version` with every write of rows.

    `version_ids` are the versions that can be restored, newest first. `lock` is the content of the lock. `shards` and
    `ancestors` are internal to the store.
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
    """The content of the next version. `also` are further versions that it descends from; `keeps` versions are kept."""

    info: VersionInfo
    files: Mapping[str, bytes] = field(repr=False)
    also: tuple[str, ...] = ()
    keeps: int = KEPT


class Superseded(Exception):
    """The error when the snapshot is no longer the one that was read, or another write seems to be under way."""
