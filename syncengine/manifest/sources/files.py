"""Bytes of CSV, JSON, JSON lines or YAML → numbered rows, or `SourceTrouble` with the line of the data; pure."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from itertools import accumulate, islice
from typing import Any, NamedTuple, cast

from syncengine.document.diagnostics import Collector
from syncengine.document.json_text import Steps, keys_to, value_at
from syncengine.document.nodes import Mapping, Node, RefusedNode, Scalar, Sequence, place, quoted
from syncengine.document.reader import read
from syncengine.document.text import MERGE_CONFLICT, conflicts, foreign, with_line_feeds
from syncengine.manifest.sources.records import SourceTrouble, kind_of, where_lists_are
from syncengine.templating.values import undivided

Numbered = Iterator[tuple[int, Any]]

DELIMITERS = ",;\t|"
"""The delimiters that are tried when none is set. Of equally frequent ones, the first is used."""
LONGEST_HEADER = 1 << 16
"""The number of leading characters in which the delimiter is looked for."""
SAMPLE = 20
"""The number of records that a delimiter must split alike."""
# Python's own limit is 131,072 characters, less than some texts have; without any, one open quote takes a whole file.
MAX_FIELD = 10_000_000
# Python reads a number in a time that is quadratic in its digits, and no integer of more than 4,300.
MAX_DIGITS = 1000
_NOT_JSON = (
    ("Expecting value", "a value is missing here"),
    ("Expecting property name", "a name in double quotes is missing here"),
    ("Expecting ':'", "`:` is missing here"),
    ("Expecting ','", "`,` or a closing bracket is missing here"),
    ("Illegal trailing comma", "no comma can stand before a closing bracket"),
    ("Extra data", "the value ends before this"),
    ("Unterminated string", "the quotation mark here is never closed"),
    ("Invalid control character", "a text must not contain a tab or a line break: write `\\t` or `\\n`"),
    ("Invalid \\", "an unknown escape: write `\\\\` for a backslash"),
)
"""The words of Python's reader of JSON, and ours."""
_NO_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(-?(?:NaN|Infinity)|-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)')
"""A JSON string, or a constant that may not be a valid number."""
_QUOTED = re.compile(r'"[^"]*+"')
"""Text in quotes, in which delimiters and line breaks do not count."""
_VISIBLE = re.compile(r"[^ \t\n\r]")
_FOR_EXCEL = re.compile(r"sep=.?", re.IGNORECASE)
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,300})")
_FRACTION = re.compile(r"-?(?:0|[1-9][0-9]{0,100})\.[0-9]{1,100}")


class Form(NamedTuple):
    """The encoding, delimiter and column names with which a data file is read, and the path of its list."""

    encoding: str = "utf-8"
    delimiter: str = ","
    columns: tuple[str, ...] = ()
    items: Steps = ()


def text_of(data: bytes, name: str, encoding: str) -> str:
    """Return the decoded text. Raise `SourceTrouble` with the line, the byte and the probable encoding."""
    if what := foreign(data):
        raise SourceTrouble(what, name, 1)
    if data.startswith(codecs.BOM_UTF8) and not encoding.startswith("utf-8"):
        raise SourceTrouble("the file begins with the byte order mark of UTF-8: write `encoding: utf-8`", name, 1)
    try:
        text = data.decode(encoding).lstrip("\ufeff")  # a mark may be there in any Unicode encoding, even twice
    except UnicodeDecodeError as error:
        read = error.object  # the bytes after a byte order mark
        line = read.count(b"\n", 0, error.start) + 1
        byte, likely = read[error.start], likely_encoding(data, encoding)
        hint = f"; the file is probably {likely}: write `encoding: {likely}`" if likely else ""
        raise SourceTrouble(f"byte 0x{byte:02x} is not valid {encoding.upper()}{hint}", name, line) from None
    if encoding.startswith("utf-16") and data and (likely := _instead_of_utf16(data, text, encoding)):
        raise SourceTrouble(
            f"this is not {encoding.upper()} but probably {likely}: write `encoding: {likely}`", name, 1
        )
    if "\0" in text:
        line, wide = text.count("\n", 0, text.index("\0")) + 1, wide_encoding(data)
        hint = f"every other byte is 0; the file is probably {wide}: write `encoding: {wide}`" if wide else ""
        raise SourceTrouble(hint or "the file contains a NUL byte, so it is not text", name, line)
    if unresolved := conflicts(text):
        first, *others = unresolved
        lines = f"line{'' if len(others) == 1 else 's'} {', '.join(str(each.line) for each in others)}"
        more = f"; so it is at {lines}" if others else ""
        raise SourceTrouble(f"{first.message}{more}", name, first.line, code=MERGE_CONFLICT)
    return text


def likely_encoding(data: bytes, tried: str) -> str | None:
    """Return the probable encoding of a text that is not in the encoding `tried`, or `None`."""
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"  # the mark of UTF-16 is the beginning of one of these
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


def _instead_of_utf16(data: bytes, text: str, encoding: str) -> str | None:
    """Return the probable encoding of a file that was read as UTF-16, if it is another one, else `None`.

    Nearly any bytes are text in UTF-16, mostly without a line feed, so that all rows would be part of the header.
    """
    if b"\0" not in data:  # which each line feed, delimiter and digit has
        return likely_encoding(data, encoding)
    is_big_endian = encoding == "utf-16-be" or (encoding == "utf-16" and data.startswith(codecs.BOM_UTF16_BE))
    other = "utf-16-le" if is_big_endian else "utf-16-be"
    # A mark or a line feed whose bytes change places is no character.
    return other if text.startswith("\ufffe") or "\u0a00" in text or wide_encoding(data) == other else None


def encoding_of(data: bytes, name: str) -> str:
    """Return the encoding of a table of which nobody has named it: UTF-16 by its zero bytes, else UTF-8, else cp1252.

    Raise `SourceTrouble` if it is none of them.
    """
    if what := foreign(data):
        raise SourceTrouble(what, name, 1)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if wide := wide_encoding(data):
        return wide
    for encoding in ("utf-8", "cp1252"):
        with suppress(UnicodeDecodeError):
            data.decode(encoding)
            return encoding
    raise SourceTrouble("the file is neither utf-8 nor cp1252: save it as UTF-8", name, 1)


def likely_delimiter(text: str) -> str:
    """Return the delimiter that the header has most often, or one that splits the header and more records alike.

    The latter goes before a comma, which may also stand in the names of columns.
    """
    start = text[:LONGEST_HEADER].lstrip("\n")
    header = _QUOTED.sub("", start).partition("\n")[0]
    for delimiter in sorted(DELIMITERS[1:], key=header.count, reverse=True):
        with suppress(SourceTrouble):
            widths = [len(values) for _, values in islice(csv_records(start, delimiter), SAMPLE)]
            if len(widths) > 1 and 1 < widths[0] == min(widths) == max(widths):
                return delimiter
    return max(DELIMITERS, key=header.count)


def csv_rows(data: bytes, name: str, form: Form) -> Numbered:
    """Yield rows by the names of the header, or of `columns` if given, each with the line that it starts in.

    Line breaks in values become line feeds.
    """
    text = with_line_feeds(text_of(data, name, form.encoding))
    numbered = csv_records(text, form.delimiter, name)
    names = form.columns
    if not names:
        number, header = next(numbered, (1, None))
        if header is None:  # as of an export that failed, whose rows may still exist
            raise SourceTrouble("the file is empty: its first line must name the columns", name, number)
        bare = [column.strip() for column in header]
        for at, sentence in header_troubles(bare):
            starts = starts_of(text.split("\n", number)[number - 1], form.delimiter)
            raise SourceTrouble(sentence, name, number, starts[at] if at < len(starts) else 1)
        names = numbered_names(bare)
    else:  # the first line without values is no header, which would say so
        numbered = ((number, values) for number, values in numbered if any(map(str.strip, values)))
    width = len(names)
    for number, values in numbered:
        if len(values) != width:
            raise SourceTrouble(width_trouble(values, names, form.delimiter), name, number)
        yield number, dict(zip(names, values, strict=True))


def width_trouble(values: Collection[str], names: Collection[str], delimiter: str) -> str:
    """Return the message about a row that has more or fewer values than there are names."""
    row = "the row has one value" if len(values) == 1 else f"the row has {len(values)} values"
    columns = "the file has one column" if len(names) == 1 else f"there are {len(names)} columns"
    unquoted = f"; text that contains {quoted(delimiter)} must be in straight double quotes" * (
        len(values) > len(names)
    )
    return f"{row}, but {columns}{undivided(names) or unquoted}"


def csv_records(text: str, delimiter: str, name: str = "") -> Iterator[tuple[int, list[str]]]:
    """Yield the values of each line that has any, with the line in which they start, from 1; and of the first line.

    Spreadsheets write lines of delimiters for rows that once had values. `text` has LF as line ends. Raise
    `SourceTrouble` where quotation marks would be taken for text or do not close.
    """
    csv.field_size_limit(MAX_FIELD)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    lines: list[str] = []
    is_first = True
    while True:
        number = reader.line_num + 1
        try:
            values = next(reader, None)
        except csv.Error as error:
            # Python's reader tells its three errors apart by their words alone.
            words = f"a value is longer than {MAX_FIELD:,} characters"
            if "unexpected end" in str(error):
                words = "a quotation mark is never closed"
            elif "expected after" in str(error):
                words = "text follows a closing quotation mark: double each quotation mark that belongs to a value"
            raise SourceTrouble(words, name, number) from None
        if values is None:
            return
        if any('"' in value for value in values):
            lines = lines or text.split("\n")
            record = "\n".join(lines[number - 1 : reader.line_num])
            for column, value in enumerate(values, 1):
                bare = value.lstrip()
                if bare.startswith('"') and bare != value and quoted_cell(value) not in record:
                    message = "a blank stands before the quotation mark, which therefore quotes nothing"
                    raise SourceTrouble(f"in column {column}, {message}: remove the blank", name, number)
        if any(map(str.strip, values)) or (values and is_first):
            yield number, values
        is_first &= not values


def quoted_cell(value: str) -> str:
    """Return a value in quotes, as CSV writes it."""
    return '"' + value.replace('"', '""') + '"'


def numbered_names(names: Collection[str]) -> tuple[str, ...]:
    """Return distinct names: those that repeat an earlier one are numbered, as in `Labels`, `Labels 2`, `Labels 3`."""
    reserved = set(names)
    met: dict[str, int] = {}
    result = []
    for column in names:
        met[column] = count = met.get(column, 0) + 1
        own = column
        if count > 1:
            while (own := f"{column} {count}") in reserved:
                count += 1
            met[column] = count
            reserved.add(own)
        result.append(own)
    return tuple(result)


def header_troubles(names: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield the problems of column names, each as the column's index from 0 and a message."""
    if names and not any(names):
        yield 0, "the line is blank; the header must be the first line"
    elif _FOR_EXCEL.fullmatch("".join(names)):
        yield 0, "the line is a note for Excel (`sep=`), not the header: delete it"
    elif numbers := [number for number, column in enumerate(names) if not column]:
        labels, (first, last) = [str(number + 1) for number in numbers], (numbers[0], numbers[-1])
        if first == last:
            yield first, f"column {labels[0]} has no name: name it or delete it"
            return
        in_words = f"{', '.join(labels[:-1])} and {labels[-1]}"
        if len(numbers) > 2 and last - first == len(numbers) - 1:
            in_words = f"{labels[0]} to {labels[-1]}"
        yield first, f"columns {in_words} have no name: name them or delete them"


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


class JsonNumber(Decimal):
    """A JSON number with a fraction or an exponent, which keeps its spelling: `1e3`, `1.50`."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> JsonNumber:
        if _too_large(text):
            raise NotJson(f"a number has more than {MAX_DIGITS} digits")
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__  # as part of a list or mapping that is written as text


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
    return json.loads(
        text, parse_float=JsonNumber, parse_int=_whole, parse_constant=_no_number, object_pairs_hook=_object
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotJson(f"an object has two values named {quoted(twice)}")
    return mapping


def json_rows(data: bytes, name: str, form: Form) -> Numbered:
    """Yield the items of a list, numbered by the line that each starts in, or from 1 when several start in one line."""
    try:
        value = loads(text := text_of(data, name, form.encoding))
    except json.JSONDecodeError as error:
        begin, hint = [line for line in text.split("\n", 3)[:3] if line.strip()][:2], ""
        with suppress(ValueError, RecursionError):
            if len(begin) == 2 and all(isinstance(loads(line), dict) for line in begin):
                hint = "; with one value in each line, the file is JSON lines: write `jsonl:`"
        raise SourceTrouble(f"this is not JSON{hint or _why(error)}", name, error.lineno, error.colno) from None
    except RecursionError:
        raise SourceTrouble("the JSON is nested too deeply", name) from None
    except NotJson as error:
        found = (match for match in _NO_NUMBER.finditer(text) if match[1])
        # Of `NaN`, `Infinity` or a number with too many digits; the line of a repeated name is that of YAML's reader.
        number = next((match for match in found if match[1].endswith(("N", "y")) or _too_large(match[1])), None)
        line = text.count("\n", 0, number.start(1)) + 1 if number else _line_of_repeated_name(text)
        raise SourceTrouble(f"this is not JSON: {error}", name, line) from None
    rows = _list_in(value, form.items, name)
    lines = list(_lines_of_items(text, keys_to(value, form.items) or ())) if rows else []
    yield from zip(lines if len(set(lines)) == len(lines) else range(1, len(rows) + 1), rows, strict=True)


def _why(error: Exception) -> str:
    """Return the end of a message about text that is not JSON, empty if the reason has no words."""
    match error:
        case RecursionError():
            return ": it is nested too deeply"
        case NotJson():
            return f": {error}"
        case json.JSONDecodeError():
            return next((f": {why}" for words, why in _NOT_JSON if error.msg.startswith(words)), "")
    return ""


def _line_of_repeated_name(text: str) -> int | None:
    findings = Collector("")
    read(text.encode("utf-8", "surrogatepass"), findings)
    return next((found.line for found in findings.found if found.code == "duplicate-key"), None)


def _list_in(value: Any, steps: Steps, name: str, line: int | None = None) -> list[Any]:
    """Return the list at a path of a document. Raise `SourceTrouble`, which names other lists, if none is there."""
    keys = keys_to(value, steps)
    rows = value_at(value, steps, None)
    if isinstance(rows, list):
        return rows
    where = f" at `{'.'.join(steps)}`" if steps else ""
    found = ", and there is nothing" if keys is None else f", not {kind_of(rows)}"
    message = f"the file must contain a list of objects{where}{found}{where_lists_are(value)}"
    raise SourceTrouble(message, name, line)


def _lines_of_items(text: str, keys: Steps) -> Iterator[int]:
    """Yield the line of each item of the list at a path. `text` must be valid JSON with such a list."""
    decoder = json.JSONDecoder()
    at = _visible(text, 0)
    for step in keys:
        key = ""
        while key != step:
            at = _visible(text, decoder.raw_decode(text, at)[1]) if key else at
            key, end = decoder.raw_decode(text, _visible(text, at + 1))
            at = _visible(text, _visible(text, end) + 1)
    line, counted_to = text.count("\n", 0, at) + 1, at
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
                place = name, number, getattr(error, "colno", None)
                raise SourceTrouble(f"this is not JSON{_why(error)}", *place) from None


def yaml_rows(data: bytes, name: str, form: Form) -> Numbered:
    """Yield the items of the list in each document, numbered by line. Texts keep their spelling."""
    findings = Collector(name)
    documents = read(text_of(data, name, form.encoding).encode(), findings)
    for diagnostic in findings.found:
        raise SourceTrouble(diagnostic.message, name, diagnostic.line, diagnostic.column)
    for root in documents.roots:
        _list_in(document := plain_value(root), form.items, name, place(root)[0])
        node: Node = root
        for key in keys_to(document, form.items) or ():
            node = cast("Mapping", node).get(key) or node
        for item in cast("Sequence", node).items:
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
