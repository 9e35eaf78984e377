"""Read a leaf by the type of its field: node → value. Pure.

A reader returns `INVALID` after it has reported a problem. Strings stay strings (docs/manifests.md).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from syncengine.document.diagnostics import INVALID, Collector, Invalid, suggestion
from syncengine.document.nodes import (
    PLAIN_NULLS,
    Mapping,
    Node,
    RefusedNode,
    Scalar,
    Sequence,
    described,
    place,
    quoted,
)
from syncengine.document.text import CONTROL, CONTROL_IN_PROSE, character
from syncengine.errors import Severity

Reader = Callable[[Node, Collector], Any]


def refused(node: Node, findings: Collector, name: str, expected: str, empty: str = '""') -> Invalid:
    """Report a node of the wrong type. `empty` is the YAML of the field's empty value, if it has an empty value."""
    if isinstance(node, RefusedNode):
        return INVALID
    if isinstance(node, Scalar) and node.is_null:
        cure = f"write {empty} to clear it, or remove the line" if empty else "add a value, or remove the line"
        return findings.error("null-value", node, f"{called(name)} has no value: {cure}")
    return findings.error("wrong-type", node, f"{called(name)} must be {expected}, not {described(node)}")


def called(name: str) -> str:
    """Return a field's name in backticks. A description, or a name that has backticks, is unchanged."""
    return name if " " in name or name.startswith("`") else f"`{name}`"


def display(name: str) -> str:
    """Return a key for a message, shortened and printable."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name[:60])


def is_text(node: Node) -> bool:
    return type(node) is Scalar and (node.style != "" or node.text not in PLAIN_NULLS)


def fits(text: str, forbidden: re.Pattern[str]) -> bool:
    return text.isprintable() or forbidden.search(text) is None


says_something: Callable[[str], object] = str.strip
"""A test for text that is not blank."""


def has_no_blanks_around(text: str) -> bool:
    return text.strip() == text


def text_reader(name: str, forbidden: re.Pattern[str], hint: str) -> Reader:
    """Return a reader of a scalar as written, which must not contain characters that `forbidden` matches."""

    def read(node: Node, findings: Collector) -> str | Invalid:
        if type(node) is not Scalar or (not node.style and node.text in PLAIN_NULLS):
            return refused(node, findings, name, "text")
        text = node.text
        if fits(text, forbidden):
            return text
        problem = character(forbidden.findall(text)[0])
        return findings.error("control-character", node, f"{called(name)} contains {problem}; {hint}")

    return read


def line(name: str) -> Reader:
    return text_reader(name, CONTROL, "it must be a single line of visible text")


WEB_LINK = r"[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#].*"
_WEB_LINK = re.compile(WEB_LINK)


SURROUNDING_BLANKS = "surrounding-blanks"
"""The code of an error about a name that starts or ends with blanks."""


def is_web_link(text: str) -> bool:
    """Return whether a text is a link to a web page (not `javascript:`, not a path), or empty, which clears a link."""
    return not text or _WEB_LINK.fullmatch(text) is not None


def tested(
    make: Callable[[str], Reader], passes: Callable[[Any], object], code: str, words: str | Callable[[Any], str]
) -> Callable[[str], Reader]:
    """Return a factory of readers like those of `make`, which also report a value that does not pass the test.

    In the message, `words` follows the field's name.
    """

    def of(name: str) -> Reader:
        value_of = make(name)

        def read(node: Node, findings: Collector) -> Any:
            value = value_of(node, findings)
            if value is INVALID or passes(value):
                return value
            return findings.error(code, node, f"{called(name)} {words if isinstance(words, str) else words(value)}")

        return read

    return of


web_link = tested(
    line,
    is_web_link,
    "bad-value",
    lambda value: f"must be a link that starts with https:// or http://, not {quoted(value)}",
)
"""A factory of readers of a line that is empty or a link to a web page."""


def prose(name: str) -> Reader:
    """Return a reader of text of any number of lines."""
    return text_reader(name, CONTROL_IN_PROSE, "remove it")


filled = tested(line, says_something, "empty-value", "must not be empty")
"""A factory of readers of a line that is not blank."""
identity = tested(
    tested(line, says_something, "empty-name", "must not be empty"),
    has_no_blanks_around,
    SURROUNDING_BLANKS,
    lambda value: f"must not start or end with blanks: {quoted(value)}",
)
"""A factory of readers of a name: a line that is not empty and has no blanks around it."""


_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def flag(name: str) -> Reader:
    def read(node: Node, findings: Collector) -> bool | Invalid:
        if type(node) is Scalar and not node.style and (value := _FLAGS.get(node.text)) is not None:
            return value
        return refused(node, findings, name, "true or false, without quotes", empty="")

    return read


def whole_number(low: int, high: int) -> Callable[[str], Reader]:
    def make(name: str) -> Reader:
        def read(node: Node, findings: Collector) -> int | Invalid:
            if type(node) is not Scalar or node.style or not re.fullmatch(r"[-+]?[0-9]{1,18}", node.text):
                return refused(node, findings, name, "a whole number, without quotes", empty="")
            value = int(node.text)
            if not low <= value <= high:
                bounds = str(low) if low == high else f"between {low} and {high}"
                return findings.error("bad-value", node, f"{called(name)} must be {bounds}, not {value}")
            return value

        return read

    return make


def choice(values: Iterable[str]) -> Callable[[str], Reader]:
    """Return a factory of readers that accept one of `values`. For an enum, the readers return its member."""
    by_text = {str(value): value for value in values}
    *others, last = by_text
    expected = f"{', '.join(others)} or {last}" if others else last

    def make(name: str) -> Reader:
        def read(node: Node, findings: Collector) -> Any:
            if isinstance(node, Scalar) and (value := by_text.get(node.text)) is not None:
                return value
            if not is_text(node):
                return refused(node, findings, name, expected, empty="")
            problem = f"{called(name)} must be {expected}, not {quoted(node.text or '')}"
            return findings.error("bad-value", node, problem + suggestion(node.text or "", by_text))

        return read

    return make


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST, LATEST = -62_135_596_800_000, 253_402_300_799_999
"""The first and the last millisecond of the years 1 to 9999, which are all that calendars of programs agree on."""
_BEYOND = re.compile(r"[-+]?[0-9]{13,}|[-+]?[0-9]{5,}-[0-9]{2}-[0-9]{2}.*|-[0-9]+-.*|0000-.*")
"""Milliseconds or a date in another year than these."""
RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)


def milliseconds(text: str) -> int | None:
    """Return an RFC 3339 date-time as milliseconds since the epoch, or `None` for other text."""
    if (match := RFC3339.fullmatch(text)) is None:
        return None
    *parts, fraction, sign, hours, minutes = match.groups()
    if int(hours or 0) > 23 or int(minutes or 0) > 59:
        return None
    year, month, day, hour, minute, second = map(int, parts)
    try:
        local = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
    return (local - EPOCH - offset) // timedelta(milliseconds=1) + int((fraction or "0").ljust(3, "0")[:3])


def bounds(text: str) -> tuple[float, float] | None:
    """Return the start and the end of a date in UTC, or an RFC 3339 instant twice, in seconds since the epoch.

    Return `None` for other text.
    """
    if (at := milliseconds(text)) is not None:
        return at / 1000, at / 1000
    at = milliseconds(f"{text}T00:00:00Z")
    return None if at is None else (at / 1000, at / 1000 + 86_400)


def instant(name: str) -> Reader:
    expected = "a date and time like 2024-05-01T09:00:00Z, or milliseconds since 1970"

    def read(node: Node, findings: Collector) -> int | Invalid:
        if not isinstance(node, Scalar) or node.is_null:
            return refused(node, findings, name, expected, empty="")
        is_number = not node.style and re.fullmatch(r"-?[0-9]{1,15}", node.text)
        value = int(node.text) if is_number else milliseconds(node.text)
        if value is not None and EARLIEST <= value <= LATEST:
            return value
        text = quoted(node.text)
        if value is not None or _BEYOND.fullmatch(node.text):
            message = f"{called(name)} must be in the years 1 to 9999, not {text}"
            return findings.error("bad-value", node, message)
        hint = "; add the time and the offset" if re.fullmatch(r"\d{4}-\d\d-\d\d", node.text) else ""
        return findings.error("bad-value", node, f"{called(name)} must be {expected}, not {text}{hint}")

    return read


def distinct(items: list[str]) -> tuple[str, ...]:
    return tuple(items) if len(set(items)) == len(items) else tuple(dict.fromkeys(items))


def words(item: Callable[[str], Reader]) -> Callable[[str], Reader]:
    """Return a factory of readers of a list of texts, which keep its order and drop duplicates."""

    def make(name: str) -> Reader:
        one = item(f"an item of {name}")

        def read(node: Node, findings: Collector) -> tuple[str, ...] | Invalid:
            if type(node) is not Sequence:
                return refused(node, findings, name, "a list of strings", empty="[]")
            items = [one(entry, findings) for entry in node.items]
            return distinct([value for value in items if value is not INVALID])

        return read

    return make


def list_reader(name: str, item: Reader, expected: str = "a list", empty: str = "[]") -> Reader:
    """Return a reader of a list. Its result is `INVALID` when any item is."""

    def read(node: Node, findings: Collector) -> Any:
        if not isinstance(node, Sequence):
            return refused(node, findings, name, expected, empty)
        items = tuple(item(entry, findings) for entry in node.items)
        return INVALID if INVALID in items else items

    return read


def texts(name: str) -> Reader:
    """Return a reader of a mapping of names to texts. Names are interned, because thousands of resources share them."""
    value_of, name_of = prose(name), filled(f"{name} name")

    def one_of(key: Scalar) -> Reader:
        return prose(f"`{name}.{display(key.text)}`")

    def read(node: Node, findings: Collector) -> dict[str, str] | Invalid:
        if type(node) is not Mapping:
            return refused(node, findings, name, "a mapping of names to strings", empty="{}")
        entries = {}
        report_commas(node, findings)
        for key, value in zip(node.keys, node.values, strict=True):
            text = value_of(value, findings) if is_text(value) else one_of(key)(value, findings)
            if (not key.text.isprintable() or not key.text.strip()) and not _name_is_good(key, findings, name_of):
                continue
            entries[sys.intern(key.text)] = text
        return INVALID if INVALID in entries.values() else entries

    return read


def report_commas(node: Mapping, findings: Collector) -> None:
    """Warn about keys without a value that are the rest of a text which a comma ends, in a mapping in braces."""
    before: Scalar | None = None
    for key, value in zip(node.keys, node.values, strict=True):
        if before is not None and _is_cut_off(before, key, value):
            findings.at("comma-in-text", *place(key), _cut_off(before, key), severity=Severity.WARNING)
        else:
            before = value if isinstance(value, Scalar) and value.text else None


def _is_cut_off(before: Scalar, key: Scalar, value: Node) -> bool:
    """Return whether a key without a value is the rest of the text before it, as in `{Client: Smith, Jones & Co}`."""
    nothing = isinstance(value, Scalar) and not value.style and not value.text
    return nothing and not before.style and not key.style and before.mark.line == key.mark.line


def _cut_off(before: Scalar, key: Scalar) -> str:
    whole = quoted(f"{before.text}, {key.text}")
    return f"{quoted(key.text)} has no value: the comma ends the text before it; if you mean {whole}, put it in quotes"


def _name_is_good(key: Scalar, findings: Collector, name_of: Reader) -> bool:
    return name_of(Scalar(key.text, key.mark, '"'), findings) is not INVALID
