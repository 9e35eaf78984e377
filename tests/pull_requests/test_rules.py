"""The rules of both sides apply: a pull request cannot remove the rule that it breaks."""

from __future__ import annotations

import pytest

from .clones import Clone, codes, tags

RULE = "rules:\n  - {name: described, for: tag, deny: after and after.description is none}\n"
BROKEN = "tags:\n  - {name: Novel, keywords: [novel matter]}\n"


@pytest.fixture
def ruled(clone: Clone) -> Clone:
    """A clone whose base has a rule that denies tags without a description."""
    clone.merge_unapplied(rules=RULE)
    return clone


def test_a_rule_that_the_pull_request_removes_still_holds(ruled: Clone) -> None:
    ruled.commit(rules=None, more=BROKEN)
    for more in ((), ("--no-state",)):
        plan = ruled.plan(*more)
        assert codes(plan)[0] == "policy-changed"
        sentence = "This pull request changes policy: rule described was removed (it was at policies/all.yaml:2)"
        assert plan["diagnostics"][0]["message"] == sentence
        (denial,) = (each for each in plan["diagnostics"] if each["code"] == "policy-denied")
        assert (denial["address"], denial["rule"], ruled.code(*more)) == ("tag/Novel", "described", 4)


def test_a_rule_that_the_pull_request_adds_applies_at_once(clone: Clone) -> None:
    clone.commit(rules=RULE, more=BROKEN)
    assert {"policy-changed", "policy-denied"} <= set(codes(clone.plan()))
    clone.commit(more=tags(Novel="one"))
    assert "policy-denied" not in codes(clone.plan())


def test_a_rule_that_is_weakened_applies_in_both_versions(ruled: Clone) -> None:
    """The change is shown with both expressions; an unchanged rule is evaluated once."""
    ruled.commit(more=BROKEN)
    found = codes(ruled.plan())
    assert (found.count("policy-denied"), found.count("policy-changed")) == (1, 0)
    ruled.commit(rules=RULE.replace("after and", "false and"))
    plan = ruled.plan()
    assert "deny after and after.description is none → deny false and" in plan["diagnostics"][0]["message"]
    assert "policy-denied" in codes(plan)


def test_a_base_whose_rules_are_invalid_is_an_invalid_base(clone: Clone) -> None:
    """Invalid rules in the base are a `base-invalid` warning, so that a pull request can fix them."""
    clone.merge_unapplied(rules="rules: [{name: x}]")
    clone.commit(rules=RULE, more=BROKEN)
    assert {"base-invalid", "policy-denied"} <= set(codes(clone.plan()))


ASKING = "rules:\n  - {name: described, for: tag, approve: after and after.description == 'two'}\n"
TWO = tags(Abel="one", Brun="two", Cole="one", Dorn="one", Egan="one")


@pytest.fixture
def asking(clone: Clone) -> Clone:
    """A clone whose base has a rule that requires an approval."""
    clone.merge_unapplied(rules=ASKING)
    return clone


def test_a_rule_asks_for_the_approval_of_the_pull_request(asking: Clone) -> None:
    asking.commit(tags=TWO)
    assert asking.plan()["gate"]["trippedBy"] == ["pull-request"]
    assert asking.code() == 4
    text = asking.run("plan", "--base", "origin/main").out
    assert "Blocked: approval needed for this plan." in text
    assert "This pull request's changes need the approval." in text


def test_a_rule_asks_for_the_approval_of_waiting_changes(asking: Clone) -> None:
    """The gate is attributed to waiting changes until the pull request itself has a change that the rule matches."""
    asking.merge_unapplied(tags=TWO)
    for description, who in (("one", "waiting"), ("two", "pull-request")):
        asking.commit(more=tags(Finn=description))
        assert asking.plan()["gate"]["trippedBy"] == [who]


@pytest.mark.parametrize("most", [0, 1])
def test_a_rule_of_the_whole_plan_judges_both_sides(clone: Clone, most: int) -> None:
    """A rule for the whole plan is attributed to the pull request, even if some of the changes are waiting."""
    rule = f"rules: [{{name: many, for: plan, approve: plan.summary.create > {most}}}]"
    clone.merge_unapplied(rules=rule, more=tags(Finn="one"))
    clone.commit(other=tags(Gray="one"))
    assert clone.plan()["gate"]["trippedBy"] == ["pull-request"]


def test_both_versions_of_a_rule_need_an_approval_of_their_own(asking: Clone) -> None:
    asking.commit(rules=ASKING.replace("== 'two'", "!= 'one'"), tags=TWO)
    approvals = {unit["unit"]: unit["approve"] for unit in asking.plan()["gate"]["units"]}
    assert set(approvals) == {"rule/described", "rule/described (base)"}
    settings = (asking.project / "syncengine.yaml").read_text(encoding="utf-8")
    for name, approve in approvals.items():
        asking.write("syncengine.yaml", f"{settings}\napprovals: ['{approve}']\n")
        units = asking.plan()["gate"]["units"]
        assert {unit["unit"] for unit in units if unit["approved"] is None} == set(approvals) - {name}
