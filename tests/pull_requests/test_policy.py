"""Who judges a plan of two sides: limits and levels in their stricter form, and whose removals trip the gate."""

from __future__ import annotations

import json

import pytest

from .clones import PROJECT, Clone, Json, codes, origins, tags

pytestmark = pytest.mark.slow

NAMES = ("Abel", "Brun", "Cole", "Dorn", "Egan", "Fenn", "Gast", "Hart")


def wanted(*names: str) -> str:
    return tags(**dict.fromkeys(names, "one"))


@pytest.fixture
def eight(clone: Clone) -> Clone:
    """Eight tags are applied; two of them may go without an approval."""
    clone.git("checkout", "-q", "main")
    clone.commit(tags=wanted(*NAMES))
    clone.push()
    clone.apply()
    clone.git("checkout", "-q", "-B", "pr")
    return clone


def merge_unapplied(clone: Clone, **files: str) -> None:
    clone.git("checkout", "-q", "main")
    clone.commit(**files)
    clone.push()
    clone.git("checkout", "-q", "-B", "pr")


def gate(clone: Clone) -> Json:
    found: Json = clone.plan()["gate"]
    return found


def test_own_removals_trip_the_gate(eight: Clone) -> None:
    """Exit 4, and the gate says that they are the pull request's."""
    eight.commit(tags=wanted(*NAMES[:5]))
    assert gate(eight)["trippedBy"] == ["pull-request"]
    assert eight.code() == 4
    assert "This pull request's removals need the approval." in eight.run("plan", "--base", "origin/main").out


def test_removals_that_wait_already_do_not_fail_a_pull_request(eight: Clone) -> None:
    """They need their approval, which the gate says; the exit code is that of the pull request's own change."""
    merge_unapplied(eight, tags=wanted(*NAMES[:5]))
    eight.commit(more=wanted("New"))
    found = gate(eight)
    assert (found["tripped"], found["trippedBy"]) == (True, ["waiting"])
    assert eight.code() == 2
    assert "Only removals that were merged earlier" in eight.run("plan", "--base", "origin/main").out


def test_removals_that_trip_the_gate_only_together_are_exit_4(eight: Clone) -> None:
    """Two wait and two are the pull request's own: neither needs an approval, and both together do."""
    merge_unapplied(eight, tags=wanted(*NAMES[:6]))
    eight.commit(tags=wanted(*NAMES[:4]))
    assert gate(eight)["trippedBy"] == ["pull-request"]
    assert {unit["origin"] for unit in gate(eight)["units"]} == {"pull-request"}
    assert eight.code() == 4


def test_approved_removals_count_no_more(eight: Clone) -> None:
    """With the approval at hand the pull request is as any other that changes something."""
    eight.commit(tags=wanted(*NAMES[:5]))
    assert eight.code("--approve-deletes", gate(eight)["approve"]) == 2


def test_a_loosened_limit_is_said_first_and_judges_nothing_yet(eight: Clone) -> None:
    """The pull request that raises a limit and removes in one go is judged by the limit of its base."""
    eight.commit(settings=PROJECT + "  maxDeletes: {tags: 100%}\n", tags=wanted(*NAMES[:4]))
    plan = eight.plan()
    first = plan["diagnostics"][0]
    assert first["code"] == "policy-changed"
    sentence = "This pull request changes policy: maxDeletes.tags 25% → 100% (syncengine.yaml:5)"
    assert first["message"] == sentence
    assert plan["gate"]["tripped"]
    assert eight.run("plan", "--base", "origin/main").out.startswith(sentence)
    assert eight.run("plan", "--base", "origin/main", "--format", "markdown").out.startswith(f"> **{sentence}**")
    html = eight.run("plan", "--base", "origin/main", "--format", "html").out
    assert html.index(sentence) < html.index('class="lead"')


def test_a_tightened_limit_judges_at_once(eight: Clone) -> None:
    """The stricter form is then the head's."""
    eight.commit(settings=PROJECT + "  maxDeletes: {tags: 0}\n", tags=wanted(*NAMES[:7]))
    plan = eight.plan()
    assert plan["diagnostics"][0]["message"].startswith("This pull request changes policy: maxDeletes.tags 25% → 0")
    assert plan["gate"]["tripped"]


def test_a_count_and_a_share_both_hold(eight: Clone) -> None:
    """They cannot be compared."""
    eight.commit(settings=PROJECT + "  maxDeletes: {tags: 500}\n", tags=wanted(*NAMES[:4]))
    assert gate(eight)["reasons"] == ["4 of 8 tags forgotten, retired or deleted (limit 500 and 25%)"]


def test_levels_count_in_their_stricter_form(eight: Clone) -> None:
    """An error of the base cannot be turned off by the pull request that needs it off."""
    merge_unapplied(eight, settings=PROJECT + "  diagnostics: {same-keyword: error}\n")
    both = "tags: [{name: One x, keywords: [same words]}, {name: Two x, keywords: [same words]}]\n"
    eight.commit(settings=PROJECT + "  diagnostics: {same-keyword: off}\n", more=both)
    assert eight.run("plan").code == 0
    done = eight.run("plan", "--base", "origin/main", "--format", "json")
    assert done.code == 8
    assert "same-keyword" in [found["code"] for found in json.loads(done.out)["diagnostics"]]


@pytest.mark.parametrize("more", [(), ("--no-state",)])
def test_a_changed_policy_is_said_before_the_errors_that_it_was_to_hide(eight: Clone, more: tuple[str, ...]) -> None:
    """The level of the base counts, so that no level of the pull request is named as a cure."""
    merge_unapplied(eight, settings=PROJECT + "  diagnostics: {same-keyword: error}\n")
    both = "tags: [{name: One x, keywords: [same words]}, {name: Two x, keywords: [same words]}]\n"
    eight.commit(settings=PROJECT + "  diagnostics: {same-keyword: off}\n", more=both)
    done = eight.run("plan", "--base", "origin/main", "--format", "json", *more)
    first, *others = json.loads(done.out)["diagnostics"]
    assert (done.code, first["code"], first["severity"]) == (8, "policy-changed", "warning")
    assert first["message"].startswith(
        "This pull request changes policy: diagnostics.same-keyword error → off (syncengine.yaml:5)"
    )
    assert "to make it a warning" not in done.out
    (found,) = (each for each in others if each["code"] == "same-keyword")
    level = "; origin/main has `same-keyword: error` under `policy.diagnostics`"
    assert found["message"].endswith(f"{level}, and the stricter level of both sides counts")


def test_an_error_of_the_pull_requests_own_level_keeps_its_cure(eight: Clone) -> None:
    """The base only warns."""
    both = "tags: [{name: One x, keywords: [same words]}, {name: Two x, keywords: [same words]}]\n"
    eight.commit(settings=PROJECT + "  diagnostics: {same-keyword: error}\n", more=both)
    done = eight.run("plan", "--base", "origin/main", "--format", "json")
    cure = "to make it a warning, set `same-keyword: warning` under `policy.diagnostics` in the project file"
    assert cure in done.out


def test_a_changed_policy_is_said_beside_rules_that_cannot_be_read(eight: Clone) -> None:
    """They are the pull request's own, and so is its looser limit."""
    eight.write("policies/all.yaml", "rules: [{nme: x}]\n")
    eight.commit(settings=PROJECT + "  maxDeletes: {tags: 100%}\n")
    done = eight.run("plan", "--base", "origin/main", "--format", "json")
    assert done.code == 8
    first, *others = json.loads(done.out)["diagnostics"]
    assert first["message"].startswith("This pull request changes policy: maxDeletes.tags 25% → 100%")
    assert others


@pytest.mark.parametrize("revision", ["", " "])
def test_an_empty_revision_is_a_usage_error_of_its_own(eight: Clone, revision: str) -> None:
    """It says what is wrong: a variable that is not set."""
    done = eight.run("plan", "--base", revision)
    assert done.code == 64
    assert "error[usage]: --base is empty, perhaps because a variable is not set: give a Git revision" in done.err


def test_what_makes_a_plan_is_the_heads_and_said_too(eight: Clone) -> None:
    """How tags leave, and the defaults of all manifests."""
    settings = PROJECT.replace("retire", "forget") + "defaults: {tags: {path: /matters}}\n"
    eight.commit(settings=settings, tags=wanted(*NAMES[:7]))
    plan = eight.plan()
    assert [found["message"] for found in plan["diagnostics"][:2]] == [
        "This pull request changes policy: tagRemoval retire → forget (syncengine.yaml:4)",
        "This pull request changes defaults: tags.path (none) → /matters (syncengine.yaml:5)",
    ]
    assert {change["action"] for change in plan["changes"]} == {"update", "forget"}
    assert set(origins(plan).values()) == {"pull-request"}


def test_a_removal_that_waits_otherwise_becomes_the_pull_requests(eight: Clone) -> None:
    """The base would retire it, and the head forgets it."""
    merge_unapplied(eight, tags=wanted(*NAMES[:7]))
    eight.commit(settings=PROJECT.replace("retire", "forget"))
    assert origins(eight.plan()) == {"tag/Hart": "pull-request"}


def test_apply_holds_a_loosened_limit_back_until_the_next_one(eight: Clone) -> None:
    """The limits of the last complete apply judge too; once one was complete with the new ones, those alone do."""
    eight.commit(settings=PROJECT + "  maxDeletes: {tags: 60%}\n", tags=wanted(*NAMES[:4]))
    done = eight.run("apply", "-y", "--format", "json")
    assert done.code == 4
    assert "limit-loosened" in [found["code"] for found in json.loads(done.out)["diagnostics"]]
    assert eight.run("plan", "--detailed-exitcode").code == 4
    eight.commit(tags=wanted(*NAMES))
    eight.apply()
    eight.commit(tags=wanted(*NAMES[:4]))
    assert codes(json.loads(eight.run("plan", "--format", "json").out)) == []
    eight.apply()


def test_a_refused_or_partial_apply_loosens_nothing(eight: Clone) -> None:
    """Only one that was whole and complete does."""
    eight.commit(settings=PROJECT + "  maxDeletes: {tags: 60%}\n", tags=wanted(*NAMES[:4]), more=wanted("New"))
    eight.apply("--target", "tag/New")
    assert eight.run("apply", "-y").code == 4
    assert eight.run("apply", "-y").code == 4


def test_a_saved_plan_is_judged_by_the_last_apply_too(eight: Clone) -> None:
    """The limit is not that of the file that the plan was made with alone."""
    eight.commit(settings=PROJECT + "  maxDeletes: {tags: 60%}\n", tags=wanted(*NAMES[:4]))
    assert eight.run("plan", "--out", "p.json").code == 0
    assert eight.run("apply", "p.json").code == 4
