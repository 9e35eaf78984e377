"""Where rows come from, as a manifest says it → all rows of it, once a run. Reads files, databases, services.

A source that cannot be read is trouble, never an empty list (docs/planning.md 2.7).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from syncengine.document.diagnostics import suggestion
from syncengine.document.digest import sha256_of, sha256_of_parts
from syncengine.document.model_reader import shown
from syncengine.document.template_types import Written
from syncengine.errors import Problems
from syncengine.manifest.context import MAX_SOURCE_BYTES, LoadContext, OutsideProject
from syncengine.manifest.generate_schema import ForEach, HttpFrom, SqlFrom
from syncengine.manifest.sources.files import READERS, Form
from syncengine.manifest.sources.records import Records, SourceTrouble, records
from syncengine.project.connections import Connections

FILE_KINDS = ("csv", "json", "jsonl", "yaml")


def read_source(given: LoadContext, folder: Path, asked: ForEach) -> Records:
    """All rows; SourceTrouble says why there are none to be had."""
    for kind in FILE_KINDS:
        written: Written | None = getattr(asked, "json_" if kind == "json" else kind)
        if written is not None:
            form = Form(asked.encoding or "utf-8", asked.delimiter or ",", asked.columns or ())
            return read_file(given, folder, written.text, kind, form)
    if asked.sql is not None:
        return _of_sql(given, folder, asked.sql)
    assert asked.http is not None
    http = asked.http
    question = _question(http.path, http.query, http.items)
    return _remembered(given, ("http", repr(http)), http.source.text, question, lambda: _http(given, http))


def _of_sql(given: LoadContext, folder: Path, asked: SqlFrom) -> Records:
    question = _question(asked.query, asked.params)
    if asked.file is None:
        name = asked.source.text if asked.source else ""
        return _remembered(given, ("sql", repr(asked)), name, question, lambda: _sql(given, asked))
    from syncengine.manifest.sources.sql import sql_rows

    path = inside(given, asked.file.text, folder)
    name = given.name_of(path)
    rows = lambda: sql_rows(name, str(path), asked.query.text, _parameters(asked))  # noqa: E731 - read when it is not known
    return _remembered(given, ("sql", path, repr(asked)), name, question, rows)


def _question(*parts: Any) -> str:
    """A digest of what is asked, wherever it is written."""
    return sha256_of(repr([_plain(part) for part in parts]))[:16]


def _plain(part: Any) -> Any:
    if isinstance(part, Mapping):
        return sorted((name, _plain(value)) for name, value in part.items())
    return part.text if isinstance(part, Written) else part


def _parameters(asked: SqlFrom) -> dict[str, Any]:
    return {n: value.text if isinstance(value, Written) else value for n, value in (asked.params or {}).items()}


def read_file(given: LoadContext, folder: Path, name: str, kind: str, form: Form) -> Records:
    """The rows of a file, as seen from the folder of its manifest."""
    path = inside(given, name, folder)
    shown_as = given.name_of(path)
    data = content(path, name)
    sha256 = sha256_of(data)
    known: Records | None = given.memo.get(memory := (path, sha256, kind, form))
    if known is None:
        known = Records(shown_as, records(shown_as, READERS[kind](data, shown_as, form)), sha256)
        given.memo[memory] = known
    return known


def file_digest(given: LoadContext, folder: Path, name: str) -> str:
    """What a file's rows depend on; its trouble, if it cannot be read."""
    try:
        return sha256_of(content(inside(given, name, folder), name))
    except SourceTrouble as trouble:
        return str(trouble)


def inside(given: LoadContext, name: str, folder: Path) -> Path:
    """The file, if manifests may read it."""
    try:
        return given.data(name, folder)
    except (OutsideProject, OSError, ValueError, RuntimeError) as error:
        raise SourceTrouble(f"{shown(name)}: {error}") from None


def content(path: Path, name: str) -> bytes:
    """The bytes of a regular file of bearable size."""
    try:
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "there is no such file"
            raise SourceTrouble(f"{shown(name)}: {what}")
        if path.stat().st_size > MAX_SOURCE_BYTES:
            raise SourceTrouble(f"{shown(name)}: the file is larger than {MAX_SOURCE_BYTES // 1024 // 1024} MB")
        return path.read_bytes()
    except OSError as error:
        raise SourceTrouble(f"{shown(name)}: the file cannot be read: {error.strerror or error}") from None


def _remembered(given: LoadContext, key: object, name: str, question: str, read: Any) -> Records:
    """What is asked every run is asked once a run."""
    if key not in given.memo:
        try:
            rows = records(name, read())
            given.memo[key] = Records(name, rows, _digest(rows), live=True, question=question)
        except SourceTrouble as trouble:
            given.memo[key] = trouble
    found = given.memo[key]
    if isinstance(found, SourceTrouble):
        raise SourceTrouble(*found.args)
    answer: Records = found
    return answer


def _digest(rows: list[Any]) -> str:
    """As `row_reuse.row_digest`: types count, since templates tell `1` from `'1'`."""
    return sha256_of_parts(repr(row).encode() for row in rows)


def _sql(given: LoadContext, asked: SqlFrom) -> Iterator[tuple[int, Any]]:
    from syncengine.manifest.sources.sql import sql_rows

    assert asked.source is not None
    source, name = _named(given, asked.source, "sql"), asked.source.text
    with _troubled():
        url = _connections(given).database_url(source, f"the URL of the source {name}")
    yield from sql_rows(name, url, asked.query.text, _parameters(asked))


def _http(given: LoadContext, asked: HttpFrom) -> Iterator[tuple[int, Any]]:
    from syncengine.manifest.sources.http import HttpQuery, http_rows

    source, name = _named(given, asked.source, "http"), asked.source.text
    found = _connections(given).http(
        source, f"the URL of the source {name}", lambda header: f"header {header} of the source {name}"
    )
    with _troubled():
        url = found.url()
        headers = {
            header: value.text if isinstance(value, Written) else found.secrets[header]()
            for header, value in found.headers.items()
        }
    if not all(value.isascii() and value.isprintable() for value in headers.values()):
        raise SourceTrouble(f"{name}: a header contains characters that cannot be sent")
    paging = asked.paging
    question = HttpQuery(
        path=asked.path.text if asked.path else "",
        query={n: v.text if isinstance(v, Written) else str(v) for n, v in (asked.query or {}).items()},
        items=_steps(asked.items),
        next=_steps(paging.next if paging else None),
        page=paging.page if paging else None,
        first=paging.first if paging and paging.first is not None else 1,
    )
    yield from http_rows(name, url, headers, found.timeout, question)


def _named(given: LoadContext, written: Written, kind: str) -> Any:
    source = given.sources.get(written.text)
    if source is None:
        hint = suggestion(written.text, sorted(given.sources))
        hint = hint or ("" if given.sources else "; the project file has no `sources:`")
        raise SourceTrouble(f"there is no source `{shown(written.text)}`{hint}")
    if (found := getattr(source, kind)) is None:
        raise SourceTrouble(f"the source `{shown(written.text)}` is not of the kind `{kind}`")
    return found


def _connections(given: LoadContext) -> Connections:
    return Connections(given.sources, given.root, given.secrets)


@contextmanager
def _troubled() -> Iterator[None]:
    """A secret that is not there is trouble of the source."""
    try:
        yield
    except Problems as problems:
        raise SourceTrouble(problems.found[0].message) from None


def _steps(text: str | None) -> tuple[str, ...]:
    return tuple(step for step in (text or "").split(".") if step)


def distinct(rows: list[Any], columns: tuple[str, ...]) -> list[Any]:
    """Of rows with the same values in the columns, the first."""
    found: dict[Any, Any] = {}
    for row in rows:
        missing = next((column for column in columns if column not in row), None)
        if missing is not None:
            raise SourceTrouble(f"`distinct`: {row.missing(missing)}", *row.row)
        found.setdefault(tuple(str(row[column]) for column in columns), row)
    return list(found.values())


def variables_of(given: LoadContext) -> Mapping[str, Any]:
    """`var` and `env`, each with what it says of a name that it has not."""
    from syncengine.templating.values import Named

    def no_variable(name: str) -> str:
        return f"there is no variable `{name}`{suggestion(name, given.variables)}"

    def no_environment(name: str) -> str:
        if name in given.allowed:
            return f"the environment variable {name} is not set"
        return f"the environment variable {name} is not listed under `allowEnv`{suggestion(name, given.allowed)}"

    return {"var": Named(given.variables, no_variable), "env": Named(given.environ, no_environment)}
