"""Tidy the output of ruamel.yaml: blank lines, and the columns of comments. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from syncengine.tools.fmt.lines import Is, Line, enclosing, lines_of

REMARK = "  "
"""The separator between content and a comment on the same line."""


def tidied(text: str, depths: Sequence[int | None]) -> str:
    """Return the text with its comments indented as in `depths`, the result of `comment_depths`."""
    return _apart(_commented(text, depths))


def _commented(text: str, depths: Sequence[int | None]) -> str:
    lines = lines_of(text)
    levels = iter(depths)
    rows: list[str] = []
    for number, line in enumerate(lines):
        row = _row(lines, number, next(levels, None)) if line.kind is Is.COMMENT else _remarked(line)
        if row or _may_be_blank(lines, number, rows):
            rows.append(row)
    while rows and not rows[-1]:
        rows.pop()
    return "".join(f"{row}\n" for row in rows)


def _apart(text: str) -> str:
    """Return the text with a blank line before each section but the first."""
    lines = lines_of(text)
    rows: list[str] = []
    for number, line in enumerate(lines):
        rows += [""] if rows and rows[-1] and _starts_section(lines, number) else []
        rows.append(line.text)
    return "".join(f"{row}\n" for row in rows)


def comment_depths(text: str) -> list[int | None]:
    """Return how many lines enclose each comment line, or `None` for one indented no deeper than the next content."""
    lines = lines_of(text)
    return [_depth(lines, number) for number, line in enumerate(lines) if line.kind is Is.COMMENT]


def _depth(lines: Sequence[Line], number: int) -> int | None:
    column = lines[number].column
    following = _next_content(lines, number)
    if following is not None and column <= lines[following].column:
        return None
    if not column:
        return 0
    return sum(lines[at].column <= column for at in enclosing(lines, number))


def _row(lines: Sequence[Line], number: int, depth: int | None) -> str:
    following = _next_content(lines, number)
    if depth is None:
        column = lines[following].column if following is not None else 0
    else:
        levels = enclosing(lines, number)
        column = lines[levels[min(depth, len(levels)) - 1]].column if depth and levels else 0
    return " " * column + lines[number].text.strip()


def _next_content(lines: Sequence[Line], number: int) -> int | None:
    for at in range(number + 1, len(lines)):
        if lines[at].kind is Is.MARKER:
            return None
        if lines[at].kind is Is.CONTENT:
            return at
    return None


def _remarked(line: Line) -> str:
    if line.kind is Is.INSIDE:
        return line.text
    if line.remark is None:
        return line.text.rstrip() if line.kind is not Is.CONTENT else line.text
    return line.text[: line.remark].rstrip() + REMARK + line.text[line.remark :].rstrip()


def _may_be_blank(lines: Sequence[Line], number: int, rows: Sequence[str]) -> bool:
    """Return whether a blank line may be kept: always inside a scalar, else one at a time and none at the top."""
    return lines[number].kind is Is.INSIDE or bool(rows and rows[-1])


def _starts_section(lines: Sequence[Line], number: int) -> bool:
    """Return whether a section other than a document's first, or the comment right above it, starts at this line."""
    at = number
    while at < len(lines) and lines[at].kind is Is.COMMENT and not lines[at].column:
        at += 1
    if at == len(lines) or lines[at].kind is not Is.CONTENT or lines[at].column or lines[at].text.startswith("-"):
        return False
    before = [line for line in lines[:number] if line.kind is not Is.BLANK]
    if number and lines[number - 1].kind is Is.COMMENT and not lines[number - 1].column:
        return False
    return any(line.kind is Is.CONTENT for line in before) and before[-1].kind is not Is.MARKER
