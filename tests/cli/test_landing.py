"""Calls that a killed run left at the service: the next apply waits until they can no longer be executed."""

from __future__ import annotations

import signal

import pytest

from ..sandbox.receiver import eventually
from .estate import DELETES_TAGS
from .program import Project, category, ended, read_until, tag
from .service import Service

pytestmark = pytest.mark.slow

CATEGORIES = [category("acme"), category("other")]
WANTED = {"tagCategories": CATEGORIES, "tags": [tag("inside", category="acme"), tag("edited", category="other")]}
WITHOUT = {"tagCategories": CATEGORIES[1:], "tags": WANTED["tags"][1:]}


def left_behind(project: Project, service: Service, landing: str) -> None:
    """Kill an apply while it deletes a category, and restore the earlier manifests."""
    project.settings(service=(f"landing: {landing}", *DELETES_TAGS))
    project.settle(**WANTED)
    service.fault("deleteTagCategory", late={})
    project.wants(**WITHOUT)
    process = project.fork_apply()
    eventually(lambda: service.waiting() == ["deleteTagCategory"])
    process.kill()
    assert ended(process).code == -signal.SIGKILL
    project.wants(**WANTED)


def test_the_next_apply_waits_for_the_call_of_a_killed_run(project: Project, service: Service) -> None:
    """It names the call and ends with what the manifests declare. tests/applying/test_landing.py has all calls."""
    left_behind(project, service, "3s")
    held = service.holds()
    process = project.fork_apply()
    assert "an earlier deleteTagCategory of " in read_until(process, "waiting")
    service.land()
    assert ended(process).code == 0
    assert service.holds() == held
    assert project.plan().changes == ()


def test_an_apply_that_cannot_wait_names_the_time_to_repeat(project: Project, service: Service) -> None:
    """It exits with 3 and the code `landing`, and gives the reason for each change.

    Nothing is sent, so that a saved plan is not used up. Neither are rows forgotten or exported.
    """
    left_behind(project, service, "60s")
    held = service.holds()
    assert project.run("plan", "--out", "saved.plan").code == 0
    new = [tag("new", category="acme"), tag("apart", category="other")]
    project.wants(**{**WANTED, "tags": [*WANTED["tags"], *new]})
    done = project.apply("--lock-timeout", "5s")
    assert (done.code, done.document["status"], {*done.outcomes().values()}) == (3, "refused", {"skipped"})
    assert "landing" in done.codes
    why = "nothing was sent: an earlier deleteTagCategory of category/acme may still be executed; repeat after "
    assert why in done.out
    assert project.run("apply", "saved.plan", "--lock-timeout", "0s").code == 3
    assert service.holds() == held
    refused = project.run("state", "forget", "-y", "category/acme")
    assert (refused.code, "may still be executed" in refused.err) == (3, True)
    exported = project.run("state", "export")
    assert (exported.code, exported.out, "error[landing]" in exported.err) == (3, "", True)
    service.land()
    project.settings(service=("landing: 0s", *DELETES_TAGS))
    assert project.run("apply", "saved.plan").code == 0
