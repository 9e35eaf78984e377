"""A rule with `approve` is a unit of the gate, with its own approval for exactly these changes, valid once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from syncengine.plan.model import Plan
from syncengine.plan.saved import load, save
from syncengine.render.documents import SHOWN
from syncengine.resource import Removal
from tests.cli.program import Project, category, tag
from tests.cli.service import Service
from tests.manifest.loading import write
from tests.planning.estate import row

from .judging import judged

LITIGATION = (
    "name: litigation-is-owned, for: tag, by: ['@leads', '@partners'], "
    "approve: \"action in ('retire', 'delete') and before.category == 'litigation'\""
)
ROWS = [row("category/litigation", label="L"), *(row(f"tag/T-{n}", category="litigation") for n in range(20))]


def declared(count: int) -> str:
    tags = "".join(f"  - {{name: T-{n}, category: litigation}}\n" for n in range(count))
    return f"tagCategories: [{{externalId: litigation, label: L}}]\ntags:\n{tags}"


def rule_units(plan: Plan) -> list[Any]:
    return [unit for unit in plan.gate.units if unit.kind == "rule"]


def test_a_rule_asks_below_the_limits() -> None:
    """One of twenty removed tags is below the limits, but the rule asks; the reason names its approvers."""
    plan = judged(declared(19), ROWS, LITIGATION, tag_removal=Removal.RETIRE)
    assert (plan.gate.is_closed, plan.gate.tripped, plan.gate.approve) == (True, True, None)
    (unit,) = rule_units(plan)
    assert (unit.count, unit.by, unit.is_open) == (1, ("@leads", "@partners"), True)
    asks = "rule litigation-is-owned (policies/all.yaml:2) requires @leads, @partners to approve 1 change"
    assert plan.gate.reasons == (f"{asks}: tag/T-19",)
    assert not judged(declared(20), ROWS, LITIGATION, tag_removal=Removal.RETIRE).gate.tripped


def test_an_approval_is_for_exactly_these_changes() -> None:
    """An approval depends on the rule and on the resources and values that it asks about, and on nothing else."""

    def approval(tags: str, rule: str = "r") -> str:
        line = f'name: {rule}, for: tag, approve: "after.description is not none"'
        (unit,) = rule_units(judged(f"tags: [{tags}]", [], line))
        return str(unit.approve)

    first = approval("{name: A, description: a, keywords: [x, y]}")
    assert approval("{name: B}, {name: A, keywords: [y, x], description: a}") == first
    different = (
        approval("{name: A, description: b, keywords: [x, y]}"),
        approval("{name: A, description: a, keywords: [x]}"),
        approval("{name: B, description: a, keywords: [x, y]}"),
        approval("{name: A, description: a, keywords: [x, y]}, {name: B, description: b}"),
        approval("{name: A, description: a, keywords: [x, y]}", "s"),
    )
    assert len({first, *different}) == 6


def test_a_category_is_approved_with_the_tags_that_go_with_it() -> None:
    line = "name: r, for: category, approve: action == 'delete'"
    (few,), (more,) = (rule_units(judged("tags: []", ROWS[: 2 + n], line, limits={})) for n in (3, 4))
    assert (few.count, more.count) == (5, 6)
    assert few.approve != more.approve


def test_a_rule_for_the_plan_asks_about_all_changes() -> None:
    """In a plan without changes, the rule asks about nothing."""
    line = "name: r, for: plan, approve: plan.summary.requests >= 0"
    (unit,) = rule_units(judged("tags: [{name: A}, {name: B}]", [], line))
    assert unit.count == 2
    assert not judged("tags: [{name: A}]", [row("tag/A")], line).gate.tripped


# --- applying

RULES = "rules:\n  - {name: named, for: tag, approve: after.description is not none, by: ['@leads']}\n"


@pytest.fixture
def asking(project: Project) -> Project:
    """A project with a rule that asks about one of two new tags, and with a plan of them in a file."""
    write(project.folder, {"policies/all.yaml": RULES})
    project.wants(tags=[tag("A-1", description="a"), tag("B-1")])
    assert project.run("plan", "--out", "plan.json").code == 0
    return project


def apply(project: Project, *arguments: str, approvals: Iterable[str] = ()) -> int:
    """The exit code of an apply, 4 if an approval is missing."""
    return project.run("apply", *arguments, *(word for each in approvals for word in ("--approve-deletes", each))).code


def asked(project: Project) -> dict[str, Any]:
    """The units of the gate by their names."""
    gate = project.run("plan", "--format", "json").document["gate"]
    return {"": gate["approve"], **{unit["unit"]: unit for unit in gate["units"]}}


def test_an_apply_needs_the_approval_of_a_rule_each_time(asking: Project, service: Service) -> None:
    """Without it, nothing is sent. It is valid once, also when a tag later gets the approved content again."""
    done = asking.run("apply", "-y", "--format", "json")
    assert (done.code, service.tags(), done.codes[-1]) == (4, [], "gate")
    found = asked(asking)["rule/named"]
    assert (found["count"], found["by"], found["approved"]) == (1, ["@leads"], None)
    approve = found["approve"]
    text = asking.run("plan", "--detailed-exitcode")
    assert (text.code, approve in text.out, "@leads" in text.out) == (4, True, True)
    assert apply(asking, "-y", approvals=[approve]) == 0
    assert service.tags() == ["A-1", "B-1"]
    asking.wants(tags=[tag("A-1", description="other"), tag("B-1")])
    assert apply(asking, "-y", approvals=[asked(asking)["rule/named"]["approve"]]) == 0
    asking.wants(tags=[tag("A-1", description="a"), tag("B-1")])
    assert apply(asking, "-y", approvals=[approve]) == 4
    assert apply(asking, "-y", approvals=[asked(asking)["rule/named"]["approve"]]) == 0


def test_an_approval_in_the_project_file_counts(asking: Project, service: Service) -> None:
    asking.settings("approvals:", f"  - {asked(asking)['rule/named']['approve']}")
    assert asked(asking)["rule/named"]["approved"]["by"] == "syncengine.yaml"
    assert asking.run("plan", "--detailed-exitcode").code == 2
    assert (apply(asking, "-y"), service.tags()) == (0, ["A-1", "B-1"])


def test_a_saved_plan_that_was_begun_is_finished_under_its_approval(asking: Project, service: Service) -> None:
    """The approval counts for every retry of the saved plan, and for a new plan from the manifests."""
    for approvals in ([asked(asking)["rule/named"]["approve"]], []):
        service.fault("upsertTags", status=503, headers={"Retry-After": "0"}, times=6, apply=True)
        assert apply(asking, "plan.json", approvals=approvals) not in (0, 4)
        service.heal()
    assert apply(asking, "-y") == 0
    assert asking.run("plan", "--detailed-exitcode").code == 0


def test_a_saved_plan_needs_approvals_of_old_and_new_rules(asking: Project, service: Service) -> None:
    """An approval is needed for today's rules and for the deleted rules that the plan file holds."""
    approve = asked(asking)["rule/named"]["approve"]
    rules = asking.folder / "policies" / "all.yaml"
    rules.unlink()
    assert asking.run("plan", "--out", "before.json").code == 0
    assert (apply(asking, "plan.json"), service.tags()) == (4, [])
    rules.write_text(RULES, encoding="utf-8")
    assert (apply(asking, "before.json"), service.tags()) == (4, [])
    rules.unlink()
    assert apply(asking, "plan.json", approvals=[approve]) == 0


def test_a_plan_file_without_its_gate_needs_the_approval(asking: Project, service: Service) -> None:
    path = asking.folder / "plan.json"
    made = load(path, SHOWN)
    save(replace(made, gate=replace(made.gate, units=(), reasons=(), tripped=False)), SHOWN, path)
    assert (apply(asking, "plan.json"), service.tags()) == (4, [])


def test_a_removal_and_a_rule_each_need_an_approval(asking: Project, service: Service) -> None:
    """A tag that is deleted with its category needs the category's approval and the rule's."""
    rules = "rules: [{name: named, for: tag, approve: before.category == 'c' and not after}]"
    asking.settle(tagCategories=[category("c")], tags=[tag("A-1", category="c"), tag("B-1")])
    (asking.folder / "policies" / "all.yaml").write_text(rules, encoding="utf-8")
    asking.wants(tags=[tag("B-1")])
    assert asking.run("plan", "--out", "plan.json").code == 0
    units = asked(asking)
    assert units.keys() == {"", "category/c", "rule/named"}
    whole, of_category, of_rule = units[""], units["category/c"]["approve"], units["rule/named"]["approve"]
    for approvals in ([], [whole], [of_rule], [of_category], ["1@0123456789abcdef0123"]):
        assert apply(asking, "plan.json", approvals=approvals) == 4
    assert apply(asking, "-y", approvals=[whole]) == 4
    assert apply(asking, "plan.json", approvals=[whole, of_rule]) == 0
    assert service.tags() == ["B-1"]
    assert asking.run("plan", "--detailed-exitcode").code == 0
