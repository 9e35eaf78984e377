"""What a block asks of a source, and variables → the same with its templates filled in: paths and parameters. Pure.

Rows are not known yet, so templates see `var` and `env` alone. The text of a query is never a template: values go into
its parameters, where they cannot be anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from syncengine.document.diagnostics import Collector
from syncengine.document.model_reader import shown
from syncengine.document.nodes import Position, Scalar
from syncengine.document.template_types import Written
from syncengine.manifest.context import LoadContext
from syncengine.manifest.generate.scalars import Compiled
from syncengine.manifest.generate_schema import ForEach, HttpFrom, SqlFrom
from syncengine.manifest.sources.read import FILE_KINDS, variables_of
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.templating.environment import SandboxedEnvironment
from syncengine.templating.filters import plain_text
from syncengine.templating.troubles import SURPRISES, trouble
from syncengine.templating.values import is_template


def filled(given: LoadContext, asked: ForEach) -> ForEach:
    """The source as it is meant; SourceTrouble for a template that fails, and for a query that is one."""
    for field in ("json_" if kind == "json" else kind for kind in FILE_KINDS):
        if (path := getattr(asked, field)) is not None:
            return replace(asked, **{field: _text(given, path)})
    if asked.sql is not None:
        return replace(asked, sql=_sql(given, asked.sql))
    return asked if asked.http is None else replace(asked, http=_http(given, asked.http))


def _sql(given: LoadContext, asked: SqlFrom) -> SqlFrom:
    if "{{" in asked.query.text:
        raise SourceTrouble(
            "a query is not a template: write `:name` where the value goes, and the value under `params`"
        )
    file = None if asked.file is None else _text(given, asked.file)
    return replace(asked, file=file, params=_values(given, asked.params))


def _http(given: LoadContext, asked: HttpFrom) -> HttpFrom:
    path = None if asked.path is None else _text(given, asked.path)
    return replace(asked, path=path, query=_values(given, asked.query))


def _values(given: LoadContext, values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Numbers and flags that a template comes to stay what they are."""
    if values is None:
        return None
    return {n: _value(given, v) if isinstance(v, Written) and is_template(v.text) else v for n, v in values.items()}


def _text(given: LoadContext, written: Written) -> Written:
    if not is_template(written.text):
        return written
    return Written(plain_text(_value(given, written)), written.line, written.column)


def _value(given: LoadContext, written: Written) -> Any:
    findings = Collector("")
    environment = SandboxedEnvironment(clock=given.allowance.clock)
    compiled = Compiled(environment, ("var", "env"), findings)
    compiled.leaf(Scalar(written.text, Position(written.line - 1, written.column - 1), '"'))
    if findings.found:
        raise SourceTrouble(f"{shown(written.text)}: {findings.found[0].message}")
    try:
        with given.allowance.spend() as deadline:
            environment.begin(deadline)
            value = compiled.leaves[0].value(variables_of(given))
        return value if isinstance(value, str | int | float | Decimal | None) else plain_text(value)
    except SURPRISES as error:
        raise SourceTrouble(f"{shown(written.text)}: the template failed: {trouble(error)}") from None
