"""A call of `data` in a text template has the settings of `forEach`, and the same rules."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from syncengine.manifest.context import LoadContext
from syncengine.manifest.generate.query import query_of_call
from syncengine.manifest.sources.records import SqlQuery
from tests.manifest.loading import loaded, loop, problems

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
