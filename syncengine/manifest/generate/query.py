"""`forEach` of a block, or the arguments of `data(…)` in a template → a query of a source. Pure.

Rows are not known yet, so templates in a block's query see only `var` and `env`. The text of a query is never a
template: values are passed as parameters, where they cannot change the query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from syncengine.document.diagnostics import Collector, suggestion
from syncengine.document.json_text import steps_of
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, Position, Scalar, Sequence
from syncengine.document.validation import Model, display, names_of, validated
from syncengine.manifest.context import LoadContext
from syncengine.manifest.generate.scalars import Compiled
from syncengine.manifest.schema import FILE_KINDS, KINDS, ForEach, HttpFrom, SqlFrom
from syncengine.manifest.sources.files import Form
from syncengine.manifest.sources.read import FileQuery, Query, leave_out_offline, variables_of
from syncengine.manifest.sources.records import HttpQuery, SourceTrouble, SqlQuery
from syncengine.project.delivery_schema import Paging
from syncengine.project.types import Written
from syncengine.templating.filters import plain_text
from syncengine.templating.sandbox import TemplateSandbox
from syncengine.templating.troubles import SURPRISES, trouble
from syncengine.templating.values import is_template


def query_of(context: LoadContext, for_each: ForEach) -> Query:
    """Return the query of a block with its templates filled in.

    Raise `SourceTrouble` if one fails or a query contains one, and `LeftOut` before that for a source offline.
    """
    return _query(context, for_each, partial(_value, context))


def _query(context: LoadContext, for_each: ForEach, value_of: Callable[[Written], Any]) -> Query:
    """Return a query. `value_of` returns the value of a setting that may be a template."""

    def text(setting: Written | None) -> str | None:
        return None if setting is None else plain_text(value_of(setting))

    def values(settings: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return the values of parameters. Numbers and flags keep their types."""
        if settings is None:
            return None
        return {name: value_of(value) if isinstance(value, Written) else value for name, value in settings.items()}

    if for_each.file is not None:
        kind, path = for_each.file
        form = Form(
            for_each.encoding or "utf-8", for_each.delimiter or ",", for_each.columns or (), steps_of(for_each.items)
        )
        return FileQuery(kind, text(path) or "", form)
    if (sql := for_each.sql) is not None:
        source = None if sql.source is None else sql.source.text
        leave_out_offline(context, source)
        if "{{" in sql.query.text:
            cure = "write `:name` in the query, and its value under `params`"
            raise SourceTrouble(f"a query cannot contain templates: {cure}")
        return SqlQuery(source, text(sql.file), sql.query.text, values(sql.params))
    http = for_each.http
    assert http is not None
    leave_out_offline(context, http.source.text)
    return HttpQuery(
        path=text(http.path),
        params=values(http.query),
        items=steps_of(http.items),
        paging=http.paging or Paging.model_construct(),
        may_be_partial=bool(http.allow_partial),
        may_repeat=for_each.distinct is not None,
        source=http.source.text,
    )


def _value(context: LoadContext, setting: Written) -> Any:
    """Return the text of a setting, or the value of its template. Raise `SourceTrouble` if it fails."""
    if not is_template(setting.text):
        return setting.text
    findings = Collector("")
    scalar = Scalar(setting.text, Position(setting.line - 1, setting.column - 1), '"')
    leaf = Compiled(TemplateSandbox(), ("var", "env"), findings).leaf(scalar)
    if leaf is None:
        raise SourceTrouble(f"{display(setting.text)}: {findings.found[0].message}")
    try:
        with context.allowance.spend():
            value = leaf.value(variables_of(context))
        return value if isinstance(value, str | int | float | Decimal | None) else plain_text(value)
    except SURPRISES as error:
        raise SourceTrouble(f"{display(setting.text)}: the template failed: {trouble(error)}") from None


_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".yaml": "yaml",
    ".yml": "yaml",
}
_OF_FILE = tuple(name for name in (*names_of(ForEach), "kind") if name not in KINDS)
_OF_SOURCE = tuple(
    name
    for name in (*names_of(SqlFrom), *names_of(HttpFrom), *names_of(Paging), "distinct", "allowEmpty")
    if name not in ("file", "paging")
)


class DataCall(NamedTuple):
    """What a call of `data` asks for: the query, the columns that tell its rows apart, and whether none are right."""

    query: Query
    distinct: tuple[str, ...] | None
    may_be_empty: bool


class _Arguments(Model):
    """The arguments of a call of `data`, arranged as in a block."""

    data: ForEach


def query_of_call(context: LoadContext, path: str | None, options: Mapping[str, Any]) -> DataCall:
    """Return what a call of `data` asks for. Raise `SourceTrouble` for invalid arguments."""
    if "source" in options and path is not None:
        options, path = {"path": path, **options}, None
    elif path is None and "source" not in options:
        options, path = {name: options[name] for name in options if name != "path"}, options.get("path")
    names = _OF_SOURCE if path is None else _OF_FILE
    for name in options:
        if name not in names:
            raise SourceTrouble(f"`data` has no option `{display(name)}`{suggestion(name, names)}")
    given = {name: value for name, value in options.items() if value is not None}
    arranged = _of_source(given) if path is None else _of_file(path, given)
    findings = Collector("")
    call = validated(_Arguments, _node({"data": arranged}), findings)
    if call is None:
        raise SourceTrouble(f"`data`: {'; '.join(found.message for found in findings.found)}")
    query = _query(context, call.data, lambda setting: setting.text)
    if not isinstance(query, FileQuery):
        query = query._replace(params=dict(given.get("params", {})))  # numbers keep their digits, dates their type
    return DataCall(query, call.data.distinct, bool(call.data.allow_empty))


def _of_file(path: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    suffix = Path(plain_text(path)).suffix.lower()
    kind = given.get("kind", _SUFFIXES.get(suffix))
    if kind not in list(FILE_KINDS):  # a list, since `kind` may not be hashable
        start = display(plain_text(path))
        raise SourceTrouble(f"`data`: {start} has no suffix of a data file; add `kind='csv'`, for example")
    usual = {"delimiter": "tab"} if suffix == ".tsv" and kind == "csv" else {}
    return {**usual, **{name: value for name, value in given.items() if name != "kind"}, kind: path}


def _of_source(given: Mapping[str, Any]) -> dict[str, Any]:
    if "source" not in given:
        raise SourceTrouble("`data` needs the path of a file or the argument `source`")
    around = {name: value for name, value in given.items() if name in ("distinct", "allowEmpty")}
    inner = {name: value for name, value in given.items() if name not in around}
    if "query" in given:
        return {**around, "sql": inner}
    paging = {name: inner.pop(name) for name in names_of(Paging) if name in inner}
    if "params" in inner:
        inner["query"] = inner.pop("params")
    return {**around, "http": {**inner, "paging": paging} if paging else inner}


_NOWHERE = Position()


def _node(value: Any) -> Node:
    """Return an argument as a node. Only text is in quotes. Raise what `plain_text` raises for an undefined value."""
    if isinstance(value, dict):
        keys = [Scalar(plain_text(name), _NOWHERE, '"') for name in value]
        return MappingNode(keys, list(map(_node, value.values())), _NOWHERE)
    if isinstance(value, list | tuple):
        return Sequence(list(map(_node, value)), _NOWHERE)
    return Scalar("null" if value is None else plain_text(value), _NOWHERE, '"' if isinstance(value, str) else "")
