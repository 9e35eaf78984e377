"""The options of planning and applying, the selection, and the environment of a run, as values. Pure."""

from __future__ import annotations

import fnmatch
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from syncengine.resource import Key, Source, exactly

if TYPE_CHECKING:
    from syncengine.plan.model import Plan
    from syncengine.plan.review import ReviewedPlan


class Scope(Struct, frozen=True, gc=False):
    """The limits on a plan's changes: globs of addresses, paths of manifests (relative, POSIX), and `no_delete`."""

    paths: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    no_delete: bool = False

    @property
    def whole(self) -> bool:
        """Whether the scope is everything, without selection or exclusion and with removals."""
        return not (self.paths or self.targets or self.excludes or self.no_delete)

    @property
    def selective(self) -> bool:
        return bool(self.paths or self.targets or self.excludes)

    def of(self, keys: Collection[Key]) -> Scope:
        """Return the scope among all resources, in which the address of one of them means only that resource."""
        return replace(self, targets=exactly(self.targets, keys), excludes=exactly(self.excludes, keys))

    def selects(self, *members: tuple[Key, Source | None]) -> bool:
        """Return whether a unit is selected: a pattern matches one of its `members`, and no exclusion matches any."""
        if not self.selective:
            return True
        if any(fnmatch.fnmatchcase(str(key), glob) for glob in self.excludes for key, _ in members):
            return False
        for key, source in members:
            is_target = not self.targets or any(fnmatch.fnmatchcase(str(key), glob) for glob in self.targets)
            is_in_paths = source is not None and any(is_below(source.file, path) for path in self.paths)
            if is_target and (is_in_paths or not self.paths):
                return True
        return False


def is_below(file: str, path: str) -> bool:
    """Return whether a file is a path or lies in it; both are relative to the project's folder."""
    return path == "." or PurePosixPath(file).is_relative_to(path)


@dataclass(frozen=True, slots=True)
class Runtime:
    """The time, ids, environment variables, and callbacks that inform and ask people.

    `tell` receives every event of an apply (`apply.report`). `confirm` receives the plan and returns whether to
    continue. `stopping` sets its event when a run must end early; when it is `None`, SIGINT and SIGTERM do.
    """

    environ: Mapping[str, str]
    now: Callable[[], float] = time.time
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex[:12]
    tell: Callable[[Any], None] = lambda event: None
    confirm: Callable[[Plan], bool] = lambda plan: True
    stopping: Callable[[Any], AbstractContextManager[None]] | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """The reviewed plans of an apply."""

    plans: tuple[ReviewedPlan, ...] = ()

    @property
    def denied(self) -> tuple[str, ...]:
        """The files whose plan was denied when it was made."""
        return tuple(each.file for each in self.plans if each.is_denied)


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The options of planning and applying.

    `saves` means that the plan will be saved and must remember its inputs. `review` has the reviewed plans that it must
    not go beyond. `redo` allows changes of undone runs to be made again. `allow_unmerged` allows a saved plan of a tree
    that is not checked out.

    `lock_timeout` is the number of seconds to wait for the lock and for calls that may still be executed. `None` waits
    as long as a dead holder and its last call may take.
    """

    command: str
    scope: Scope = field(default_factory=Scope)
    sweep: bool = False
    reassert: bool = False
    approvals: tuple[str, ...] = ()
    saves: bool = False
    review: Review | None = None
    allow_older: bool = False
    allow_unmerged: bool = False
    new_state: bool = False
    redo: bool = False
    max_errors: int | None = None
    lock_timeout: float | None = None
