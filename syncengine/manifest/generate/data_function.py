"""The arguments of `data(…)` in a template → a query of a source; pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from syncengine.document.diagnostics import suggestion
from syncengine.document.types import Written
from syncengine.manifest.encodings import codec_of
from syncengine.manifest.encodings import trouble as encoding_trouble
from syncengine.manifest.schema import FILE_KINDS, ForEach, HttpFrom, SqlFrom
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.project.delivery_schema import PAGING_NEEDS, PAGINGS, Paging

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
