"""The facts and the reading interface of a state that planning uses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from syncengine.resource import Key, Kind, Recorded
from syncengine.state.journal_detail import RemovalLine
from syncengine.state.losses import ApprovalRecord
from syncengine.state.refusals import QuarantineRecord, Refusal
from syncengine.state.undone import UndoneChange

if TYPE_CHECKING:
    from syncengine.state.folder_memory import FolderMemory

VERSION = 10
"""The version of the tables. A state of another version is refused: there are no migrations before 1.0."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a state. `commit` is the last applied commit; `generation` changes with every write.

    `ancestors` are the stored commits before `commit`. `sources` is the number of rows of each data source, by its
    identity, when it was last applied. `limits` are the limits of the last complete apply, as written in the project
    file.
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
"""The columns that `Facts` is read from."""


def facts_of(values: Sequence[Any]) -> Facts:
    """Return the facts with these values of the columns `FACTS`. SQLite has no booleans of its own."""
    lineage, base_url, team, owns, commit, generation, ancestors, sources = values
    before, rows = json.loads(ancestors or "[]"), json.loads(sources or "{}")
    texts = [lineage, base_url, team, commit, generation, *(before if isinstance(before, list) else [before])]
    are_counts = isinstance(rows, dict) and all(type(count) is int for count in rows.values())
    if not (are_counts and isinstance(before, list) and all(isinstance(text, str | None) for text in texts)):
        raise ValueError("the facts about the state itself are damaged")
    return Facts(lineage, base_url, team, bool(owns), commit, generation, tuple(before), rows)


LAST_LIMITS = """
SELECT limits FROM state_runs WHERE outcome = 'complete' AND limits IS NOT NULL ORDER BY started DESC, id DESC LIMIT 1
"""
"""The query for the limits of the last complete run that recorded any."""


def limits_of(column: object) -> dict[str, str]:
    """Return the limits in a run's column `limits`, or an empty dict if there are none."""
    limits = json.loads(column) if isinstance(column, str) else {}
    return {str(name): str(limit) for name, limit in limits.items()} if isinstance(limits, dict) else {}


class StateReader(Protocol):
    """A state that can be read. A missing state reads as empty, with `exists` false."""

    exists: bool

    def facts(self) -> Facts: ...

    def rows(self, kind: Kind | None = None) -> Iterator[Recorded]:
        """Yield all recorded rows, or the rows of one kind, ordered by kind and name and read lazily."""
        ...

    def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]:
        """Return the recorded rows of `keys`. Keys that are not recorded are left out."""
        ...

    def removals(self, since: float) -> list[RemovalLine]:
        """Return journal lines of plan runs that may have removed something after `since`, oldest first."""
        ...

    def approvals(self) -> list[ApprovalRecord]:
        """Return the approvals that an apply began with, oldest first."""
        ...

    def refusals(self) -> dict[Key, Refusal]:
        """Return the refusals of resources that have not been applied since they were refused."""
        ...

    def quarantine(self) -> list[QuarantineRecord]:
        """Return the quarantined resources, and the quarantine entries of the project file that no longer apply."""
        ...

    def undone(self) -> list[UndoneChange]:
        """Return the undone changes, ordered by kind and name."""
        ...


@contextmanager
def recollection(
    url: str, now: Callable[[], float], *, create: bool = False, memory: FolderMemory | None = None
) -> Iterator[StateReader]:
    """Open the state at a path or URL for reading. Raise `SyncengineError` when it cannot be read.

    `create`: a state in Git, or one that `memory`, which must fit, knows, may be missing.
    """
    from syncengine.state.store import open_state  # SQLAlchemy: commands that read no state do not import it

    with open_state(url, write=False, now=now, create=create, memory=memory) as state:
        yield state
