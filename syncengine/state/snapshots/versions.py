"""A state in Git at one moment, its versions, and the content of the next. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

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
