"""A project in a folder, and the sandbox that it is applied to over loopback HTTP."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from syncengine.apply.report import Outcome, Result
from syncengine.engine import Application, Applied
from syncengine.plan.model import Plan
from syncengine.plan.planner import make_plan
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.project.model import Project
from syncengine.resource import Recorded
from syncengine.state.store import State, open_state
from tests.cli.program import SECTIONS, activity_type, category, tag
from tests.cli.program import Project as Program
from tests.cli.service import AT_ONCE, KEY, Json, Service

__all__ = ["AT_ONCE", "Bench", "Ended", "Json", "activity_type", "category", "names_in", "numbered", "tag"]


@dataclass
class Ended:
    """One apply: what it came to, and what the service was asked meanwhile."""

    applied: Applied
    requests: list[Json]

    @property
    def exit_code(self) -> int:
        return int(self.applied.exit_code)

    @property
    def status(self) -> str:
        return self.applied.report.status.value

    @property
    def session(self) -> str:
        return self.applied.report.session.outcome

    @cached_property
    def results(self) -> dict[str, Result]:
        return {str(result.key): result for result in self.applied.report.results}

    @property
    def outcomes(self) -> dict[str, str]:
        return {address: result.outcome.value for address, result in self.results.items()}

    @property
    def codes(self) -> list[str]:
        return [diagnostic.code for diagnostic in self.applied.report.diagnostics]

    def not_applied(self) -> dict[str, str]:
        return {a: outcome for a, outcome in self.outcomes.items() if outcome != Outcome.APPLIED}

    def words(self, address: str) -> str:
        error = self.results[address].error
        return error.message if error else ""

    def sent(self, *operations: str) -> list[Json]:
        """Return the requests to these operations, or to all but teamInfo when none is given."""
        wanted = [r for r in self.requests if r["operation"] != "teamInfo"]
        return [r for r in wanted if r["operation"] in operations] if operations else wanted

    def order(self) -> list[str]:
        """Return the operations in order, each once per uninterrupted series."""
        found: list[str] = []
        for request in self.sent():
            if not found or found[-1] != request["operation"]:
                found.append(request["operation"])
        return found

    def names(self, operation: str) -> list[list[str]]:
        """Return the names of the items of each request to `operation`."""
        return [names_in(request["body"]) for request in self.sent(operation)]


IDENTITY = {"tags": "name", "tagCategories": "externalId", "activityTypes": "code"}


def names_in(body: Json) -> list[str]:
    return [item[IDENTITY[section]] for section, items in body.items() if section in IDENTITY for item in items]


@dataclass
class Bench:
    """A project's folder. `wants` writes its manifest, `apply` applies it in this process, `program` in another."""

    folder: Path
    sandbox: Service
    environ: dict[str, str] = field(default_factory=dict)
    program: Program = field(init=False)

    def __post_init__(self) -> None:
        self.environ = {"SYNCENGINE_API_KEY": KEY, **self.environ}
        self.program = Program(self.folder, self.sandbox.url, self.environ)

    def settings(self, *lines: str, service: tuple[str, ...] = (), url: str | None = None) -> None:
        """Write the project file: `service` are more lines of that section, `lines` follow it."""
        self.program.url = url or self.sandbox.url
        self.program.settings(*lines, service=service)

    def wants(self, **sections: list[Json]) -> None:
        """Write the manifest, one resource a line: the first of the first section is in line 2."""
        self.program.wants(**sections)

    def project(self) -> Project:
        return self.program.loaded()

    def plan(self, **request: Any) -> Plan:
        return make_plan(self.project(), PlanRequest("plan", **request), Runtime(self.environ))

    def apply(self, *, approve: bool = True, tell: Callable[[Any], None] = lambda event: None, **request: Any) -> Ended:
        """Apply what the manifests want, approving whatever the gate asks about unless told otherwise.

        Sections are written as the manifest first.
        """
        if sections := {name: request.pop(name) for name in SECTIONS if name in request}:
            self.wants(**sections)
        project = self.project()
        planning = {name: request[name] for name in ("scope", "sweep", "reassert") if name in request}
        asked = make_plan(project, PlanRequest("plan", **planning), Runtime(self.environ)).gate.approve
        approvals = (asked,) if approve and asked else ()
        before = self.sandbox.last_request()
        runtime = Runtime(self.environ, tell=tell)
        application = Application(
            project,
            PlanRequest("apply", approvals=approvals, **request),
            runtime,
            lambda: nullcontext(project.base_url()),
        )
        return Ended(application.execute(), self.sandbox.requests(before))

    def settle(self, **request: Any) -> Ended:
        """Apply the manifest, or these sections, and check that everything is applied."""
        ended = self.apply(**request)
        assert (ended.exit_code, ended.not_applied()) == (0, {}), ended.applied.report
        return ended

    @contextmanager
    def state(self) -> Iterator[State]:
        with open_state(self.project().state, write=False) as state:
            yield state

    def rows(self) -> Mapping[str, Recorded]:
        with self.state() as state:
            return {str(row.key): row for row in state.rows()}

    def row(self, address: str) -> Recorded:
        return self.rows()[address]

    def doubtful(self) -> set[str]:
        return {address for address, row in self.rows().items() if row.doubtful}

    def assert_converges(self) -> Ended:
        """Check that the next undisturbed apply does all that is left, and leaves nothing to do."""
        self.sandbox.heal()
        ended = self.settle()
        self.assert_at_rest()
        return ended

    def assert_at_rest(self) -> None:
        planned = self.plan()
        assert (planned.changes, planned.sweep, planned.stages) == ((), None, ())


def numbered(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number:04}" for number in range(1, count + 1)]
