"""Build a first `generate` block from the header of a CSV file. Reads the file."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from syncengine.document.nodes import quoted
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.manifest.sources.files import (
    DELIMITERS,
    Form,
    csv_rows,
    header_troubles,
    starts_of,
    text_of,
    wide_encoding,
)
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.project.content import content_of
from syncengine.templating.values import is_template

UTF_8, WESTERN = "utf-8", "cp1252"
"""The encodings to try, in this order; a file that is neither is refused."""
MANIFEST = "manifests/matters.yaml"
NAMES = (
    *("aktenzeichen", "name", "number", "matter", "matterno", "matternumber", "no", "code", "key", "ref", "reference"),
    *("az", "akte", "aktennummer", "aktennr", "geschaftszeichen", "nummer", "nr", "projektnummer", "kurzel", "id"),
)
DESCRIPTIONS = (
    *("description", "title", "subject", "matterdescription", "mattertitle", "label", "text"),
    *("beschreibung", "bezeichnung", "titel", "betreff", "kurzrubrum", "rubrum"),
)
EXTERNAL_IDS = ("externalid", "id", "uuid", "guid", "matterid")
URLS = ("url", "link", "href")
KEYWORDS = (
    *("keywords", "keyword", "schlagworter", "schlagwoerter", "schlagworte", "schlagwort"),
    *("stichworter", "stichwoerter", "stichworte", "stichwort"),
)
"""Common names of columns for each field, likeliest first, without blanks, punctuation and diacritics."""
LONGEST_HEADER = 1 << 16
"""The number of leading characters that must contain the header."""
_QUOTED = re.compile(r'"[^"]*+"')
"""Text in quotes, in which delimiters and line breaks do not count."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_METHODS = frozenset({"items", "keys", "values", "get", "row"})


class CsvTable(NamedTuple):
    """The contents of a CSV file. `rows` pairs each row with the line in which it starts."""

    delimiter: str
    encoding: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[int, Mapping[str, str]]] = ()


def generated(file: Path, name: str, folder: Path) -> dict[str, str | bytes]:
    """Return the files that generate tags from `file`: a manifest, and a copy of a file that is outside the project.

    The copy is identical, so that the next export can replace it. `name` is the file's name in messages.
    """
    table = table_of(file, name)
    inside = file.resolve().is_relative_to(folder.resolve())
    where = file.resolve().relative_to(folder.resolve()).as_posix() if inside else f"data/{file.name}"
    manifest = manifest_of(table, f"../{where}")
    return {MANIFEST: manifest} if inside else {MANIFEST: manifest, where: content_of(file, name)}


def repeats_of(file: Path, name: str) -> list[str]:
    """Return a sentence for each name that more than one row has, since the block uses only the first such row."""
    table = table_of(file, name)
    column = _called(table.columns, NAMES) or table.columns[0]
    lines: dict[str, list[int]] = {}
    for line, row in table.rows:
        lines.setdefault(row[column], []).append(line)
    return [
        f"{name}: column {quoted(column)} has {quoted(text)} in lines {', '.join(map(str, found[:5]))}"
        f"{' and more' * (len(found) > 5)}; only the first is used (`distinct`)"
        for text, found in lines.items()
        if len(found) > 1
    ]


def table_of(file: Path, name: str) -> CsvTable:
    """Return delimiter, encoding, columns and rows. Raise `Problems` with everything that would fail when planning."""
    data = content_of(file, name)
    try:
        encoding = _encoding(data, name)
        text = text_of(data, name, encoding).lstrip("\r\n")
        head = _QUOTED.sub("", text[:LONGEST_HEADER]).splitlines()
        delimiter = max(DELIMITERS, key=head[0].count) if head else ","
        columns = _header(text, name, delimiter, data.count(b"\n", 0, len(data) - len(data.lstrip(b"\r\n"))) + 1)
        return CsvTable(delimiter, encoding, columns, list(csv_rows(data, name, Form(encoding, delimiter))))
    except SourceTrouble as trouble:
        raise Problems([_problem(name, trouble.message, trouble.line or 1)]) from None


def _encoding(data: bytes, name: str) -> str:
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16"
    if wide := wide_encoding(data):
        return wide
    for encoding in (UTF_8, WESTERN):
        with suppress(UnicodeDecodeError):
            data.decode(encoding)
            return encoding
    raise SourceTrouble(f"the file is neither {UTF_8} nor {WESTERN}: save it as UTF-8", name, 1)


def _header(text: str, name: str, delimiter: str, line: int) -> tuple[str, ...]:
    """Return the column names as a manifest source has them. Raise `Problems` with every problem of the header."""
    try:
        header = next(csv.reader(io.StringIO(text, newline=None), delimiter=delimiter), [])
    except csv.Error as error:
        raise SourceTrouble(f"the header cannot be read: {error}", name, line) from None
    columns = tuple(column.strip() for column in header)
    if not columns:
        raise SourceTrouble("the file has no header", name, 1)
    starts = starts_of(text.partition("\n")[0], delimiter)
    troubles = header_troubles(columns)
    found = [_problem(name, message, line, starts[at] if at < len(starts) else 1) for at, message in troubles]
    if found:
        raise Problems(found)
    return columns


def _problem(name: str, message: str, line: int, column: int = 1) -> Diagnostic:
    return Diagnostic(severity=Severity.ERROR, code="bad-source", message=message, file=name, line=line, column=column)


def manifest_of(table: CsvTable, path: str) -> str:
    """Return a manifest with one block, whose fields are guessed from the column names, for a person to correct."""
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
        "# One tag for each row. The fields were guessed from the names of the columns: check them before you apply.",
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


def _for_each(table: CsvTable, path: str, name: str) -> Iterable[str]:
    yield f"csv: {_quoted(path)}"
    if table.delimiter != ",":
        yield f"delimiter: {_quoted(table.delimiter) if table.delimiter != chr(9) else 'tab'}"
    if table.encoding != UTF_8:
        yield f"encoding: {table.encoding}"
    yield f"distinct: {_quoted(name)}"


def _fields(fields: Sequence[tuple[str, str]]) -> Iterable[str]:
    for number, (field, value) in enumerate(fields):
        yield f"      {'-' if not number else ' '} {field}: {value}"


def _called(columns: Iterable[str], names: Sequence[str]) -> str | None:
    """Return the column with the likeliest of `names`, or `None`."""
    simple = {re.sub(r"[\W_]", "", unicodedata.normalize("NFD", column)).casefold(): column for column in columns}
    return next((simple[name] for name in names if name in simple), None)


def _value(column: str, filters: str = "") -> str:
    """Return the template of a cell, as YAML."""
    is_plain = _IDENTIFIER.fullmatch(column) and column not in _METHODS
    cell = f"matter.{column}" if is_plain else f"matter[{_escaped(column)}]"
    return _quoted(f"{{{{ {cell}{filters} }}}}")


def _name(column: str) -> str:
    """Return a column's name as a metadata name in YAML, escaped if it would be read as a template."""
    return _quoted(f"{{{{ {_escaped(column)} }}}}" if is_template(column) else column)


def _escaped(text: str) -> str:
    """Return text in double quotes that YAML and Jinja2 both read alike."""
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in text) + '"'


def _quoted(text: str) -> str:
    """Return text as a YAML scalar, without quotes if it cannot be misread."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_ ./-]*[A-Za-z0-9]|\.\./[A-Za-z0-9_./-]+", text) and text.lower() not in _WORDS:
        return text
    return "'" + text.replace("'", "''") + "'" if '"' in text and text.isprintable() else _escaped(text)


_ESCAPES = {'"': '\\"', "\\": "\\\\"}
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off"})
