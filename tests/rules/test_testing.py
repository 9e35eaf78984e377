"""`syncengine test` tries rules, manifests and templates offline, and shows each difference by its path."""

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema

from syncengine.render.schemas import schemas
from tests.manifest.loading import block, write
from tests.support import warm

from .test_applying import RULES as CLOSED_RULES

RULES = (
    CLOSED_RULES
    + """\
  - {name: growth, for: plan, warn: plan.summary.create > 1}
  - {name: named, for: tag, approve: after.path is not none}
"""
)
EXAMPLE = """\
  - name: a closed matter
    recorded: {tags: [{name: A, keywords: [x]}]}
    manifests: {tags: [{name: A, keywords: [x], closedTimestamp: 2026-01-01T00:00:00Z}]}
    expect: {denied: [closed-matters-lose-keywords], summary: {delete: 0}, changes: [tag/A]}
"""


def run(folder: Path, tests: str, *arguments: str, files: dict[str, str] | None = None) -> warm.Ended:
    rules = {"syncengine.yaml": "version: 1\n", "policies/rules.yaml": f"{RULES}tests:\n{tests}" if tests else RULES}
    write(folder, {**rules, **(files or {})})
    environ = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return warm.run(["test", *arguments], folder=folder, environ={**environ, "LANG": "C.UTF-8"})


def failures(folder: Path, tests: str, **more: Any) -> list[dict[str, Any]]:
    """Return the failed tests from the JSON output, which is checked against its schema."""
    done = run(folder, tests, "--format", "json", **more)
    document = json.loads(done.out)
    jsonschema.validate(document, schemas()["test.schema.json"])
    found = [test for test in document["tests"] if test["outcome"] == "failed"]
    assert (document["summary"]["failed"], done.code) == (len(found), 1 if found else 0)
    return found


def test_a_difference_is_shown_by_its_path(tmp_path: Path) -> None:
    """Each difference shows the expected and the actual value; keys that `expect` does not name are ignored."""
    tests = """\
  - name: nothing of the kind
    recorded: {tags: [{name: A, keywords: [x]}]}
    manifests: {tags: [{name: A, keywords: [x, z]}]}
    expect:
      denied: [closed-matters-lose-keywords]
      summary: {create: 1}
      changes: {tag/B: create}
      tags: [{name: A, keywords: [x]}]
"""
    done = run(tmp_path, EXAMPLE + tests)
    assert (done.code, done.out) == (
        1,
        """\
policies/rules.yaml:13: failed: nothing of the kind
    changes.tag/A: "update" is unexpected
    changes.tag/B: "create" is missing
    denied[0]: "closed-matters-lose-keywords" is missing
    summary.create: expected 1, got 0
    tags.A.keywords[1]: "z" is unexpected

1 of 2 tests failed.
""",
    )


GOOD = {
    "nothing recorded": "manifests: {tags: [{name: A}]}\n    expect: {changes: {tag/A: create}, denied: []}",
    "nothing declared": "recorded: {tags: [{name: A}]}\n    manifests: {}\n    expect: {changes: {tag/A: forget}}",
    "no change": "recorded: {tags: [{name: A}]}\n    manifests: {tags: [{name: A}]}\n    expect: {changes: []}",
    "a warning": "manifests: {tags: [{name: A}, {name: B}]}\n    expect: {warned: [growth], summary: {create: 2}}",
    "an approval": "manifests: {tags: [{name: A, path: a}]}\n    expect: {approve: [named], denied: []}",
    "several manifests": "manifests: [{tags: [{name: A}]}, {tags: [{name: B}]}]\n    expect: {changes: [tag/B, tag/A]}",
    "a cascade": "recorded: {tagCategories: [{externalId: c, label: C}], tags: [{name: A, category: c}]}"
    "\n    manifests: {}\n    expect: {changes: {category/c: delete, tag/A: delete}, summary: {cascadedTags: 1}}",
    "lines of removal": "recorded: {tags: [{name: A, keywords: [x]}]}\n    manifests: {removed: [{tag: A, as: retire}]}"
    "\n    expect: {changes: {tag/A: retire}}",
    "a rename": "recorded: {tags: [{name: A}]}\n    manifests: {tags: [{name: B, previously: [A]}]}\n"
    "    expect: {changes: {tag/B: create, tag/A: retire}}",
    "errors": "manifests: {tags: [{name: A, catgory: c}]}\n    expect: {errors: [unknown-field]}",
    "errors across manifests": "manifests: [{tags: [{name: A}]}, {tags: [{name: A}]}]\n"
    "    expect: {errors: [duplicate-resource]}",
    "timestamps in any form": "manifests: {tags: [{name: A, createdTimestamp: 0}]}\n"
    "    expect: {tags: [{name: A, createdTimestamp: 1970-01-01T00:00:00Z}]}",
    "kinds": "manifests: {activityTypes: [{code: a, label: A}], tagCategories: [{externalId: c, label: C}]}\n"
    "    expect: {activityTypes: [{code: a, label: A}], tagCategories: [{externalId: c, label: C}], tags: []}",
}


BLOCK = """\
  - name: this CSV row makes these tags
    manifests:
      generate:
        - forEach: {csv: ../data/matters.csv}
          when: row.state == 'open'
          tags: [{name: "{{ row.id }}", description: "{{ row.title }}", keywords: ["{{ var.prefix }}-{{ row.id }}"]}]
    variables: {prefix: m}
    data:
      data/matters.csv: |
        id,title,state
        1,First,open
        2,Second,closed
    expect:
      tags: [{name: '1', description: First, keywords: [m-1]}]
"""


def test_met_expectations_pass(tmp_path: Path) -> None:
    tests = "".join(f"  - name: {name}\n    {test}\n" for name, test in GOOD.items())
    assert failures(tmp_path, tests + BLOCK) == []


def test_the_projects_own_templates_defaults_and_variables_are_tried(tmp_path: Path) -> None:
    """With other data than the project's, if the test has some; its defaults apply to recorded resources, too."""
    template = "tags:\n{% for row in data('../data/m.csv') %}\n  - name: {{ var.team }}-{{ row.id }}\n{% endfor %}\n"
    files = {
        "syncengine.yaml": "version: 1\nvariables: {team: EU}\ndefaults: {tags: {managedBy: legal}}\n",
        "manifests/block.yaml": block("csv: ../data/m.csv", "name: '{{ row.id }}'"),
        "manifests/text.yaml.j2": template,
        "data/m.csv": "id\nreal\n",
    }
    tests = """\
  - name: both
    manifests: [manifests]
    data: {data/m.csv: "id\\ntest\\n"}
    expect: {changes: [tag/test, tag/EU-test]}
  - name: without data of its own
    manifests: [manifests/block.yaml]
    expect: {changes: [tag/real]}
  - name: defaults
    recorded: {tags: [{name: A}]}
    manifests: {tags: [{name: A}, {name: B}]}
    expect: {changes: [tag/B], tags: [{name: A, managedBy: legal}, {name: B, managedBy: legal}]}
"""
    assert failures(tmp_path, tests, files=files) == []


FAILING = {
    "an unexpected error": (
        "manifests: {tags: [{name: A, catgory: c}]}\n    expect: {denied: []}", "unknown-field 10: a tag has no field",
    ),
    "an error that does not occur": (
        "manifests: {}\n    expect: {errors: [unknown-field]}", "['errors'] ['unknown-field'] []",
    ),
    "a query": (
        "manifests: {generate: [{forEach: {sql: {source: pms, query: SELECT 1}}, tags: [{name: x}]}]}\n"
        "    expect: {tags: []}", "a test is offline",
    ),
    "the environment": (
        "manifests: {generate: [{forEach: {csv: a.csv}, tags: [{name: '{{ env.PATH }}'}]}]}\n"
        "    data: {a.csv: \"a\\n1\\n\"}\n    expect: {tags: []}", "PATH is not set",
    ),
}  # fmt: skip


def test_a_test_that_fails_says_why(tmp_path: Path) -> None:
    """A source that would be queried is an error, and environment variables are not set: tests are offline."""
    settings = "version: 1\nallowEnv: [PATH]\nsources: {pms: {sql: {env: PMS}}}\n"
    tests = "".join(f"  - name: {name}\n    {test}\n" for name, (test, _) in FAILING.items())
    found = failures(tmp_path, tests, files={"syncengine.yaml": settings})
    assert [each["name"] for each in found] == [*FAILING]
    for each, (_, words) in zip(found, FAILING.values(), strict=True):
        told = [f"{d['code']} {d['line']}: {d['message']}" for d in each["diagnostics"]]
        told += [f"{d['path']} {d['expected']} {d['actual']}" for d in each["differences"]]
        assert words in told[0]
    assert found[0]["diagnostics"][0]["file"] == "policies/rules.yaml"
    assert not (tmp_path / ".syncengine").exists()


def test_a_rule_that_fails_fails_the_test(tmp_path: Path) -> None:
    extra = {"policies/bad.yaml": "rules: [{name: bad, for: tag, deny: after.keywords + 1}]"}
    (found,) = failures(tmp_path, EXAMPLE, files=extra)
    assert [(each["code"], each["file"]) for each in found["diagnostics"]] == [("bad-rule", "policies/bad.yaml")]


def test_paths_select_tests(tmp_path: Path) -> None:
    """Paths select tests in files of rules, also outside the project's own; all rules of the project apply."""
    files = {"checks/more.yaml": f"tests:\n{EXAMPLE.replace('a closed matter', 'another')}"}
    paths = ((), ("checks",), ("checks/more.yaml",), ("checks", "policies"))
    counts = ["1 test passed.", "1 test passed.", "1 test passed.", "2 tests passed."]
    assert [run(tmp_path, EXAMPLE, *each, files=files).out.strip() for each in paths] == counts
    assert run(tmp_path, EXAMPLE, "nowhere").code == 64
    done = run(tmp_path, "")
    assert (done.code, done.out.startswith("No tests found")) == (0, True)


def test_an_invalid_file_of_rules_stops_the_run(tmp_path: Path) -> None:
    wrong = "  - {name: t, manifests: {}, expect: {denies: []}}\n"
    done = run(tmp_path, wrong, "--format", "json")
    assert (done.code, [each["code"] for each in json.loads(done.out)["diagnostics"]]) == (8, ["unknown-field"])
    done = run(tmp_path, wrong, "--format", "junit")
    suite = ElementTree.fromstring(done.out)[0]
    assert (done.code, suite.get("errors"), [case.get("name") for case in suite]) == (8, "1", ["unknown-field"])
    assert "error[unknown-field]" in done.err  # which the log of the job shows


def test_junit_has_a_case_for_each_test(tmp_path: Path) -> None:
    tests = EXAMPLE + EXAMPLE.replace("a closed matter", "wrong <one>").replace("delete: 0", "delete: 1")
    done = run(tmp_path, tests, "--format", "junit")
    suite = ElementTree.fromstring(done.out)[0]
    assert (done.code, suite.get("name"), suite.get("tests"), suite.get("failures")) == (1, "syncengine test", "2", "1")
    assert [case.get("name") for case in suite] == ["a closed matter", "wrong <one>"]
    assert suite[1][0].text == "summary.delete: expected 1, got 0"
