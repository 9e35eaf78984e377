"""The published JSON Schemas match the models, and accept and refuse the same files as the readers."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from syncengine.errors import Problems
from syncengine.manifest.lints import LINTS as MANIFEST_LINTS
from syncengine.plan.checks import LINTS as PLANNING_LINTS
from syncengine.project.load import load_project
from syncengine.render.schemas import SUFFIX, schemas
from syncengine.service.operations import OPERATIONS
from tests.manifest.bad import BAD as BAD_MANIFESTS
from tests.manifest.loading import problems

from .test_project import BAD as BAD_PROJECTS

FOLDER = Path(__file__).parents[2] / "schemas"
SCHEMAS = schemas()
LINTS = {*MANIFEST_LINTS, *PLANNING_LINTS}


def judge(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(SCHEMAS[name])


def test_the_published_schemas_are_current_and_all_are_valid() -> None:
    """If this fails, run `syncengine schema manifest project policies -o schemas`.

    The repository has only the schemas of files that people write; `syncengine schema` prints the others.
    """
    published = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.iterdir()}
    assert published.keys() == {f"{name}{SUFFIX}" for name in ("manifest", "project", "policies")}
    assert [name for name in published if published[name] != SCHEMAS[name]] == []
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)


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
        "version: 1\nsources: {b: {sql: b.db}}\n"
        "postedTime: {lookups: [{name: a, sql: {source: b, query: c}}], duration: {roundUpTo: 0s}}",
        "version: 1\nserve: {every: 5m, listen: '127.0.0.1:8766'}",
        "version: 1\nallowEnv: [TEAM, CI, {name: A_TOKEN, notSecret: true}]",
        "version: 1\napprovals: [3@0123456789ab, 12@0123456789abcdef0123]\n"
        "policy: {maxDeletes: {tags: 100%, keywords: 12.5%, fields: '3'}}",
        "version: 1\nservice: {endpoints: {deleteTag: {path: /tag/delete, method: POST}}, timeout: 0.5s}",
        "version: 1\nservice: {baseUrl: 'https://h:8443/connect/api/'}\nstate: postgresql+psycopg://u@h:5432/db",
        "version: 1\nstate: 'git+ref://git@h:a/b/refs/syncengine/x'\n"
        "quarantine: [{address: tag/a, reason: b, until: '2024-02-29'}, {address: tag/b, reason: c, until: "
        "'2024-02-29T09:00:00Z'}]",
        "version: 1\nservice: {baseUrl: 'http://[::1]:80/x'}\nstate: 'sqlite:///state.db'",
        "version: 1\nsources: {a: {sql: 'postgresql://h:5432/db'}, d: {http: {url: {env: A}}}, c: {http: 'https://h?a=b'}}",
        "version: 1\nserve: {listen: '[::1]:65535'}\npolicy: {diagnostics: {similar-name: error, insecure-url: off}}",
    ],
}
SHAPES = {
    *("wrong-type", "bad-value", "null-value", "missing-field", "unknown-field", "unknown-section"),
    *("control-character", "empty-name", "empty-value", "surrounding-blanks", "conflicting-fields"),
}
"""The errors of manifests that a schema can find."""
ONLY_READ = {
    *("a line feed at the end of the URL", "no port", "a secret for templates"),
    *("two documents", "errors and syntax", "yes for true"),
    *("NUL in the file", "line separator", "byte order mark in the middle"),
    *(
        f"a year that calendars do not have: '{year}'"
        for year in ("0000-12-31T00:00:00Z", "9999-12-31T23:59:59-00:01", "0001-01-01T00:00:00+00:01")
    ),
}
"""The bad files that only the reader refuses."""
READ_BADLY = {
    "manifest.schema.json": [
        text
        for name, (text, places, _) in BAD_MANIFESTS.items()
        if name not in ONLY_READ and not SHAPES.isdisjoint(re.findall(r"[a-z-]+", places))
    ],
    "project.schema.json": [text for name, (text, _) in BAD_PROJECTS.items() if name not in ONLY_READ],
}
"""What the readers' own tests know to be wrong."""
BAD = {
    "manifest.schema.json": [
        "generate: [{tags: [{name: a}]}]",
        "generate: [{forEach: {encoding: utf-8}, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, json: b.json}, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv}, tags: [{nmae: a}]}]",
        "generate: [{forEach: {csv: a.csv}, tags: [{name: a, visibility: HIDDEN}]}]",
        "generate: [{forEach: {csv: a.csv}, as: var, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv}, when: '', tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, delimiter: '::'}, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, encoding: punycode}, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, encoding: utf-99}, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, distinct: ''}, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, distinct: []}, tags: [{name: a}]}]",
        "generate: [{forEach: {csv: a.csv, columns: [a, a]}, tags: [{name: a}]}]",
        "generate: [{forEach: {http: {source: a, paging: {next: a, page: b}}}, tags: [{name: a}]}]",
        "defaults: {tags: {category: b, tagCategoryId: c}}",
        "generate: [{forEach: {csv: a.csv}, tags: []}]",
        'tags: [{name: a, metadata: {b: "a\\eb"}}]',
        "tags: [{name: a, closedTimestamp: '2024-04-31T09:00:00Z'}]",
        "tags: [{name: a, closedTimestamp: '2024-05-01T24:00:00Z'}]",
        "activityTypes: [{code: a, label: ' '}]",
        "defaults: {tags: {visibility: PRIVATE}}\nactivityTypes: [{code: a}]",
    ],
    "project.schema.json": [
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
        "version: 1\npolicy: {maxDeletes: {tags: 100.5%}}",
        "version: 1\npolicy: {maxDeletes: {tags: 2.5}}",
        "version: 1\nservice: {endpoints: {upsertTagz: {path: /x}}}",
        "version: 1\nservice: {endpoints: {upsertTags: {path: x}}}",
        "version: 1\nservice: {endpoints: {upsertTags: {path: '/x?y'}}}",
        "version: 1\nservice: {team: ' '}",
        "version: 1\nservice: {apiKey: {file: ''}}",
        "version: 1\nservice: {apiKey: {}}",
        "version: 1\napprovals: [3]",
        "version: 1\napprovals: ['3@']",
        "version: 1\napprovals: ['x@abc']",
        "version: 1\napprovals: ['3@0123456789abcdef012']",
        "version: 1\napprovals: ['3@0123456789AB']",
        "version: 1\nstate: ' '",
        "version: 1\nstate: 'postgresql://u:p@h/db'",
        "version: 1\nstate: 'git+ref://https://u:p@h/r/refs/syncengine/x'",
        "version: 1\nsources: {a: {sql: 'Server=h;Password=p'}}",
        "version: 1\nsources: {a: {sql: 'host=h dbname=x password=p'}}",
        "version: 1\nsources: {a: {sql: 'Data Source=orcl;PWD=p'}}",
        "version: 1\nsources: {a: {sql: 'postgresql://h/db?PASSWORD=p'}}",
        "version: 1\nsources: {a: {http: 'https://h/x?api_key=p'}}",
        "version: 1\nquarantine: [{address: tag/a, reason: b, until: '2024-02-30'}]",
        "version: 1\nmanifests: ['']",
        "version: 1\nsources: {a: {http: 'https://u:p@h'}}",
        "version: 1\nsources: {a: {http: {url: 'https://h#x'}}}",
        "version: 1\nsources: {a: {http: {headers: {}}}}",
        "version: 1\npostedTime: {webhook: {callbackUrl: 'ftp://h'}}",
        "version: 1\npostedTime: {webhook: {callbackUrl: 'https://u:p@h'}}",
        "version: 1\npostedTime: {keep: 0d}",
    ],
}


def cases(table: Mapping[str, Sequence[str | bytes]]) -> list[tuple[str, str | bytes]]:
    return [(name, text) for name, texts in table.items() for text in texts]


def read(name: str, folder: Path, text: str) -> set[str]:
    """The codes of the reader's errors in a file, except for data files and categories that are missing here."""
    if name == "manifest.schema.json":
        return {d.code for d in problems(folder, {"manifests/m.yaml": text})} - {"bad-source", "unknown-category"}
    (folder / "syncengine.yaml").write_text(text)
    try:
        load_project(folder=folder, environ={}, operations=OPERATIONS, lints=LINTS)
    except Problems as refused:
        return {d.code for d in refused.found}
    return set()


@pytest.mark.parametrize(("name", "text"), cases(GOOD))
def test_the_schema_and_the_reader_accept_valid_files(name: str, text: str, tmp_path: Path) -> None:
    """This includes text that YAML 1.1 reads as numbers or flags."""
    judge(name).validate(yaml.safe_load(text))
    assert read(name, tmp_path, text) == set()


@pytest.mark.parametrize(("name", "text"), cases(BAD))
def test_the_schema_and_the_reader_refuse_invalid_files(name: str, text: str, tmp_path: Path) -> None:
    """Errors in the `defaults` of a project are found only when manifests are read."""
    assert not judge(name).is_valid(yaml.safe_load(text))
    assert read(name, tmp_path, text) or "version: 1\ndefaults" in text


@pytest.mark.parametrize("path", sorted((FOLDER.parent / "manifests").rglob("*.yaml")), ids=lambda path: path.name)
def test_the_schema_accepts_the_example_manifests(path: Path) -> None:
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        judge("manifest.schema.json").validate(document)


def test_every_field_of_a_block_is_described_and_may_be_a_template() -> None:
    """An editor can then complete fields in `generate` blocks as it does elsewhere."""
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
    """The field, or the type that it refers to, has a description for editors and readers of the output."""
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
ALTERNATIVES: dict[tuple[str, str, Any], str] = {
    ("Tag", "dependentSchemas", "category"): "Set only one of `category` or `tagCategoryId`.",
    ("ForEach", "dependentSchemas", "csv"): f"Set only one of {KINDS}.",
    ("ForEach", "anyOf", 0): f"Set one of {KINDS}.",
}


def test_an_error_about_alternatives_has_a_description() -> None:
    """The part of the schema that refuses a file says which fields exclude each other."""
    definitions = SCHEMAS["manifest.schema.json"]["$defs"]
    found = {(name, key, which): definitions[name][key][which]["description"] for name, key, which in ALTERNATIVES}
    assert found == ALTERNATIVES


@pytest.mark.parametrize(("name", "text"), cases(READ_BADLY))
def test_the_schema_refuses_what_the_reader_refuses(name: str, text: str | bytes) -> None:
    """An editor then shows the errors that `validate` would report."""
    assert not judge(name).is_valid(yaml.safe_load(text))


def test_a_schema_of_output_accepts_additional_keys_and_refuses_missing_ones() -> None:
    report = json.loads((FOLDER.parent / "tests/contract/documents/report.json").read_text(encoding="utf-8"))
    judge("report.schema.json").validate({**report, "more": "may be added"})
    del report["diagnostics"]
    assert not judge("report.schema.json").is_valid(report)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.name)
def test_patterns_use_only_escapes_of_ecma_262(path: Path) -> None:
    """Validators read patterns in Unicode mode, where unnecessary escapes are errors."""
    patterns = re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', path.read_text(encoding="utf-8"))
    escaped = {name for pattern in patterns for name in re.findall(r"\\(.)", json.loads(pattern))}
    assert escaped <= set("dDsSwWbBnrtfvu^$\\.*+?()[]{}|/-")
