"""Files of rules are checked when they are read; then they judge each change of a plan, before and after."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from msgspec.structs import replace

from syncengine.document.validation import names_of
from syncengine.errors import Problems, Severity
from syncengine.manifest.schema import MODELS
from syncengine.plan.build import plan
from syncengine.plan.diff import Action
from syncengine.plan.model import Plan, Summary
from syncengine.plan.request import Scope
from syncengine.project.load import load_project
from syncengine.render.formats import PlanSummary
from syncengine.render.schemas import schemas
from syncengine.resource import Kind, Recorded, Removal, Status
from syncengine.rules.judge import LONGEST, MOST
from syncengine.rules.model import ACTIONS, EMPTY, RuleSet
from syncengine.rules.read import ExpectedSummary, rule_set, rules_in
from tests.applying.bench import Bench
from tests.manifest.loading import Files, counted, write
from tests.planning.estate import How, ask, gone, row
from tests.planning.test_cached_plans import beginning, bench, sandbox, settle

__all__ = ["bench", "sandbox"]


def rules(*lines: str) -> RuleSet:
    """Read rules that are given as the contents of YAML flow mappings, without the braces."""
    text = "rules:\n" + "".join(f"  - {{{line}}}\n" for line in lines)
    return rules_in((("policies/all.yaml", text.encode()),))


def judged(manifests: str, recorded: Iterable[Recorded], *lines: str, **how: Any) -> Plan:
    asked = How(**how)
    options = replace(asked.options, rule_set=rules(*lines))
    return plan(ask(manifests), {row.key: row for row in recorded}, options, asked.basis)


def denied(manifests: str, recorded: Iterable[Recorded], expression: str, kind: str = "tag", **how: Any) -> list[str]:
    """Return the addresses that a rule with this expression denies, with `plan` for a denial without an address."""
    made = judged(manifests, recorded, f'name: r, for: {kind}, deny: "{expression}"', **how)
    return [d.address or "plan" for d in made.diagnostics if d.code == "policy-denied"]


A, B = row("tag/A", "x"), row("tag/B", "y")
ONLY_B = "tags: [{name: B, keywords: [y]}]"


SEEN = {
    "before of a create is none": ("", "before is none and after is not none"),
    "a missing resource is false and equals none": ("", "not before and before == none"),
    "a field of a missing resource is none": ("", "before.category is none"),
    "a list of a missing resource is empty": ("", "'x' not in before.keywords"),
    "a field that is not declared": ("", "after.description is none"),
    "metadata that is not there": ("metadata: {a: b}", "after.metadata.c is none"),
    "metadata of any name": ("metadata: {a b: c}", "after.metadata['a b'] == 'c'"),
    "metadata called like a method": ("metadata: {items: c}", "after.metadata.items == 'c'"),
    "keywords without the name": ("keywords: [k]", "after.keywords == ['k']"),
    "keywords with an excluded name": (
        "keywords: [C], excludeTagNameKeyword: true", "after.keywords == ['C'] and after.excludeTagNameKeyword",
    ),
    "the first instant of 1970 is not none": ("closedTimestamp: 0", "after.closedTimestamp is not none"),
    "an instant is ISO text": ("closedTimestamp: 1704067200000", "after.closedTimestamp == '2024-01-01T00:00:00Z'"),
    "a list": ("assigneeExternalIds: [u]", "after.assigneeExternalIds == ['u']"),
    "protection": ("protect: true", "after.protect and not before.protect"),
    "a source": ("", "source.file == 'manifests/all.yaml' and source.line == 1"),
    "no row of data": ("", "source.data is none and source.data.row is none"),
    "a renamed tag has its former name before": ("previously: [A]", "before.name == 'A' and after.previously == ['A']"),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "expression"), SEEN.values(), ids=SEEN)
def test_what_a_rule_sees(fields: str, expression: str) -> None:
    recorded = [A] if "previously" in fields else []
    assert denied(f"tags: [{{name: C, {fields}}}]", recorded, expression) == ["tag/C"]


@pytest.mark.parametrize("how", Removal)
def test_a_removed_resource_has_nothing_after(how: Removal) -> None:
    expression = f"action == '{how.value}' and before.keywords == ['x'] and after is none"
    found = denied(ONLY_B, [A, B], expression, tag_removal=how, deletes_tags=True)
    assert found == ["tag/A"]


UNSURE = row("tag/C", visibility="PRIVATE", doubtful=True, confirmed=False)
"""A call without a known outcome may have created it, so a second attempt must not open a private tag."""
MEMBERS = [row("category/c", label="C"), row("tag/M", category="c"), row("tag/N", category="c")]
RENAMED = "tagCategories: [{externalId: new, label: C, previously: [old]}]"
JUDGED: dict[str, tuple[str, list[Recorded], str, list[str]]] = {
    "a deleted tag has nothing before": ("tags: [{name: C}]", [gone("tag/C")], "before is none", ["tag/C"]),
    "a tag that may exist has a before": (
        "tags: [{name: C, visibility: PUBLIC}]", [UNSURE],
        "before.visibility == 'PRIVATE' and after.visibility != 'PRIVATE'", ["tag/C"],
    ),
    "a retired tag has a before": (
        "tags: [{name: A, keywords: [x]}]", [row("tag/A", status=Status.RETIRED)], "before is not none", ["tag/A"],
    ),
    "a renamed category has its former name before": (
        RENAMED, [row("category/old", label="C")],
        "before.externalId == 'old' and after.externalId == 'new' and action == 'update'", ["category/new"],
    ),
    "a category that is deleted": ("{}", MEMBERS, "action == 'delete' and before.externalId == 'c'", ["category/c"]),
    "tags that go with it": ("{}", MEMBERS, "action == 'delete' and before.category == 'c'", ["tag/M", "tag/N"]),
    "what is unchanged is not judged": ("tags: [{name: A, keywords: [x]}, {name: C}]", [A], "true", ["tag/C"]),
    "what is true of none denies a removal": (ONLY_B, [A, B], "not after.description", ["tag/A"]),
    "what is asked of a resource denies none": (ONLY_B, [A, B], "after and not after.description", []),
}  # fmt: skip


@pytest.mark.parametrize(("manifests", "recorded", "expression", "addresses"), JUDGED.values(), ids=JUDGED)
def test_what_is_judged(manifests: str, recorded: list[Recorded], expression: str, addresses: list[str]) -> None:
    kind = "category" if "externalId" in expression else "tag"
    assert denied(manifests, recorded, expression, kind) == addresses


def test_only_selected_changes_are_judged() -> None:
    manifests = "tags: [{name: A, keywords: [new]}, {name: B, keywords: [new]}]"
    assert denied(manifests, [A, B], "'new' in after.keywords", scope=Scope(targets=("tag/A",))) == ["tag/A"]
    assert denied(manifests, [A, B], "plan.summary.update == 1", "plan", scope=Scope(targets=("tag/A",))) == ["plan"]


def test_a_rule_for_a_plan_is_judged_once() -> None:
    """A plan without changes is judged too; the finding is at the rule's own line."""
    plan = judged("tags: [{name: A, keywords: [x]}]", [A], "name: p, for: plan, deny: plan.summary.unchanged == 1")
    (found,) = (d for d in plan.diagnostics if d.code == "policy-denied")
    assert (found.file, found.line, found.address, plan.changes) == ("policies/all.yaml", 2, None, ())


COUNTING = """\
rules:
  - {name: counts, for: plan, warn: true, message: "{{ plan.summary.unchanged }} {{ plan.summary.update }}"}
  - {name: none, for: plan, deny: plan.summary.create + plan.summary.update == 0}
"""


def test_new_rules_judge_a_plan_that_is_made_with_a_cache(bench: Bench) -> None:
    """They see the counts of all resources, although no manifest changed (docs/planning.md 2.8)."""
    twice = settle(bench, beginning())
    write(bench.folder, {"policies/all.yaml": COUNTING})
    planned = twice.same()
    assert isinstance(planned, Plan)
    found = [d.message.partition(" (rule")[0] for d in planned.diagnostics if d.rule]
    assert found == [f"{planned.summary.unchanged} 0", "this plan as a whole"]
    assert planned.summary.unchanged > 3


def test_a_warning_does_not_deny_the_plan() -> None:
    """A rule without a message has a default one."""
    plan = judged("tags: [{name: C}]", [], "name: w, for: tag, warn: action == 'create'")
    (found,) = (d for d in plan.diagnostics if d.code == "policy-warning")
    assert (found.severity, found.rule, plan.is_denied) == (Severity.WARNING, "w", False)
    assert found.message == "tag/C would be created (rule w, policies/all.yaml:2)"


def test_many_denials_of_one_rule_are_counted() -> None:
    manifests = f"tags: [{', '.join(f'{{name: T-{n}}}' for n in range(MOST + 50))}]"
    plan = judged(manifests, [], "name: d, for: tag, deny: true")
    assert len(plan.diagnostics) == MOST + 1
    assert plan.diagnostics[-1].message == "50 more changes (rule d, policies/all.yaml:2)"


def test_a_message_is_one_line_of_limited_length() -> None:
    """Line breaks in the data become spaces, and long text is cut."""
    line = 'name: d, for: tag, deny: true, message: "{{ after.description }}"'
    plan = judged(f'tags: [{{name: C, description: "a\\nb {"x" * 5000}"}}]', [], line)
    (found,) = (d for d in plan.diagnostics if d.code == "policy-denied")
    assert found.message.startswith("a b xxx")
    assert len(found.message) < LONGEST + 100


FAILING = {
    "text": ("after.description", "rule-text"),
    "a sum of unlike things": ("after.keywords + 1", "bad-rule"),
    "an endless loop": ("(range(99999) | list | map('string') | join) * 99 == ''", "bad-rule"),
    "a large value": ("([1] * 99999999) == []", "bad-rule"),
    "a large number": ("2 ** 99999999 > 1", "bad-rule"),
    "a generator": ("after.keywords | select('equalto', 'x')", "bad-rule"),
    "a missing index": ("after.keywords[3] == 'x'", "bad-rule"),
}


@pytest.mark.parametrize(("expression", "code"), FAILING.values(), ids=FAILING)
def test_a_rule_that_fails_stops_the_plan(expression: str, code: str) -> None:
    with pytest.raises(Problems) as problems:
        denied("tags: [{name: A, description: b}, {name: B, description: c}]", [], expression)
    (found,) = problems.value.found
    assert (found.code, "tag/A" in found.message, "rule r" in found.message) == (code, True, True)


def test_each_rule_that_fails_is_reported_once() -> None:
    lines = (
        "name: one, for: tag, deny: after.keywords + 1",
        "name: good, for: tag, deny: action == 'update'",
        "name: two, for: tag, deny: \"after.name == 'B' and after.name | length + after.keywords\"",
        'name: three, for: tag, deny: true, message: "{{ after.keywords + 1 }}"',
    )
    with pytest.raises(Problems) as problems:
        judged("tags: [{name: A}, {name: B}]", [], *lines)
    assert [(each.line, each.address) for each in problems.value.found] == [(2, "tag/A"), (4, "tag/B"), (5, "tag/A")]


def test_the_cost_of_rules_grows_with_the_changes_only() -> None:
    """Rules cost nothing for unchanged resources, and an expression is compiled once."""
    lines = tuple(f"name: r{n}, for: tag, warn: after.category == '{n}'" for n in range(3))

    def calls(unchanged: int, changed: int) -> int:
        rows: list[Recorded] = [row(f"tag/U-{n}") for n in range(unchanged)]
        names = [f"U-{n}" for n in range(unchanged)] + [f"C-{n}" for n in range(changed)]
        manifests = f"tags: [{', '.join(f'{{name: {name}}}' for name in names)}]"
        with_rules, _ = counted(lambda: judged(manifests, rows, *lines))
        without, _ = counted(lambda: judged(manifests, rows, "name: p, for: plan, deny: false"))
        return with_rules - without

    calls(0, 1)
    few = calls(10, 10)
    assert calls(100, 10) < few * 1.2
    assert calls(10, 100) < few * 11


def test_a_rule_can_use_every_field_count_and_action() -> None:
    """Rules name fields as manifests do, and counts and actions as the JSON of a plan does."""
    for kind in Kind:
        assert EMPTY[kind].keys() == names_of(MODELS[kind]).keys()
    counts = names_of(ExpectedSummary)
    assert set(counts) == set(PlanSummary.__struct_encode_fields__) - {"pullRequest", "waiting"}
    assert len(counts) == len(Summary.__struct_fields__)
    assert set(ACTIONS) == {action.word for action in Action}


# --- reading files of rules


RULE = "name: a, for: tag"
SCHEMA = jsonschema.Draft202012Validator(schemas()["policies.schema.json"])


def found(text: str) -> list[tuple[str, int | None]]:
    try:
        rules_in((("policies/a.yaml", text.encode()),))
    except Problems as problems:
        assert {each.file for each in problems.found} == {"policies/a.yaml"}
        return [(each.code, each.line) for each in problems.found]
    return []


GOOD = {
    "empty": "",
    "no rules": "rules: []\ntests: []",
    "bare": f"rules: [{{{RULE}, deny: after.closedTimestamp and after.keywords}}]",
    "in braces": f"rules: [{{{RULE}, warn: \"{{{{ action == 'create' }}}}\"}}]",
    "of the plan": "rules: [{name: a, for: plan, deny: plan.summary.kept > 3, message: 'no: {{ plan.summary.kept }}'}]",
    "approve": f"rules: [{{{RULE}, approve: true, by: ['@leads', '@partners']}}]",
    "metadata of any name": f"rules: [{{{RULE}, deny: after.metadata.client is none and source.data.row > 3}}]",
    "a loop's own name": f"rules: [{{{RULE}, deny: \"'x' in (after.keywords | map('lower') | list)\"}}]",
    "a test": "tests: [{name: t, manifests: {tags: [{name: A}]}, expect: {changes: [tag/A], tags: [{name: A}]}}]",
    "tests of paths": "tests: [{name: t, manifests: [a.yaml, {}], expect: {errors: [], changes: {tag/A: retire}}}]",
    "all of a test": "tests: [{name: t, recorded: {}, manifests: {}, data: {a.csv: 'a'}, variables: {b: c}, "
    "expect: {denied: [], warned: [], approve: [], summary: {keywordAdds: 1}, tagCategories: [], activityTypes: []}}]",
}

UNSAFE = ("env.SYNCENGINE_API_KEY", "var.secret", "data('syncengine.yaml')", "config", "action.__class__")
"""What could show secrets, which a rule cannot reach."""
BAD = {
    **{name: (f'rules:\n- {{{RULE}, deny: true, message: "{{{{ {name} }}}}"}}', "unknown-name", 2) for name in UNSAFE},
    "unknown section": ("rule: []", "unknown-section", 1),
    "a list": ("- a", "wrong-type", 1),
    "no list": ("rules: {}", "wrong-type", 1),
    "no mapping": ("rules:\n- a", "wrong-type", 2),
    "unknown field": (f"rules:\n- {{{RULE}, deny: true, mesage: b}}", "unknown-field", 2),
    "no name": ("rules:\n- {for: tag, deny: true}", "missing-field", 2),
    "bad name": ("rules:\n- {name: a b, for: tag, deny: true}", "bad-value", 2),
    "unknown kind": ("rules:\n- {name: a, for: tags, deny: true}", "bad-value", 2),
    "none of three": (f"rules:\n- {{{RULE}}}", "bad-value", 2),
    "two of three": (f"rules:\n- {{{RULE}, deny: true, warn: true}}", "bad-value", 2),
    "by without approve": (f"rules:\n- {{{RULE}, deny: true, by: [a]}}", "bad-value", 2),
    "twice": (f"rules:\n- {{{RULE}, deny: true}}\n- {{{RULE}, warn: true}}", "duplicate-rule", 3),
    "twice on a line": (f"rules: [{{{RULE}, deny: true}}, {{{RULE}, warn: true}}]", "duplicate-rule", 1),
    "unknown variable": ("rules:\n- name: a\n  for: tag\n  deny: befor.name == 'x'", "unknown-name", 4),
    "no variables of templates": (f"rules:\n- {{{RULE}, deny: env.HOME is none}}", "unknown-name", 2),
    "unknown field of a tag": (f"rules:\n- {{{RULE}, deny: after.categroy == 'x'}}", "unknown-name", 2),
    "a field of another kind": ("rules:\n- {name: a, for: category, deny: after.closedTimestamp}", "unknown-name", 2),
    "no resource in a plan": ("rules:\n- {name: a, for: plan, deny: after.name == 'x'}", "unknown-name", 2),
    "unknown count": ("rules:\n- {name: a, for: plan, deny: plan.summary.deletes > 1}", "unknown-name", 2),
    "text": (f"rules:\n- {{{RULE}, deny: \"'x'\"}}", "rule-text", 2),
    "a statement": (f"rules:\n- {{{RULE}, deny: '{{% if 1 %}}{{% endif %}}'}}", "bad-template", 2),
    "text around it": (f"rules:\n- {{{RULE}, deny: 'x {{{{ true }}}}'}}", "bad-template", 2),
    "no expression": (f"rules:\n- {{{RULE}, deny: 'after.name ='}}", "bad-template", 2),
    "in the second line": ("rules:\n- name: a\n  for: tag\n  deny: |\n    true and\n    befor", "unknown-name", 6),
    "unknown in a message": (f"rules:\n- {{{RULE}, deny: true, message: '{{{{ adress }}}}'}}", "unknown-name", 2),
    "an unknown filter": (f"rules:\n- {{{RULE}, deny: after.name | uper == 'X'}}", "bad-template", 2),

    "unknown field, of a test": ("tests:\n- {name: a, manifests: {}, expect: {denied: []}, g: {}}", "unknown-field", 2),
    "unknown expectation": ("tests:\n- {name: a, manifests: {}, expect: {denies: []}}", "unknown-field", 2),
    "no expectation": ("tests:\n- {name: a, manifests: {}, expect: {}}", "missing-field", 2),
    "no manifests": ("tests:\n- {name: a, expect: {denied: []}}", "missing-field", 2),
    "unknown summary": ("tests:\n- {name: a, manifests: {}, expect: {summary: {deletes: 1}}}", "unknown-field", 2),
    "no address": ("tests:\n- {name: a, manifests: {}, expect: {changes: [A]}}", "bad-value", 2),
    "no action": ("tests:\n- {name: a, manifests: {}, expect: {changes: {tag/A: go}}}", "bad-value", 2),
    "a test twice": (
        "tests:\n- {name: a, manifests: {}, expect: {denied: []}}\n- {name: a, manifests: {}, expect: {denied: []}}",
        "duplicate-test", 3,
    ),
}  # fmt: skip
"""A schema does not compare items with each other."""


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_a_valid_file_is_accepted(text: str) -> None:
    assert found(text) == []
    SCHEMA.validate(yaml.safe_load(text))


@pytest.mark.parametrize(("text", "code", "line"), BAD.values(), ids=BAD)
def test_an_invalid_file_has_one_error_at_its_line(text: str, code: str, line: int) -> None:
    assert found(text) == [(code, line)]


SHAPES = [
    name
    for name, (_, code, _) in BAD.items()
    if code in ("unknown-section", "wrong-type", "unknown-field", "missing-field")
]


@pytest.mark.parametrize("name", [*SHAPES, "none of three", "two of three", "unknown kind", "bad name", "no action"])
def test_the_schema_rejects_wrong_structure(name: str) -> None:
    assert not SCHEMA.is_valid(yaml.safe_load(BAD[name][0]))


def test_all_errors_are_reported_at_once() -> None:
    text = f"rules:\n- {{{RULE}, deny: befor}}\n- {{name: b, for: tag, dany: true, warn: true}}\n- {{name: c, for: x}}"
    assert [line for _, line in found(text)][:3] == [2, 3, 4]


def rules_of(folder: Path, files: Files, environment: str | None = None) -> list[str]:
    """The name and place of each rule of a project with these files."""
    write(folder, {"manifests/a.yaml": "{}", **files})
    found = rule_set(load_project(folder=folder, environment=environment, environ={})).rules
    return [f"{rule.name} {rule.place}" for rule in found]


def rule(name: str) -> str:
    return f"rules: [{{name: {name}, for: tag, deny: false}}]"


def test_rules_are_read_from_the_default_folder(tmp_path: Path) -> None:
    """YAML and JSON files at any depth of `policies/` are read in the order of their names, except hidden files."""
    assert rules_of(tmp_path, {}) == []
    files = {
        "policies/b.yml": rule("b"),
        "policies/a/deep/a.yaml": rule("a"),
        "policies/c.json": '{"rules": [{"name": "c", "for": "tag", "deny": "false"}]}',
        "policies/.d.yaml": rule("d"),
        "policies/README.md": "about",
    }
    read = ["a policies/a/deep/a.yaml:1", "b policies/b.yml:1", "c policies/c.json:1"]
    assert rules_of(tmp_path, files) == read


def test_the_project_file_lists_other_rules(tmp_path: Path) -> None:
    """`policies:` lists files, folders and inline rules instead of the default folder; an environment lists its own."""
    policies = "policies:\n  - one.yaml\n  - rules\n  - rules:\n      - {name: here, for: plan, warn: 1 > 2}\n"
    live = "environments: {live: {policies: [policies]}}\n"
    files = {"one.yaml": rule("one"), "rules/two.yaml": rule("two"), "policies/no.yaml": rule("no")}
    files["syncengine.yaml"] = f"version: 1\n{policies}{live}"
    assert rules_of(tmp_path, files) == ["one one.yaml:1", "two rules/two.yaml:1", "here syncengine.yaml:6"]
    assert rules_of(tmp_path, {}, "live") == ["no policies/no.yaml:1"]
    assert rules_of(tmp_path, {"syncengine.yaml": "version: 1\npolicies: []\n"}) == []


MISSING = {
    "no file": ("policies: [nothing.yaml]", "missing-policies"),
    "another type": ("policies: [README.md]", "not-a-policy"),
    "a template": ("policies: [a.yaml.j2]", "not-a-policy"),
    "outside": ("policies: [link.yaml]", "outside-project"),
    "a secret": ("policies: [key.yaml]\nservice: {apiKey: {file: key.yaml}}", "secret-file"),
}


@pytest.mark.parametrize(("setting", "code"), MISSING.values(), ids=MISSING)
def test_a_policy_that_cannot_be_read_is_an_error(tmp_path: Path, setting: str, code: str) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "other.yaml").write_text(rule("x"))
    (tmp_path / "project" / "link.yaml").symlink_to(tmp_path / "other.yaml")
    files = {
        "README.md": "x",
        "a.yaml.j2": rule("x"),
        "key.yaml": rule("x"),
        "syncengine.yaml": f"version: 1\n{setting}\n",
    }
    with pytest.raises(Problems) as problems:
        rules_of(tmp_path / "project", files)
    assert [each.code for each in problems.value.found] == [code]
