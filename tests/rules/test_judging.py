"""What rules say of a plan: each change once, with all that a manifest would say of it before and after."""

from __future__ import annotations

import pytest

from syncengine.document.validation import names_of
from syncengine.errors import Problems, Severity
from syncengine.manifest.schema import MODELS
from syncengine.plan.diff import Action
from syncengine.plan.model import Summary
from syncengine.plan.request import Scope
from syncengine.render.formats import PlanSummary
from syncengine.resource import Kind, Recorded, Removal, Status
from syncengine.rules.judge import LONGEST, MOST
from syncengine.rules.model import ACTIONS, EMPTY
from syncengine.rules.read import ExpectedSummary
from tests.manifest.loading import counted
from tests.planning.estate import gone, row

from .judging import denied, failure, judged

A, B = row("tag/A", "x"), row("tag/B", "y")
CLOSED = "tags: [{name: A, keywords: [x], closedTimestamp: 2026-01-01T00:00:00Z}]"


def test_the_example_of_the_design() -> None:
    """A closed matter that still tags time is denied, at its line, and the rest of the plan is as ever."""
    deny = "after.closedTimestamp and after.keywords"
    line = f'name: closed, for: tag, deny: {deny}, message: "{{{{ address }}}} is closed and still tags time."'
    plan = judged(CLOSED, [A], line)
    (found,) = (d for d in plan.diagnostics if d.code == "policy-denied")
    assert (found.severity, found.rule, found.address) == (Severity.ERROR, "closed", "tag/A")
    assert (found.file, found.line) == ("manifests/all.yaml", 1)
    assert found.message == "tag/A is closed and still tags time. (rule closed, policies/all.yaml:2)"
    assert (plan.is_denied, len(plan.changes), plan.summary.update) == (True, 1, 1)
    assert not judged("tags: [{name: A, keywords: [x, z]}]", [A], line).is_denied


# --- before and after

SEEN = {
    "a create has nothing before": ("tags: [{name: C}]", "before is none and after is not none", ["tag/C"]),
    "nothing is false and equals none": ("tags: [{name: C}]", "not before and before == none", ["tag/C"]),
    "a field of nothing is none": ("tags: [{name: C}]", "before.category is none", ["tag/C"]),
    "and its lists are empty": ("tags: [{name: C}]", "'x' not in before.keywords", ["tag/C"]),
    "a field that is not declared": ("tags: [{name: C}]", "after.description is none", ["tag/C"]),
    "metadata that is not there": ("tags: [{name: C, metadata: {a: b}}]", "after.metadata.c is none", ["tag/C"]),
    "metadata of any name": ("tags: [{name: C, metadata: {a b: c}}]", "after.metadata['a b'] == 'c'", ["tag/C"]),
    "metadata called like a method": (
        "tags: [{name: C, metadata: {items: c}}]",
        "after.metadata.items == 'c'",
        ["tag/C"],
    ),
    "keywords without the name": ("tags: [{name: C, keywords: [k]}]", "after.keywords == ['k']", ["tag/C"]),
    "keywords with an excluded name": (
        "tags: [{name: C, keywords: [C], excludeTagNameKeyword: true}]",
        "after.keywords == ['C'] and after.excludeTagNameKeyword",
        ["tag/C"],
    ),
    "an instant of 1970 is there": (
        "tags: [{name: C, closedTimestamp: 0}]",
        "after.closedTimestamp is not none",
        ["tag/C"],
    ),
    "an instant as files have it": (
        "tags: [{name: C, closedTimestamp: 1704067200000}]",
        "after.closedTimestamp == '2024-01-01T00:00:00Z'",
        ["tag/C"],
    ),
    "a list": ("tags: [{name: C, assigneeExternalIds: [u]}]", "after.assigneeExternalIds == ['u']", ["tag/C"]),
    "protection": ("tags: [{name: C, protect: true}]", "after.protect and not before.protect", ["tag/C"]),
    "a source": ("tags: [{name: C}]", "source.file == 'manifests/all.yaml' and source.line == 1", ["tag/C"]),
    "no row of data": ("tags: [{name: C}]", "source.data is none and source.data.row is none", ["tag/C"]),
    "a renamed tag was there": (
        "tags: [{name: C, previously: [A]}]",
        "before.name == 'A' and after.previously == ['A']",
        ["tag/C"],
    ),
}


@pytest.mark.parametrize(("manifests", "expression", "addresses"), SEEN.values(), ids=SEEN)
def test_what_a_rule_sees(manifests: str, expression: str, addresses: list[str]) -> None:
    """Resources as a manifest has them, or nothing."""
    recorded = [A] if "previously" in manifests else []
    assert denied(manifests, recorded, expression) == addresses


@pytest.mark.parametrize("how", Removal)
def test_what_is_removed_has_nothing_after(how: Removal) -> None:
    """Whatever way it goes: no manifest declares it."""
    expression = f"action == '{how.value}' and before.keywords == ['x'] and after is none"
    assert denied("tags: [{name: B, keywords: [y]}]", [A, B], expression, tag_removal=how, deletes_tags=True) == [
        "tag/A"
    ]


def test_what_was_deleted_is_not_there_before() -> None:
    """The row is kept, and the service does not hold it."""
    assert denied("tags: [{name: C}]", [gone("tag/C")], "before is none") == ["tag/C"]


def test_what_may_be_held_was_there_before() -> None:
    """An attempt of unknown end may have made it: a private tag must not be opened by a second attempt."""
    unsure = row("tag/C", visibility="PRIVATE", doubtful=True, confirmed=False)
    expression = "before.visibility == 'PRIVATE' and after.visibility != 'PRIVATE'"
    assert denied("tags: [{name: C, visibility: PUBLIC}]", [unsure], expression) == ["tag/C"]


def test_a_renamed_category_was_there_under_its_former_name() -> None:
    """It is one update."""
    manifests = "tagCategories: [{externalId: new, label: C, previously: [old]}]"
    expression = "before.externalId == 'old' and after.externalId == 'new' and action == 'update'"
    assert denied(manifests, [row("category/old", label="C")], expression, "category") == ["category/new"]


# --- which changes


MEMBERS = [row("category/c", label="C"), row("tag/M", category="c"), row("tag/N", category="c")]


def test_tags_that_go_with_their_category_are_changes_of_tags() -> None:
    """A rule for categories judges the category alone."""
    assert denied("{}", MEMBERS, "action == 'delete'", "category") == ["category/c"]
    assert denied("{}", MEMBERS, "action == 'delete' and before.category == 'c'") == ["tag/M", "tag/N"]


def test_only_changes_are_judged() -> None:
    """What is as it was has been judged when it was applied, or stood before the rule did."""
    assert denied("tags: [{name: A, keywords: [x]}, {name: C}]", [A], "true") == ["tag/C"]


def test_a_selection_is_judged_as_far_as_it_goes() -> None:
    """What is not selected is no change of this plan."""
    manifests = "tags: [{name: A, keywords: [new]}, {name: B, keywords: [new]}]"
    assert denied(manifests, [A, B], "'new' in after.keywords", scope=Scope(targets=("tag/A",))) == ["tag/A"]
    assert denied(manifests, [A, B], "plan.summary.update == 1", "plan", scope=Scope(targets=("tag/A",))) == ["plan"]


def test_a_rule_for_a_plan_is_judged_once() -> None:
    """By its counts, also where there is nothing to change; at its own line."""
    plan = judged("tags: [{name: A, keywords: [x]}]", [A], "name: p, for: plan, deny: plan.summary.unchanged == 1")
    (found,) = (d for d in plan.diagnostics if d.code == "policy-denied")
    assert (found.file, found.line, found.address, plan.changes) == ("policies/all.yaml", 2, None, ())


def test_an_expression_that_is_true_of_nothing_denies_removals() -> None:
    """Rules are not guessed at: `after and …` is for what stays. A denial too many is seen; one too few is not."""
    manifests = "tags: [{name: B, keywords: [y]}]"
    assert denied(manifests, [A, B], "not after.description") == ["tag/A"]
    assert denied(manifests, [A, B], "after and not after.description") == []


# --- consequences


def test_a_warning_is_one() -> None:
    """It has the default words where the rule has none."""
    plan = judged("tags: [{name: C}]", [], "name: w, for: tag, warn: action == 'create'")
    (found,) = (d for d in plan.diagnostics if d.code == "policy-warning")
    assert (found.severity, found.rule, plan.is_denied) == (Severity.WARNING, "w", False)
    assert found.message == "tag/C would be created (rule w, policies/all.yaml:2)"


def test_a_mass_of_denials_is_counted() -> None:
    """The first of each rule are told one by one; nothing is lost of how many there are."""
    manifests = "tags:\n" + "".join(f"  - {{name: T-{n}}}\n" for n in range(MOST + 50))
    plan = judged(manifests, [], "name: d, for: tag, deny: true")
    found = [d for d in plan.diagnostics if d.code == "policy-denied"]
    assert (len(found), found[-1].message) == (MOST + 1, "50 more changes (rule d, policies/all.yaml:2)")


def test_a_message_is_one_line_of_bearable_length() -> None:
    """Whatever is in the data."""
    line = 'name: d, for: tag, deny: true, message: "{{ after.description }}"'
    plan = judged(f'tags: [{{name: C, description: "a\\nb {"x" * 5000}"}}]', [], line)
    (found,) = (d for d in plan.diagnostics if d.code == "policy-denied")
    assert found.message.startswith("a b xxx")
    assert len(found.message) < LONGEST + 100


# --- rules that cannot be judged

FAILING = {
    "text": ("after.description", "rule-text"),
    "a sum of unlike things": ("after.keywords + 1", "bad-rule"),
    "an endless loop": ("(range(99999) | list | map('string') | join) * 99 == ''", "bad-rule"),
    "a large value": ("([1] * 99999999) == []", "bad-rule"),
    "a large number": ("2 ** 99999999 > 1", "bad-rule"),
    "a sequence that is not run": ("after.keywords | select('equalto', 'x')", "bad-rule"),
    "a missing index": ("after.keywords[3] == 'x'", "bad-rule"),
}


@pytest.mark.parametrize(("expression", "code"), FAILING.values(), ids=FAILING)
def test_a_rule_that_fails_stops_the_plan(expression: str, code: str) -> None:
    """It names the rule and the first change; nothing passes a rule that could not be asked."""
    ((found, message),) = failure("tags: [{name: A, description: b}, {name: B, description: c}]", [], expression)
    assert (found, "tag/A" in message, "rule r" in message or "the rule r" in message) == (code, True, True)


def test_each_rule_that_fails_is_reported_once() -> None:
    """At its own line, with the change that it failed for; the others go on."""
    lines = (
        "name: one, for: tag, deny: after.keywords + 1",
        "name: good, for: tag, deny: action == 'update'",
        "name: two, for: tag, deny: \"after.name == 'B' and after.name | length + after.keywords\"",
    )
    with pytest.raises(Problems) as problems:
        judged("tags: [{name: A}, {name: B}]", [], *lines)
    assert [(each.line, each.address) for each in problems.value.found] == [(2, "tag/A"), (4, "tag/B")]


def test_a_message_that_fails_is_no_way_past_its_rule() -> None:
    """The plan stops as for any rule that fails."""
    with pytest.raises(Problems):
        judged("tags: [{name: A}]", [], 'name: r, for: tag, deny: true, message: "{{ after.keywords + 1 }}"')


def test_the_cost_is_that_of_the_changes() -> None:
    """Ten times as many unchanged resources are not seen, and an expression is compiled once."""
    lines = tuple(f"name: r{n}, for: tag, warn: after.category == '{n}'" for n in range(3))

    def calls(unchanged: int, changed: int) -> int:
        rows: list[Recorded] = [row(f"tag/U-{n}") for n in range(unchanged)]
        names = [f"U-{n}" for n in range(unchanged)] + [f"C-{n}" for n in range(changed)]
        manifests = "tags:\n" + "".join(f"  - {{name: {name}}}\n" for name in names)
        with_rules, _ = counted(lambda: judged(manifests, rows, *lines))
        without, _ = counted(lambda: judged(manifests, rows, "name: p, for: plan, deny: false"))
        return with_rules - without

    calls(0, 1)
    few = calls(10, 10)
    assert calls(100, 10) < few * 1.2
    assert calls(10, 100) < few * 11


# --- completeness


def test_every_field_of_a_manifest_can_be_asked_for() -> None:
    """Of each kind."""
    for kind in Kind:
        assert EMPTY[kind].keys() == names_of(MODELS[kind]).keys()


def test_every_count_and_action_has_its_name() -> None:
    """As in the JSON of a plan."""
    counts = names_of(ExpectedSummary)
    assert set(counts) == set(PlanSummary.__struct_encode_fields__) - {"pullRequest", "waiting"}
    assert len(counts) == len(Summary.__struct_fields__)
    assert set(ACTIONS) == {action.word for action in Action}


def test_status_does_not_matter() -> None:
    """A retired tag that comes back was there before."""
    retired = row("tag/A", status=Status.RETIRED)
    assert denied("tags: [{name: A, keywords: [x]}]", [retired], "before is not none") == ["tag/A"]
