"""a CSV file → a first `generate` block made from its header, and the file's place in the project. Reads the file."""

from __future__ import annotations

import csv
import io
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from syncengine.document.nodes import quoted
from syncengine.errors import Diagnostic, Problems, Severity, SyncengineError

DELIMITERS = ",;\t|"
ENCODINGS = ("utf-8-sig", "cp1252")
"""Tried in this order; what neither can read is told."""
MANIFEST = "manifests/matters.yaml"
NAMES = ("name", "number", "matter", "matterno", "matternumber", "no", "code", "key", "ref", "reference", "id")
DESCRIPTIONS = ("description", "title", "subject", "matterdescription", "mattertitle", "label", "text")
EXTERNAL_IDS = ("externalid", "id", "uuid", "guid", "matterid")
URLS = ("url", "link", "href")
KEYWORDS = ("keywords", "keyword")
"""What columns are called that say this, without blanks and signs, the likeliest first."""
LONGEST_HEADER = 1 << 16
"""Letters in which the header ends."""
_QUOTED = re.compile(r'"[^"]*+"')
"""What stands in quotes separates nothing, and may hold line breaks."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_METHODS = frozenset({"items", "keys", "values", "get", "row"})


class Table(NamedTuple):
    """What the first lines of a CSV file tell."""

    text: str
    delimiter: str
    encoding: str
    columns: tuple[str, ...]


def generated(file: Path, folder: Path) -> dict[str, str]:
    """The files that generate tags from `file`: a manifest, and a copy of the data unless it is in the project."""
    table = table_of(file)
    inside = file.resolve().is_relative_to(folder.resolve())
    name = file.resolve().relative_to(folder.resolve()).as_posix() if inside else f"data/{file.name}"
    written = table if inside else table._replace(encoding=ENCODINGS[0])
    manifest = {MANIFEST: manifest_of(written, f"../{name}")}
    return manifest if inside else {**manifest, name: table.text}


def repeats_of(file: Path) -> list[str]:
    """What the block leaves out of the file: a sentence for each name that more than one row has, the first of them."""
    table = table_of(file)
    name = table.columns.index(_called(table.columns, NAMES) or table.columns[0])
    rows = csv.reader(io.StringIO(table.text, newline=""), delimiter=table.delimiter)
    lines: dict[str, list[int]] = {}
    line = 1
    with suppress(csv.Error):  # which the first `validate` tells with its place
        for row in rows:
            if line > 1 and len(row) > name:
                lines.setdefault(row[name], []).append(line)
            line = rows.line_num + 1
    return [
        f"{file.name}: {table.columns[name]} {quoted(text)} is in lines {', '.join(map(str, found[:5]))}"
        f"{' and more' * (len(found) > 5)}, of which the first counts (`distinct`)"
        for text, found in lines.items()
        if len(found) > 1
    ]


def table_of(file: Path) -> Table:
    """Delimiter, encoding and columns. Problems if it is no table with a header."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise SyncengineError(f"{file}: cannot be read: {error.strerror}", code="unreadable-file") from None
    encoding, text = _decoded(data, file)
    delimiter = max(DELIMITERS, key=_QUOTED.sub("", text[:LONGEST_HEADER]).partition("\n")[0].count)
    try:
        header = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
    except csv.Error as error:
        raise _problem(file, f"the header cannot be read: {error}") from None
    columns = tuple(name.strip() for name in header)  # as a source of a manifest has them
    if not any(columns):
        raise _problem(file, "the file has no header")
    for number, column in enumerate(columns):
        if not column or column in columns[:number]:
            raise _problem(file, f"column {number + 1} of the header has no name of its own")
    return Table(text, delimiter, encoding, columns)


def _decoded(data: bytes, file: Path) -> tuple[str, str]:
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16", data.decode("utf-16", "replace")
    for encoding in ENCODINGS:
        try:
            if "\0" not in (text := data.decode(encoding)):
                return encoding, text
        except UnicodeDecodeError:
            continue
    raise _problem(file, f"the file is neither {' nor '.join(ENCODINGS)}; save it as UTF-8")


def _problem(file: Path, message: str) -> Problems:
    found = Diagnostic(severity=Severity.ERROR, code="bad-source", message=message, file=file.name, line=1, column=1)
    return Problems([found])


def manifest_of(table: Table, path: str) -> str:
    """A manifest with one block; what its columns mean is guessed from their names, for a person to correct."""
    columns = table.columns
    name = _called(columns, NAMES) or columns[0]
    used = {name: "name"}
    for field, names in (("description", DESCRIPTIONS), ("externalId", EXTERNAL_IDS), ("url", URLS)):
        column = _called([column for column in columns if column not in used], names)
        if column is not None:
            used[column] = field
    fields = [(field, _value(column)) for column, field in used.items()]
    if (keywords := _called([column for column in columns if column not in used], KEYWORDS)) is not None:
        used[keywords] = "keywords"
        fields.append(("keywords", _value(keywords, " | words(',;')")))
    rest = [column for column in columns if column not in used]
    lines = [
        "# yaml-language-server: $schema=../schemas/manifest.schema.json",
        "#",
        "# One tag for each row. What the columns mean was guessed from their names: read it before you apply it.",
        "",
        "defaults:",
        "  tags: {visibility: PUBLIC, managedBy: syncengine}",
        "",
        "generate:",
        f"  - forEach: {{{', '.join(_for_each(table, path, name))}}}",
        "    as: matter",
        "    tags:",
        *_fields(fields),
    ]
    if rest:
        lines += ["        metadata:", *(f"          {_name(column)}: {_value(column)}" for column in rest)]
    return "\n".join(lines) + "\n"


def _for_each(table: Table, path: str, name: str) -> Iterable[str]:
    yield f"csv: {_quoted(path)}"
    if table.delimiter != ",":
        yield f"delimiter: {_quoted(table.delimiter) if table.delimiter != chr(9) else 'tab'}"
    if table.encoding != ENCODINGS[0]:
        yield f"encoding: {table.encoding}"
    yield f"distinct: {_quoted(name)}"


def _fields(fields: Sequence[tuple[str, str]]) -> Iterable[str]:
    for number, (field, value) in enumerate(fields):
        yield f"      {'-' if not number else ' '} {field}: {value}"


def _called(columns: Iterable[str], names: Sequence[str]) -> str | None:
    """The column that has the likeliest of the names."""
    simple = {re.sub(r"[\W_]", "", column).casefold(): column for column in columns}
    return next((simple[name] for name in names if name in simple), None)


def _value(column: str, filters: str = "") -> str:
    """The template of a cell, as YAML."""
    is_plain = _IDENTIFIER.fullmatch(column) and column not in _METHODS
    cell = f"matter.{column}" if is_plain else f"matter[{_escaped(column)}]"
    return _quoted(f"{{{{ {cell}{filters} }}}}")


def _name(column: str) -> str:
    """A column's name as one of metadata, as YAML; names are templates too, so what looks like one is made text."""
    return _quoted(f"{{{{ {_escaped(column)} }}}}" if any(mark in column for mark in _MARKS) else column)


def _escaped(text: str) -> str:
    """Text in double quotes, as YAML and Jinja2 both read it."""
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in text) + '"'


def _quoted(text: str) -> str:
    """As a scalar of YAML: bare where nothing in it could mean something else."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_ ./-]*[A-Za-z0-9]|\.\./[A-Za-z0-9_./-]+", text) and text.lower() not in _WORDS:
        return text
    return "'" + text.replace("'", "''") + "'" if '"' in text and text.isprintable() else _escaped(text)


_MARKS = ("{{", "{%", "{#")
_ESCAPES = {'"': '\\"', "\\": "\\\\"}
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off"})
