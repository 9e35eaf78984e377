"""Rows that did not change are not rendered again, and nobody can tell the difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from syncengine.manifest.cache import ManifestCache
from syncengine.manifest.context import LoadContext
from syncengine.manifest.files import ManifestFile
from syncengine.manifest.generate.row_reuse import row_digest
from syncengine.manifest.load import read_all, read_one
from syncengine.manifest.read_file import NO_DEFAULTS
from syncengine.manifest.reading import ReadFile, Reading, read_file
from syncengine.resource import Resource, Row
from syncengine.templating.values import Record
from tests.support.profiles import tried

BLOCKS = """\
generate:
  - forEach: {json: ../rows.json}
    when: row.n != 'none'
    tagCategories:
      - {externalId: "C-{{ row.n }}", label: "{{ row.v }}"}
    tags:
      - name: "{{ row.n }}"
        description: "{{ row.v }} {{ var.team }}"
        keywords: "{{ row.get('k', []) }}"
        visibility: "{{ 'PRIVATE' if row.v is string else '' }}"
  - forEach: {json: ../rows.json, distinct: n}
    tags: [{name: "second {{ row.n }}", managedBy: "{{ row.v * 2 if row.v is number else row.v }}"}]
"""
VALUES = st.sampled_from(
    ["alpha", "beta", "", " blank ", "x\ty", "none", "mail", 4321, 12.5, True, None, ["kappa"], "4321", "12.5"]
)
ROWS = st.fixed_dictionaries({"n": VALUES, "v": VALUES}, optional={"k": st.lists(VALUES, max_size=2)})
TABLES = st.lists(st.lists(ROWS, max_size=6), min_size=2, max_size=4)


def manifest(folder: Path, text: str = BLOCKS, **variables: str) -> ManifestFile:
    (folder / "manifests").mkdir(exist_ok=True)
    path = folder / "manifests" / "m.yaml"
    path.write_text(text)
    return ManifestFile(path, "manifests/m.yaml", context=LoadContext(folder, variables={"team": "A", **variables}))


def rows(folder: Path, *table: dict[str, Any]) -> None:
    (folder / "rows.json").write_text(json.dumps(table))


def reading(file: ManifestFile, former: bytes | None = None) -> Reading:
    return read_one(file, NO_DEFAULTS, former).reading


def packed(found: Reading) -> bytes:
    return msgspec.msgpack.encode(found)


@given(tables=TABLES)
@settings(max_examples=tried(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_taken_over_is_what_would_be_made(tmp_path: Path, tables: list[list[dict[str, Any]]]) -> None:
    """Over any history of a source: the same resources, places, findings and rows as without a memory."""
    file, former = manifest(tmp_path), None
    for table in tables:
        rows(tmp_path, *table)
        found = reading(file, former)
        assert found == reading(file)
        former = packed(found)


def test_a_row_that_is_the_same_is_not_rendered(tmp_path: Path) -> None:
    """What it came to is taken from the memory, with the place that the row has now."""
    file = manifest(tmp_path)
    rows(tmp_path, {"n": "alpha", "v": "1"}, {"n": "beta", "v": "2"})
    former = packed(marked(reading(file)))
    rows(tmp_path, {"n": "beta", "v": "3"}, {"n": "alpha", "v": "1"})
    made = {resource.key.name: resource for resource in reading(file, former).resources}
    assert (made["alpha"].body.fields["description"], made["alpha"].source.data) == ("remembered", Row("rows.json", 2))
    assert (made["beta"].body.fields["description"], made["beta"].source.data) == ("3 A", Row("rows.json", 1))


def marked(found: Reading) -> Reading:
    """A reading that never was: every tag has another description."""

    def of(resource: Resource) -> Resource:
        return replace(
            resource, body=replace(resource.body, fields={**resource.body.fields, "description": "remembered"})
        )

    return replace(found, resources=tuple(map(of, found.resources)))


@pytest.mark.parametrize(
    ("text", "variables"),
    [(BLOCKS, {"team": "B"}), (BLOCKS.replace('description: "', 'description: "+'), {}), (f"# more\n{BLOCKS}", {})],
    ids=["variable", "template", "place"],
)
def test_another_block_takes_nothing_over(tmp_path: Path, text: str, variables: dict[str, str]) -> None:
    """Templates, places and variables are part of what a block is known by."""
    rows(tmp_path, {"n": "alpha", "v": "1"})
    former = packed(marked(reading(manifest(tmp_path))))
    file = manifest(tmp_path, text, **variables)
    assert reading(file, former) == reading(file)


def test_a_row_with_findings_is_told_again(tmp_path: Path) -> None:
    """A warning does not wear off."""
    file = manifest(tmp_path)
    rows(tmp_path, {"n": "alpha", "v": "1", "k": ["mail"]})
    first = reading(file)
    assert [d.code for d in first.found] == ["keyword-too-broad", "public-by-silence"]
    again = reading(file, packed(marked(first)))
    assert again.found == first.found


def test_the_memory_is_the_last_reading_in_the_cache(tmp_path: Path) -> None:
    """It outlives readings that nothing stands on, and one that is damaged is not used."""
    file = manifest(tmp_path)
    with ManifestCache(tmp_path / ".syncengine", NO_DEFAULTS) as cache:
        rows(tmp_path, {"n": "alpha", "v": "1"})
        (first,) = read_all([file], NO_DEFAULTS, cache)
        cache.keep([read_file(marked(first.reading))._replace(sha256=first.sha256)])
        rows(tmp_path, {"n": "alpha", "v": "1"}, {"n": "beta", "v": "1"})
        (second,) = read_all([file], NO_DEFAULTS, cache)
        assert described(second.reading) == ["remembered", "1 A"]
        cache.keep([second._replace(packed=b"\x93damaged")])
        rows(tmp_path, {"n": "gamma", "v": "1"}, {"n": "alpha", "v": "1"})
        (third,) = read_all([file], NO_DEFAULTS, cache)
        assert described(third.reading) == ["1 A", "1 A"]


def described(found: Reading) -> list[object]:
    tags = (r for r in found.resources if r.key.kind == "tag" and "second" not in r.key.name)
    return [tag.body.fields["description"] for tag in tags]


ALIKE = [("1", 1), ("1.5", Decimal("1.5")), (True, 1), (None, "None"), (["a", "b"], ["a, b"]), (b"a", "a")]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_values_that_templates_tell_apart_have_other_digests(one: Any, other: Any) -> None:
    """Types count, and so do the names of values."""
    row = Row("rows.json", 1)
    assert row_digest(Record({"a": one}, row)) != row_digest(Record({"a": other}, row))
    assert row_digest(Record({"a": one}, row)) != row_digest(Record({"b": one}, row))
    assert row_digest(Record({"a": one}, row)) == row_digest(Record({"a": one}, Row("rows.json", 7)))


@dataclass(frozen=True)
class Replacing(LoadContext):
    """A context in whose files something is replaced just before the file numbered `at` is opened."""

    at: int = 0
    change: Callable[[], None] = lambda: None
    opened: list[str] = field(default_factory=list)

    def data(self, name: str, folder: Path) -> Path:
        self._count(name)
        return super().data(name, folder)

    def template(self, name: str) -> Path:
        self._count(name)
        return super().template(name)

    def _count(self, name: str) -> None:
        self.opened.append(name)
        if len(self.opened) == self.at:
            self.change()


TEMPLATE = """\
{% include "part.txt" %}
tags:
{% for row in data("../rows.json") %}  - name: {{ row.n }}
{% endfor %}
"""
COMPUTED = TEMPLATE.replace('"part.txt"', '"pa" ~ "rt.txt"')


@pytest.mark.parametrize("text", [BLOCKS, TEMPLATE, COMPUTED], ids=["blocks", "template", "computed name"])
@pytest.mark.parametrize("part", ["rows.json", "part.txt"])
def test_an_input_replaced_while_it_is_read_is_not_known_by_a_digest(tmp_path: Path, text: str, part: str) -> None:
    """Else the cache would have old rows as those of the new file, and every later plan would miss the change."""
    (tmp_path / "manifests").mkdir()
    path = tmp_path / "manifests" / ("m.yaml" if text == BLOCKS else "m.yaml.j2")
    path.write_text(text)

    def write(version: str) -> None:
        rows(tmp_path, {"n": f"tag {version}", "v": "alpha"})
        (tmp_path / "part.txt").write_text("# a comment\n")

    def change() -> None:
        content = {"rows.json": '[{"n": "tag new", "v": "alpha"}]', "part.txt": "# another\nremoved: []\n"}[part]
        (tmp_path / part).write_text(content)

    def read(at: int) -> tuple[ReadFile, int]:
        context = Replacing(tmp_path, variables={"team": "A"}, at=at, change=change)
        name = path.relative_to(tmp_path).as_posix()
        found = read_one(ManifestFile(path, name, context=context), NO_DEFAULTS)
        return found, len(context.opened)

    write("old")
    old, most = read(0)
    change()
    new, _ = read(0)
    assert old.sha256 and new.sha256
    for at in range(1, most + 1):
        write("old")
        found, _ = read(at)
        assert not found.sha256 or found in (old, new), at
