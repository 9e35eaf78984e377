"""Values → records of a CSV file (RFC 4180), which a spreadsheet may open. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

import orjson

from syncengine.posted_time.templates import plain

FORMULA = ("=", "+", "-", "@")
"""The first characters, after blanks, of a text that a spreadsheet would run as a formula."""

END = b"\r\n"
"""The end of a record. No value has it: line breaks in values are line feeds alone, as spreadsheets write them."""


def record(values: Iterable[Any]) -> str:
    """Return one record, with its end. Raise `UnicodeEncodeError` for text that UTF-8 cannot hold.

    People write texts, and other people open the table in a spreadsheet: a text that would run there as a formula gets
    an apostrophe in front, which spreadsheets take as the sign of a text. Numbers stay as they are.
    """
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=END.decode()).writerow([_cell(plain(value)) for value in values])
    return text.getvalue()


def _cell(value: Any) -> Any:
    match value:
        case bool() | list() | dict():
            return orjson.dumps(value).decode()
        case str():
            text = value.replace("\r\n", "\n").replace("\r", "\n")
            return f"'{text}" if text.lstrip().startswith(FORMULA) else text
        case _:
            return value
