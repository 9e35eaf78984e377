"""Compare today's plan with reviewed plans, and refuse to do more than was reviewed.

Reads the state: rows that are done or begun, and from the history who changed them (docs/reviews.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from msgspec.structs import replace

from syncengine.apply.causes import last_change
from syncengine.errors import Diagnostic, Severity, StalePlan
from syncengine.plan.model import Plan
from syncengine.plan.request import Review
from syncengine.plan.review import ReviewedPlan, since_review
from syncengine.plan.since import Excess, Since
from syncengine.project import git
from syncengine.project.model import Project
from syncengine.resource import Key, Recorded
from syncengine.state.history import last_writer
from syncengine.state.store import State

MORE, MISSING, DENIED = "more-than-reviewed", "reviewed-missing", "reviewed-denied"
TRACED = 20
"""The maximum number of differences whose cause is looked up in the history."""
TOLD = 100
SQLITE = b"SQLite format 3\0"


class MoreThanReviewed(StalePlan):
    """A refusal because today's plan makes changes that nobody reviewed, listed in `excess`."""

    code = MORE

    def __init__(self, reviewed: str, excess: Sequence[Excess]) -> None:
        super().__init__(f"today's plan does more than was reviewed in {reviewed}; nothing was sent: review a new plan")
        self.excess = tuple(excess)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the refusal, then each unreviewed change at its address."""
        more = len(self.excess) - TOLD
        rest = [Excess(f"and {more:,} more")] if more > 0 else []
        return (
            *super().diagnostics(),
            *(_finding(each) for each in (*self.excess[:TOLD], *rest)),
        )


def _finding(excess: Excess) -> Diagnostic:
    return Diagnostic(severity=Severity.ERROR, code=MORE, message=excess.message, address=excess.address)


@dataclass(frozen=True, slots=True)
class RecordedPast:
    """The recorded state, in the form that comparing plans needs."""

    state: State

    def rows(self, keys: Iterable[Key]) -> Mapping[Key, Recorded]:
        return self.state.get(keys)

    def plans_of(self, runs: Iterable[str]) -> Mapping[str, frozenset[str]]:
        return {run.id: frozenset(filter(None, (run.plan, *run.reviewed))) for run in self.state.runs_of(runs)}

    def last_run(self, key: Key) -> str | None:
        last = last_writer(self.state.history(key))
        return last.run if last is not None else None


def compared(plan: Plan, reviewed: Sequence[ReviewedPlan], state: State, project: Project) -> Since:
    """Return how today's plan exceeds the reviewed ones, with the causes that the history knows."""
    since = since_review(plan, reviewed, RecordedPast(state), cache(lambda name: is_live(project, name)))
    traced = (_with_cause(each, state) for each in since.excess[:TRACED])
    return replace(since, excess=(*traced, *since.excess[TRACED:]))


def is_live(project: Project, name: str) -> bool:
    """Return whether the source `name` is a database or a service, whose rows come from no commit."""
    path = project.root / name
    if not path.is_file():
        return name in project.sources
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE and not git.may_keep(path.parent, path.name)


def _with_cause(excess: Excess, state: State) -> Excess:
    return replace(excess, cause=last_change(state, Key.parse(excess.address))) if excess.address else excess


def refuse_missing(files: Sequence[str]) -> None:
    """Refuse to apply when these files of reviewed plans, if any, do not exist."""
    if files:
        names = ", ".join(files)
        message = f"the reviewed plan {names} does not exist; nothing was sent: fetch it, or leave --reviewed out"
        raise StalePlan(message, code=MISSING)


def refuse_more_than_reviewed(plan: Plan, review: Review | None, state: State, project: Project) -> None:
    """Refuse to apply a change that nobody reviewed."""
    if review is None:
        return
    valid = [each for each in review.plans if not each.is_denied]
    if excess := compared(plan, valid, state, project).excess:
        raise MoreThanReviewed(
            ", ".join(each.file for each in valid) or "any plan that no rule denies (there is none)", excess
        )
