"""`forEach` of a block, or the arguments of `data(…)` in a template → a query of a source. Pure.

Rows are not known yet, so templates in a block's query see only `var` and `env`. The text of a query is never a
template: values are passed as parameters, where they cannot change the query.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from syncengine.document.diagnostics import Collector, suggestion
from syncengine.document.json_paths import steps_of
from syncengine.document.nodes import Position, Scalar
from syncengine.document.validation import display
from syncengine.manifest.context import LoadContext
from syncengine.manifest.generate.scalars import Compiled
from syncengine.manifest.schema import FILE_KINDS, ForEach, codec_of, encoding_trouble
from syncengine.manifest.sources.files import Form
from syncengine.manifest.sources.read import FileQuery, Query, leave_out_offline, variables_of
from syncengine.manifest.sources.records import HttpQuery, SourceTrouble, SqlQuery
from syncengine.project.delivery_schema import PAGING_NEEDS, PAGINGS, Paging
from syncengine.project.types import Written
from syncengine.templating.filters import plain_text
from syncengine.templating.sandbox import SURPRISES, TemplateSandbox, trouble
from syncengine.templating.values import is_template


def query_of(context: LoadContext, for_each: ForEach) -> Query:
    """Return the query of a block with its templates filled in.

    Raise `SourceTrouble` if one fails or a query contains one, and `LeftOut` before that for a source offline.
    """
    if for_each.file is not None:
        kind, path = for_each.file
        form = Form(
            for_each.encoding or "utf-8", for_each.delimiter or ",", for_each.columns or (), steps_of(for_each.items)
        )
        return FileQuery(kind, _text(context, path) or "", form)
    if (sql := for_each.sql) is not None:
        source = None if sql.source is None else sql.source.text
        leave_out_offline(context, source)
        if "{{" in sql.query.text:
            cure = "write `:name` in the query, and its value under `params`"
            raise SourceTrouble(f"a query cannot contain templates: {cure}")
        return SqlQuery(source, _text(context, sql.file), sql.query.text, _values(context, sql.params))
    http = for_each.http
    assert http is not None
    leave_out_offline(context, http.source.text)
    return HttpQuery(
        path=_text(context, http.path),
        params=_values(context, http.query),
        items=steps_of(http.items),
        paging=http.paging or Paging.model_construct(),
        may_be_partial=bool(http.allow_partial),
        may_repeat=for_each.distinct is not None,
        source=http.source.text,
    )


def _text(context: LoadContext, setting: Written | None) -> str | None:
    return None if setting is None else plain_text(_value(context, setting))


def _values(context: LoadContext, values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the values with their templates filled in. Numbers and flags keep their types."""
    if values is None:
        return None
    return {name: _value(context, value) if isinstance(value, Written) else value for name, value in values.items()}


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
_OF_FILE = ("delimiter", "encoding", "columns", "items", "distinct", "allowEmpty", "kind")
_OF_PAGING = {
    **dict.fromkeys(("next", "page", "cursor", "at", "offset", "limit"), (str, "text")),
    "size": (int, "a whole number"),
    "link": (bool, "true"),
    "first": (int, "a whole number"),
}
_OF_SOURCE = ("source", "query", "params", "path", "items", *_OF_PAGING, "distinct", "allowEmpty", "allowPartial")


class DataCall(NamedTuple):
    """What a call of `data` asks for: the query, the columns that tell its rows apart, and whether none are right."""

    query: Query
    distinct: tuple[str, ...] | None
    may_be_empty: bool


def query_of_call(path: str | None, options: Mapping[str, Any]) -> DataCall:
    """Return what a call of `data` asks for. Raise `SourceTrouble` for invalid arguments."""
    if path is not None and "source" in options:
        options, path = {**options, "path": path}, None
    names = _OF_SOURCE if path is None else _OF_FILE
    for name in options:
        if name not in names:
            raise SourceTrouble(f"`data` has no option `{name}`{suggestion(name, names)}")
    distinct = _names(options.get("distinct"))
    query = _of_file(str(path), options) if path is not None else _of_source(options, may_repeat=distinct is not None)
    return DataCall(query, distinct, bool(options.get("allowEmpty")))


def _of_file(path: str, options: Mapping[str, Any]) -> FileQuery:
    kind = options.get("kind") or _SUFFIXES.get(Path(path).suffix.lower())
    if kind not in list(FILE_KINDS):  # a list, since `kind` may not be hashable
        raise SourceTrouble(f"`data`: {path:.60} has no suffix of a data file; add `kind='csv'`, for example")
    delimiter = {"tab": "\t"}.get(str(options.get("delimiter")), options.get("delimiter"))
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise SourceTrouble("`data`: `delimiter` must be one character")
    encoding = options.get("encoding")
    codec = "utf-8" if encoding is None else codec_of(str(encoding))
    if codec is None:
        raise SourceTrouble(f"`data`: `encoding` must be {encoding_trouble(str(encoding))}")
    delimiter = delimiter or ("\t" if path.lower().endswith(".tsv") else ",")
    return FileQuery(
        kind, path, Form(codec, delimiter, _names(options.get("columns")) or (), steps_of(options.get("items")))
    )


def _of_source(options: Mapping[str, Any], *, may_repeat: bool) -> SqlQuery | HttpQuery:
    if "source" not in options:
        raise SourceTrouble("`data` needs the path of a file or the argument `source`")
    source, params = str(options["source"]), dict(options.get("params") or {})
    if isinstance(options.get("query"), str):
        return SqlQuery(source, None, options["query"], params)
    paging = {name: options[name] for name in _OF_PAGING if options.get(name) is not None}
    if sum(name in paging for name in PAGINGS) > 1:
        raise SourceTrouble(f"`data` needs at most one of {', '.join(f'`{name}`' for name in PAGINGS)}")
    for name, value in paging.items():
        kind, in_words = _OF_PAGING[name]
        if type(value) is not kind:
            raise SourceTrouble(f"`data`: `{name}` must be {in_words}")
        if missing := [f"`{other}`" for other in PAGING_NEEDS.get(name, ()) if other not in paging]:
            raise SourceTrouble(f"`data`: `{name}` needs {' and '.join(missing)} beside it")
    return HttpQuery(
        path=str(options.get("path", "")),
        params=params,
        items=steps_of(options.get("items")),
        paging=Paging.model_construct(**paging),
        may_be_partial=bool(options.get("allowPartial")),
        may_repeat=may_repeat,
        source=source,
    )


def _names(value: Any) -> tuple[str, ...] | None:
    return None if value is None else (value,) if isinstance(value, str) else tuple(map(str, value))
