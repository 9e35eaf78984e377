"""A block's query with templates, and variables → the query with its paths and parameters filled in. Pure.

Rows are not known yet, so templates see only `var` and `env`. The text of a query is never a template: values are
passed as parameters, where they cannot change the query.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Position, Scalar
from syncengine.document.types import Written
from syncengine.document.validation import display
from syncengine.manifest.context import LoadContext
from syncengine.manifest.generate.scalars import Compiled
from syncengine.manifest.schema import FILE_KINDS, ForEach, HttpFrom, SqlFrom
from syncengine.manifest.sources.read import variables_of
from syncengine.manifest.sources.records import SourceTrouble
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
