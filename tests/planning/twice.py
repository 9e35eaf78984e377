"""Plan a project both with its cache and without one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from syncengine.errors import Diagnostic, Problems
from syncengine.plan.model import Plan
from syncengine.plan.planner import make_plan
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.project.model import Project

Planned = Plan | tuple[Diagnostic, ...]


def planned(project: Project, **request: Any) -> Planned:
    """Return the plan without its id, time and cache data, or the diagnostics when there is no plan."""
    try:
        found = make_plan(project, PlanRequest("plan", **request), Runtime({}))
    except Problems as problems:
        return problems.diagnostics()
    return replace(found, basis=replace(found.basis, id="", created="", settles=None))


@dataclass
class Twice:
    """Make the same plan with the cache and without, and leave the cache as it was."""

    project: Callable[[], Project]

    @property
    def cache(self) -> Path:
        return self.project().root / ".syncengine" / "cache.db"

    def plans(self, **request: Any) -> tuple[Planned, Planned]:
        kept = self.cache.read_bytes() if self.cache.is_file() else None
        short = planned(self.project(), **request)
        if self.cache.is_file():
            self.cache.unlink()
        whole = planned(self.project(), **request)
        if kept is not None:
            self.cache.write_bytes(kept)
        return short, whole

    def same(self, **request: Any) -> Planned:
        short, whole = self.plans(**request)
        assert short == whole
        return short
