"""The marked result of a text template → the text without marks, and the origin of each character; pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from syncengine.document.text import LINE_END
from syncengine.resource import Row, Source

_VISIBLE = re.compile(r"\S")


class Places:
    """The origin of each character of `text`.

    `marks` are ascending offsets, the first of them 0, each with the template's line, and the data row, that wrote the
    text from there on.
    """

    def __init__(self, text: str, marks: Sequence[tuple[int, Source]]) -> None:
        self.marks = marks
        self._text = text
        self._offsets = [offset for offset, _ in marks]
        self._lines = [0, *(end.end() for end in LINE_END.finditer(text)), len(text) + 1]

    def _offset(self, line: int, column: int) -> int:
        """Return the offset of the first visible character at or after a column of a line; both count from 1."""
        begin, end = self._line(line)
        offset = min(begin + column - 1, end - 1)
        visible = _VISIBLE.search(self._text, offset, end)
        return visible.start() if visible else offset

    def line(self, line: int) -> int:
        """Return the template's line that wrote the beginning of a line of the text."""
        return self.at(line, 1).line

    def at(self, line: int, column: int) -> Source:
        """Return the origin of the text at a line and column."""
        return self.marks[bisect_right(self._offsets, self._offset(line, column)) - 1][1]

    def _line(self, line: int) -> tuple[int, int]:
        """Return the offsets at which a line begins and ends; those of the last line for lines beyond it."""
        n = min(max(line, 1), len(self._lines) - 1)
        return self._lines[n - 1], self._lines[n]


def unmarked(text: str, mark: re.Pattern[str], files: Sequence[str], rows: Sequence[Row]) -> tuple[str, Places]:
    """Return the text without its marks, and its places. `mark` matches the numbers of a row (-1: none), file and line.

    The text before the first mark belongs to the first file.
    """
    pieces = mark.split(text)
    plain = "".join(pieces[::4])
    return plain, Places(plain, list(_marks(pieces, files, rows)))


def _marks(pieces: Sequence[str], files: Sequence[str], rows: Sequence[Row]) -> Iterator[tuple[int, Source]]:
    """Yield an offset and an origin wherever the text of another line or row begins."""
    last, offset = (0, Source(files[0], 1)), len(pieces[0])
    for n in range(1, len(pieces), 4):
        row, file, line, piece = pieces[n : n + 4]
        if piece:
            origin = Source(files[int(file)], int(line), rows[int(row)] if row != "-1" else None)
            if origin != last[1]:
                if offset:
                    yield last
                last = (offset, origin)
            offset += len(piece)
    yield last
