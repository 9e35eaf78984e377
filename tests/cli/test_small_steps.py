"""Removals in small steps: those of the last 24 hours that nobody approved count towards the limit of the gate."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import pytest

from .program import Ended, Project, activity_type, tag
from .service import Service

pytestmark = pytest.mark.slow

DAY = 86_400
RETIRES = "policy: {tagRemoval: retire}"
NAMES = [f"T-{number:02}" for number in range(24)]


def step(project: Project, numbers: range, *more: str) -> Ended:
    """Apply the changes of these tags only, without an approval unless `more` has one."""
    targets = [word for number in numbers for word in ("--target", f"tag/{NAMES[number]}")]
    return project.run("apply", "-y", "--format", "json", *targets, *more)


def refused(done: Ended) -> tuple[str, str]:
    """The reason that the gate gives, and the approval that it asks for."""
    (message,) = [found["message"] for found in done.document["diagnostics"] if found["code"] == "gate"]
    told = re.fullmatch(r"removals need an approval: (.*) \(--approve-deletes (.*)\)", message)
    assert told, message
    return told[1], told[2]


@pytest.fixture
def losing(project: Project) -> Project:
    """24 tags are applied and the manifest now has only one; each selection of the others is retired."""
    project.settings(RETIRES)
    project.settle(tags=[tag(name) for name in NAMES])
    project.wants(tags=[tag(NAMES[-1])])
    return project


def pass_a_day(project: Project) -> None:
    """Move everything in the state back by a day and a second, as plans have times in whole seconds."""
    ago = DAY + 1
    with closing(sqlite3.connect(project.folder / ".syncengine" / "state.db")) as connection, connection:
        connection.execute("UPDATE state_calls SET at = at - ?", (ago,))
        connection.execute("UPDATE state_runs SET started = started - ?, ended = ended - ?", (ago, ago))


def test_a_loss_taken_bit_by_bit_trips_the_gate(losing: Project, service: Service) -> None:
    """Each step removes less than 25 % of the remaining tags; the third is refused with the sum of all three."""
    assert step(losing, range(3)).code == 0
    assert step(losing, range(3, 6)).code == 0
    planned = losing.run("plan", "--detailed-exitcode", "--target", "tag/T-06", "--format", "json")
    done = step(losing, range(6, 8))
    assert (planned.code, done.code) == (4, 4)
    reason, approval = refused(done)
    assert reason.startswith("8 of 24 tags forgotten, retired or deleted, 6 of them in runs since ")
    assert reason.endswith(" UTC (limit 25%)")
    assert (len(service.tags()), _held(service)) == (24, 18)
    assert step(losing, range(6, 8), "--approve-deletes", approval).code == 0
    assert _held(service) == 16


def _held(service: Service) -> int:
    """The number of tags that have keywords; a retired one has none."""
    return sum(bool(each["keywords"]) for each in service.holds()["tags"])


def test_removals_count_for_24_hours(losing: Project) -> None:
    assert step(losing, range(6)).code == 0
    pass_a_day(losing)
    assert step(losing, range(6, 10)).code == 0


def test_approved_removals_do_not_count(losing: Project) -> None:
    """After 12 approved removals of 24 tags, 3 of the remaining 12 need no approval."""
    asked = step(losing, range(12))
    assert asked.code == 4
    assert step(losing, range(12), "--approve-deletes", refused(asked)[1]).code == 0
    assert step(losing, range(12, 15)).code == 0


def test_removals_that_were_reverted_still_count(losing: Project) -> None:
    """Removing the same tags again counts once, but other tags exceed the limit together with them."""
    assert step(losing, range(6)).code == 0
    losing.wants(tags=[tag(name) for name in NAMES])
    assert losing.run("apply", "-y").code == 0
    losing.wants(tags=[tag(NAMES[-1])])
    assert step(losing, range(6, 12)).code == 4
    assert step(losing, range(6)).code == 0


def test_a_refused_removal_that_is_tried_again_counts_once(losing: Project, service: Service) -> None:
    """The limit is 6 of 24 tags, however often their removal is tried."""
    service.fault("deleteKeyword", status=400, times=6)
    assert step(losing, range(6)).code == 3
    assert step(losing, range(6)).code == 0
    assert step(losing, range(6, 7)).code == 4


def test_an_approved_repeat_of_failed_removals_makes_them_approved(losing: Project, service: Service) -> None:
    """The last run that removed a tag decides whether its removal was approved."""
    service.fault("deleteKeyword", status=400, times=6)
    assert step(losing, range(6)).code == 3
    asked = step(losing, range(8))
    assert step(losing, range(8), "--approve-deletes", refused(asked)[1]).code == 0
    assert step(losing, range(8, 12)).code == 0


def test_removals_of_a_killed_run_count(losing: Project, service: Service) -> None:
    """This holds for calls with and without an answer."""
    targets = [word for number in range(6) for word in ("--target", f"tag/{NAMES[number]}")]
    losing.kill_during(service, "deleteKeyword", "apply", "-y", *targets, after=4)
    done = step(losing, range(6, 10))
    assert done.code == 4
    assert int(refused(done)[0].split()[0]) in (8, 9, 10)


def test_state_forget_is_no_removal_and_hides_none(losing: Project) -> None:
    """Removals by runs still count after `state forget`, and rows forgotten by it do not count."""
    assert step(losing, range(6)).code == 0
    assert losing.run("state", "forget", *(f"tag/{name}" for name in NAMES[:6]), "-y").code == 0
    assert step(losing, range(6, 7)).code == 4
    pass_a_day(losing)
    assert losing.run("state", "forget", *(f"tag/{name}" for name in NAMES[6:12]), "-y").code == 0
    assert step(losing, range(12, 14)).code == 0


def test_an_import_is_no_removal(losing: Project) -> None:
    """`state import` of released rows removes nothing from the service."""
    exported = losing.run("state", "export")
    lines = [json.loads(line) for line in exported.out.splitlines()]
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


# --- saved plans


def saved(project: Project, numbers: range, file: str) -> int:
    targets = [word for number in numbers for word in ("--target", f"tag/{NAMES[number]}")]
    return project.run("plan", "--out", file, *targets).code


def test_saved_plans_count_the_removals_of_each_other(losing: Project, service: Service) -> None:
    """Both plans were below the limit when saved; after the first apply, the second needs an approval."""
    assert (saved(losing, range(6), "one.plan"), saved(losing, range(6, 9), "two.plan")) == (0, 0)
    assert losing.run("apply", "one.plan").code == 0
    done = losing.run("apply", "two.plan", "--format", "json")
    assert (done.code, done.codes, _held(service)) == (4, ["gate"], 18)
    assert losing.run("apply", "two.plan").code == 4, "a repeat is no approval"
    assert losing.run("apply", "two.plan", "--approve-deletes", refused(done)[1]).code == 0
    assert _held(service) == 15


def test_a_saved_plan_needs_no_approval_once_earlier_removals_expire(losing: Project) -> None:
    """A saved plan's gate is judged when it is applied."""
    assert step(losing, range(6)).code == 0
    assert saved(losing, range(6, 9), "saved.plan") == 0
    assert losing.run("apply", "saved.plan").code == 4
    pass_a_day(losing)
    assert losing.run("apply", "saved.plan").code == 0
