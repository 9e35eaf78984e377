"""Build a first `generate` block from the header of a CSV file. Reads the file."""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from syncengine.document.nodes import quoted
from syncengine.document.text import foreign, with_line_feeds
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.manifest.sources.files import Form, csv_rows, likely_delimiter, text_of, wide_encoding
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.project.files import content_of
from syncengine.templating.values import is_template
from syncengine.tools.init.columns import (
    MATTERS,
    NoIdentity,
    Rows,
    StatusColumn,
    header_below,
    holds_addresses,
    identity_of,
    is_row,
    joined,
    listed,
    names_matters,
    names_persons,
    status_of,
    total_of,
)

UTF_8, WESTERN = "utf-8", "cp1252"
"""The encodings to try, in this order; a file that is neither is refused."""
MANIFEST = "manifests/matters.yaml"
VISIBILITY = (
    "PRIVATE: only authorised members of the team see a tag. PUBLIC: all do; to open it later needs an approval."
)
DESCRIPTIONS = (
    *("description", "title", "subject", "summary"),
    *(matter + word for word in ("description", "desc", "title", "name") for matter in MATTERS),
    *("matter", "case", "label", "text", "re", "name", "beschreibung", "bezeichnung", "titel", "betreff", "kurzrubrum"),
    *("rubrum", "kurzbezeichnung", "langbezeichnung", "objet", "intitule", "libelle", "asunto", "oggetto"),
    *("descripcion", "descrizione", "descricao", "omschrijving"),
)
EXTERNAL_IDS = ("externalid", "id", "uuid", "guid", *(f"{matter}id" for matter in MATTERS))
URLS = ("url", "link", "href")
KEYWORDS = (
    *("keywords", "keyword", "schlagworter", "schlagwoerter", "schlagworte", "schlagwort"),
    *("stichworter", "stichwoerter", "stichworte", "stichwort"),
)
"""Common names of columns for each field, likeliest first, without blanks, punctuation and diacritics."""
_USUAL = frozenset((*DESCRIPTIONS, *EXTERNAL_IDS, *URLS, *KEYWORDS, "client", "status"))
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_METHODS = frozenset({"items", "keys", "values", "get", "row"})


class CsvTable(NamedTuple):
    """The contents of a CSV file. `rows` pairs each row with the line in which it starts.

    `header_below` is the line of a later header, if the first line seems to be none.
    """

    header_below: int | None
    delimiter: str
    encoding: str
    columns: tuple[str, ...]
    rows: Rows


class Generated(NamedTuple):
    """The files that generate tags, and what a person has to look at.

    `left_out` are the columns that may hold persons or addresses, `status` is the column that may say which matters are
    closed, `total` the line of a last row that may be none, with the cell that says so, and `first_row` a name of a
    column that looks like its values, where no other is known.
    """

    files: dict[str, str | bytes] = {}  # noqa: RUF012 - never changed
    left_out: tuple[str, ...] = ()
    status: StatusColumn | None = None
    total: tuple[int, str] | None = None
    first_row: str | None = None


def generated(file: Path, name: str, folder: Path, key: str | None, command: Callable[[str], str]) -> Generated:
    """Return the files that generate tags from `file`: a manifest, and a copy of a file that is outside the project.

    The copy is identical, so that the next export can replace it. `name` is the file's name in messages, and `key` the
    column of the identity, which is chosen by its header if there is none. Raise `Problems` if no column can be the
    identity, with the `command` that names the likeliest.
    """
    table = table_of(file, name)
    try:
        identity = identity_of(table.columns, table.rows, key)
    except NoIdentity as error:
        likeliest = next(iter(error.candidates or ()), None)
        if likeliest is not None:
            _refuse_row(likeliest, table, name)
        cure = _above(table.header_below) or _cure(error, table.rows, command)
        raise Problems([_problem(name, f"{error}{cure}", 1, code="no-identity")]) from None
    _refuse_row(identity, table, name)
    inside = file.resolve().is_relative_to(folder.resolve())
    where = file.resolve().relative_to(folder.resolve()).as_posix() if inside else f"data/{file.name}"
    status = status_of([column for column in table.columns if column != identity], table.rows)
    manifest, left_out = manifest_of(table, f"../{where}", identity, status)
    copy = {} if inside else {where: content_of(file, name)}
    first = None
    if not any(names_matters(column) or joined(column) in _USUAL for column in table.columns):
        first = next((column for column in table.columns if is_row(column, table.rows)), None)
    return Generated({MANIFEST: manifest, **copy}, left_out, status, total_of(table.rows), first)


def _refuse_row(column: str, table: CsvTable, name: str) -> None:
    """Raise `Problems` if a column's name looks like its values: the first row would become the header."""
    if is_row(column, table.rows):
        message = (
            f"the first line looks like a row, not like a header: {quoted(column)} is like the values below it; write "
            "the names of the columns into a line above it, or into a `generate` block of your own: `columns: [number, "
            "title]`"
        )
        raise Problems([_problem(name, message, 1, code="no-header")])


def _above(header: int | None) -> str:
    return "" if header is None else f"; the header may be line {header}: delete what stands above it"


def _cure(error: NoIdentity, rows: Rows, command: Callable[[str], str]) -> str:
    cure = ""
    if error.is_repeated:
        cure = "; for one tag of all rows with the same value, write a `generate` block with `distinct: COLUMN`"
    if (total := total_of(rows)) is not None:
        cure += f"; line {total[0]} is perhaps no matter ({quoted(total[1])}): delete it"
    if error.candidates is None:
        return cure
    if not error.candidates:
        return f"; no column has a value in every row and no value twice: complete the file{cure}"
    candidates = listed(map(quoted, error.candidates))
    return f"; name one with --key: {candidates}, such as `{command(error.candidates[0])}`{cure}"


def table_of(file: Path, name: str) -> CsvTable:
    """Return delimiter, encoding, columns and rows. Raise `Problems` with what would fail when planning."""
    data, header = content_of(file, name), None
    try:
        encoding = _encoding(data, name)
        text = with_line_feeds(text_of(data, name, encoding))
        header, delimiter = header_below(text), likely_delimiter(text)
        rows = list(csv_rows(data, name, Form(encoding, delimiter)))
    except SourceTrouble as trouble:
        message = trouble.message + _above(header)
        raise Problems([_problem(name, message, trouble.line or 1, trouble.column or 1)]) from None
    if not rows:
        raise Problems([_problem(name, "the file has no rows below a header, so there is nothing to make tags of", 1)])
    return CsvTable(header, delimiter, encoding, tuple(rows[0][1]), rows)


def _encoding(data: bytes, name: str) -> str:
    if what := foreign(data):
        raise SourceTrouble(what, name, 1)
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16"
    if wide := wide_encoding(data):
        return wide
    for encoding in (UTF_8, WESTERN):
        with suppress(UnicodeDecodeError):
            data.decode(encoding)
            return encoding
    raise SourceTrouble(f"the file is neither {UTF_8} nor {WESTERN}: save it as UTF-8", name, 1)


def _problem(name: str, message: str, line: int, column: int = 1, code: str = "bad-source") -> Diagnostic:
    return Diagnostic(severity=Severity.ERROR, code=code, message=message, file=name, line=line, column=column)


def manifest_of(table: CsvTable, path: str, identity: str, status: StatusColumn | None) -> tuple[str, tuple[str, ...]]:
    """Return a manifest with one block, whose fields are guessed from the column names, for a person to correct.

    The second value are the columns that are left out.
    """
    values = {column: [row[column] for _, row in table.rows] for column in table.columns}
    free = [
        column
        for column in table.columns
        if column != identity and not names_persons(column) and not holds_addresses(values[column], whole=True)
    ]
    used = {identity: "name"}
    for field, names in (("description", DESCRIPTIONS), ("externalId", EXTERNAL_IDS), ("url", URLS)):
        column = _called([column for column in free if column not in used], names)
        if column is not None:
            used[column] = field
    ragged = {column for column, cells in values.items() if any(cell != cell.strip() for cell in cells)}
    empty = {column for column, cells in values.items() if not all(map(str.strip, cells))}

    def value(column: str, *, optional: bool = False) -> str:
        return _value(column, " | trim" * (column in ragged) + " or none" * (optional and column in empty))

    fields = [(field, value(column)) for column, field in used.items()]
    if (keywords := _called([column for column in free if column not in used], KEYWORDS)) is not None:
        used[keywords] = "keywords"
        fields.append(("keywords", _value(keywords, " | words(',;')")))
    rest = [column for column in free if column not in used and not holds_addresses(values[column])]
    left_out = tuple(column for column in table.columns if column not in used and column not in rest)
    lines = [
        "# yaml-language-server: $schema=../schemas/manifest.schema.json",
        "#",
        "# One tag for each row. The fields were guessed from the names of the columns: check them before you apply.",
        "",
        f"# {VISIBILITY}",
        "defaults:",
        "  tags: {visibility: PRIVATE, managedBy: syncengine}",
        "",
        "generate:",
        f"  - forEach: {{{', '.join(_for_each(table, path))}}}",
        "    as: matter",
        *([f"    # when: {_condition(status, trim=status.column in ragged)}"] if status else []),
        "    tags:",
        *(f"      {' ' if number else '-'} {field}: {value}" for number, (field, value) in enumerate(fields)),
    ]
    if rest:
        lines += [
            "        metadata:",
            *(f"          {_name(column)}: {value(column, optional=True)}" for column in rest),
        ]
    if left_out:
        lines += [
            "# These columns may hold persons or addresses, and are left out; to use one, move its line to `metadata`:",
            *(f"#         {_name(column)}: {value(column, optional=True)}" for column in left_out),
        ]
    return "\n".join(lines) + "\n", left_out


def _for_each(table: CsvTable, path: str) -> Iterable[str]:
    yield f"csv: {_quoted(path)}"
    if table.delimiter != ",":
        yield f"delimiter: {_quoted(table.delimiter) if table.delimiter != chr(9) else 'tab'}"
    if table.encoding != UTF_8:
        yield f"encoding: {table.encoding}"


def _called(columns: Iterable[str], names: Sequence[str]) -> str | None:
    """Return the column with the likeliest of `names`, or `None`."""
    simple = {joined(column): column for column in reversed(list(columns))}
    return next((simple[name] for name in names if name in simple), None)


def _value(column: str, filters: str = "") -> str:
    """Return the template of a cell, as YAML."""
    return _quoted(f"{{{{ {_cell(column)}{filters} }}}}")


def _cell(column: str) -> str:
    is_plain = _IDENTIFIER.fullmatch(column) and column not in _METHODS
    return f"matter.{column}" if is_plain else f"matter[{_escaped(column)}]"


def _condition(status: StatusColumn, *, trim: bool) -> str:
    """Return the condition that a matter is live, with the file's own values, as a plain scalar of YAML."""
    cell = _cell(status.column) + " | trim" * trim
    # In single quotes if nothing must be escaped.
    plain = (value.isprintable() and not {"'", "\\"} & set(value) for value in status.live)
    live = [f"'{value}'" if is_plain else _escaped(value) for value, is_plain in zip(status.live, plain, strict=True)]
    condition = f"{cell} == {live[0]}" if len(live) == 1 else f"{cell} in [{', '.join(live)}]"
    return condition if ": " not in condition and " #" not in condition else _quoted(condition)


def _name(column: str) -> str:
    """Return a column's name as a metadata name in YAML: on one line, and escaped if it would be read as a template."""
    if not column.isprintable():
        column = " ".join("".join(c if c.isprintable() else " " for c in column).split())
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
