"""Collect the diagnostics of a file, and find the known name that is nearest to a misspelt one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from syncengine.document.nodes import Node, place
from syncengine.errors import Diagnostic, Row, Severity, with_row

MANY = 2000
"""The most candidates that are compared with a misspelt name; among more, only a difference in case is recognised."""


SUGGESTIONS = 25
"""The most findings of a run that suggest a similar name, since each suggestion costs a comparison with all names."""


@dataclass(slots=True)
class Collector:
    """The diagnostics collected so far for one file. Its path `file` is relative to the project's folder.

    `line_of` maps a line of text that a template wrote to the line that messages name.
    """

    file: str
    found: list[Diagnostic] = field(default_factory=list)
    line_of: Callable[[int], int] = int

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
        message = with_row(message, data, more)
        self.found.append(
            Diagnostic(
                severity=severity,
                code=code,
                message=message if message.isascii() else message.encode("utf-8", "backslashreplace").decode(),
                file=self.file,
                line=line,
                column=column,
                address=address,
                data=data,
            )
        )


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
