"""changes → stages of calls, gate and digest; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from syncengine.calls import Call
from syncengine.diff import Change
from syncengine.errors import Diagnostic
from syncengine.leaves import Leave
from syncengine.resource import Key, Source


@dataclass(frozen=True, slots=True)
class Note:
    """Said, not done. `kind`: create-only, ignored, kept, released, …"""

    key: Key
    kind: str
    message: str
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether removals need an approval: `reasons` with their numbers, `approve` is COUNT@HASH when tripped."""

    tripped: bool = False
    reasons: tuple[str, ...] = ()
    approve: str | None = None


@dataclass(frozen=True, slots=True)
class Sweep:
    """The sync session: codes it removes that we know of, and everything unknown that the service holds.

    `uploads` are the calls with the full desired set; `complete` carries what completion removes. `first`: no sweep
    of this state has been approved before.
    """

    known: tuple[str, ...]
    uploads: tuple[Call, ...]
    complete: Call
    first: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """Calls that do not depend on each other."""

    name: str
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    create: int = 0
    update: int = 0
    delete: int = 0
    retire: int = 0
    forget: int = 0
    unchanged: int = 0
    keyword_adds: int = 0
    keyword_deletes: int = 0
    metadata_deletes: int = 0
    cascaded_tags: int = 0
    kept: int = 0
    requests: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything an apply needs. `records` are rows to write without a request; `prior` digests what it stands on."""

    id: str
    created: str
    base_url: str
    team: str | None
    lineage: str
    commit: str | None
    summary: Summary
    gate: Gate
    sweep: Sweep | None
    changes: tuple[Change, ...]
    notes: tuple[Note, ...]
    stages: tuple[Stage, ...]
    records: tuple[Leave, ...]
    prior: Mapping[Key, str] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
