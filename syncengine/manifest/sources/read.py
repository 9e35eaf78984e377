"""A source of a manifest → all its rows, read once per run. Reads files, databases, services.

A source that cannot be read is an error, never an empty list (docs/planning.md 2.7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from syncengine.content import sha256_at, sha256_of, sha256_of_parts
from syncengine.document.diagnostics import suggestion
from syncengine.document.json_paths import steps_of
from syncengine.document.validation import Model, display
from syncengine.errors import Problems
from syncengine.manifest.context import MAX_SOURCE_BYTES, Asks, Input, LoadContext, OutsideProject, near_name
from syncengine.manifest.schema import ForEach, HttpFrom, SqlFrom
from syncengine.manifest.sources.files import READERS, Form
from syncengine.manifest.sources.records import LeftOut, Records, SourceTrouble, records
from syncengine.project.connections import Connections
from syncengine.project.delivery_schema import Paging
from syncengine.project.types import Written


def read_source(context: LoadContext, folder: Path, for_each: ForEach) -> Records:
    """Return all rows of a source. Raise `SourceTrouble` with the reason when it cannot be read."""
    leave_out_offline(context, for_each)
    if for_each.file is not None:
        kind, path = for_each.file
        form = Form(
            for_each.encoding or "utf-8", for_each.delimiter or ",", for_each.columns or (), steps_of(for_each.items)
        )
        return read_file(context, folder, path.text, kind, form)
    question = packed(for_each)
    try:
        answer = _queried(context, folder, for_each)
    except SourceTrouble as trouble:
        context.record(Asks.ROWS, question, str(trouble))
        raise
    context.record(Asks.ROWS, question, answer.sha256)
    return answer


def _queried(context: LoadContext, folder: Path, for_each: ForEach) -> Records:
    if for_each.sql is not None:
        return _of_sql(context, folder, for_each.sql)
    assert for_each.http is not None
    http, name = for_each.http, for_each.http.source.text
    question = _question(http.path, http.query, http.items)
    may_repeat = for_each.distinct is not None
    paging = (repr(http.paging), http.allow_partial, may_repeat)
    key = ("http", name, question, paging, repr(context.sources.get(name)))
    return _answered(context, key, name, question, lambda: _http(context, http, may_repeat=may_repeat))


def _of_sql(context: LoadContext, folder: Path, section: SqlFrom) -> Records:
    question = _question(section.query, section.params)
    if section.file is None:
        name = section.source.text if section.source else ""
        key = ("sql", name, question, repr(context.sources.get(name)))
        return _answered(context, key, name, question, lambda: _sql(context, section))
    from syncengine.manifest.sources.sql import sql_rows

    path = inside(context, section.file.text, folder)
    name = context.name_of(path)
    for file in (path, path.with_name(f"{path.name}-wal")):
        context.note(file, sha256_at(file))

    def rows() -> Iterator[tuple[int, dict[str, Any]]]:
        return sql_rows(name, str(path), section.query.text, _parameters(section))

    return _remembered(context.memo, ("sql", path, question), name, question, rows)


def leave_out_offline(context: LoadContext, for_each: ForEach) -> None:
    """Raise `LeftOut` for a database or service of the project file when the context is offline."""
    section = for_each.http or for_each.sql
    if context.is_offline and section is not None and section.source is not None:
        context.record(Asks.OFFLINE, "", str(context.is_offline))
        message = f"left out: the source {display(section.source.text)} is not in Git"
        raise LeftOut(f"{message}; resources from its rows count neither as new nor as removed")


def _question(*parts: Any) -> str:
    """Return a digest of a query that does not depend on its place in a manifest."""
    return sha256_of(repr([_plain(part) for part in parts]))[:16]


def _plain(part: Any) -> Any:
    if isinstance(part, Mapping):
        return sorted((name, _plain(value)) for name, value in part.items())
    return part.text if isinstance(part, Written) else part


def _parameters(section: SqlFrom) -> dict[str, Any]:
    return {n: value.text if isinstance(value, Written) else value for n, value in (section.params or {}).items()}


def read_file(context: LoadContext, folder: Path, name: str, kind: str, form: Form) -> Records:
    """Return the rows of a data file, whose name is relative to the `folder` of its manifest."""
    try:
        path = inside(context, name, folder)
        data = content(path, name)
    except SourceTrouble as trouble:
        context.record(Asks.DATA, name, str(trouble))
        raise
    shown_as, sha256 = context.name_of(path), sha256_of(data)
    context.record(Asks.DATA, name, sha256)
    context.note_named(name, folder, path, sha256)
    records_in_memo: Records | None = context.memo.get(memory := (path, sha256, kind, form))
    if records_in_memo is None:
        records_in_memo = Records(shown_as, records(shown_as, READERS[kind](data, shown_as, form)), sha256)
        context.memo[memory] = records_in_memo
    return records_in_memo


def read_text(context: LoadContext, name: str) -> bytes:
    """Return the bytes of a template of the project. Raise `OutsideProject` or `SourceTrouble` if it cannot be read."""
    try:
        path = context.template(name)
        if not path.name.lower().endswith(".j2"):
            raise OutsideProject("only templates (.j2) can be included")
        data = content(path, name)
    except (OutsideProject, SourceTrouble, OSError, ValueError, RuntimeError) as error:
        context.record(Asks.TEMPLATE, name, str(error))
        raise
    sha256 = sha256_of(data)
    context.record(Asks.TEMPLATE, name, sha256)
    context.note_named(name, context.root, path, sha256)
    return data


def are_unchanged(context: LoadContext, folder: Path, inputs: Iterable[Input]) -> bool:
    """Return whether each recorded input is what it was. Files are hashed; databases and services are queried.

    `folder` is that of the manifest which was read.
    """
    return all(_digest_now(context, folder, each) == each.digest for each in inputs)


def _digest_now(context: LoadContext, folder: Path, one: Input) -> str:
    """Return the digest that reading would record for an input now."""
    try:
        match one.kind:
            case Asks.DATA:
                path = inside(context, one.question, folder)
                sha256 = sha256_of(content(path, one.question))
                context.note_named(one.question, folder, path, sha256)
                return sha256
            case Asks.TEMPLATE:
                return sha256_of(read_text(context, one.question))
            case Asks.ROWS:
                for_each = unpacked(one.question)
                return "" if for_each is None else read_source(context, folder, for_each).sha256
            case Asks.OFFLINE:
                return str(context.is_offline)
    except (OutsideProject, SourceTrouble, OSError, ValueError, RuntimeError) as error:
        return str(error)


def packed(for_each: ForEach) -> str:
    """Return a query as text, of which `unpacked` makes an equal one, or an empty text if it has unusual parameters."""
    try:
        return msgspec.json.encode(_packed(for_each)).decode()
    except TypeError:
        return ""


def _packed(value: Any) -> Any:
    match value:
        case Model():
            return {name: _packed(inner) for name, inner in value.__dict__.items() if inner is not None}
        case dict():
            return {name: _typed(inner) for name, inner in value.items()}
        case _:
            return value


def unpacked(text: str) -> ForEach | None:
    """Return the query that `packed` made a text of, or `None` if it could not, or another version did."""
    try:
        for_each: ForEach = _unpacked(ForEach, msgspec.json.decode(text))
        return for_each
    except (msgspec.DecodeError, AttributeError, TypeError, KeyError, ValueError, ArithmeticError):
        return None


def _unpacked(model: type[Model], values: dict[str, Any]) -> Any:
    return model.model_construct(**{name: _part(name, value) for name, value in values.items()})


def _part(name: str, value: Any) -> Any:
    if name in _PARTS:
        return _unpacked(_PARTS[name], value)
    if isinstance(value, dict):
        return Written(**value) if value.keys() == {"text", "line", "column"} else _untyped(value)
    return tuple(value) if isinstance(value, list) else value


_PARTS: Mapping[str, type[Model]] = {"sql": SqlFrom, "http": HttpFrom, "paging": Paging}
"""The models of the parts of a query, by attribute."""


def _typed(value: Any) -> tuple[str, str]:
    value = value.text if isinstance(value, Written) else value
    kind = type(value).__name__
    if kind not in _MADE_OF_TEXT:
        raise TypeError(kind)
    return kind, str(value)


def _untyped(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _MADE_OF_TEXT[kind](text) for name, (kind, text) in values.items()}


_MADE_OF_TEXT: Mapping[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "Decimal": Decimal,
    "bool": "True".__eq__,
    "NoneType": lambda _: None,
}
"""The types of parameters, which decide the question that a database is asked, each with its reading from text."""


def inside(context: LoadContext, name: str, folder: Path) -> Path:
    """Return the path of a data file. Raise `SourceTrouble` if manifests may not read it."""
    try:
        return context.data(name, folder)
    except (OutsideProject, OSError, ValueError, RuntimeError) as error:
        raise SourceTrouble(f"{display(name)}: {error}") from None


def content(path: Path, name: str) -> bytes:
    """Return the bytes of a regular file. Raise `SourceTrouble` when it is missing, unreadable or too large."""
    try:
        if not path.is_file():
            what = "this is a folder" if path.is_dir() else f"the file does not exist{near_name(path)}"
            raise SourceTrouble(f"{display(name)}: {what}")
        if path.stat().st_size > MAX_SOURCE_BYTES:
            raise SourceTrouble(f"{display(name)}: the file is larger than {MAX_SOURCE_BYTES // 1024 // 1024} MB")
        return path.read_bytes()
    except OSError as error:
        raise SourceTrouble(f"{display(name)}: the file cannot be read: {error.strerror or error}") from None


def _answered(context: LoadContext, key: object, name: str, question: str, read: Any) -> Records:
    """Return the rows of a database or service of the project file, which is queried once per plan."""
    return _remembered(context.answers, key, name, question, read)


def _remembered(store: dict[object, Any], key: object, name: str, question: str, read: Any) -> Records:
    """Return the rows in `store`, or read them and keep them there."""
    if key not in store:
        try:
            rows = records(name, read())
            store[key] = Records(name, rows, _digest(rows), live=True, question=question)
        except SourceTrouble as trouble:
            store[key] = trouble
    entry = store[key]
    if isinstance(entry, SourceTrouble):
        raise SourceTrouble(*entry.args)
    answer: Records = entry
    return answer


def _digest(rows: list[Any]) -> str:
    """Return a digest of rows and their types, since templates distinguish `1` from `'1'`."""
    return sha256_of_parts(repr(row).encode() for row in rows)


def _sql(context: LoadContext, section: SqlFrom) -> Iterator[tuple[int, Any]]:
    from syncengine.manifest.sources.sql import sql_rows

    assert section.source is not None
    source, name = _named(context, section.source, "sql"), section.source.text
    with _troubled():
        url = _connections(context).database_url(source, f"the URL of the source {name}")
    yield from sql_rows(name, url, section.query.text, _parameters(section))


def _http(context: LoadContext, section: HttpFrom, *, may_repeat: bool) -> Iterator[tuple[int, Any]]:
    from syncengine.manifest.sources.http import HttpQuery, http_rows

    source, name = _named(context, section.source, "http"), section.source.text
    connection = _connections(context).http(
        source, f"the URL of the source {name}", lambda header: f"header {header} of the source {name}"
    )
    with _troubled():
        url = connection.url()
        headers = {
            header: value.text if isinstance(value, Written) else connection.secrets[header]()
            for header, value in connection.headers.items()
        }
    if not all(value.isascii() and value.isprintable() for value in headers.values()):
        raise SourceTrouble(f"{name}: a header contains characters that HTTP does not allow")
    question = HttpQuery(
        path=section.path.text if section.path else "",
        query={n: v.text if isinstance(v, Written) else str(v) for n, v in (section.query or {}).items()},
        items=steps_of(section.items),
        paging=section.paging or Paging.model_construct(),
        may_be_partial=bool(section.allow_partial),
        may_repeat=may_repeat,
    )
    yield from http_rows(name, url, headers, connection.timeout, question)


def _named(context: LoadContext, setting: Written, kind: str) -> Any:
    source = context.sources.get(setting.text)
    if source is None:
        hint = suggestion(setting.text, sorted(context.sources))
        hint = hint or ("" if context.sources else "; the project file has no `sources:`")
        raise SourceTrouble(f"there is no source `{display(setting.text)}`{hint}")
    if (section := getattr(source, kind)) is None:
        raise SourceTrouble(f"the source `{display(setting.text)}` is not of the kind `{kind}`")
    return section


def _connections(context: LoadContext) -> Connections:
    return Connections(context.sources, context.home or context.root, context.secrets)


@contextmanager
def _troubled() -> Iterator[None]:
    """Turn `Problems` with a secret into `SourceTrouble`."""
    try:
        yield
    except Problems as problems:
        raise SourceTrouble(problems.found[0].message) from None


def distinct(rows: list[Any], columns: tuple[str, ...] | None) -> list[Any]:
    """Return the first row for each combination of values in `columns`, or all rows when no columns are given."""
    if not columns:
        return rows
    firsts: dict[Any, Any] = {}
    for row in rows:
        missing = next((column for column in columns if column not in row), None)
        if missing is not None:
            raise SourceTrouble(f"`distinct`: {row.missing(missing)}", *row.row)
        firsts.setdefault(tuple(str(row[column]) for column in columns), row)
    return list(firsts.values())


def variables_of(context: LoadContext) -> Mapping[str, Any]:
    """Return the values of `var` and `env` in templates, each with its own message for a missing name."""
    from syncengine.templating.values import Named

    def no_variable(name: str) -> str:
        return f"there is no variable `{name}`{suggestion(name, context.variables)}"

    def no_environment(name: str) -> str:
        if name in context.allowed:
            return f"the environment variable {name} is not set"
        hint = suggestion(name, context.allowed)
        return f"the environment variable {name} is not listed under `allowEnv` in the project file{hint}"

    return {"var": Named(context.variables, no_variable), "env": Named(context.environ, no_environment)}
