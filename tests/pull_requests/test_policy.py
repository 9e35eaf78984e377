"""Policy of a plan against a base: the stricter limits, levels and rules count, and the gate says who trips it."""

import json

import pytest

from .clones import PROJECT, Clone, Json, codes, origins, tags

pytestmark = pytest.mark.slow

NAMES = ("Abel", "Brun", "Cole", "Dorn", "Egan", "Fenn", "Gast", "Hart")


def wanted(*names: str) -> str:
    return tags(**dict.fromkeys(names, "one"))


@pytest.fixture
def eight(clone: Clone) -> Clone:
    """A clone with eight applied tags, of which two may be removed without an approval."""
    clone.merge_unapplied(tags=wanted(*NAMES))
    clone.apply()
    return clone


def gate(clone: Clone) -> Json:
    found: Json = clone.plan()["gate"]
    return found


def test_own_removals_trip_the_gate(eight: Clone) -> None:
    eight.commit(tags=wanted(*NAMES[:5]))
    found = gate(eight)
    assert found["trippedBy"] == ["pull-request"]
    assert eight.code() == 4
    assert "This pull request's removals need the approval." in eight.run("plan", "--base", "origin/main").out
    assert eight.code("--approve-deletes", found["approve"]) == 2


def test_removals_that_wait_already_do_not_fail_a_pull_request(eight: Clone) -> None:
    """Merged but unapplied removals keep the gate closed, but the pull request's own change sets the exit code."""
    eight.merge_unapplied(tags=wanted(*NAMES[:5]))
    eight.commit(more=wanted("New"))
    found = gate(eight)
    assert (found["tripped"], found["trippedBy"], eight.code()) == (True, ["waiting"], 2)
    assert "Only removals that were merged earlier" in eight.run("plan", "--base", "origin/main").out


def test_removals_that_trip_the_gate_only_together_are_exit_4(eight: Clone) -> None:
    eight.merge_unapplied(tags=wanted(*NAMES[:6]))
    eight.commit(tags=wanted(*NAMES[:4]))
    found = gate(eight)
    assert (found["trippedBy"], eight.code()) == (["pull-request"], 4)
    assert {unit["origin"] for unit in found["units"]} == {"pull-request"}


LIMITS = {
    "loosened": ("100%", NAMES[:4], "4 of 8 tags forgotten, retired or deleted (limit 25%)"),
    "tightened": ("0", NAMES[:7], "1 of 8 tags forgotten, retired or deleted (limit 0)"),
    "a count and a share": ("500", NAMES[:4], "4 of 8 tags forgotten, retired or deleted (limit 500 and 25%)"),
}


@pytest.mark.parametrize(("limit", "kept", "reason"), LIMITS.values(), ids=LIMITS)
def test_the_limits_of_both_sides_hold(eight: Clone, limit: str, kept: tuple[str, ...], reason: str) -> None:
    """A tightened limit is used at once, a loosened one not yet. The change of policy is shown first."""
    eight.commit(settings=f"{PROJECT}  maxDeletes: {{tags: {limit}}}\n", tags=wanted(*kept))
    plan = eight.plan()
    sentence = f"This pull request changes policy: maxDeletes.tags 25% → {limit} (syncengine.yaml:5)"
    assert [(each["code"], each["message"]) for each in plan["diagnostics"]] == [("policy-changed", sentence)]
    assert (plan["gate"]["tripped"], plan["gate"]["reasons"]) == (True, [reason])
    assert eight.run("plan", "--base", "origin/main").out.startswith(sentence)
    assert eight.run("plan", "--base", "origin/main", "--format", "markdown").out.startswith(f"> **{sentence}**")
    html = eight.run("plan", "--base", "origin/main", "--format", "html").out
    assert html.index(sentence) < html.index('class="lead"')


@pytest.mark.parametrize("more", [(), ("--no-state",)])
def test_the_stricter_level_of_both_sides_counts(eight: Clone, more: tuple[str, ...]) -> None:
    """A loosened level is shown before the errors that it should hide; these say that the base's level counts."""
    eight.merge_unapplied(settings=PROJECT + "  diagnostics: {same-keyword: error}\n")
    both = "tags: [{name: One x, keywords: [same words]}, {name: Two x, keywords: [same words]}]\n"
    eight.commit(settings=PROJECT + "  diagnostics: {same-keyword: off}\n", more=both)
    assert eight.run("plan").code == 0
    done = eight.run("plan", "--base", "origin/main", "--format", "json", *more)
    first, *others = json.loads(done.out)["diagnostics"]
    assert (done.code, first["code"], first["severity"]) == (8, "policy-changed", "warning")
    assert first["message"].startswith(
        "This pull request changes policy: diagnostics.same-keyword error → off (syncengine.yaml:5)"
    )
    (found,) = (each for each in others if each["code"] == "same-keyword")
    level = "; this holds once it is merged: origin/main has `same-keyword: error` under `policy.diagnostics`"
    assert found["message"].endswith(f"{level}, and the stricter level of both sides counts")


def test_a_changed_policy_is_shown_beside_invalid_rules(eight: Clone) -> None:
    eight.commit(rules="rules: [{nme: x}]\n", settings=PROJECT + "  maxDeletes: {tags: 100%}\n")
    done = eight.run("plan", "--base", "origin/main", "--format", "json")
    assert done.code == 8
    first, *others = json.loads(done.out)["diagnostics"]
    assert first["message"].startswith("This pull request changes policy: maxDeletes.tags 25% → 100%")
    assert others


def test_settings_of_the_head_are_used_and_their_changes_are_shown(eight: Clone) -> None:
    settings = PROJECT.replace("retire", "forget") + "defaults: {tags: {path: /matters}}\n"
    eight.commit(settings=settings, tags=wanted(*NAMES[:7]))
    plan = eight.plan()
    assert [found["message"] for found in plan["diagnostics"][:2]] == [
        "This pull request changes policy: tagRemoval retire → forget (syncengine.yaml:4)",
        "This pull request changes defaults: tags.path (none) → /matters (syncengine.yaml:5)",
    ]
    assert {change["action"] for change in plan["changes"]} == {"update", "forget"}
    assert set(origins(plan).values()) == {"pull-request"}


def test_a_waiting_removal_that_is_made_differently_is_the_pull_requests(eight: Clone) -> None:
    eight.merge_unapplied(tags=wanted(*NAMES[:7]))
    eight.commit(settings=PROJECT.replace("retire", "forget"))
    assert origins(eight.plan()) == {"tag/Hart": "pull-request"}


def test_apply_holds_a_loosened_limit_back_until_a_complete_one(eight: Clone) -> None:
    """`apply` also uses the limits of the last complete apply, which is neither a refused one nor one with --target."""
    eight.commit(settings=PROJECT + "  maxDeletes: {tags: 60%}\n", tags=wanted(*NAMES[:4]), more=wanted("New"))
    eight.apply("--target", "tag/New")
    for _ in range(2):
        done = eight.run("apply", "-y", "--format", "json")
        assert (done.code, "limit-loosened" in codes(json.loads(done.out))) == (4, True)
    assert eight.run("plan", "--detailed-exitcode", "--out", "p.json").code == 4
    assert eight.run("apply", "p.json").code == 4
    eight.commit(tags=wanted(*NAMES))
    eight.apply()
    eight.commit(tags=wanted(*NAMES[:4]))
    assert "limit-loosened" not in codes(json.loads(eight.run("plan", "--format", "json").out))
    eight.apply()


# --- rules: those of both sides apply, so that a pull request cannot remove the rule that it breaks

RULE = "rules:\n  - {name: described, for: tag, deny: after and after.description is none}\n"
BROKEN = "tags:\n  - {name: Novel, keywords: [novel matter]}\n"


def test_a_rule_that_the_pull_request_removes_still_holds(clone: Clone) -> None:
    clone.merge_unapplied(rules=RULE)
    clone.commit(rules=None, more=BROKEN)
    for more in ((), ("--no-state",)):
        plan = clone.plan(*more)
        assert codes(plan)[0] == "policy-changed"
        sentence = "This pull request changes policy: rule described was removed (it was at policies/all.yaml:2)"
        assert plan["diagnostics"][0]["message"] == sentence
        (denial,) = (each for each in plan["diagnostics"] if each["code"] == "policy-denied")
        assert (denial["address"], denial["rule"], clone.code(*more)) == ("tag/Novel", "described", 4)


def test_a_rule_that_the_pull_request_adds_applies_at_once(clone: Clone) -> None:
    clone.commit(rules=RULE, more=BROKEN)
    assert {"policy-changed", "policy-denied"} <= set(codes(clone.plan()))
    clone.commit(more=tags(Novel="one"))
    assert "policy-denied" not in codes(clone.plan())


def test_a_rule_that_is_weakened_applies_in_both_versions(clone: Clone) -> None:
    """The change is shown with both expressions; an unchanged rule is evaluated once."""
    clone.merge_unapplied(rules=RULE)
    clone.commit(more=BROKEN)
    found = codes(clone.plan())
    assert (found.count("policy-denied"), found.count("policy-changed")) == (1, 0)
    clone.commit(rules=RULE.replace("after and", "false and"))
    plan = clone.plan()
    assert "deny after and after.description is none → deny false and" in plan["diagnostics"][0]["message"]
    assert "policy-denied" in codes(plan)


ASKING = "rules:\n  - {name: described, for: tag, approve: after and after.description == 'two'}\n"
TWO = tags(Abel="one", Brun="two", Cole="one", Dorn="one", Egan="one")


def test_a_rule_asks_for_the_approval_of_the_pull_request(clone: Clone) -> None:
    clone.merge_unapplied(rules=ASKING)
    clone.commit(tags=TWO)
    assert clone.plan()["gate"]["trippedBy"] == ["pull-request"]
    assert clone.code() == 4
    text = clone.run("plan", "--base", "origin/main").out
    assert "Blocked: approval needed for this plan." in text
    assert "This pull request's changes need the approval." in text


def test_a_rule_asks_for_the_approval_of_waiting_changes(clone: Clone) -> None:
    """The gate is attributed to waiting changes until the pull request itself has a change that the rule matches."""
    clone.merge_unapplied(rules=ASKING)
    clone.merge_unapplied(tags=TWO)
    for description, who in (("one", "waiting"), ("two", "pull-request")):
        clone.commit(more=tags(Finn=description))
        assert clone.plan()["gate"]["trippedBy"] == [who]


@pytest.mark.parametrize("most", [0, 1])
def test_a_rule_of_the_whole_plan_judges_both_sides(clone: Clone, most: int) -> None:
    rule = f"rules: [{{name: many, for: plan, approve: plan.summary.create > {most}}}]"
    clone.merge_unapplied(rules=rule, more=tags(Finn="one"))
    clone.commit(other=tags(Gray="one"))
    assert clone.plan()["gate"]["trippedBy"] == ["pull-request"]


def test_both_versions_of_a_rule_need_an_approval_of_their_own(clone: Clone) -> None:
    clone.merge_unapplied(rules=ASKING)
    clone.commit(rules=ASKING.replace("== 'two'", "!= 'one'"), tags=TWO)
    approvals = {unit["unit"]: unit["approve"] for unit in clone.plan()["gate"]["units"]}
    assert set(approvals) == {"rule/described", "rule/described (base)"}
    settings = (clone.project / "syncengine.yaml").read_text(encoding="utf-8")
    for name, approve in approvals.items():
        clone.write("syncengine.yaml", f"{settings}\napprovals: ['{approve}']\n")
        units = clone.plan()["gate"]["units"]
        assert {unit["unit"] for unit in units if unit["approved"] is None} == set(approvals) - {name}
