"""A reading is cached by a digest only if its inputs did not change while it was made."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncengine.manifest.cache import ManifestCache
from syncengine.manifest.context import LoadContext
from syncengine.manifest.desired import digests_of, read_all, read_one
from syncengine.manifest.files import ManifestFile
from syncengine.manifest.read_file import NO_DEFAULTS
from syncengine.manifest.resources import ReadFile
from syncengine.manifest.sources.read import packed, unpacked
from syncengine.manifest.sources.records import HttpQuery, SqlQuery
from syncengine.project.delivery_schema import Paging
from tests.manifest.loading import block

BLOCKS = (
    block("json: ../rows.json", "name: '{{ row.n }}', description: '{{ row.v }} {{ var.team }}'")
    + "  - forEach: {json: ../rows.json, distinct: n}\n    tags: [{name: 'second {{ row.n }}'}]\n"
)
"""Both blocks read the same file."""


def rows(folder: Path, *table: dict[str, Any]) -> None:
    (folder / "rows.json").write_text(json.dumps(table))


@dataclass(frozen=True)
class Replacing(LoadContext):
    """A context that calls `change` just before the file numbered `at` is opened."""

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
{% include "part.j2" %}
tags:
{% for row in data("../rows.json") %}  - name: {{ row.n }}
{% endfor %}
"""
COMPUTED = TEMPLATE.replace('"part.j2"', '"pa" ~ "rt.j2"')


def manifest(folder: Path, text: str) -> Path:
    (folder / "manifests").mkdir()
    path = folder / "manifests" / ("m.yaml" if text == BLOCKS else "m.yaml.j2")
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", [BLOCKS, TEMPLATE, COMPUTED], ids=["blocks", "template", "computed name"])
@pytest.mark.parametrize("part", ["rows.json", "part.j2"])
def test_an_input_replaced_while_it_is_read_is_not_known_by_a_digest(tmp_path: Path, text: str, part: str) -> None:
    """Otherwise the cache would hold old rows under the digest of the new file, and later plans would be wrong."""
    path = manifest(tmp_path, text)

    def change() -> None:
        content = {"rows.json": '[{"n": "tag new", "v": "alpha"}]', "part.j2": "# another\nremoved: []\n"}[part]
        (tmp_path / part).write_text(content)

    def read(at: int) -> tuple[ReadFile, int]:
        if at >= 0:
            rows(tmp_path, {"n": "tag old", "v": "alpha"})
            (tmp_path / "part.j2").write_text("# a comment\n")
        context = Replacing(tmp_path, variables={"team": "A"}, at=at, change=change)
        name = path.relative_to(tmp_path).as_posix()
        found = read_one(ManifestFile(path, name, context=context), NO_DEFAULTS)
        return found, len(context.opened)

    old, most = read(0)
    change()
    new, _ = read(-1)
    assert old.sha256 and new.sha256
    for at in range(1, most + 1):
        found, _ = read(at)
        assert not found.sha256 or found in (old, new), at


VALUES = st.one_of(
    *(st.text(), st.integers(), st.floats(allow_nan=False), st.booleans(), st.none(), st.decimals("-1", "1"))
)


@given(st.dictionaries(st.text(), VALUES))
def test_a_query_is_asked_again_as_it_was(values: dict[str, Any]) -> None:
    """A query is stored with the exact type of each parameter, since databases distinguish types; others are not."""
    for query in (
        SqlQuery("crm", None, "SELECT", values),
        SqlQuery(None, "r.db", "SELECT"),
        HttpQuery("matters", values, ("a", "b"), Paging(next="n"), may_repeat=True, source="crm"),
    ):
        again = unpacked(packed(query))
        assert (again, repr(again)) == (query, repr(query))
    assert unpacked(packed(SqlQuery("crm", None, "SELECT", {"a": [Decimal(1)]}))) is None


@pytest.mark.parametrize("text", [BLOCKS, TEMPLATE, COMPUTED], ids=["blocks", "template", "computed name"])
def test_a_cache_entry_is_valid_as_long_as_its_inputs(tmp_path: Path, text: str) -> None:
    """Replacing, removing or restoring an input, or another variable, makes the entry unusable."""
    path = manifest(tmp_path, text)

    def known(team: str = "A") -> bool:
        context = LoadContext(tmp_path, variables={"team": team})
        file = ManifestFile(path, path.relative_to(tmp_path).as_posix(), context=context)
        with ManifestCache(tmp_path / "cache", NO_DEFAULTS) as cache:
            digests = digests_of([file], cache)
            is_known = digests is not None and cache.digest(file.name, digests[0]) in cache.digests()
            assert list(read_all([file], NO_DEFAULTS, cache, digests)) is not None
        return is_known

    rows(tmp_path, {"n": "a", "v": "alpha"})
    (tmp_path / "part.j2").write_text("")
    assert (known(), known(), known("B"), known("B")) == (False, True, False, True)
    rows(tmp_path, {"n": "b", "v": "alpha"})
    assert (known("B"), known("B")) == (False, True)
    (tmp_path / "rows.json").unlink()
    assert (known("B"), known("B")) == (False, True)
    rows(tmp_path, {"n": "b", "v": "alpha"})
    assert known("B") is False
