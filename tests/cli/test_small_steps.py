"""Removals in small steps: those of the last 24 hours that nobody approved count towards the limit of the gate."""

from __future__ import annotations

import json
import re

import pytest

from .program import Ended, Project, activity_type, tag
from .service import Service

pytestmark = pytest.mark.slow

RETIRES = "policy: {tagRemoval: retire}"
NAMES = [f"T-{number:02}" for number in range(24)]


def targets(numbers: range) -> list[str]:
    return [word for number in numbers for word in ("--target", f"tag/{NAMES[number]}")]


def step(project: Project, numbers: range, *more: str) -> Ended:
    """Apply the changes of these tags only, without an approval unless `more` has one."""
    return project.run("apply", "-y", "--format", "json", *targets(numbers), *more)


def refused(done: Ended) -> tuple[str, str]:
    """The reason that the gate gives, and the approval that it asks for."""
    (message,) = [found["message"] for found in done.document["diagnostics"] if found["code"] == "gate"]
    told = re.fullmatch(r"removals need an approval: (.*) \(--approve-deletes (.*)\)", message)
    assert told, message
    return told[1], told[2]


def held(service: Service) -> int:
    """The number of tags that have keywords; a retired one has none."""
    return sum(bool(each["keywords"]) for each in service.holds()["tags"])


@pytest.fixture
def losing(project: Project) -> Project:
    """24 tags are applied and the manifest now has only one; each selection of the others is retired."""
    project.settings(RETIRES)
    project.settle(tags=[tag(name) for name in NAMES])
    project.wants(tags=[tag(NAMES[-1])])
    return project


def test_a_loss_taken_bit_by_bit_trips_the_gate(losing: Project, service: Service) -> None:
    """Each step is below 25 % of the remaining tags; the third is refused with the sum of all, until a day later."""
    assert step(losing, range(3)).code == 0
    assert step(losing, range(3, 6)).code == 0
    planned = losing.run("plan", "--detailed-exitcode", *targets(range(6, 7)), "--format", "json")
    done = step(losing, range(6, 8))
    assert (planned.code, done.code) == (4, 4)
    reason, approval = refused(done)
    assert reason.startswith("8 of 24 tags forgotten, retired or deleted, 6 of them in runs since ")
    assert reason.endswith(" UTC (limit 25%)")
    assert (len(service.tags()), held(service)) == (24, 18)
    assert step(losing, range(6, 8), "--approve-deletes", approval).code == 0
    assert held(service) == 16
    assert step(losing, range(8, 9)).code == 4
    losing.age(1)
    assert step(losing, range(8, 12)).code == 0


def test_approved_removals_do_not_count(losing: Project, service: Service) -> None:
    """The last run that removed a tag decides whether its removal was approved, also if an earlier one failed."""
    service.fault("deleteKeyword", status=400, times=6)
    assert step(losing, range(6)).code == 3
    asked = step(losing, range(8))
    assert step(losing, range(8), "--approve-deletes", refused(asked)[1]).code == 0
    assert step(losing, range(8, 12)).code == 0


def test_removals_that_failed_or_were_reverted_still_count(losing: Project, service: Service) -> None:
    """Removing the same tags again counts once, but other tags exceed the limit together with them."""
    service.fault("deleteKeyword", status=400, times=6)
    assert step(losing, range(6)).code == 3
    assert step(losing, range(6)).code == 0
    assert step(losing, range(6, 7)).code == 4
    losing.wants(tags=[tag(name) for name in NAMES])
    assert losing.run("apply", "-y").code == 0
    losing.wants(tags=[tag(NAMES[-1])])
    assert step(losing, range(6, 12)).code == 4
    assert step(losing, range(6)).code == 0


def test_removals_of_a_killed_run_count(losing: Project, service: Service) -> None:
    """This holds for calls with and without an answer."""
    losing.kill_during(service, "deleteKeyword", "apply", "-y", *targets(range(6)), after=4)
    done = step(losing, range(6, 10))
    assert done.code == 4
    assert int(refused(done)[0].split()[0]) in (8, 9, 10)


def test_state_forget_is_no_removal_and_hides_none(losing: Project) -> None:
    """Removals by runs still count after `state forget`, and rows forgotten by it do not count."""
    assert step(losing, range(6)).code == 0
    assert losing.run("state", "forget", *(f"tag/{name}" for name in NAMES[:6]), "-y").code == 0
    assert step(losing, range(6, 7)).code == 4
    losing.age(1)
    assert losing.run("state", "forget", *(f"tag/{name}" for name in NAMES[6:12]), "-y").code == 0
    assert step(losing, range(12, 14)).code == 0


def test_an_import_is_no_removal(losing: Project) -> None:
    """`state import` of released rows removes nothing from the service."""
    lines = [json.loads(line) for line in losing.run("state", "export").out.splitlines()]
    own = [line["row"] for line in lines if line.get("row", {}).get("key", [""])[-1] in NAMES[:10]]
    assert own
    for row in own:
        row["status"] = "released"
    (losing.folder / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    done = losing.run("state", "import", "rows.jsonl", "-y")
    assert done.code == 0, done.err
    assert step(losing, range(10, 13)).code == 0


def test_removed_activity_types_count(project: Project) -> None:
    """Two sweeps of two codes each trip the gate. The first sweep of a state always needs an approval."""
    for left in (11, 10):
        project.settle(activityTypes=[activity_type(f"A{number}") for number in range(left)])
    codes = []
    for left in (8, 6):
        project.wants(activityTypes=[activity_type(f"A{number}") for number in range(left)])
        codes.append(project.run("apply", "-y").code)
    assert codes == [0, 4]


def test_saved_plans_count_the_removals_of_each_other(losing: Project, service: Service) -> None:
    """Both plans were below the limit when saved; after the first apply, the second needs an approval, or a day."""
    for file, numbers in (("one", range(6)), ("two", range(6, 9)), ("three", range(9, 12))):
        assert losing.run("plan", "--out", f"{file}.plan", *targets(numbers)).code == 0
    assert losing.run("apply", "one.plan").code == 0
    done = losing.run("apply", "two.plan", "--format", "json")
    assert (done.code, done.codes, held(service)) == (4, ["gate"], 18)
    assert losing.run("apply", "two.plan").code == 4, "a repeat is no approval"
    assert losing.run("apply", "two.plan", "--approve-deletes", refused(done)[1]).code == 0
    assert (held(service), losing.run("apply", "three.plan").code) == (15, 4)
    losing.age(1)
    assert losing.run("apply", "three.plan").code == 0
