"""`forEach` of a block, or the arguments of `data(…)` in a template → a query of a source. Pure.

Rows are not known yet, so templates in a block's query see only `var` and `env`. The text of a query is never a
template: values are passed as parameters, where they cannot change the query.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from syncengine.document.diagnostics import Collector, suggestion
from syncengine.document.nodes import Position, Scalar
from syncengine.document.validation import display
from syncengine.manifest.context import LoadContext
from syncengine.manifest.encodings import codec_of
from syncengine.manifest.encodings import trouble as encoding_trouble
from syncengine.manifest.generate.scalars import Compiled
from syncengine.manifest.schema import FILE_KINDS, ForEach, HttpFrom, SqlFrom
from syncengine.manifest.sources.read import variables_of
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.project.delivery_schema import PAGING_NEEDS, PAGINGS, Paging
from syncengine.project.types import Written
from syncengine.templating.filters import plain_text
from syncengine.templating.sandbox import TemplateSandbox
from syncengine.templating.troubles import SURPRISES, trouble
from syncengine.templating.values import is_template


def filled(context: LoadContext, for_each: ForEach) -> ForEach:
    """Return the source with its templates filled in. Raise `SourceTrouble` if one fails or a query contains one."""
    if for_each.file is not None:
        kind, path = for_each.file
        return for_each.model_copy(update={FILE_KINDS[kind]: _text(context, path)})
    if for_each.sql is not None:
        return for_each.model_copy(update={"sql": _sql(context, for_each.sql)})
    if for_each.http is not None:
        return for_each.model_copy(update={"http": _http(context, for_each.http)})
    return for_each


def _sql(context: LoadContext, section: SqlFrom) -> SqlFrom:
    if "{{" in section.query.text:
        raise SourceTrouble(
            "a query cannot contain templates: write `:name` in the query, and its value under `params`"
        )
    file = None if section.file is None else _text(context, section.file)
    return section.model_copy(update={"file": file, "params": _values(context, section.params)})


def _http(context: LoadContext, section: HttpFrom) -> HttpFrom:
    path = None if section.path is None else _text(context, section.path)
    return section.model_copy(update={"path": path, "query": _values(context, section.query)})


def _values(context: LoadContext, values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the values with their templates filled in. Numbers and flags keep their types."""
    if values is None:
        return None
    return {n: _value(context, v) if isinstance(v, Written) and is_template(v.text) else v for n, v in values.items()}


def _text(context: LoadContext, setting: Written) -> Written:
    if not is_template(setting.text):
        return setting
    return Written(plain_text(_value(context, setting)), setting.line, setting.column)


def _value(context: LoadContext, setting: Written) -> Any:
    """Return the value of a template. Raise `SourceTrouble` if it fails."""
    findings = Collector("")
    compiled = Compiled(TemplateSandbox(), ("var", "env"), findings)
    compiled.leaf(Scalar(setting.text, Position(setting.line - 1, setting.column - 1), '"'))
    if findings.found:
        raise SourceTrouble(f"{display(setting.text)}: {findings.found[0].message}")
    try:
        with context.allowance.spend():
            value = compiled.leaves[0].value(variables_of(context))
        return value if isinstance(value, str | int | float | Decimal | None) else plain_text(value)
    except SURPRISES as error:
        raise SourceTrouble(f"{display(setting.text)}: the template failed: {trouble(error)}") from None


KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".yaml": "yaml",
    ".yml": "yaml",
}
OPTIONS = ("delimiter", "encoding", "columns", "items", "distinct", "allowEmpty", "kind")
PAGING = ("next", "page", "cursor", "at", "offset", "limit", "size", "link", "first")
SOURCE_OPTIONS = ("source", "query", "params", "path", "items", *PAGING, "distinct", "allowEmpty", "allowPartial")


def for_each_of_call(path: str | None, options: Mapping[str, Any]) -> ForEach:
    """Return the query of a `data` call. Raise `SourceTrouble` for invalid arguments."""
    if path is not None and "source" in options:
        options, path = {**options, "path": path}, None
    names = SOURCE_OPTIONS if path is None else OPTIONS
    for name in options:
        if name not in names:
            raise SourceTrouble(f"`data` has no option `{name}`{suggestion(name, names)}")
    common: dict[str, Any] = {
        "distinct": _names(options.get("distinct")),
        "allow_empty": bool(options.get("allowEmpty")),
    }
    if path is None:
        return ForEach.model_construct(**_source_options(options), **common)
    kind = options.get("kind") or KINDS.get(Path(str(path)).suffix.lower())
    if kind not in list(FILE_KINDS):  # a list, since `kind` may not be hashable
        raise SourceTrouble(f"`data`: {path!s:.60} has no suffix of a data file; add `kind='csv'`, for example")
    delimiter = {"tab": "\t"}.get(str(options.get("delimiter")), options.get("delimiter"))
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise SourceTrouble("`data`: `delimiter` must be one character")
    file: dict[str, Any] = {FILE_KINDS[kind]: Written(str(path), 1, 1)}
    return ForEach.model_construct(
        **file,
        delimiter=delimiter or ("\t" if str(path).lower().endswith(".tsv") else None),
        encoding=_encoding(options.get("encoding")),
        columns=_names(options.get("columns")),
        items=options.get("items"),
        **common,
    )


def _encoding(name: Any) -> str | None:
    if name is None:
        return None
    if (codec := codec_of(str(name))) is None:
        raise SourceTrouble(f"`data`: `encoding` must be {encoding_trouble(str(name))}")
    return codec


def _source_options(options: Mapping[str, Any]) -> dict[str, Any]:
    if "source" not in options:
        raise SourceTrouble("`data` needs the path of a file or the argument `source`")
    source = Written(str(options["source"]), 1, 1)
    if "query" in options and isinstance(options["query"], str):
        sql = SqlFrom.model_construct(
            source=source, query=Written(options["query"], 1, 1), params=dict(options.get("params") or {})
        )
        return {"sql": sql}
    paging = _paging(options)
    http = HttpFrom.model_construct(
        source=source,
        path=Written(str(options.get("path", "")), 1, 1),
        query=dict(options.get("params") or {}),
        items=options.get("items"),
        paging=paging,
        allow_partial=bool(options.get("allowPartial")),
    )
    return {"http": http}


def _paging(options: Mapping[str, Any]) -> Paging:
    settings = {name: options[name] for name in PAGING if options.get(name) is not None}
    if sum(name in settings for name in PAGINGS) > 1:
        raise SourceTrouble(f"`data` needs at most one of {', '.join(f'`{name}`' for name in PAGINGS)}")
    for name, value in settings.items():
        kind = {"size": int, "first": int, "link": bool}.get(name, str)
        if type(value) is not kind:
            raise SourceTrouble(f"`data`: `{name}` must be {_KINDS[kind]}")
        if missing := [f"`{other}`" for other in PAGING_NEEDS.get(name, ()) if other not in settings]:
            raise SourceTrouble(f"`data`: `{name}` needs {' and '.join(missing)} beside it")
    return Paging.model_construct(**settings)


_KINDS: Mapping[type, str] = {int: "a whole number", bool: "true", str: "text"}


def _names(value: Any) -> tuple[str, ...] | None:
    return None if value is None else (value,) if isinstance(value, str) else tuple(str(name) for name in value)
