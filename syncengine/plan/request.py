"""The options of planning and applying, and the environment of a run, as values."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from syncengine.plan.scope import Scope

if TYPE_CHECKING:
    from syncengine.plan.model import Plan
    from syncengine.plan.review import ReviewedPlan


@dataclass(frozen=True, slots=True)
class Runtime:
    """The time, ids, environment variables, and callbacks that inform and ask people.

    `tell` receives every event of an apply (`apply.events`). `confirm` receives the plan and returns whether to
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
