"""Bytes of CSV, JSON, JSON lines or YAML → numbered rows, or `SourceTrouble` with the line of the data; pure."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Collection, Iterator
from decimal import Decimal, InvalidOperation
from itertools import accumulate
from typing import Any, NamedTuple

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping, Node, RefusedNode, Scalar, Sequence, place, quoted
from syncengine.document.reader import read
from syncengine.manifest.sources.records import SourceTrouble, kind_of
from syncengine.templating.values import undivided

Numbered = Iterator[tuple[int, Any]]

DELIMITERS = ",;\t|"
"""The delimiters that are tried when none is set. Of equally frequent ones, the first is used."""
MAX_FIELD = 10_000_000
MAX_DIGITS = 1000
_NO_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(-?(?:NaN|Infinity)|-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)')
"""A JSON string, or a constant that may not be a valid number."""
_VISIBLE = re.compile(r"[^ \t\n\r]")
_FOR_EXCEL = re.compile(r"sep=.?", re.IGNORECASE)
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,300})")
_FRACTION = re.compile(r"-?(?:0|[1-9][0-9]{0,100})\.[0-9]{1,100}")


class Form(NamedTuple):
    """The encoding, delimiter and column names with which a data file is read."""

    encoding: str = "utf-8"
    delimiter: str = ","
    columns: tuple[str, ...] = ()


def text_of(data: bytes, name: str, encoding: str) -> str:
    """Return the decoded text. Raise `SourceTrouble` with the line, the byte and the probable encoding."""
    codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    try:
        text = data.decode(codec)
    except UnicodeDecodeError as error:
        read = error.object  # the bytes after a byte order mark
        line = read.count(b"\n", 0, error.start) + 1
        byte, likely = read[error.start], likely_encoding(data, encoding)
        hint = f"; the file is probably {likely}: write `encoding: {likely}`" if likely else ""
        raise SourceTrouble(f"byte 0x{byte:02x} is not valid {encoding.upper()}{hint}", name, line) from None
    if "\0" in text:
        line, wide = text.count("\n", 0, text.index("\0")) + 1, wide_encoding(data)
        hint = f"every other byte is 0; the file is probably {wide}: write `encoding: {wide}`" if wide else ""
        raise SourceTrouble(hint or "the file contains a NUL byte, so it is not text", name, line)
    return text


def likely_encoding(data: bytes, tried: str) -> str | None:
    """Return the probable encoding of a text that is not in the encoding `tried`, or `None`."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if wide := wide_encoding(data):
        return wide
    for candidate in ("utf-8", "cp1252", "latin-1"):
        if codecs.lookup(candidate).name == codecs.lookup(tried).name:
            continue
        try:
            data.decode(candidate)
        except UnicodeDecodeError:
            continue
        return candidate
    return None


def wide_encoding(data: bytes) -> str | None:
    """Return `utf-16-le` or `utf-16-be` when most letters have a zero byte, all on the same side, else `None`."""
    high, low = data[:1000:2].count(0), data[1:1000:2].count(0)
    if max(high, low) * 2 < len(data[:1000:2]) or min(high, low) * 4 > max(high, low):
        return None
    return "utf-16-be" if high > low else "utf-16-le"


def csv_rows(data: bytes, name: str, form: Form) -> Numbered:
    """Yield rows by the names of the header, or of `columns` if given, each with the line that it starts in.

    Line breaks in values become line feeds.
    """
    csv.field_size_limit(MAX_FIELD)
    source = io.StringIO(text_of(data, name, form.encoding), newline=None)
    reader = csv.reader(source, delimiter=form.delimiter, strict=True)
    numbered = _csv_records(reader, name)
    names = form.columns or _header(next(numbered, (1, [])), name)
    width = len(names)
    for number, values in numbered:
        if len(values) != width:
            raise SourceTrouble(_misfit(len(values), names, form.delimiter), name, number)
        yield number, dict(zip(names, values, strict=True))


def _misfit(values: int, names: Collection[str], delimiter: str) -> str:
    """Return the message about a row that has more or fewer values than there are names."""
    row = "the row has one value" if values == 1 else f"the row has {values} values"
    columns = "the file has one column" if len(names) == 1 else f"there are {len(names)} columns"
    unquoted = f"; text that contains {quoted(delimiter)} must be in quotes" if values > len(names) else ""
    return f"{row}, but {columns}{undivided(names) or unquoted}"


def _csv_records(reader: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    while True:
        number = reader.line_num + 1
        try:
            values = next(reader, None)
        except csv.Error as error:
            words = str(error).replace("unexpected end of data", "a quotation mark is never closed")
            raise SourceTrouble(words, name, number) from None
        if values is None:
            return
        if values:
            yield number, values


def _header(first_row: tuple[int, list[str]], name: str) -> tuple[str, ...]:
    number, names = first_row[0], [column.strip() for column in first_row[1]]
    for _, sentence in header_troubles(names):
        raise SourceTrouble(sentence, name, number)
    return tuple(names)


def header_troubles(names: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield the problems of column names, each as the column's index from 0 and a message."""
    if names and not any(names):
        yield 0, "the line is blank; the header must be the first line"
    elif _FOR_EXCEL.fullmatch("".join(names)):
        yield 0, "the line is a note for Excel (`sep=`), not the header: delete it"
    else:
        places: dict[str, list[int]] = {}
        for number, column in enumerate(names):
            places.setdefault(column, []).append(number)
        for column, numbers in places.items():
            if not column:
                has, it = ("has", "it") if len(numbers) == 1 else ("have", "them")
                yield numbers[0], f"{_columns(numbers)} {has} no name: name {it} or delete {it}"
            elif len(numbers) > 1:
                yield (
                    numbers[1],
                    f"{_columns(numbers)} are {'both' if len(numbers) == 2 else 'all'} named {quoted(column)}",
                )


def _columns(indexes: list[int]) -> str:
    """Return columns in words, counted from 1: `column 3`, `columns 2 and 3`, `columns 4 to 9`."""
    labels = [str(number + 1) for number in indexes]
    if len(indexes) == 1:
        return f"column {labels[0]}"
    if len(indexes) > 2 and indexes[-1] - indexes[0] == len(indexes) - 1:
        return f"columns {labels[0]} to {labels[-1]}"
    return f"columns {', '.join(labels[:-1])} and {labels[-1]}"


def starts_of(head: str, delimiter: str) -> list[int]:
    """Return the position in a header's text, from 1, at which each name starts."""
    if '"' not in head:
        return list(accumulate((len(name) + 1 for name in head.split(delimiter)[:-1]), initial=1))
    starts, is_quoted = [1], False
    for number, character in enumerate(head, 1):
        is_quoted ^= character == '"'
        if character == delimiter and not is_quoted:
            starts.append(number + 1)
    return starts


class Number(Decimal):
    """A JSON number with a fraction or an exponent, which keeps its spelling: `1e3`, `1.50`."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Number:
        if _too_large(text):
            raise NotJson(f"a number has more than {MAX_DIGITS} digits")
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Number({self.text!r})"


def _too_large(number: str) -> bool:
    """Return whether a number has more than `MAX_DIGITS` characters, or an exponent beyond ±`MAX_DIGITS`."""
    digits, _, exponent = number.lower().partition("e")
    return len(digits) > MAX_DIGITS or abs(int(exponent[:9] or 0)) > MAX_DIGITS


def _whole(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise NotJson(f"a number has more than {MAX_DIGITS} digits")
    return int(text)


def _no_number(text: str) -> Any:
    raise NotJson(f"{text} is not a JSON number")


class NotJson(ValueError):
    """Raised for text that Python accepts as JSON, but other programs reject."""


def loads(text: str | bytes) -> Any:
    """Return the value of JSON text. Raise `ValueError` or `RecursionError` for invalid text."""
    return json.loads(text, parse_float=Number, parse_int=_whole, parse_constant=_no_number, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotJson(f"an object has two values named {quoted(twice)}")
    return mapping


def _is_refused(number: str) -> bool:
    return number.endswith(("N", "y")) or _too_large(number)


def _line_of_no_number(text: str) -> int | None:
    """Return the line of `NaN`, `Infinity` or a number with too many digits, or `None` for other errors."""
    constant = next((match for match in _NO_NUMBER.finditer(text) if match[1] and _is_refused(match[1])), None)
    return text.count("\n", 0, constant.start(1)) + 1 if constant else None


def json_rows(data: bytes, name: str, form: Form) -> Numbered:
    """Yield the items of a list, numbered by the line that each starts in, or from 1 when several start in one line."""
    try:
        value = loads(text := text_of(data, name, form.encoding))
    except json.JSONDecodeError as error:
        raise SourceTrouble(f"this is not JSON: {error.msg}", name, error.lineno, error.colno) from None
    except RecursionError:
        raise SourceTrouble("the JSON is nested too deeply", name) from None
    except NotJson as error:
        raise SourceTrouble(f"this is not JSON: {error}", name, _line_of_no_number(text)) from None
    if not isinstance(value, list):
        raise SourceTrouble(f"the file must contain a list of objects, not {kind_of(value)}", name)
    lines = list(_lines_of_items(text)) if value else []
    yield from zip(lines if len(set(lines)) == len(lines) else range(1, len(value) + 1), value, strict=True)


def _lines_of_items(text: str) -> Iterator[int]:
    """Yield the line of each item of a list. `text` must be the valid JSON of a list."""
    decoder, line, counted_to = json.JSONDecoder(), 1, 0
    at = _visible(text, 0)
    while text[at] != "]":
        at = _visible(text, at + 1)
        line, counted_to = line + text.count("\n", counted_to, at), at
        yield line
        at = _visible(text, decoder.raw_decode(text, at)[1])


def _visible(text: str, at: int) -> int:
    match = _VISIBLE.search(text, at)
    return match.start() if match else len(text)


def jsonl_rows(data: bytes, name: str, form: Form) -> Numbered:
    """Yield the value of each line that is not blank, numbered by line."""
    for number, line in enumerate(text_of(data, name, form.encoding).split("\n"), 1):
        if line.strip():
            try:
                yield number, loads(line)
            except (RecursionError, ValueError) as error:
                nested = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
                words = error.msg if isinstance(error, json.JSONDecodeError) else nested
                raise SourceTrouble(f"this is not JSON: {words}", name, number) from None


def yaml_rows(data: bytes, name: str, form: Form) -> Numbered:
    """Yield the items of the list in each document, numbered by line. Texts keep their spelling."""
    findings = Collector(name)
    documents = read(text_of(data, name, form.encoding).encode(), findings)
    for diagnostic in findings.found:
        raise SourceTrouble(diagnostic.message, name, diagnostic.line, diagnostic.column)
    for root in documents.roots:
        if not isinstance(root, Sequence):
            raise SourceTrouble("the file must contain a list of mappings", name, place(root)[0])
        for item in root.items:
            yield place(item)[0], plain_value(item)


def plain_value(node: Node) -> Any:
    """Return the value of a node: text unless it is plain `true`, `false`, `null` or a number in its usual form."""
    match node:
        case Mapping():
            return {key.text: plain_value(value) for key, value in zip(node.keys, node.values, strict=True)}
        case Sequence():
            return [plain_value(item) for item in node.items]
        case RefusedNode():
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


READERS = {"csv": csv_rows, "json": json_rows, "jsonl": jsonl_rows, "yaml": yaml_rows}
