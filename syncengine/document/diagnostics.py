"""Collect the diagnostics of a file, and find the known name that is nearest to a misspelt one."""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from syncengine.document.nodes import Node, place
from syncengine.errors import Diagnostic, Row, Severity, with_row

MANY = 2000
"""The most candidates that are compared with a misspelt name; among more, only a difference in case is recognised."""


SUGGESTIONS = 25
"""The most findings of a run that suggest a similar name, since each suggestion costs a comparison with all names."""


MANY_USES = 3
"""The most lines with an alias that a message names."""


class Aliased(NamedTuple):
    """A value with an anchor: its line and column, from 1, those behind it, and the lines of its aliases."""

    start: tuple[int, int]
    end: tuple[int, int]
    lines: list[int]


@dataclass(slots=True)
class Collector:
    """The diagnostics collected so far for one file. Its path `file` is relative to the project's folder.

    `line_of` maps a line of text that a template wrote to the line that messages name. A problem of a value that is
    `aliased` is reported once, with the lines where it is used again.
    """

    file: str
    found: list[Diagnostic] = field(default_factory=list)
    line_of: Callable[[int], int] = int
    aliased: list[Aliased] = field(default_factory=list)
    _uses: tuple[list[tuple[int, int]], list[list[int]]] = ([], [])
    """The places from which on a value with an anchor goes, or goes on, and the lines of the aliases of each."""
    _told: set[Hashable] = field(default_factory=set)

    def error(self, code: str, at: Node, message: str, address: str | None = None) -> None:
        line, column = place(at)
        self.at(code, line, column, message, address=address)

    def at(
        self,
        code: str,
        line: int | None,
        column: int | None,
        message: str,
        *,
        severity: Severity = Severity.ERROR,
        address: str | None = None,
        data: Row | None = None,
        more: int = 0,
    ) -> None:
        """Report a problem. The message names its row `data`, and the number of `more` rows with the same problem."""
        again = self._lines_of_uses(line or 0, column or 0) if self.aliased else []
        message = with_row(f"{message}{self._used_again(again)}", data, more)
        found = Diagnostic(
            severity=severity,
            code=code,
            message=message if message.isascii() else message.encode("utf-8", "backslashreplace").decode(),
            file=self.file,
            line=line,
            column=column,
            address=address,
            data=data,
        )
        same = (code, line, column, found.message) if again else None
        if same not in self._told:
            self.found.append(found)
        if same is not None:
            self._told.add(same)

    def _lines_of_uses(self, line: int, column: int) -> list[int]:
        """Return the lines of the aliases of the innermost value at a place."""
        if len(self._uses[0]) != 2 * len(self.aliased) + 1:  # more aliases were read since
            begun, changes = list[Aliased](), [((0, 0), list[int]())]
            for each in [*sorted(self.aliased), None]:
                while begun and (each is None or begun[-1].end <= each.start):
                    ended = begun.pop()
                    changes.append((ended.end, begun[-1].lines if begun else []))
                if each is not None:
                    changes.append((each.start, each.lines))
                    begun.append(each)
            self._uses = [at for at, _ in changes], [lines for _, lines in changes]
        places, lines = self._uses
        return lines[bisect_right(places, (line, column)) - 1]

    def _used_again(self, lines: list[int]) -> str:
        if not lines:
            return ""
        named = ", ".join(str(self.line_of(line)) for line in lines[:MANY_USES])
        more = f" and {len(lines) - MANY_USES} more" if len(lines) > MANY_USES else ""
        return f" (used again in line{'' if len(lines) == 1 else 's'} {named}{more})"


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return diagnostics sorted by file, line and column. Those without a file come first."""
    return sorted(diagnostics, key=lambda d: (d.file or "", d.line or 0, d.column or 0))


@lru_cache(maxsize=4096)
def nearest(word: str, names: tuple[str, ...]) -> str | None:
    """Return the known name that `word` probably misspells, or `None`."""
    folded = {name.casefold(): name for name in names}
    if (same := folded.get(word.casefold())) is not None:
        return same
    if len(names) > MANY or len(word) > 100:
        return None
    close = difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def suggestion(word: str, names: Iterable[str]) -> str:
    """Return `; did you mean …?` for a misspelt name, or an empty string."""
    near = nearest(word, tuple(names))
    return "" if near is None or near == word else f"; did you mean `{near}`?"
