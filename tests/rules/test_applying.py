"""What a rule denies is shown in full and never applied; a rule with `approve` asks for exactly its changes, once."""

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

from .test_judging import judged

CLOSED = tag("A", keywords=["x"], closedTimestamp="2026-01-01T00:00:00Z")
RULES = """\
rules:
  - name: closed-matters-lose-keywords
    for: tag
    deny: after.closedTimestamp and after.keywords
    message: "{{ address }} is closed and still tags time."
"""


def with_rules(project: Project, text: str = RULES, file: str = "closed.yaml") -> None:
    write(project.folder, {f"policies/{file}": text})


@pytest.fixture
def closing(project: Project) -> Project:
    """Apply an open tag, then close it in the manifest with its keyword kept, and declare another tag."""
    project.settle(tags=[tag("A", keywords=["x"])])
    project.wants(tags=[CLOSED, tag("B-new")])
    with_rules(project)
    return project


def denials(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in document["diagnostics"] if each["code"] == "policy-denied"]


def test_a_denied_plan_is_shown_in_full(closing: Project) -> None:
    done = closing.run("plan", "--format", "json", "--detailed-exitcode")
    assert (done.code, [change["address"] for change in done.document["changes"]]) == (4, ["tag/A", "tag/B-new"])
    (denial,) = denials(done.document)
    assert denial == {
        "severity": "error",
        "code": "policy-denied",
        "message": "tag/A is closed and still tags time. (rule closed-matters-lose-keywords, policies/closed.yaml:2)",
        "file": "manifests/all.yaml",
        "line": 2,
        "column": None,
        "address": "tag/A",
        "rule": "closed-matters-lose-keywords",
    }
    assert closing.run("plan").code == 0


REPORTS = {("plan",): ("text", "markdown", "html", "json"), ("apply", "-y"): ("junit", "sarif")}


@pytest.mark.parametrize("command", REPORTS)
def test_every_report_shows_the_denial(closing: Project, command: tuple[str, ...]) -> None:
    closing.run(*command, *(f"--report={each}=r.{each}" for each in REPORTS[command]))
    for each in REPORTS[command]:
        report = (closing.folder / f"r.{each}").read_text()
        assert ("closed and still tags time" in report, "policy-denied" in report) == (True, True), each
    if "json" in REPORTS[command]:
        comment = closing.run("publish", "r.json", "--to", "github", "--dry-run").out
        assert "Denied: 1 rule of this project denies this plan" in comment


def test_nothing_of_a_denied_plan_is_sent(closing: Project, service: Service) -> None:
    """The changes that no rule denies are not sent either, whatever is approved; the history records the refusal."""
    before = service.holds()
    done = closing.run("apply", "-y", "--format", "json")
    assert (done.code, done.document["status"], len(denials(done.document))) == (4, "refused", 1)
    text = closing.run("apply", "-y", "--approve-deletes", "1@0123456789ab")
    assert (text.code, "Not applied: this project's rules deny the plan" in text.err) == (4, True)
    assert service.holds() == before
    assert "policy-denied" in closing.run("state", "history").out
    closing.wants(tags=[{**CLOSED, "keywords": []}, tag("B-new")])
    assert closing.apply().code == 0
    assert closing.run("plan", "--detailed-exitcode").code == 0


def assert_refused(project: Project, service: Service) -> None:
    before = service.holds()
    done = project.run("apply", "plan.json", "--format", "json")
    assert (done.code, len(denials(done.document)), service.holds()) == (4, 1, before)


def test_a_saved_plan_is_judged_by_its_own_denial_and_by_the_rules_of_today(closing: Project, service: Service) -> None:
    """The denial in the plan file counts even after the rule was deleted, and the rule even without the denial."""
    path, rules = closing.folder / "plan.json", closing.folder / "policies" / "closed.yaml"
    assert closing.run("plan", "--out", str(path)).code == 0
    text = path.read_text()
    save(replace(load(path, SHOWN), diagnostics=()), SHOWN, path)
    assert_refused(closing, service)
    rules.unlink()
    path.write_text(text)
    assert_refused(closing, service)
    assert closing.run("plan", "--out", str(path)).code == 0
    with_rules(closing)
    assert_refused(closing, service)
    rules.unlink()
    assert closing.run("apply", "plan.json").code == 0


def test_a_rule_that_fails_stops_a_saved_plan_too(closing: Project) -> None:
    with_rules(closing, "rules: [{name: r, for: tag, warn: false}]")
    assert closing.run("plan", "--out", "plan.json").code == 0
    with_rules(closing, "rules: [{name: r, for: tag, deny: after.keywords + 1}]")
    for words in (("plan",), ("apply", "plan.json")):
        done = closing.run(*words, "--format", "json")
        assert (done.code, "bad-rule" in done.codes) == (8, True)


def test_invalid_rules_stop_every_command(closing: Project, service: Service) -> None:
    """`validate` checks all rules of the project, or the file of rules that it is given."""
    with_rules(closing, "rules: [{name: r, for: tag, deny: befor}]", "bad.yaml")
    before = service.holds()
    for words in (("validate",), ("plan",), ("apply", "-y")):
        done = closing.run(*words, "--format", "json")
        assert (done.code, done.codes) == (8, ["unknown-name"])
    assert service.holds() == before
    (closing.folder / "policies" / "bad.yaml").unlink()
    done = closing.run("validate", "policies/closed.yaml", "--format", "json")
    assert (done.code, done.codes) == (0, [])


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

NAMED = "rules:\n  - {name: named, for: tag, approve: after.description is not none, by: ['@leads']}\n"


@pytest.fixture
def asking(project: Project) -> Project:
    """A project with a rule that asks about one of two new tags, and with a plan of them in a file."""
    write(project.folder, {"policies/all.yaml": NAMED})
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
    rules.write_text(NAMED, encoding="utf-8")
    assert (apply(asking, "before.json"), service.tags()) == (4, [])
    rules.unlink()
    assert apply(asking, "plan.json", approvals=[approve]) == 0


def test_a_plan_file_without_its_gate_needs_the_approval(asking: Project, service: Service) -> None:
    path = asking.folder / "plan.json"
    made = load(path, SHOWN)
    save(replace(made, gate=replace(made.gate, units=(), reasons=(), tripped=False)), SHOWN, path)
    assert (apply(asking, "plan.json"), service.tags()) == (4, [])


def test_a_removal_and_a_rule_each_need_an_approval(asking: Project, service: Service) -> None:
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
