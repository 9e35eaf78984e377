"""A refused resource whose next call was killed before its answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Project, tag
from tests.cli.service import Service, serving

pytestmark = pytest.mark.slow

QUARANTINE = ("state", "quarantine", "tag/BAD", "--reason", "ticket 4711")


@pytest.fixture
def sandbox_service() -> Iterator[Service]:
    with serving() as started:
        yield started


@pytest.fixture
def estate(sandbox_service: Service, tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path / "project", sandbox_service.url)
    project.settle(tags=[tag("GOOD")])
    project.wants(tags=[tag("GOOD"), tag("BAD")])
    sandbox_service.fault("upsertTags", itemErrors=[{"index": 0, "errorDescription": "no room"}])
    assert project.apply().code == 3
    yield project


def test_a_resource_whose_last_call_has_no_known_end_is_not_set_aside(
    estate: Project, sandbox_service: Service
) -> None:
    """The killed run sent the resource again after the refusal, so nobody knows whether the service has it."""
    estate.kill_during(sandbox_service, "upsertTags", "apply", "-y", *estate.approvals())
    done = estate.run(*QUARANTINE, "--format", "json")
    assert (done.code, done.codes) == (1, ["not-refused"])
    assert "the outcome of its last call is unknown" in done.out
    (change,) = estate.run("plan", "--format", "json").document["changes"]
    assert change["refused"]["times"] == 1
    assert estate.apply().code == 0
    assert "BAD" in sandbox_service.tags()
