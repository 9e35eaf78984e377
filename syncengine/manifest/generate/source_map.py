"""The result of a text template with marks in it → the text without them, and the origin of each character; pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from syncengine.document.text import LINE_END
from syncengine.resource import Row, Source

_VISIBLE = re.compile(r"\S")


class Places:
    """The origin of each character of `text`.

    `marks` are offsets in their order, the first of them 0, each with the line of a template that wrote the text from
    there on, and the data row at hand there.
    """

    def __init__(self, text: str, marks: Sequence[tuple[int, Source]]) -> None:
        self.marks = marks
        self._text = text
        self._offsets = [offset for offset, _ in marks]
        self._lines = [0, *(end.end() for end in LINE_END.finditer(text)), len(text) + 1]

    def _offset(self, line: int, column: int) -> int:
        """The offset of the first visible character there or later on that line; both count from 1."""
        begin, end = self._line(line)
        offset = min(begin + column - 1, end - 1)
        visible = _VISIBLE.search(self._text, offset, end)
        return visible.start() if visible else offset

    def line(self, line: int) -> int:
        """The template's line that wrote the beginning of a line."""
        return self.at(line, 1).line

    def at(self, line: int, column: int) -> Source:
        """The origin of the text there."""
        return self.marks[bisect_right(self._offsets, self._offset(line, column)) - 1][1]

    def _line(self, line: int) -> tuple[int, int]:
        """The beginning and end of a line; those of the last one for lines beyond it."""
        n = min(max(line, 1), len(self._lines) - 1)
        return self._lines[n - 1], self._lines[n]


def unmarked(text: str, mark: re.Pattern[str], files: Sequence[str], rows: Sequence[Row]) -> tuple[str, Places]:
    """Remove the marks. `mark` matches the number of a row (-1: none), of a file, and its line.

    The text begins with the first of the files.
    """
    pieces = mark.split(text)
    plain = "".join(pieces[::4])
    return plain, Places(plain, list(_marks(pieces, files, rows)))


def _marks(pieces: Sequence[str], files: Sequence[str], rows: Sequence[Row]) -> Iterator[tuple[int, Source]]:
    """Yield a mark at each place where the text of another line or row begins."""
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
