"""An estate for each test: `BEFORE` is applied, and the manifests declare `AFTER`."""

from dataclasses import dataclass

import pytest

from .estate import AFTER, BEFORE, DELETES_TAGS
from .program import Project
from .service import Service


@dataclass(frozen=True)
class Estate:
    service: Service
    project: Project
    settled: list[str]
    """The operations of the requests until then."""

    def wait_for(self, operation: str) -> None:
        """Wait until the service got a request for this operation since then."""
        self.service.wait_for(operation, self.settled.count(operation) + 1)

    def assert_converges(self) -> None:
        """The next apply, without faults, completes everything; the next plan is empty."""
        self.service.heal()
        done = self.project.apply("--lock-timeout", "0s")
        assert done.code == 0, (done.out, done.err)
        planned = self.project.plan()
        assert (planned.changes, planned.stages, planned.sweep) == ((), (), None)
        places = self.service.places()
        assert {each["name"]: each.get("category") for each in AFTER["tags"]}.items() <= places.items()
        assert {"DELETED-1", "CASCADES-1"}.isdisjoint(places)


@pytest.fixture
def estate(project: Project, service: Service) -> Estate:
    project.settings(service=DELETES_TAGS)
    project.settle(**BEFORE)
    project.wants(**AFTER)
    return Estate(service, project, service.asked())
