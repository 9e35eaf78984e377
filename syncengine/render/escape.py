"""Make untrusted text safe to show, and measure, cut and wrap text in terminal cells. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

_JOINERS = frozenset("\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}")  # spelling, in several scripts and in emoji
_WIDE = frozenset("WF")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
LONGEST = 60
"""The number of letters above which a value in a row is cut."""
_CONTEXT = 12
_MARKED = re.compile(r"##(?=[A-Za-z]*\[)")
"""Commands of CI runners that work anywhere in a line: `##[error]`, `##vso[…]`, `##teamcity[…]`."""
_LEADING = re.compile(r"^((?:[^\S\n]|\x1b\[[0-9;]*m)*:):", re.M)
"""Commands of CI runners that work only at the start of a line, after optional blanks: `::error::`."""


def visible(text: str) -> str:
    """Return the text with control characters, terminal escapes, direction overrides and line ends escaped."""
    return text if text.isprintable() else "".join(map(_visible_letter, text))


def _visible_letter(letter: str) -> str:
    if letter.isprintable() or letter in _JOINERS or unicodedata.category(letter) == "Zs":
        return letter
    return letter.encode("unicode_escape").decode("ascii")


def harmless(text: str) -> str:
    """Return the text with commands of CI runners escaped.

    The escapes are valid JSON, so that a printed JSON document keeps its meaning.
    """
    if "##" in text:
        text = _MARKED.sub(r"#\\u0023", text)
    return _LEADING.sub(r"\1\\u003a", text) if "::" in text else text


def file_name(text: str) -> str:
    """Return a file's name with control characters and commands of CI runners escaped, safe for any log."""
    return harmless(visible(text))


def quoted(text: str) -> str:
    """Return the text between double quotes, with quotes and backslashes in it escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"') if '"' in text or "\\" in text else text
    return f'"{visible(escaped)}"'


def cells(text: str) -> int:
    """Return the number of columns that the text takes on a terminal."""
    if text.isascii():
        return len(text)
    others = _NOT_ASCII.findall(text)
    return len(text) - len(others) + sum(map(_letter_cells, others))


def _letter_cells(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in _WIDE else 1


def cut(text: str, width: int) -> str:
    """Return the text cut to at most `width` columns; a cut text ends with `…`."""
    if cells(text) <= width:
        return text
    characters, room = [], width - 1
    for letter in text:
        room -= _letter_cells(letter)
        if room < 0:
            break
        characters.append(letter)
    return "".join(characters) + "…"


def wrapped(text: str, width: int) -> list[str]:
    """Return the text in lines of at most `width` columns, broken between words where possible."""
    lines = [""]
    for word in _words(text, width):
        if lines[-1] and cells(lines[-1]) + 1 + cells(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


def _words(text: str, width: int) -> Iterator[str]:
    """Yield the words of a text; a word that is wider than a line comes in pieces."""
    for word in text.split(" "):
        rest = word
        while cells(rest) > width:
            piece = cut(rest, width)[:-1] or rest[0]
            yield piece
            rest = rest[len(piece) :]
        yield rest


def excerpts(before: str, after: str, longest: int = LONGEST) -> tuple[str, str]:
    """Return both texts, or of long ones only the parts that differ, with a little context."""
    if max(len(before), len(after)) <= longest:
        return before, after
    head = shared_length(before, after)
    tail = shared_length(before[head:][::-1], after[head:][::-1])
    return _window(before, head, tail, longest), _window(after, head, tail, longest)


def shared_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the common prefix of two sequences, in items (letters of a text)."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _window(text: str, head: int, tail: int, longest: int) -> str:
    """Return the text without its common head and tail, except for a little context."""
    start = max(0, head - _CONTEXT)
    end = len(text) - max(0, tail - _CONTEXT)
    if end - start > longest:
        end = start + longest - 1
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
