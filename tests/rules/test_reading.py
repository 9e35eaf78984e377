"""Files of rules are checked when they are read: every error, also in an expression, has its line."""

from pathlib import Path

import jsonschema
import pytest
import yaml

from syncengine.errors import Problems
from syncengine.project.load import load_project
from syncengine.render.schemas import schemas
from syncengine.rules.read import rule_set, rules_in
from tests.manifest.loading import Files, write

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
