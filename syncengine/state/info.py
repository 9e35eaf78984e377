"""The facts of a state, and its opening for planning: commands that read no state do not import SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from syncengine.resource import Key, Kind, Recorded
from syncengine.state.journal_detail import RemovalLine
from syncengine.state.losses import ApprovalRecord
from syncengine.state.refusals import QuarantineRecord, Refusal
from syncengine.state.undone import UndoneChange

if TYPE_CHECKING:
    from syncengine.state.folder_memory import FolderMemory
    from syncengine.state.store import State

VERSION = 11
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


class StateReader(Protocol):
    """What planning reads of a state, as the methods of `State` do. A missing state is empty, with `exists` false."""

    exists: bool

    def facts(self) -> Facts: ...
    def rows(self, kind: Kind | None = None) -> Iterator[Recorded]: ...
    def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]: ...
    def removals(self, since: float) -> list[RemovalLine]: ...
    def approvals(self) -> list[ApprovalRecord]: ...
    def refusals(self) -> dict[Key, Refusal]: ...
    def quarantine(self) -> list[QuarantineRecord]: ...
    def undone(self) -> list[UndoneChange]: ...


def recollection(
    url: str, now: Callable[[], float], *, create: bool = False, memory: FolderMemory | None = None
) -> State:
    """Open the state at a path or URL for reading. Raise `SyncengineError` when it cannot be read.

    `create`: a state in Git, or one that `memory`, which must fit, knows, may be missing.
    """
    from syncengine.state.store import open_state

    return open_state(url, write=False, now=now, create=create, memory=memory)
