"""A query of a manifest → all rows of its source, read once per run. Reads files, databases, services.

A source that cannot be read is an error, never an empty list (docs/planning.md 2.7).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from syncengine.content import sha256_of, sha256_of_parts, sha256_or_empty
from syncengine.document.diagnostics import suggestion
from syncengine.document.validation import display
from syncengine.errors import Problems
from syncengine.manifest.context import MAX_SOURCE_BYTES, Asks, Input, LoadContext, OutsideProject, near_name
from syncengine.manifest.sources.files import READERS, Form
from syncengine.manifest.sources.records import HttpQuery, LeftOut, Records, SourceTrouble, SqlQuery, records
from syncengine.project.connections import Connections
from syncengine.project.delivery_schema import Paging
from syncengine.project.types import Written
from syncengine.templating.values import Named

_UNREADABLE = (OutsideProject, SourceTrouble, OSError, ValueError, RuntimeError)
"""What the look-up of a path and the reading of a file raise; a path may have a NUL byte or a cycle of links."""


class FileQuery(NamedTuple):
    """The rows of a data file, whose `path` is relative to its manifest's folder. `kind` is a key of `READERS`."""

    kind: str
    path: str
    form: Form = Form()


Query = FileQuery | SqlQuery | HttpQuery


def read_source(context: LoadContext, folder: Path, query: Query) -> Records:
    """Return all rows of a source. Raise `SourceTrouble` with the reason when it cannot be read."""
    if isinstance(query, FileQuery):
        return _of_data_file(context, folder, query)
    leave_out_offline(context, query.source)
    question = packed(query)
    try:
        answer = _answer(context, folder, query)
    except SourceTrouble as trouble:
        context.record(Asks.ROWS, question, str(trouble))
        raise
    context.record(Asks.ROWS, question, _digest(answer.sha256, answer.name))
    return answer


def _digest(sha256: str, name: str) -> str:
    """Return the digest of a source's content and name, since a link may come to lead to an equal file elsewhere."""
    return f"{sha256} {name}"


def leave_out_offline(context: LoadContext, source: str | None) -> None:
    """Raise `LeftOut` for a database or service of the project file when the context is offline."""
    if context.is_offline and source is not None:
        context.record(Asks.OFFLINE, "", str(context.is_offline))
        message = f"left out: the source {display(source)} is not in Git"
        raise LeftOut(f"{message}; resources from its rows count neither as new nor as removed")


def _of_data_file(context: LoadContext, folder: Path, query: FileQuery) -> Records:
    kind, name, form = query
    try:
        path = _inside(context, name, folder)
        data = _content(path, name)
    except SourceTrouble as trouble:
        context.record(Asks.DATA, name, str(trouble))
        raise
    shown_as, sha256 = context.name_of(path), sha256_of(data)
    context.record(Asks.DATA, name, _digest(sha256, shown_as))
    context.note_named(name, folder, path, sha256)
    known: Records | None = context.memo.get(key := (path, sha256, kind, form))
    if known is None:
        known = Records(shown_as, records(shown_as, READERS[kind](data, shown_as, form)), sha256)
        context.memo[key] = known
    return known


def _answer(context: LoadContext, folder: Path, query: SqlQuery | HttpQuery) -> Records:
    """Return the rows of a query, which is asked once: a SQLite file by this side, others for both sides of a plan."""
    name, path = query.source or "", None
    store, key = context.answers, (query.key, repr(context.sources.get(name)))
    if isinstance(query, SqlQuery) and query.file is not None:
        path = _inside(context, query.file, folder)
        name = context.name_of(path)
        store, key = context.memo, (query.key, str(path))
        for file in (path, path.with_name(f"{path.name}-wal")):
            context.note(file, sha256_or_empty(file))  # SQLite makes and removes an empty `-wal` as it likes
    if key not in store:
        try:
            rows = records(name, _rows(context, query, name, path))
            # The types of values count, since templates distinguish `1` from `'1'`.
            sha256 = sha256_of_parts(repr(row).encode() for row in rows)
            store[key] = Records(name, rows, sha256, live=True, question=query.question)
        except SourceTrouble as trouble:
            store[key] = trouble
    entry = store[key]
    if isinstance(entry, SourceTrouble):
        raise SourceTrouble(*entry.args)
    answer: Records = entry
    return answer


def _rows(context: LoadContext, query: SqlQuery | HttpQuery, name: str, path: Path | None) -> Iterator[tuple[int, Any]]:
    """Yield the numbered rows of a query: of the SQLite file `path`, or of a source of the project file."""
    connections = Connections(context.sources, context.home or context.root, context.secrets)
    if isinstance(query, SqlQuery):
        from syncengine.manifest.sources.sql import sql_rows  # most projects have neither a database nor a service

        url = str(path)
        if path is None:
            with _troubled():
                url = connections.database_url(_named(context, name, "sql"), f"the URL of the source {name}")
        yield from sql_rows(name, url, query.text, query.params or {})
        return
    from syncengine.manifest.sources.http import http_rows

    source = _named(context, name, "http")
    connection = connections.http(
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
    yield from http_rows(name, url, headers, connection.timeout, query)


def _named(context: LoadContext, name: str, kind: str) -> Any:
    source = context.sources.get(name)
    if source is None:
        hint = suggestion(name, sorted(context.sources))
        hint = hint or ("" if context.sources else "; the project file has no `sources:`")
        raise SourceTrouble(f"there is no source `{display(name)}`{hint}")
    if (section := getattr(source, kind)) is None:
        raise SourceTrouble(f"the source `{display(name)}` is not of the kind `{kind}`")
    return section


@contextmanager
def _troubled() -> Iterator[None]:
    """Turn `Problems` with a secret into `SourceTrouble`."""
    try:
        yield
    except Problems as problems:
        raise SourceTrouble(problems.found[0].message) from None


def template_bytes(context: LoadContext, name: str) -> bytes:
    """Return the bytes of a template of the project. Raise `OutsideProject` or `SourceTrouble` if it cannot be read."""
    try:
        path = context.template(name)
        if not path.name.lower().endswith(".j2"):
            raise OutsideProject("only templates (.j2) can be included")
        data = _content(path, name)
    except _UNREADABLE as error:
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
                path = _inside(context, one.question, folder)
                sha256 = sha256_of(_content(path, one.question))
                context.note_named(one.question, folder, path, sha256)
                return _digest(sha256, context.name_of(path))
            case Asks.TEMPLATE:
                return sha256_of(template_bytes(context, one.question))
            case Asks.ROWS:
                if (query := unpacked(one.question)) is None:
                    return ""
                answer = read_source(context, folder, query)
                return _digest(answer.sha256, answer.name)
            case Asks.OFFLINE:
                return str(context.is_offline)
    except _UNREADABLE as error:
        return str(error)


def packed(query: SqlQuery | HttpQuery) -> str:
    """Return a query as text, of which `unpacked` makes an equal one, or an empty text if it has unusual parameters.

    Parameters keep their types, which decide the question that a database is asked: a decimal number becomes a list.
    """
    plain = (str, int, float, Decimal, type(None))
    params = {name: [str(v)] if isinstance(v, Decimal) else v for name, v in (query.params or {}).items()}
    if not all(isinstance(value, plain) for value in (query.params or {}).values()):
        return ""
    fields = {**query._asdict(), "params": None if query.params is None else params}
    if isinstance(query, HttpQuery):
        fields["paging"] = {name: value for name, value in query.paging.__dict__.items() if value is not None}
    return json.dumps(fields)


def unpacked(text: str) -> SqlQuery | HttpQuery | None:
    """Return the query that `packed` made a text of, or `None` if it could not, or another version did."""
    try:
        fields = json.loads(text)
        if fields["params"] is not None:
            params = fields["params"].items()
            fields["params"] = {name: Decimal(v[0]) if isinstance(v, list) else v for name, v in params}
        if "text" in fields:
            return SqlQuery(**fields)
        fields |= {"paging": Paging.model_construct(**fields["paging"]), "items": tuple(fields["items"])}
        return HttpQuery(**fields)
    except (AttributeError, TypeError, LookupError, ValueError, ArithmeticError):
        return None


def _inside(context: LoadContext, name: str, folder: Path) -> Path:
    """Return the path of a data file. Raise `SourceTrouble` if manifests may not read it."""
    try:
        return context.data(name, folder)
    except (OutsideProject, OSError, ValueError, RuntimeError) as error:
        raise SourceTrouble(f"{display(name)}: {error}") from None


def _content(path: Path, name: str) -> bytes:
    """Return the bytes of a regular file. Raise `SourceTrouble` when it is missing, unreadable or too large."""
    try:
        if not path.is_file():
            what = "this is a folder" if path.is_dir() else "this is not a regular file"
            what = what if os.path.lexists(path) else f"the file does not exist{near_name(path)}"
            raise SourceTrouble(f"{display(name)}: {what}")
        if path.stat().st_size > MAX_SOURCE_BYTES:
            raise SourceTrouble(f"{display(name)}: the file is larger than {MAX_SOURCE_BYTES // 1024 // 1024} MB")
        return path.read_bytes()
    except OSError as error:
        raise SourceTrouble(f"{display(name)}: the file cannot be read: {error.strerror or error}") from None


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

    def no_variable(name: str) -> str:
        return f"there is no variable `{name}`{suggestion(name, context.variables)}"

    def no_environment(name: str) -> str:
        if name in context.allowed:
            return f"the environment variable {name} is not set"
        hint = suggestion(name, context.allowed)
        return f"the environment variable {name} is not listed under `allowEnv` in the project file{hint}"

    return {"var": Named(context.variables, no_variable), "env": Named(context.environ, no_environment)}
