"""A reading is cached by a digest only if its inputs did not change while it was made. A call of `data` in a text
template has the settings of `forEach`, and the same rules."""

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
from syncengine.manifest.generate.query import query_of_call
from syncengine.manifest.read_file import NO_DEFAULTS
from syncengine.manifest.resources import ReadFile
from syncengine.manifest.sources.read import packed, unpacked
from syncengine.manifest.sources.records import HttpQuery, SqlQuery
from syncengine.project.delivery_schema import Paging
from tests.manifest.loading import block, loaded, loop, problems

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


PROJECT = "version: 1\nsources: {pms: {sql: pms.db}, crm: {http: {url: 'http://127.0.0.1:9'}}}\n"
WRONG = {
    "an unknown option": ("'../r.csv', delimeter=';'", "`data` has no option `delimeter`; did you mean `delimiter`?"),
    "a long delimiter": ("'../r.csv', delimiter=';;'", "`data`: `delimiter` must be one character, or `tab`"),
    "a flag as text": ("'../r.csv', allowEmpty='false'", "`data`: `allowEmpty` must be true or false, without quotes"),
    "columns twice": ("'../r.csv', distinct=['n', 'n']", "`data`: `distinct` must name at least one column, and each"),
    "two paths": ("'../r.csv', path='../r.csv'", "`data` has no option `path`"),
    "no path": ("''", "`data`:  has no suffix of a data file"),
    "two mistakes": (
        "'../r.csv', delimiter='', encoding='utf-99'",
        "`data`: `delimiter` must be one character, or `tab`; `encoding` must be an encoding such as utf-8",
    ),
    "no source": ("distinct='n'", "`data` needs the path of a file or the argument `source`"),
    "an unknown name": ("source='pms', query='SELECT 1', params={'a': var.a}", "there is no variable `a`"),
    "a list as a parameter": (
        "source='pms', query='SELECT 1', params={'a': [1]}",
        "`data`: `params.a` must be text, a number, true, false or null",
    ),
    "parameters in a list": ("source='pms', query='SELECT 1', params=[1]", "`data`: `params` must be a mapping"),
    "a query of a service": ("source='crm', path='/m', query={'a': 1}", "`data`: `query` must be text, not a mapping"),
    "paging of a database": ("source='pms', query='SELECT 1', page='p'", "`data`: sql has no field `page`"),
    "two ways of paging": ("source='crm', page='p', next='n'", "`data`: `paging` needs exactly one of `next`, `page`"),
    "a cursor from nowhere": ("source='crm', cursor='c'", "`cursor` needs `at` beside it"),
    "a limit without a size": ("source='crm', offset='o', limit='l'", "`limit` needs `size` beside it"),
    "no link": ("source='crm', link=false", "can only be true"),
    "a size as text": ("source='crm', offset='o', limit='l', size='9'", "`size` must be a whole number, without"),
    "a size of nothing": ("source='crm', offset='o', limit='l', size=0", "`data`: `size` must be between 1 and"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_told_at_its_line(tmp_path: Path, name: str) -> None:
    """Nothing is guessed or ignored: all that `forEach` refuses is refused here."""
    arguments, sentence = WRONG[name]
    files = {"syncengine.yaml": PROJECT, "r.csv": "n\n1\n", "r.json": "[]", "manifests/m.yaml.j2": loop(arguments)}
    (found,) = problems(tmp_path, files)
    assert (found.file, found.line) == ("manifests/m.yaml.j2", 2)
    assert sentence in found.message


def test_what_a_call_is_given_is_asked_as_it_is(tmp_path: Path) -> None:
    """Its values are results of templates, and are none again; parameters keep their digits and their types."""

    def asked(path: str | None = None, /, **options: Any) -> Any:
        return query_of_call(LoadContext(), path, options).query

    found = asked(source="pms", query="SELECT 1", params={"a": "{{ var.x }}", "b": Decimal("1.50"), "c": 10**30})
    assert found == SqlQuery("pms", None, "SELECT 1", {"a": "{{ var.x }}", "b": Decimal("1.50"), "c": 10**30})
    found = asked("/matters", source="crm", params={"q": "{{ 1 }}"}, page="p", first=0, distinct="id")
    assert (found.path, found.params, found.may_repeat) == ("/matters", {"q": "{{ 1 }}"}, True)
    assert (found.paging.page, found.paging.first) == ("p", 0)
    for each in ({"next": "a.b"}, {"cursor": "c", "at": "a.b"}, {"offset": "o", "limit": "l", "size": 9}):
        paging = asked("/matters", source="crm", **each).paging
        assert {name: getattr(paging, name) for name in each} == each
    assert asked("a{{b.tsv").form.delimiter == "\t"
    assert asked(path="a.csv") == asked("a.csv")
    assert asked("a.tsv", delimiter=",").form.delimiter == ","
    assert asked("a.txt", kind="csv", delimiter="tab", columns=("a", "b")).form.columns == ("a", "b")
    template = loop("'../r.csv', delimiter=none, distinct='v', allowEmpty=true")
    files = {"r.csv": "n,v\nA,1\nB,1\n", "manifests/m.yaml.j2": template}
    assert [str(key) for key in loaded(tmp_path, files).resources] == ["tag/A"]
