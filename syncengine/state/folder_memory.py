"""The last change of a state that this project knows, stored in its own folder, by which a set-back state is noticed.

Each session of writing appends marks to the state, when it begins to write and when it ends. A state that
lacks the mark that this folder saw last was set back, or is another one, unless it has a branch that this folder has
not seen: a mark by which `state import`, `state restore` or `state rebuild` says that it is meant (docs/planning.md
1.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from syncengine.content import sha256_of
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
    """A state as last seen: its lineage, the number and the id of its last change, and all branches ever seen."""

    lineage: str
    number: int = 0
    change: str = ""
    branches: tuple[str, ...] = ()


class FolderMemory:
    """The memory of a project's folder for the state at one place, which may vanish if it is that of a sandbox."""

    def __init__(self, root: Path, place: str, *, may_vanish: bool = False) -> None:
        path = Path(place)
        self._may_vanish = may_vanish
        self._shown = path.relative_to(root).as_posix() if path.is_relative_to(root) else without_login(place)
        self._file = root / FOLDER / f"{sha256_of(self._shown.encode())[:16]}.json"

    def last(self) -> KnownChange | None:
        """Return the state as last seen, or `None` if none was seen, or the file cannot be read."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=KnownChange)
        except (OSError, msgspec.MsgspecError):
            return None

    def recognize(self, state: State, *, may_be_missing: bool = False) -> None:
        """Remember a state that is read. Raise `GateTripped` if a seen one is missing, or was set back.

        What was seen is read first: a run of this project, which remembers what it has written, may go on meanwhile.
        """
        before = self.last()
        if state.exists:
            self._follow(before, state.facts().lineage, state.marks(before.number if before else 0))
        elif not may_be_missing:
            self.refuse_missing()

    def refuse_missing(self) -> None:
        """Raise `GateTripped` if a state was seen: it is missing now, and a new one would know nothing of it."""
        if self.last() is not None and not self._may_vanish:
            raise GateTripped(
                f"state {self._shown} is missing, but this project has used it, and a new one would not know what was"
                " applied: bring it back from a backup, record it anew with `syncengine state rebuild --from-git REV`,"
                " or begin a new one with `syncengine apply --new-state`",
                code=NEW_STATE,
            )

    def take(self, lineage: str, marks: Iterable[Sequence[Any]], *, is_meant: bool = False) -> None:
        """Remember a state by its marks. Raise `GateTripped` if it was set back, unless that `is_meant`."""
        self._follow(self.last(), lineage, marks, is_meant=is_meant)

    def _follow(
        self, before: KnownChange | None, lineage: str, marks: Iterable[Sequence[Any]], *, is_meant: bool = False
    ) -> None:
        present = [ChangeMark(*mark) for mark in marks]
        branches = [mark.change for mark in present if mark.verb == BRANCHED]
        if before is not None and not is_meant and set(branches) <= set(before.branches):
            known = (before.number, before.change)
            is_known = not before.change or known in ((mark.number, mark.change) for mark in present)
            # What is older than the oldest mark was pruned.
            oldest = next((mark.number for mark in present if mark.verb == MARKED), 0)
            if lineage != before.lineage or not (is_known or before.number < oldest):
                raise GateTripped(
                    "the state was set back or replaced: it lacks the last change of which this project knows, so that"
                    " a plan would miss what was applied since; bring the latest state back, or accept this one with"
                    " `syncengine state restore`, after which all rows are sent again",
                    code=REWOUND,
                )
        number, _, change = present[-1] if present else ChangeMark(0, "", "")
        seen = KnownChange(
            lineage, number, change, tuple(dict.fromkeys((*(before.branches if before else ()), *branches)))
        )
        if seen != before:
            with suppress(OSError):  # a folder that cannot be written remembers nothing
                make_folder(self._file.parent)
                replace_whole(self._file, [msgspec.json.encode(seen)], mode=0o600)


def memory_of(project: Project) -> FolderMemory | None:
    """Return the memory of a project's state, or `None` for a state in Git, which has its own."""
    if is_git_ref(project.state):
        return None
    return FolderMemory(project.root, project.state, may_vanish=project.is_sandbox)


def number_of(memory: FolderMemory) -> int:
    """Return the number of the last change seen, 0 without one."""
    last = memory.last()
    return last.number if last else 0
