"""The part of a state that planning reads. Values and a Protocol only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from syncengine.resource import Key, Kind, Recorded
from syncengine.state.losses import ApprovalRecord
from syncengine.state.refusals import QuarantineRecord, Refusal
from syncengine.state.removals import RemovalLine
from syncengine.state.undone import UndoneChange

VERSION = 9
"""The schema of the tables (`tables.MIGRATIONS`)."""

PACKED_SINCE = 7
"""The first schema whose journal has packed lines, and whose intents are kept by call."""

APPROVALS_SINCE = 8
"""The first schema that knows what approvals cover."""

QUARANTINE_SINCE = 9
"""The first schema that counts refusals."""

UNDONE_SINCE = 9
"""The first schema that knows which runs were undone."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a state. `commit` is that of the last run that applied; `generation` changes with every write.

    `ancestors` are commits before that one, as many as were kept. `sources` is the number of rows that each data source
    had when it was last applied, by its identity. `limits` are those of the last apply that was complete, as they are
    written in the project file.
    """

    lineage: str
    base_url: str | None
    team: str | None
    owns_activity_types: bool
    commit: str | None
    generation: str | None = None
    ancestors: tuple[str, ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)


FACTS = ("lineage", "base_url", "team", "owns_activity_types", "revision", "generation", "ancestors", "sources")
"""The columns of Facts."""


def facts_of(values: Sequence[Any]) -> Facts:
    """Facts from the values of those columns; SQLite has no truth values of its own."""
    lineage, base_url, team, owns, commit, generation, ancestors, sources = values
    before, rows = json.loads(ancestors or "[]"), json.loads(sources or "{}")
    texts = [lineage, base_url, team, commit, generation, *(before if isinstance(before, list) else [before])]
    are_counts = isinstance(rows, dict) and all(type(count) is int for count in rows.values())
    if not (are_counts and isinstance(before, list) and all(isinstance(text, str | None) for text in texts)):
        raise ValueError("the facts about the state itself are damaged")
    return Facts(lineage, base_url, team, bool(owns), commit, generation, tuple(before), rows)


LAST_LIMITS = """
SELECT counts FROM state_runs WHERE outcome = 'complete' AND counts LIKE :says ORDER BY started DESC, id DESC LIMIT 1
"""
"""The last run that was complete, and had limits."""
SAYS_LIMITS = {"says": '%"limits"%'}


def limits_of(counts: object) -> dict[str, str]:
    """The limits of a run, of its column `counts`; none where there are none."""
    about = json.loads(counts) if isinstance(counts, str) else {}
    limits = about.get("limits", {}) if isinstance(about, dict) else {}
    return {str(name): str(limit) for name, limit in limits.items()} if isinstance(limits, dict) else {}


class StateReader(Protocol):
    """A state that is read. `exists`: there is one; a state that is not there reads as empty."""

    exists: bool

    def facts(self) -> Facts: ...

    def rows(self, kind: Kind | None = None) -> Iterator[Recorded]:
        """All rows, or a kind's, by kind and name, read as they are asked for."""
        ...

    def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]:
        """The rows of these keys; a key that is not recorded is left out."""
        ...

    def removals(self, since: float) -> list[RemovalLine]:
        """Lines of runs of plans that may have taken something away since then, oldest first."""
        ...

    def approvals(self) -> list[ApprovalRecord]:
        """The approvals that applies began with, oldest first."""
        ...

    def refusals(self) -> dict[Key, Refusal]:
        """Resources that were refused, and not applied since."""
        ...

    def quarantine(self) -> list[QuarantineRecord]:
        """Resources that are set aside, and entries of the project file that count no more."""
        ...

    def undone(self) -> list[UndoneChange]:
        """Undone changes, by kind and name."""
        ...
