"""The last change of a state that this project knows, stored in its own folder, by which a set-back state is noticed.

Each session of writing appends marks to the state: in a database when it begins to write and when it ends, in Git with
each publication. A state that lacks the mark that this folder saw last was set back, or is another one, unless it has a
branch that this folder has not seen: a mark by which `state import`, `state restore` or `state rebuild` says that it is
meant (docs/planning.md 1.4).
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from syncengine.content import sha256_of
from syncengine.document.json_text import InvalidJson, decode_json, encode_json
from syncengine.errors import GateTripped
from syncengine.project.files import make_folder, replace_whole
from syncengine.project.git_ref import is_git_ref, without_login
from syncengine.project.model import Project

if TYPE_CHECKING:
    from syncengine.state.store import State

REWOUND = "state-rewound"
NEW_STATE = "new-state"
"""The error code of a missing state that the user has not asked to create."""
FOLDER = ".syncengine/seen"

MARKED, BRANCHED = "marked", "branched"


class ChangeMark(NamedTuple):
    number: int
    verb: str
    change: str


class KnownChange(Struct, frozen=True):
    """A state as last seen: its lineage, the number and the id of its last change, and all branches ever seen.

    `epoch` is that of the lock of a state in Git, 0 for others.
    """

    lineage: str
    number: int = 0
    change: str = ""
    branches: tuple[str, ...] = ()
    epoch: int = 0


class StateMarks(NamedTuple):
    """The lineage and the marks of a state, oldest first: all of them, or those that matter to a folder."""

    lineage: str
    marks: tuple[ChangeMark, ...] = ()
    epoch: int = 0

    @property
    def last(self) -> ChangeMark:
        return self.marks[-1] if self.marks else ChangeMark(0, "", "")

    @property
    def branches(self) -> set[str]:
        return {mark.change for mark in self.marks if mark.verb == BRANCHED}

    def contain(self, number: int, change: str) -> bool:
        """Return whether the state has a change. What is older than the oldest mark was pruned, and counts as such."""
        oldest = next((mark.number for mark in self.marks if mark.verb == MARKED), 0)
        is_there = any((mark.number, mark.change) == (number, change) for mark in self.marks)
        return not change or is_there or number < oldest

    def follow(self, before: KnownChange) -> bool:
        """Return whether the state descends from the one that was seen before, or is meant to be another."""
        if not self.branches <= set(before.branches):
            return True
        # A lock alone leaves no mark in Git: a ref set back to before it would make the lock count as never taken.
        is_later = self.epoch >= before.epoch
        return self.lineage == before.lineage and is_later and self.contain(before.number, before.change)


class FolderMemory:
    """The memory of a project's folder, in `file`, for the state at one place, whose name may be shown.

    The state may vanish without an error if it is that of a sandbox.
    """

    def __init__(self, file: Path, name: str, *, may_vanish: bool = False) -> None:
        self._file = file
        self._name = name
        self._may_vanish = may_vanish

    def last(self) -> KnownChange | None:
        """Return the state as last seen, or `None` if none was seen, or the file cannot be read."""
        try:
            seen: KnownChange = decode_json(self._file.read_bytes(), KnownChange)
        except (OSError, InvalidJson):
            return None
        return seen

    def recognize(self, state: State, *, may_be_missing: bool = False) -> None:
        """Remember a state that is read. Raise `GateTripped` if a seen one is missing, or was set back.

        What was seen is read first: a run of this project, which remembers what it has written, may go on meanwhile.
        """
        before = self.last()
        if state.exists:
            self._follow(before, state.marks(before.number if before else 0))
        elif not may_be_missing:
            self.refuse_missing()

    def refuse_missing(self) -> None:
        """Raise `GateTripped` if a state was seen: it is missing now, and a new one would know nothing of it."""
        if self.last() is not None and not self._may_vanish:
            raise GateTripped(
                f"state {self._name} is missing, but this project has used it, and a new one would not know what was"
                " applied: bring it back from a backup, record it anew with `syncengine state rebuild --from-git REV`,"
                " or begin a new one with `syncengine apply --new-state`",
                code=NEW_STATE,
            )

    def take(self, state: StateMarks, *, is_meant: bool = False) -> None:
        """Remember a state by its marks. Raise `GateTripped` if it was set back, unless that `is_meant`."""
        self._follow(None if is_meant else self.last(), state)

    def _follow(self, before: KnownChange | None, state: StateMarks) -> None:
        if before is not None and not state.follow(before):
            raise GateTripped(
                "the state was set back or replaced: it lacks the last change of which this project knows, so that"
                " a plan would miss what was applied since; bring the latest state back, or accept this one with"
                " `syncengine state restore`, after which all rows are sent again",
                code=REWOUND,
            )
        self.remember(state)

    def is_ahead(self, state: StateMarks) -> bool:
        """Return whether a later state was seen, as by another process of this project after `state` was read."""
        before = self.last()
        if before is None or before.lineage != state.lineage or not state.branches <= set(before.branches):
            return False
        return state.last.number < before.number or state.epoch < before.epoch

    def remember(self, state: StateMarks) -> None:
        """Record a state as the one last seen. A folder that cannot be written remembers nothing."""
        # A plan may end after an apply that it saw under way: with its older mark, nobody would notice that the state
        # is set back to before the end of that. A state that is meant to be older has a branch.
        if self.is_ahead(state):
            return
        before = self.last()
        number, _, change = state.last
        branches = state.branches.union(before.branches if before else ())
        seen = KnownChange(state.lineage, number, change, tuple(sorted(branches)), state.epoch)
        if seen != before:
            with suppress(OSError):
                make_folder(self._file.parent)
                replace_whole(self._file, [encode_json(seen)], mode=0o600)


def memory_of(project: Project) -> FolderMemory | None:
    """Return the memory of a project's state, or `None` for a state in Git, which brings its own."""
    if is_git_ref(project.state):
        return None
    root, path = project.root, Path(project.state)
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else without_login(project.state)
    file = root / FOLDER / f"{sha256_of(name.encode())[:16]}.json"
    return FolderMemory(file, name, may_vanish=project.is_sandbox)


def number_of(memory: FolderMemory) -> int:
    """Return the number of the last change seen, 0 without one."""
    last = memory.last()
    return last.number if last else 0
