"""What planning asks of a state, whoever answers. Values and a Protocol only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from syncengine.resource import Key, Kind, Recorded

VERSION = 4
"""The schema of the tables (`tables.MIGRATIONS`)."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a state knows of itself. `commit`: of the last run that applied; `generation`: of the last writing."""

    lineage: str
    base_url: str | None
    team: str | None
    owns_activity_types: bool
    commit: str | None
    generation: str | None = None


FACTS = ("lineage", "base_url", "team", "owns_activity_types", "revision", "generation")
"""The columns of Facts."""


class Recollection(Protocol):
    """A state that is read."""

    def facts(self) -> Facts: ...

    def rows(self, kind: Kind | None = None) -> Iterator[Recorded]:
        """All rows, or a kind's, by kind and name, read as they are asked for."""
        ...

    def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]:
        """The rows of these keys; a key that is not recorded is left out."""
        ...
