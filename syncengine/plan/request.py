"""Options of planning and applying, and the surroundings of a run. Values only."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from syncengine.plan.model import Plan
from syncengine.plan.review import ReviewedPlan
from syncengine.plan.scope import Scope


@dataclass(frozen=True, slots=True)
class Runtime:
    """Time, ids, the environment, and callbacks that inform and ask people.

    `tell` hears every event of an apply (`apply.events`); `confirm` is shown the plan and says whether to go on;
    `stopping` sets its event when a run is to end early: on SIGINT and SIGTERM, if it is None.
    """

    environ: Mapping[str, str]
    now: Callable[[], float] = time.time
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex[:12]
    tell: Callable[[Any], None] = lambda event: None
    confirm: Callable[[Plan], bool] = lambda plan: True
    stopping: Callable[[Any], AbstractContextManager[None]] | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """The reviewed plans of an apply. `missing`: files that were named and are not there; `required`: none may be."""

    plans: tuple[ReviewedPlan, ...] = ()
    missing: tuple[str, ...] = ()
    required: bool = False

    @property
    def denied(self) -> tuple[str, ...]:
        """Files whose plan was denied when it was made."""
        return tuple(each.file for each in self.plans if each.is_denied)


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The options of planning and applying.

    `saves`: the plan is to be saved, and remembers its inputs. `review`: the reviewed plans that it may not
    go beyond. `redo`: changes of undone runs may be made again. `allow_unmerged`: a saved plan may be of another
    tree than is checked out.

    `lock_timeout`: seconds to wait for the lock and for calls that may still be executed; None: for as long as a dead
    holder and its last call may take.
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
