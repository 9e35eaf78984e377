"""Diagnostics of many rows → one diagnostic per mistake, with the number of further rows that have it; pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from syncengine.document.scalar_readers import SURROUNDING_BLANKS
from syncengine.errors import Diagnostic, Row, with_row

FEW = 25
"""The maximum number of different messages at one place that are reported one by one."""
_Place = tuple[object, ...]


class Alike:
    """A collection of diagnostics of rows, which merges diagnostics with the same place and message."""

    def __init__(self) -> None:
        self._first: list[Diagnostic] = []
        self._last: list[Row | None] = []
        self._more: list[int] = []
        self._numbers: dict[_Place, dict[str, int]] = {}

    def add(self, diagnostic: Diagnostic, row: Row | None) -> None:
        """Add the diagnostic of a row. Beyond `FEW` messages at one place, count it as a repetition of the last one."""
        if diagnostic.code == SURROUNDING_BLANKS:
            message = f"{diagnostic.message}; `| trim` at the end of the template removes them"
            diagnostic = replace(diagnostic, message=message)
        place = (diagnostic.severity, diagnostic.code, diagnostic.file, diagnostic.line, diagnostic.column)
        numbers = self._numbers.setdefault(place, {})
        number = numbers.get(diagnostic.message)
        if number is None and len(numbers) >= FEW:
            number = next(reversed(numbers.values()))
        if number is None or row is None:
            numbers[diagnostic.message] = len(self._first)
            self._first.append(replace(diagnostic, data=row))
            self._last.append(row)
            self._more.append(0)
        elif row != self._last[number]:
            self._last[number] = row
            self._more[number] += 1

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Yield each merged diagnostic, naming its first row and the number of further rows."""
        for diagnostic, more in zip(self._first, self._more, strict=True):
            yield replace(diagnostic, message=with_row(diagnostic.message, diagnostic.data, more))
