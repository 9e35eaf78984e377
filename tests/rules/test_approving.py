"""A rule with `approve` is a unit of the gate, with its own approval for exactly these changes, valid once."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from syncengine.plan.gate import Approval
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
CATEGORY = "tagCategories: [{externalId: litigation, label: L}]\n"


def declared(*numbers: int, more: str = "") -> str:
    return CATEGORY + "tags:\n" + "".join(f"  - {{name: T-{n}, category: litigation}}\n" for n in numbers) + more


def unit_of(plan: Plan, name: str = "rule/litigation-is-owned") -> Any:
    return next(unit for unit in plan.gate.units if unit.name == name)


def test_a_rule_asks_below_the_limits() -> None:
    """One of twenty removed tags is below the limits, but the rule asks; the reason names its approvers."""
    plan = judged(declared(*range(19)), ROWS, LITIGATION, tag_removal=Removal.RETIRE)
    assert (plan.gate.is_closed, plan.gate.tripped, plan.gate.approve) == (True, True, None)
    unit = unit_of(plan)
    assert (unit.count, unit.by, unit.is_open) == (1, ("@leads", "@partners"), True)
    asks = "rule litigation-is-owned (policies/all.yaml:2) requires @leads, @partners to approve 1 change"
    assert plan.gate.reasons == (f"{asks}: tag/T-19",)
    assert not judged(declared(*range(20)), ROWS, LITIGATION, tag_removal=Removal.RETIRE).gate.tripped


def test_only_its_own_approval_opens_a_rule() -> None:
    """Neither the approval of the whole gate nor one of other removals opens the unit."""
    plan = judged(declared(*range(19)), ROWS, LITIGATION, tag_removal=Removal.RETIRE)
    for text, is_closed in ((unit_of(plan).approve, False), (plan.gate.whole, True), ("1@0123456789abcdef0123", True)):
        assert plan.gate.with_approvals([Approval(text, "here")]).is_closed is is_closed


def test_the_approval_of_all_removals_does_not_approve_rules() -> None:
    plan = judged(declared(*range(5)), ROWS, LITIGATION, tag_removal=Removal.RETIRE)
    assert plan.gate.approve is not None
    half = plan.gate.with_approvals([Approval(plan.gate.approve, "here")])
    assert [unit.name for unit in half.units if unit.is_open] == ["rule/litigation-is-owned"]
    both = half.with_approvals([Approval(plan.gate.approve, "here"), Approval(unit_of(plan).approve, "there")])
    assert not both.is_closed
    assert plan.gate.with_approvals([Approval(unit_of(plan).approve, "there")]).is_closed


def test_an_approval_is_for_exactly_these_changes() -> None:
    """An approval depends on the rule and on the resources and values that it asks about, and on nothing else."""
    line = 'name: r, for: tag, approve: "after.description is not none"'
    other = 'name: s, for: tag, approve: "after.description is not none"'

    def approval(manifests: str, line: str = line) -> str:
        plan = judged(manifests, [], line)
        return next(unit.approve for unit in plan.gate.units if unit.kind == "rule")

    first = approval("tags: [{name: A, description: a, keywords: [x, y]}]")
    assert approval("tags: [{name: B}, {name: A, keywords: [y, x], description: a}]") == first
    different = (
        approval("tags: [{name: A, description: b, keywords: [x, y]}]"),
        approval("tags: [{name: A, description: a, keywords: [x]}]"),
        approval("tags: [{name: B, description: a, keywords: [x, y]}]"),
        approval("tags: [{name: A, description: a, keywords: [x, y]}, {name: B, description: b}]"),
        approval("tags: [{name: A, description: a, keywords: [x, y]}]", other),
    )
    assert len({first, *different}) == 6


def test_a_category_is_approved_with_the_tags_that_go_with_it() -> None:
    line = "name: r, for: category, approve: action == 'delete'"
    few, more = (judged("tags: []", ROWS[: 2 + n], line, limits={}) for n in (3, 4))
    units = [next(unit for unit in plan.gate.units if unit.kind == "rule") for plan in (few, more)]
    assert [unit.count for unit in units] == [5, 6]
    assert units[0].approve != units[1].approve


def test_a_rule_for_the_plan_asks_about_all_changes() -> None:
    """In a plan without changes, the rule asks about nothing."""
    line = "name: r, for: plan, approve: plan.summary.requests >= 0"
    plan = judged("tags: [{name: A}, {name: B}]", [], line)
    assert unit_of(plan, "rule/r").count == 2
    assert not judged("tags: [{name: A}]", [row("tag/A")], line).gate.tripped


# --- applying

RULES = "rules:\n  - {name: named, for: tag, approve: after.description is not none, by: ['@leads']}\n"


@pytest.fixture
def asking(project: Project) -> Project:
    """A project with a rule that asks about one of two new tags."""
    write(project.folder, {"policies/all.yaml": RULES})
    project.wants(tags=[tag("A-1", description="a"), tag("B-1")])
    return project


def unit(document: Any) -> Any:
    (found,) = (unit for unit in document["gate"]["units"] if unit["unit"] == "rule/named")
    return found


def planned(project: Project, *arguments: str) -> Any:
    return project.run("plan", "--format", "json", *arguments).document


def test_an_apply_needs_the_approval_of_a_rule_each_time(asking: Project, service: Service) -> None:
    """Without it, nothing is sent. It is valid once, also when a tag later gets the approved content again."""
    done = asking.run("apply", "-y", "--format", "json")
    assert (done.code, service.tags(), done.codes[-1]) == (4, [], "gate")
    found = unit(planned(asking))
    assert (found["count"], found["by"], found["approved"]) == (1, ["@leads"], None)
    approve = found["approve"]
    text = asking.run("plan", "--detailed-exitcode")
    assert (text.code, approve in text.out, "@leads" in text.out) == (4, True, True)
    assert asking.run("apply", "-y", "--approve-deletes", approve).code == 0
    assert service.tags() == ["A-1", "B-1"]
    asking.wants(tags=[tag("A-1", description="other"), tag("B-1")])
    assert asking.run("apply", "-y", "--approve-deletes", unit(planned(asking))["approve"]).code == 0
    asking.wants(tags=[tag("A-1", description="a"), tag("B-1")])
    assert asking.run("apply", "-y", "--approve-deletes", approve).code == 4
    again = unit(planned(asking))["approve"]
    assert again != approve
    assert asking.run("apply", "-y", "--approve-deletes", again).code == 0


def test_an_approval_in_the_project_file_counts(asking: Project, service: Service) -> None:
    approve = unit(planned(asking))["approve"]
    asking.settings("approvals:", f"  - {approve}")
    found = unit(planned(asking))
    assert found["approved"]["by"] == "syncengine.yaml"
    assert asking.run("plan", "--detailed-exitcode").code == 2
    assert (asking.run("apply", "-y").code, service.tags()) == (0, ["A-1", "B-1"])


def test_a_saved_plan_that_was_begun_is_finished_under_its_approval(asking: Project, service: Service) -> None:
    """The approval counts for every retry of the saved plan, and for a new plan from the manifests."""
    assert asking.run("plan", "--out", "plan.json").code == 0
    approve = unit(planned(asking))["approve"]
    for arguments in (("--approve-deletes", approve), ()):
        service.fault("upsertTags", status=503, headers={"Retry-After": "0"}, times=6, apply=True)
        assert asking.run("apply", "plan.json", *arguments).code not in (0, 4)
        service.heal()
    assert asking.run("apply", "-y").code == 0
    assert asking.run("plan", "--detailed-exitcode").code == 0


def test_a_saved_plan_needs_approvals_of_old_and_new_rules(asking: Project, service: Service) -> None:
    """An approval is needed for today's rules and for the deleted rules that the plan file holds."""
    rules = asking.folder / "policies" / "all.yaml"
    rules.unlink()
    assert asking.run("plan", "--out", "before.json").code == 0
    rules.write_text(RULES, encoding="utf-8")
    assert asking.run("plan", "--out", "after.json").code == 0
    assert asking.run("apply", "before.json").code == 4
    approve = unit(planned(asking))["approve"]
    rules.unlink()
    assert (asking.run("apply", "after.json").code, service.tags()) == (4, [])
    assert asking.run("apply", "after.json", "--approve-deletes", approve).code == 0


def test_a_plan_file_without_its_gate_needs_the_approval(asking: Project, service: Service) -> None:
    path = asking.folder / "plan.json"
    assert asking.run("plan", "--out", str(path)).code == 0
    made = load(path, SHOWN)
    save(replace(made, gate=replace(made.gate, units=(), reasons=(), tripped=False)), SHOWN, path)
    assert (asking.run("apply", "plan.json").code, service.tags()) == (4, [])


def test_a_removal_and_a_rule_each_need_an_approval(asking: Project, service: Service) -> None:
    """A tag that is deleted with its category needs the category's approval and the rule's."""
    rules = "rules: [{name: named, for: tag, approve: before.category == 'c' and not after}]"
    asking.settle(tagCategories=[category("c")], tags=[tag("A-1", category="c"), tag("B-1")])
    (asking.folder / "policies" / "all.yaml").write_text(rules, encoding="utf-8")
    asking.wants(tags=[tag("B-1")])
    assert asking.run("plan", "--out", "plan.json").code == 0
    document = planned(asking)
    units = {unit["unit"]: unit["approve"] for unit in document["gate"]["units"]}
    assert units.keys() == {"category/c", "rule/named"}
    whole = document["gate"]["approve"]
    for approvals in ((), (whole,), (units["rule/named"],), (units["category/c"],)):
        options = [part for text in approvals for part in ("--approve-deletes", text)]
        assert asking.run("apply", "plan.json", *options).code == 4
    assert asking.run("apply", "-y", "--approve-deletes", whole).code == 4
    options = ["--approve-deletes", whole, "--approve-deletes", units["rule/named"]]
    assert asking.run("apply", "plan.json", *options).code == 0
    assert service.tags() == ["B-1"]
    assert asking.run("plan", "--detailed-exitcode").code == 0
