"""Rules of both sides hold: a pull request cannot take away the rule that it breaks."""

from __future__ import annotations

import pytest

from .clones import Clone, codes, tags

RULE = "rules:\n  - {name: described, for: tag, deny: after and after.description is none}\n"
BROKEN = "tags:\n  - {name: Novel, keywords: [novel matter]}\n"


@pytest.fixture
def ruled(clone: Clone) -> Clone:
    """The base has a rule."""
    clone.git("checkout", "-q", "main")
    clone.write("policies/all.yaml", RULE)
    clone.commit()
    clone.push()
    clone.git("checkout", "-q", "-B", "pr")
    return clone


def test_a_rule_that_the_pull_request_removes_still_holds(ruled: Clone) -> None:
    """And its removal is said first."""
    ruled.write("policies/all.yaml", None)
    ruled.commit(more=BROKEN)
    for more in ((), ("--no-state",)):
        plan = ruled.plan(*more)
        assert codes(plan)[0] == "policy-changed"
        sentence = "This pull request changes policy: rule described is gone (it was at policies/all.yaml:2)"
        assert plan["diagnostics"][0]["message"] == sentence
        (denial,) = (each for each in plan["diagnostics"] if each["code"] == "policy-denied")
        assert (denial["address"], denial["rule"], ruled.code(*more)) == ("tag/Novel", "described", 4)


def test_a_rule_that_the_pull_request_brings_holds_at_once(clone: Clone) -> None:
    """It judges what comes with it."""
    clone.write("policies/all.yaml", RULE)
    clone.commit(more=BROKEN)
    assert {"policy-changed", "policy-denied"} <= set(codes(clone.plan()))
    clone.commit(more=tags(Novel="one"))
    assert "policy-denied" not in codes(clone.plan())


def test_a_rule_that_is_weakened_holds_in_both_forms(ruled: Clone) -> None:
    """The change is named, with both expressions."""
    ruled.write("policies/all.yaml", RULE.replace("after and", "false and"))
    ruled.commit(more=BROKEN)
    plan = ruled.plan()
    assert "deny after and after.description is none → deny false and" in plan["diagnostics"][0]["message"]
    assert "policy-denied" in codes(plan)


def test_an_unchanged_rule_is_named_once(ruled: Clone) -> None:
    """Both sides have it."""
    ruled.commit(more=BROKEN)
    plan = ruled.plan()
    assert codes(plan).count("policy-denied") == 1
    assert "policy-changed" not in codes(plan)


def test_a_base_whose_rules_are_invalid_is_an_invalid_base(ruled: Clone) -> None:
    """The pull request may be the one that mends them."""
    ruled.git("checkout", "-q", "main")
    ruled.write("policies/all.yaml", "rules: [{name: x}]")
    ruled.commit()
    ruled.push()
    ruled.git("checkout", "-q", "-B", "pr")
    ruled.write("policies/all.yaml", RULE)
    ruled.commit(more=BROKEN)
    assert {"base-invalid", "policy-denied"} <= set(codes(ruled.plan()))
