"""Calls that a killed run left at the service: the next apply waits until they can no longer be executed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from ..sandbox.receiver import eventually
from .estate import prepared
from .program import Project, activity_type, category, ended, read_until, tag
from .service import Json, Service, serving

pytestmark = pytest.mark.slow

DELETE_TAG = ("endpoints: {deleteTag: {path: /tag/delete}}",)
Change = Callable[[Json], Json]


def without(section: str, name: str) -> Change:
    return lambda wanted: {**wanted, section: [item for item in wanted[section] if name not in item.values()]}


def with_tag(**fields: object) -> Change:
    return lambda wanted: {**wanted, "tags": [{**item, **fields} for item in wanted["tags"]]}


WANTED: Json = {
    "tagCategories": [category("acme"), category("other")],
    "activityTypes": [activity_type("A1"), activity_type("A2")],
    "tags": [
        tag("inside", category="acme"),
        tag("edited", keywords=["one", "two"], metadata={"Client": "A", "Group": "B"}, category="other"),
    ],
}
LEFT_BEHIND: dict[str, Change] = {
    "deleteTagCategory": lambda wanted: {**without("tagCategories", "acme")(wanted), "tags": wanted["tags"][1:]},
    "deleteKeyword": with_tag(keywords=["one"]),
    "upsertTags": lambda wanted: {
        **wanted,
        "tags": [{**item, "url": "https://late.example"} for item in wanted["tags"]],
    },
}


def killed(service: Service, project: Project, operation: str) -> None:
    """Kill an apply during this call, and restore the earlier manifests."""
    service.fault(operation, late={})
    project.wants(**LEFT_BEHIND[operation](WANTED))
    process = project.fork_apply()
    eventually(lambda: service.waiting() == [operation])
    process.kill()
    assert ended(process).code == -signal.SIGKILL
    project.wants(**WANTED)


def waits(project: Project, service: Service) -> str:
    """What an apply says when it waits. Then the earlier call is executed, and the apply completes."""
    process = project.fork_apply()
    said = read_until(process, "waiting")
    service.land()
    assert ended(process).code == 0
    return said


@pytest.mark.parametrize("operation", ["deleteTagCategory", "upsertTags"])  # tests/applying/test_landing.py has all
def test_the_next_apply_waits_for_the_call_of_a_killed_run(operation: str, tmp_path: Path) -> None:
    """It names the call, ends with what the manifests declare, and the next plan is empty."""
    with serving() as service:
        project = prepared(Project(tmp_path / "project", service.url))
        project.settings(service=("landing: 3s", *DELETE_TAG))
        project.settle(**WANTED)
        held = service.holds()
        killed(service, project, operation)
        assert f"an earlier {operation} of " in waits(project, service)
        assert service.holds() == held
        assert project.plan().changes == ()


def test_an_apply_that_cannot_wait_names_the_time_to_repeat(tmp_path: Path) -> None:
    """It exits with 3 and the code `landing`, sends nothing, and gives the reason for each change."""
    with serving() as service:
        project = prepared(Project(tmp_path / "project", service.url))
        project.settings(service=("landing: 60s", *DELETE_TAG))
        project.settle(**WANTED)
        killed(service, project, "deleteTagCategory")
        held = service.holds()
        apart = tag("apart", category="other")
        project.wants(**{**WANTED, "tags": [*WANTED["tags"], tag("new", category="acme"), apart]})
        done = project.apply("--lock-timeout", "5s")
        assert (done.code, done.document["status"]) == (3, "refused")
        assert "landing" in done.codes
        assert {*done.outcomes().values()} == {"skipped"}
        assert service.holds() == held
        why = "nothing was sent: an earlier deleteTagCategory of category/acme may still be executed; repeat after "
        assert why in done.out
        refused = project.run("state", "forget", "-y", "category/acme")
        assert (refused.code, "may still be executed" in refused.err) == (3, True)
        exported = project.run("state", "export")
        assert (exported.code, exported.out, "error[landing]" in exported.err) == (3, "", True)


def test_the_next_run_waits_for_a_call_that_a_gateway_gave_up(tmp_path: Path) -> None:
    """After a 504 the call may still be executed, so a later run waits before it sends the opposite change."""
    with serving() as service:
        project = prepared(Project(tmp_path / "project", service.url))
        project.settings(service=("landing: 10s",))
        project.settle(**WANTED)
        service.fault("upsertTags", late={"answer": 504})
        project.wants(**LEFT_BEHIND["upsertTags"](WANTED))
        assert project.apply().code == 0  # the retry was acknowledged, so the run need not wait
        project.wants(**WANTED)
        waits(project, service)
        assert {item["name"]: item.get("url") for item in service.holds()["tags"]} == {"inside": None, "edited": None}
        assert project.plan().changes == ()


def test_a_saved_plan_that_could_not_wait_is_applied_again(tmp_path: Path) -> None:
    """A saved plan of which nothing was sent is not used up."""
    with serving() as service:
        project = prepared(Project(tmp_path / "project", service.url))
        project.settings(service=("landing: 10s", *DELETE_TAG))
        project.settle(**WANTED)
        killed(service, project, "deleteKeyword")
        assert project.run("plan", "--out", "saved.json").code == 0
        approved = ["-y", "saved.json", *project.approvals()]
        assert project.run("apply", *approved, "--lock-timeout", "0s").code == 3
        service.land()
        assert project.run("apply", *approved).code == 0
        assert project.plan().changes == ()
