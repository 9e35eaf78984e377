"""bytes of CSV, JSON, JSON lines or YAML → numbered rows, or SourceTrouble with the line of the data; pure."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from syncengine.document.findings import Findings
from syncengine.document.nodes import Mapping, Node, Refused, Scalar, Sequence, place, quoted
from syncengine.document.reader import read
from syncengine.manifest.records import SourceTrouble

Numbered = Iterator[tuple[int, Any]]

MAX_FIELD = 10_000_000
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,300})")
_FRACTION = re.compile(r"-?(?:0|[1-9][0-9]{0,100})\.[0-9]{1,100}")


class Form(NamedTuple):
    """How a file is to be read."""

    encoding: str = "utf-8"
    delimiter: str = ","
    columns: tuple[str, ...] = ()


def text_of(data: bytes, name: str, encoding: str) -> str:
    """The text; SourceTrouble names the line, the byte and the encoding that it probably is."""
    wanted = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    try:
        return data.decode(wanted)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte, likely = data[error.start], likely_encoding(data, encoding)
        hint = f"; the file is probably {likely}: write `encoding: {likely}`" if likely else ""
        raise SourceTrouble(f"{name}:{line}: byte 0x{byte:02x} is not {encoding.upper()}{hint}") from None


def likely_encoding(data: bytes, tried: str) -> str | None:
    """What a text that is not in the encoding that was tried is in, as far as bytes tell."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for candidate in ("utf-8", "cp1252", "latin-1"):
        if codecs.lookup(candidate).name == codecs.lookup(tried).name:
            continue
        try:
            data.decode(candidate)
        except UnicodeDecodeError:
            continue
        return candidate
    return None


def csv_rows(data: bytes, name: str, form: Form) -> Numbered:
    """Rows by the names of the header, or of `columns` where there is none; numbered by the line each starts in."""
    csv.field_size_limit(MAX_FIELD)
    source = io.StringIO(text_of(data, name, form.encoding), newline="")
    reader = csv.reader(source, delimiter=form.delimiter, strict=True)
    numbered = _csv_records(reader, name)
    names = form.columns or _header(next(numbered, (1, [])), name)
    width = len(names)
    for number, values in numbered:
        if len(values) != width:
            raise SourceTrouble(f"{name}:{number}: the row has {len(values)} values, and there are {width} columns")
        yield number, dict(zip(names, values, strict=True))


def _csv_records(reader: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    while True:
        number = reader.line_num + 1
        try:
            values = next(reader, None)
        except csv.Error as error:
            raise SourceTrouble(f"{name}:{number}: {error}") from None
        if values is None:
            return
        if values:
            yield number, values


def _header(found: tuple[int, list[str]], name: str) -> tuple[str, ...]:
    number, names = found
    for column in names:
        if not column.strip():
            raise SourceTrouble(f"{name}:{number}: a column has no name; name it, or give all names as `columns`")
        if names.count(column) > 1:
            raise SourceTrouble(f"{name}:{number}: two columns are named {quoted(column)}")
    return tuple(names)


def _decimal(text: str) -> Any:
    return Decimal(text)


def json_rows(data: bytes, name: str, form: Form) -> Numbered:
    """The items of a list; numbered from 1."""
    try:
        found = json.loads(text_of(data, name, form.encoding), parse_float=_decimal)
    except json.JSONDecodeError as error:
        raise SourceTrouble(f"{name}:{error.lineno}:{error.colno}: this is not JSON: {error.msg}") from None
    except RecursionError:
        raise SourceTrouble(f"{name}: it is nested too deeply") from None
    except ValueError as error:
        raise SourceTrouble(f"{name}: {error}") from None
    if not isinstance(found, list):
        raise SourceTrouble(f"{name}: there must be a list of objects in it, not {_kind(found)}")
    yield from enumerate(found, 1)


def jsonl_rows(data: bytes, name: str, form: Form) -> Numbered:
    """One object a line; numbered by line."""
    for number, line in enumerate(text_of(data, name, form.encoding).split("\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line, parse_float=_decimal)
            except (json.JSONDecodeError, RecursionError, ValueError) as error:
                words = error.msg if isinstance(error, json.JSONDecodeError) else "it is nested too deeply"
                raise SourceTrouble(f"{name}:{number}: this is not JSON: {words}") from None


def yaml_rows(data: bytes, name: str, form: Form) -> Numbered:
    """The items of a list, or of lists in several documents; numbered by line. Texts are as they were written."""
    findings = Findings(name)
    documents = read(text_of(data, name, form.encoding).encode(), findings)
    for found in findings.found:
        raise SourceTrouble(f"{name}:{found.line}:{found.column}: {found.message}")
    for root in documents.roots:
        if not isinstance(root, Sequence):
            raise SourceTrouble(f"{name}:{place(root)[0]}: there must be a list of mappings in it")
        for item in root.items:
            yield place(item)[0], plain_value(item)


def plain_value(node: Node) -> Any:
    """What a node says: plain true, false and null are that, plain numbers are numbers if they look it exactly."""
    match node:
        case Mapping():
            return {key.text: plain_value(value) for key, value in zip(node.keys, node.values, strict=True)}
        case Sequence():
            return [plain_value(item) for item in node.items]
        case Refused():
            return None
        case Scalar() if node.style:
            return node.text
    if node.is_null:
        return None
    text = node.text
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text) and text != "-0":
        return int(text)
    try:
        return Decimal(text) if _FRACTION.fullmatch(text) and str(Decimal(text)) == text else text
    except InvalidOperation:
        return text


def _kind(value: Any) -> str:
    return "an object; name the list in it as `items`" if isinstance(value, dict) else type(value).__name__


READERS = {"csv": csv_rows, "json": json_rows, "jsonl": jsonl_rows, "yaml": yaml_rows}
