"""The published JSON Schemas are those of the models, and judge files as the readers do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from syncengine.errors import Problems
from syncengine.manifest.lints import LINTS as MANIFEST_LINTS
from syncengine.plan.checks import LINTS as PLANNING_LINTS
from syncengine.project.load import load_project
from syncengine.render.schemas.published import PEOPLE_WRITE, SUFFIX, schemas
from syncengine.service.operations import OPERATIONS
from tests.manifest.loading import problems

FOLDER = Path(__file__).parents[2] / "schemas"
SCHEMAS = schemas()
LINTS = {*MANIFEST_LINTS, *PLANNING_LINTS}


def judge(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(SCHEMAS[name])


WRITTEN = {f"{name}{SUFFIX}" for name in PEOPLE_WRITE}


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_the_published_schema_is_current(name: str) -> None:
    """`syncengine schema manifest project policies -o schemas` writes it anew."""
    assert json.loads((FOLDER / name).read_text(encoding="utf-8")) == SCHEMAS[name]


def test_nothing_else_is_published() -> None:
    """Only what people write against is in the repository; `schema` prints the others."""
    assert {path.name for path in FOLDER.iterdir()} == WRITTEN


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one(name: str) -> None:
    """Of draft 2020-12."""
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])


GOOD = {
    "manifest.schema.json": [
        "{}",
        "~",
        "tags: [{name: 0123, metadata: {A: 1.10}, keywords: [2024], protect: true, visibility: PRIVATE}]",
        "tags: [{name: a, createdTimestamp: 1, closedTimestamp: '2024-05-01T09:00:00Z', previously: [b]}]",
        "tags: [{name: a, createdTimestamp: '2024-05-01 09:00:00.123+02:00', url: '', path: a b}]",
        "tags: [{name: a, createdTimestamp: '2024-02-29T23:59:59Z', closedTimestamp: '2000-02-29t00:00:00-23:59'}]",
        "tags: [{name: a, url: 'https://pms.example.com/a b?c=1#d'}, {name: b, url: 'HTTP://h'}]",
        "activityTypes: [{code: a, label: b}]\ngenerate: [{forEach: {csv: a.csv}, tags: [{name: '{{ row.a }}'}]}]",
        "generate: [{forEach: {csv: a.csv, encoding: Windows-1252}, tags: [{name: '{{ row.a }}'}]}]",
        'tags: [{name: "a b", description: "a\\n\\tb", metadata: {a b: "a\\nb"}, keywords: [a b]}]',
        "defaults: {tags: {category: a}, activityTypes: {label: x}}\nactivityTypes: [{code: a}]",
        "tagCategories: [{externalId: a, label: no}]\nremoved: [{tag: a, as: forget, reason: b}]",
        "generate: [{forEach: {csv: a.csv, delimiter: ';', distinct: a}, as: m, tags: [{name: '{{ m.a }}'}]}]",
        "generate: [{forEach: {csv: a.csv, delimiter: tab, distinct: no}, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, columns: [no, on], distinct: [no, on]}, tags: [{name: a}]}]",
        "generate: [{forEach: {http: {source: a, paging: {page: p, first: 0}}}, tags: [{name: '{{ row.a }}'}]}]",
        "generate: [{forEach: {sql: {source: a, query: SELECT 1}}, when: row.a, tags: [{name: '{{ row.a }}', "
        "protect: '{{ row.b }}', keywords: '{{ row.c }}', visibility: '{{ row.d }}', metadata: {A: '{{ row.e }}'}}]}]",
    ],
    "project.schema.json": [
        "version: 1\npolicy: {diagnostics: {similar-name: off}}\npostedTime: {mode: off}",
        "version: 1\npolicy: {diagnostics: {similar-name: 'off'}}\npostedTime: {mode: false}",
        "version: 1",
        "version: 1\nservice: {baseUrl: sandbox, apiKey: {env: A}, timeout: 30s, concurrency: 8}\nstate: {file: a}",
        "version: 1\npolicy: {maxDeletes: {tags: 3, keywords: 25%}}\nenvironments: {prod: {state: x}}",
        "version: 1\ndefaults: {tags: {visibility: PRIVATE}}",
        "version: 1\nsources: {a: {sql: x.db}, b: {http: 'http://h'}, c: {http: {url: 'http://h', timeout: 3s}}}",
        "version: 1\npostedTime: {mode: webhook, webhook: {callbackUrl: 'https://h', callerKey: {env: K}}}",
        "version: 1\npostedTime: {deliver: [{name: a, when: tag, jsonl: {path: x, json: {a: [1, null, x]}}}]}",
        "version: 1\npostedTime: {deliver: [{name: a, sql: {url: x.db, statement: y}, refuseOn: [409]}], keep: 1d}",
        "version: 1\npostedTime: {lookups: [{name: a, sql: {source: b, query: c}}], duration: {roundUpTo: 0s}}",
        "version: 1\nserve: {every: 5m, listen: '127.0.0.1:8766'}",
        "version: 1\nallowEnv: [TEAM, CI, {name: A_TOKEN, notSecret: true}]",
        "version: 1\napprovals: [3@0123456789ab, 12@0123456789abcdef0123]\n"
        "policy: {maxDeletes: {tags: 100%, keywords: 12.5%, fields: '3'}}",
        "version: 1\nservice: {endpoints: {deleteTag: {path: /tag/delete, method: POST}}, timeout: 0.5s}",
        "version: 1\nservice: {baseUrl: 'https://h:8443/connect/api/'}\nstate: postgresql+psycopg://u@h:5432/db",
        "version: 1\nservice: {baseUrl: 'http://[::1]:80/x'}\nstate: 'sqlite:///state.db'",
        "version: 1\nsources: {a: {sql: 'postgresql://h:5432/db'}, d: {http: {url: {env: A}}}, c: {http: 'https://h?a=b'}}",
        "version: 1\nserve: {listen: '[::1]:65535'}\npolicy: {diagnostics: {similar-name: error, insecure-url: off}}",
    ],
}
BAD = {
    "manifest.schema.json": [
        "tag: []",
        "tags: [{}]",
        "generate: [{tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, json: b.json}, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv}, tags: [{nmae: a}]}]",
        "generate: [{forEach: {csv: a.csv}, tags: [{name: a, visibility: HIDDEN}]}]",
        "tags: [{name: ''}]",
        "tags: [{name: a, metadata: {'': b}}]",
        "tags: [{name: a, createdTimestamp: 99999999999999999999}]",
        "generate: [{forEach: {csv: a.csv}}]",
        "generate: [{forEach: {csv: a.csv}, as: var, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv}, when: '', tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, delimiter: '::'}, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, encoding: punycode}, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, encoding: utf-99}, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, distinct: ''}, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, distinct: []}, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, columns: [a, a]}, tags: [{name: a}]}]",
        "generate: [{forEach: {http: {source: a, paging: {next: a, page: b}}}, tags: [{name: a}]}]",
        "tags: [{name: a, keyword: [b]}]",
        "tags: [{name: a, keywords: b}]",
        "tags: [{name: a, url: null}]",
        "tags: [{name: a, visibility: public}]",
        "tags: [{name: a, category: b, tagCategoryId: c}]",
        "tags: [{name: a, metadata: {A: {B: c}}}]",
        "defaults: {tags: {category: b, tagCategoryId: c}}",
        "generate: [{forEach: {csv: a.csv}, tags: []}]",
        'tags: [{name: a, url: "a\\nb"}]',
        'tags: [{name: "a\\nb"}]',
        'tags: [{name: a, keywords: ["a\\tb"]}]',
        'tags: [{name: a, description: "a\\ab"}]',
        'tags: [{name: a, metadata: {"a\\nb": c}}]',
        'tags: [{name: a, metadata: {b: "a\\eb"}}]',
        "tags: [{name: a, createdTimestamp: 2024-05-01 09:00}]",
        "defaults: {tags: {name: a}}",
        "removed: [{tag: a}]",
        "activityTypes: [{code: a}]",
        "activityTypes: [{code: a, label: ' '}]",
        "defaults: {tags: {visibility: PRIVATE}}\nactivityTypes: [{code: a}]",
        "tags: [{name: a, url: 'javascript:alert(1)'}]",
        "tags: [{name: a, createdTimestamp: '2024-13-01T09:00:00Z'}]",
        "tags: [{name: a, createdTimestamp: '2023-02-29T09:00:00Z'}]",
        "tags: [{name: a, createdTimestamp: '1900-02-29T09:00:00Z'}]",
        "tags: [{name: a, createdTimestamp: '2024-04-31T09:00:00Z'}]",
        "tags: [{name: a, createdTimestamp: '2024-05-01T24:00:00Z'}]",
        "tags: [{name: a, createdTimestamp: '2024-05-01T09:60:00Z'}]",
        "tags: [{name: a, createdTimestamp: '2024-05-01T09:00:60Z'}]",
        "tags: [{name: a, createdTimestamp: '2024-05-01T09:00:00+24:00'}]",
        "tags: [{name: a, createdTimestamp: '0000-05-01T09:00:00Z'}]",
    ],
    "project.schema.json": [
        "{}",
        "version: 2",
        "version: 1\nservice: {apiKey: abc}",
        "version: 1\nservice: {concurrency: 65}",
        "version: 1\nenvironments: {a: {environments: {}}}",
        "version: 1\ndefaults: {tags: {name: a}}",
        "version: 1\nsources: {a: {}}",
        "version: 1\nsources: {a: {sql: x, http: 'http://h'}}",
        "version: 1\npostedTime: {mode: push}",
        "version: 1\npostedTime: {webhook: {callerKey: abc}}",
        "version: 1\npostedTime: {deliver: [{name: a}]}",
        "version: 1\npostedTime: {deliver: [{jsonl: {path: x}}]}",
        "version: 1\npostedTime: {deliver: [{name: a, jsonl: {path: x}, http: {url: 'http://h'}}]}",
        "version: 1\npostedTime: {deliver: [{name: a, sql: {source: b, url: c, statement: d}}]}",
        "version: 1\npostedTime: {deliver: [{name: a, jsonl: {path: x}, refuseOn: [200]}]}",
        "version: 1\npostedTime: {fetchLimit: 0}",
        "version: 1\nserve: {listen: 8766}",
        "version: 1\npolicy: {maxDeletes: {tags: 101%}}",
        "version: 1\npolicy: {maxDeletes: {tags: 100.5%}}",
        "version: 1\npolicy: {maxDeletes: {tags: 2.5}}",
        "version: 1\npolicy: {maxDeletes: {tags: -1}}",
        "version: 1\npolicy: {diagnostics: {same-keywords: off}}",
        "version: 1\nservice: {endpoints: {upsertTagz: {path: /x}}}",
        "version: 1\nservice: {endpoints: {upsertTag: {path: /x}}}",
        "version: 1\nservice: {endpoints: {upsertTags: {path: x}}}",
        "version: 1\nservice: {endpoints: {upsertTags: {path: '/x?y'}}}",
        "version: 1\nservice: {timeout: 0s}",
        "version: 1\nservice: {team: ' '}",
        "version: 1\nservice: {apiKey: {env: 1A}}",
        "version: 1\nservice: {apiKey: {file: ''}}",
        "version: 1\nservice: {apiKey: {}}",
        "version: 1\nservice: {baseUrl: sandbx}",
        "version: 1\nservice: {baseUrl: 'ftp://h'}",
        "version: 1\nservice: {baseUrl: 'https://u:p@h/x'}",
        "version: 1\nservice: {baseUrl: 'https://h/x?y=1'}",
        "version: 1\napprovals: [3]",
        "version: 1\nlinks: {blob: 'javascript:{file}'}",
        "version: 1\napprovals: ['3@']",
        "version: 1\napprovals: ['x@abc']",
        "version: 1\napprovals: ['3@0123456789abcdef012']",
        "version: 1\napprovals: ['3@0123456789AB']",
        "version: 1\nstate: postgresql://u:p@h/db",
        "version: 1\nstate: 'postgresql://h/db?password=p'",
        "version: 1\nstate: ' '",
        "version: 1\nmanifests: ['']",
        "version: 1\nsources: {a: {sql: 'mysql://u:p@h/db'}}",
        "version: 1\nsources: {a: {http: 'https://u:p@h'}}",
        "version: 1\nsources: {a: {http: {url: 'https://h?api_key=x'}}}",
        "version: 1\nsources: {a: {http: {url: 'https://h#x'}}}",
        "version: 1\nsources: {a: {http: {headers: {}}}}",
        "version: 1\npostedTime: {webhook: {callbackUrl: 'ftp://h'}}",
        "version: 1\npostedTime: {webhook: {callbackUrl: 'https://u:p@h'}}",
        "version: 1\npostedTime: {keep: 0d}",
        "version: 1\nserve: {listen: '127.0.0.1:65536'}",
        "version: 1\nallowEnv: [A_TOKEN]",
        "version: 1\nallowEnv: [my_api_key]",
    ],
}


def cases(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in table.items() for text in texts]


@pytest.mark.parametrize(("name", "text"), cases(GOOD))
def test_good_files_are_good_by_the_schema(name: str, text: str) -> None:
    """Strings that YAML 1.1 would take for numbers are texts for us, so the schema lets them pass."""
    judge(name).validate(yaml.safe_load(text))


@pytest.mark.parametrize("text", GOOD["project.schema.json"])
def test_good_project_files_are_good_by_the_readers(text: str, tmp_path: Path) -> None:
    """Schema and readers come from the same models."""
    (tmp_path / "syncengine.yaml").write_text(text + "\nsources: {b: {sql: b.db}}\n" * ("source: b" in text))
    load_project(folder=tmp_path, environ={}, operations=OPERATIONS, lints=LINTS)


MISSING = {"bad-source", "unknown-category"}
"""What is wrong with a manifest whose surroundings are not there."""


@pytest.mark.parametrize("text", GOOD["manifest.schema.json"])
def test_good_manifests_are_good_by_the_readers(text: str, tmp_path: Path) -> None:
    """But for what they refer to."""
    assert {d.code for d in problems(tmp_path, {"manifests/m.yaml": text})} <= MISSING


@pytest.mark.parametrize("text", BAD["manifest.schema.json"])
def test_bad_manifests_are_bad_by_the_readers(text: str, tmp_path: Path) -> None:
    """One meaning for both."""
    assert {d.code for d in problems(tmp_path, {"manifests/m.yaml": text})} - MISSING


@pytest.mark.parametrize("path", sorted((FOLDER.parent / "manifests").rglob("*.yaml")), ids=lambda path: path.name)
def test_our_examples_are_good_by_the_schema(path: Path) -> None:
    """As an editor reads them, those that generate included."""
    for document in yaml.load_all(path.read_text(encoding="utf-8"), yaml.BaseLoader):
        judge("manifest.schema.json").validate(_typed(document))


def _typed(node: object) -> object:
    """Flags as flags: in YAML 1.2 nothing else is one."""
    match node:
        case dict():
            return {key: _typed(value) for key, value in node.items()}
        case list():
            return [_typed(item) for item in node]
        case "true" | "false":
            return node == "true"
        case _:
            return node


def test_every_field_of_a_block_is_described_and_may_be_a_template() -> None:
    """So that editors complete in blocks what they complete outside."""
    definitions = SCHEMAS["manifest.schema.json"]["$defs"]
    for name in ("Tag", "TagCategory", "ActivityType"):
        outside, inside = definitions[name]["properties"], definitions[f"{name}Template"]["properties"]
        assert inside.keys() == outside.keys()
        for field, shape in inside.items():
            assert shape.get("description") == outside[field].get("description")
            jsonschema.Draft202012Validator({"$defs": definitions, **shape}).validate("{{ row.a }}")


DESCRIBED = ("manifest", "project", "plan", "report", "diagnostics")


@pytest.mark.parametrize("name", [f"{name}.schema.json" for name in DESCRIBED])
def test_every_field_is_described(name: str) -> None:
    """By itself or by what it refers to, so that an editor, or whoever reads our output, is told."""
    schema = SCHEMAS[name]
    definitions = schema["$defs"]
    bare = [
        f"{title}.{field}"
        for title, shape in {"": schema, **definitions}.items()
        for field, said in shape.get("properties", {}).items()
        if not said.get("description") and not definitions[said.get("$ref", "/").rpartition("/")[2]].get("description")
    ]
    assert bare == []


KINDS = "`csv`, `json`, `jsonl`, `yaml`, `sql` or `http`"
ALTERNATIVES = [
    (
        "tags: [{name: a, category: b, tagCategoryId: c}]",
        ("Tag", "dependentSchemas", "category"),
        "Set only one of `category` or `tagCategoryId`.",
    ),
    (
        "generate: [{forEach: {csv: a, json: b}, tags: [{name: x}]}]",
        ("ForEach", "dependentSchemas", "csv"),
        f"Set only one of {KINDS}.",
    ),
    (
        "generate: [{forEach: {encoding: utf-8}, tags: [{name: x}]}]",
        ("ForEach", "anyOf", 0),
        f"Set one of {KINDS}.",
    ),
]


@pytest.mark.parametrize(("text", "part", "words"), ALTERNATIVES)
def test_alternatives_have_words(text: str, part: tuple[str, str, str | int], words: str) -> None:
    """In the one part of the schema that refuses, as their description."""
    (error,) = judge("manifest.schema.json").iter_errors(yaml.safe_load(text))
    definition, keyword, which = part
    assert keyword in error.absolute_schema_path
    assert SCHEMAS["manifest.schema.json"]["$defs"][definition][keyword][which]["description"] == words


@pytest.mark.parametrize("text", BAD["project.schema.json"])
def test_bad_project_files_are_bad_by_the_readers(text: str, tmp_path: Path) -> None:
    """Schema and readers come from the same models; what stands in a manifest is read with the manifests."""
    (tmp_path / "syncengine.yaml").write_text(text)
    if "defaults" in text:
        return
    with pytest.raises(Problems):
        load_project(folder=tmp_path, environ={}, operations=OPERATIONS, lints=LINTS)


@pytest.mark.parametrize(("name", "text"), cases(BAD))
def test_bad_files_are_bad_by_the_schema(name: str, text: str) -> None:
    """An editor shows what `validate` would say."""
    assert not judge(name).is_valid(yaml.safe_load(text))


MACHINE: dict[str, dict[str, Any]] = {
    "diagnostics.schema.json": {
        "format": "syncengine.diagnostics/v1",
        "diagnostics": [
            {"severity": "error", "code": "x", "message": "y", "file": "m", "line": 1, "column": 1, "address": None}
        ],
    },
    "report.schema.json": {
        "format": "syncengine.report/v1",
        "plan": "p",
        "status": "incomplete",
        "summary": {"applied": 0, "failed": 1, "skipped": 0, "unknown": 0, "requests": 1, "retries": 0},
        "session": {"id": None, "outcome": "none", "reason": None},
        "results": [
            {
                "address": "tag/a",
                "action": "update",
                "outcome": "failed",
                "source": {"file": "m", "line": 12},
                "error": {"operation": "upsertTags", "message": "no", "index": 7, "status": 200},
                "more": "may be added",
            }
        ],
        "diagnostics": [],
    },
}


@pytest.mark.parametrize("name", MACHINE)
def test_what_machines_read_is_described(name: str) -> None:
    """The examples of docs/formats.md, and what may be added to them; a missing key is missed."""
    judge(name).validate(MACHINE[name])
    without = {key: value for key, value in MACHINE[name].items() if key != "diagnostics"}
    assert not judge(name).is_valid(without)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.name)
def test_patterns_escape_nothing_that_ecma_validators_do_not_know(path: Path) -> None:
    """They read patterns in Unicode mode (ECMA-262), where only what means something may be escaped."""
    patterns = re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', path.read_text(encoding="utf-8"))
    escaped = {name for pattern in patterns for name in re.findall(r"\\(.)", json.loads(pattern))}
    assert escaped <= set("dDsSwWbBnrtfvu^$\\.*+?()[]{}|/-")


KEYWORDS = frozenset(
    "$schema $defs $ref title description default examples enum const type anyOf allOf not if else properties required "  # noqa: SIM905 - words
    "additionalProperties propertyNames dependentSchemas dependentRequired items minItems maxItems uniqueItems "
    "minLength maxLength pattern minimum maximum minProperties maxProperties prefixItems format deprecated".split()
)
"""Of draft 2020-12, as far as we use it: a strict validator knows no other."""
NAMES = frozenset({"properties", "$defs", "dependentSchemas", "dependentRequired"})
"""Keywords below which stand names of ours."""
DATA = frozenset({"enum", "const", "default", "examples", "required", "type"})


def parts(schema: Any, is_schema: bool = True) -> Iterator[dict[str, Any]]:
    """All schemas in a schema."""
    if isinstance(schema, list):
        for item in schema:
            yield from parts(item)
    elif isinstance(schema, dict):
        if is_schema:
            yield schema
        for name, inner in schema.items():
            if not is_schema or name not in DATA:
                yield from parts(inner, not (is_schema and name in NAMES))


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_for_strict_validators(name: str) -> None:
    """They refuse keywords that they do not know, a list of types (but for null), and names that are not described."""
    for part in parts(SCHEMAS[name]):
        assert part.keys() <= KEYWORDS
        types = part.get("type", [])
        assert isinstance(types, str) or len(set(types) - {"null"}) <= 1
        assert set(part.get("required", ())) <= part.get("properties", {}).keys()
        if "pattern" in part:
            assert part["type"] == "string"


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_cites_nothing_that_its_readers_do_not_have(name: str) -> None:
    """Whoever reads it in an editor has neither our designs nor our sources."""
    said = [part["description"] for part in parts(SCHEMAS[name]) if "description" in part]
    assert [text for text in said if re.search(r"\.md|§|docs/", text)] == []
